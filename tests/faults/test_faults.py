"""The campaign's short form: a kill before every file event of a training, and some hundred bad inputs.

`python -m tests.faults` is the long one; docs/reliability.md has its counts.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fault_fuzz import KINDS, Seeds, one

from unseam.cli import main
from unseam.data import files, stamps

SHARE = 5.2  # inputs a hundredth: 520 in all


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return Seeds.make(tmp_path_factory.mktemp("seeds"))


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_answered_or_refused_in_one_line(kind: str, seeds: Seeds, tmp_path: Path) -> None:
    """There are 520 inputs over all kinds; each follows from its number."""
    found = {number: one(seeds, kind, number, tmp_path) for number in range(round(SHARE * KINDS[kind][1]))}
    assert {number: defect for number, (_, defect) in found.items() if defect} == {}
    assert {outcome for outcome, _ in found.values()} & {"refused", "failed"}, (
        "nothing was refused: is it broken at all?"
    )


def test_the_number_of_inputs() -> None:
    assert sum(round(SHARE * share) for _, share in KINDS.values()) >= 500


def test_a_kill_before_every_file_event_loses_nothing(tmp_path: Path) -> None:
    """Training goes on bit for bit; evaluate, diagnose, align and report leave whole files or none."""
    script, place = Path(__file__).parent / "fault_kills.py", tmp_path / "kills"
    done = subprocess.run(
        [sys.executable, str(script), str(place), "1000", "3", "0", "2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["defects"] == []
    assert found["counts"]["train, before a file event"] == found["counts"]["file events of train"] > 20
    assert "temporary files left after going on" not in found["counts"]
    assert found["kills"] > 30


def test_a_note_or_a_cache_that_is_damaged_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path))
    monkeypatch.setattr(stamps, "LARGE", 0)
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(3))
    for content in (b"", b"[1]", b"\xff", b'["a", 2]', b"{}"):
        assert stamps.remember(path, None, lambda: (0.0, 1.0)) == (0.0, 1.0)
        (note,) = (tmp_path / "checked").iterdir()
        note.write_bytes(content)
    for content in (b"", b"\x93NUMPY\x01\x00\x02\x00{}", (tmp_path / "x.npy").read_bytes()):
        (tmp_path / "cache").mkdir(exist_ok=True)
        (tmp_path / "cache" / "a.npy").write_bytes(content)
        assert files.cached_array("a.npy", (2,), lambda: np.ones(2)).tolist() == [1, 1]
    (tmp_path / "checked").rename(tmp_path / "gone")
    (tmp_path / "checked").write_text("in the way")
    assert stamps.remember(path, None, lambda: (0.0, 1.0)) == (0.0, 1.0)


def test_every_page_has_a_policy_without_scripts_of_others(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    small = ["--data.size", "16", "--data.shapes", "1", "--steps", "2", "--out", str(out)]
    assert main(["objectives", "beta-vae", "--page", "sprites", *small]) == 0
    assert "default-src 'none'" in out.read_text()
    templates = Path(files.__file__).parents[1] / "show" / "templates"
    whole = [p for p in templates.glob("*.html") if "<head>" in p.read_text()]
    assert len(whole) >= 2
    assert [p.name for p in whole if "Content-Security-Policy" not in p.read_text()] == []
