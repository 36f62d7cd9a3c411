"""Memory that a step frees is kept for the next, while a group trains and no longer."""

import ctypes
import resource
import subprocess
import sys

import pytest
import torch

from unseam.train import memory

PAGE = resource.getpagesize()
BLOCK = 4 << 20  # bytes


def faults() -> int:
    """Pages that six blocks cost which were there a moment ago."""
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        blocks = [torch.ones(BLOCK // 4) for _ in range(6)]
        found = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        del blocks
    return found


def outside_and_inside() -> tuple[int, int]:
    outside = faults()
    with memory.kept_memory():
        return outside, faults()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library than glibc")
def test_a_step_pays_for_its_memory_once() -> None:
    code = "from test_train_memory import outside_and_inside; print(*outside_and_inside())"
    told = subprocess.run([sys.executable, "-c", code], cwd=__file__.rpartition("/")[0], capture_output=True, text=True)
    outside, inside = map(int, told.stdout.split())
    assert inside * PAGE < BLOCK / 10
    assert outside * PAGE > BLOCK  # else there is nothing to gain, and the module can go


def test_without_the_c_librarys_door_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    with memory.kept_memory():
        pass
