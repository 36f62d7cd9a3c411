"""The short forms of tests/faults/fault_study.py and fault_pause_points.py: some kills and pauses, the same bytes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[1] / "faults"


def test_killed_workers_and_drivers_leave_the_same_bytes(tmp_path: Path) -> None:
    script = [sys.executable, str(FAULTS / "fault_study.py"), str(tmp_path / "kills"), "4"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["defects"] == []
    assert found["kills"] >= 4
    assert found["counts"]["here: studies"] >= 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_a_pause_before_a_file_event_and_a_takeover_leave_the_same_bytes(tmp_path: Path) -> None:
    """And the campaign can tell: without the check before a write, or with the temporary files of the paused worker
    left in place, it ends with other bytes."""
    script = [sys.executable, str(FAULTS / "fault_pause_points.py"), str(tmp_path / "pauses"), "--short"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["all"]["defects"] == []
    assert found["all"]["counts"]["takeovers"] >= found["all"]["done"] == 4
    for left_out in ("guard", "removal"):
        assert any("other bytes" in defect for defect in found[left_out]["defects"])
