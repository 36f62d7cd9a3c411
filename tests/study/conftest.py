"""One finished study for all tests of the room."""

from pathlib import Path

import pytest

from unseam.study.engine import work_on_study
from unseam.study.grid import load_grid
from unseam.study.pieces import start_study


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tiny.toml, trained and scored in this process."""
    folder = tmp_path_factory.mktemp("studies") / "tiny"
    start_study(folder, load_grid(Path(__file__).parent / "tiny.toml"))
    work_on_study(str(folder))
    return folder
