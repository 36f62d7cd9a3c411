"""All uses of torch's private API; each has a fallback.

`make_fx`: without it a step is not written out (slower, the same numbers). `fast_bfloat16`: without it, from the
processor's own list of what it can do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

make_fx: Callable[..., Any] | None
try:
    from torch.fx.experimental.proxy_tensor import make_fx
except ImportError:
    make_fx = None


def fast_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 natively (AVX512-BF16 or AMX)."""
    try:
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    except AttributeError:
        return bool({"avx512_bf16", "amx_bf16"} & _processor_flags())


def _processor_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return set(next((line.split() for line in lines if line.startswith("flags")), ()))


def is_mutable(target: Any) -> bool:
    """Whether an operation of a graph writes into its arguments, as its schema says."""
    return bool(getattr(getattr(target, "_schema", None), "is_mutable", False))
