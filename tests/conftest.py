"""One thread a process (pytest-xdist has one process a core), and no test sees the user's data folder."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path_factory.getbasetemp() / "data"))
