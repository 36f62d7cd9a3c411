"""One thread a process (xdist has one process per core), no test sees the user's data folder, no file stays behind."""

import os
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")

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
