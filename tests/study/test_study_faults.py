"""The short form of tests/faults/fault_study.py: some kills, the same bytes."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "faults" / "fault_study.py"


def test_killed_workers_and_drivers_leave_the_same_bytes(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), str(tmp_path / "kills"), "4"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["defects"] == []
    assert found["kills"] >= 4
    assert found["counts"]["here: studies"] >= 1
