"""seed -> named generators.

Every random draw of the project comes from a generator addressed by what it is for: `generator(seed, "noise", 7)`
is the noise of block 7 of the member with that seed, independent of earlier draws. So a member does not depend on
its neighbours, and a resumed run needs to know only its step.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive(seed: int, *address: str | int) -> int:
    """A 63-bit seed that depends on every part of the address.

    >>> derive(0, "noise", 1) == derive(0, "noise", 1), derive(0, "noise", 1) == derive(0, "noise", 2)
    (True, False)
    """
    text = "/".join(str(part) for part in (seed, *address))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator(seed: int, *address: str | int, device: str | torch.device = "cpu") -> torch.Generator:
    """A torch generator for one purpose, on one device; each kind of device has a stream of its own."""
    import torch

    return torch.Generator(device).manual_seed(derive(seed, *address))


def numpy_generator(seed: int, *address: str | int) -> np.random.Generator:
    """A NumPy generator for one purpose."""
    return np.random.default_rng(derive(seed, *address))
