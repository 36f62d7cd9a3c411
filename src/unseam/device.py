"""Where tensors live: one word (`auto`, `cpu`, `cuda`, `cuda:1`, `mps`) -> a torch device that is really here."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unseam.errors import BadInput

if TYPE_CHECKING:
    import torch


def available_devices() -> list[str]:
    """The devices of this machine, the fastest first."""
    import torch

    cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return [*cuda, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def device(name: str = "auto") -> torch.device:
    """The device of that name; `auto` is the fastest there is, `cuda` the first GPU.

    >>> device("cpu")
    device(type='cpu')
    >>> device("gpu")
    Traceback (most recent call last):
    unseam.errors.BadInput: device='gpu' is not auto, cpu, cuda, cuda:N or mps
    """
    import torch

    kind, _, number = name.partition(":")
    if kind not in ("auto", "cpu", "cuda", "mps") or (":" in name and not (kind == "cuda" and number.isdecimal())):
        raise BadInput(f"device={name!r} is not auto, cpu, cuda, cuda:N or mps")
    found = available_devices()
    match = found[0] if name == "auto" else next((d for d in found if d == name or d.partition(":")[0] == name), None)
    if match is None:
        raise BadInput(
            f"device={name!r} is not on this machine, which has {', '.join(found)}; use one of these or auto"
        )
    return torch.device(match)


def recorded_device(name: str) -> torch.device:
    """The device a run was trained on, or the fastest one here where that is not on this machine."""
    try:
        return device(name)
    except BadInput:
        return device("auto")


# While a group trains, memory that one step frees is kept for the next.
#
# glibc hands large blocks back to the system as soon as they are free, and the system clears every page of them when
# they are asked for again: 8,000 pages, 10 to 20 of 85 ms, in a step of a 64x64 conv VAE. Other C libraries have no
# `mallopt`; there nothing changes.


TRIM, MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_LARGEST = 1 << 25  # bytes of a block that may come from the heap: the most that every glibc takes
_RETAINED = (1 << 31) - 1  # bytes of free heap that are not returned
USUAL = 1 << 26  # glibc's own, where it has seen a block of the largest size


@contextmanager
def retained_memory() -> Iterator[None]:
    """Inside the block freed memory stays with this process; it is returned to the system afterwards."""
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(MAP, _LARGEST)
        libc.mallopt(TRIM, _RETAINED)
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        yield
        return
    try:
        yield
    finally:
        libc.mallopt(TRIM, USUAL)
        libc.malloc_trim(0)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Inside the block torch computes with this many threads; afterwards with as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Inside the block this thread rounds numbers below 1e-38 (in float64 1e-308) to zero, afterwards as before.

    Arithmetic with them is slow, and the caller of `fit` and a process started by it must compute the same bits.
    """
    import torch

    before = sys.float_info.min / 2 == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
