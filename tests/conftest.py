"""One thread a process (xdist has one process per core), no test sees the user's data folder, no file stays behind.

No test depends on those before it: shared random numbers start afresh, and arithmetic is what it was.
"""

import copy
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# the same examples on every machine, however slow it is
settings.register_profile("everywhere", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("everywhere")


def pytest_configure(config: pytest.Config) -> None:
    """Child processes and C libraries (torch's compiler, onnxruntime, Dask) put their files into a folder that goes.

    `tempfile` of this process and pytest's own folders stay where they were: what failed can be looked at.
    """
    tempfile.gettempdir()  # kept by Python from here on
    folder = tempfile.TemporaryDirectory(prefix="unseam-tests-", ignore_cleanup_errors=True)
    for name in ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "DASK_TEMPORARY_DIRECTORY"):
        os.environ[name] = folder.name
    config.add_cleanup(folder.cleanup)


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path_factory.getbasetemp() / "data"))


_STATES: dict[str, Any] = {}  # of the generator of a module, before its first test


@pytest.fixture(autouse=True)
def _own_random_numbers(request: pytest.FixtureRequest) -> None:
    """`RNG` of a module starts afresh in every test: its data do not depend on which tests ran before."""
    module = getattr(request.node, "module", None)
    generator = getattr(module, "RNG", None)
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = copy.deepcopy(
            _STATES.setdefault(module.__name__, generator.bit_generator.state)
        )


@pytest.fixture(autouse=True)
def _arithmetic_as_it_was() -> Iterator[None]:
    """Whatever trains or scores leaves the thread of its caller as it was: numbers below 1e-308 are not zero."""
    yield
    assert sys.float_info.min / 2 > 0
