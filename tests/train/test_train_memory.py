"""Memory that a step frees stays with the process while a group trains, and no longer."""

import ctypes
import os
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch

from unseam import device as memory

BLOCK, BLOCKS = 4 << 20, 6  # bytes of a block; how many a step takes
FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class HeapState(ctypes.Structure):
    """struct mallinfo2 of <malloc.h>."""

    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


def free_heap_after_a_step() -> int:
    """Bytes of glibc's heap that are free, but not handed back, once a step's blocks are freed: glibc's own books.

    Counting page faults instead would ask the kernel too (its policy on huge pages, the layout of the heap).
    """
    count = ctypes.CDLL(None).mallinfo2
    count.restype = HeapState
    for _ in range(2):
        blocks = [torch.ones(BLOCK // 4) for _ in range(BLOCKS)]
        del blocks
    return int(count().fordblks)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="another C library than glibc 2.33 or later")
def test_a_step_pays_for_its_memory_once() -> None:
    code = """from test_train_memory import free_heap_after_a_step, memory
with memory.retained_memory():
    print(free_heap_after_a_step())"""
    tuned = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")  # other settings, or another allocator
    env = {name: value for name, value in os.environ.items() if not name.startswith(tuned)}
    folder = os.path.dirname(__file__)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True)
    assert int(done.stdout) >= BLOCK * BLOCKS, done.stderr


def test_memory_is_handed_back_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []
    libc = SimpleNamespace(mallopt=lambda *a: calls.append(a), malloc_trim=lambda pad: calls.append(("trim", pad)))
    monkeypatch.setattr(ctypes, "CDLL", lambda _: libc)
    with suppress(KeyError), memory.retained_memory():
        calls.append(("inside",))
        raise KeyError
    assert calls[calls.index(("inside",)) + 1 :] == [(memory.TRIM, memory.USUAL), ("trim", 0)]


def test_without_the_c_librarys_door_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    with memory.retained_memory():
        pass
