"""A verb runs through few files: what a reader must open to follow it. `tests/walks.py --files` lists them."""

from pathlib import Path

import pytest

from walks import walk

# a quarter fewer than the 45, 41 and 58 files before the run folder had a package of its own
LIMITS = {"train": 33, "find": 30, "diagnose": 43}


@pytest.mark.parametrize("verb", LIMITS)
def test_a_verb_runs_through_few_files(verb: str, tmp_path: Path) -> None:
    files = walk(verb, tmp_path)
    assert f"unseam/cli/{verb}.py" in files
    assert len(files) <= LIMITS[verb], sorted(files)
