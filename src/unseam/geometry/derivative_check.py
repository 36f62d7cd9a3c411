"""A decoder's derivative is compared with finite differences when it is passed in.

    D v   against   (d(z + h v) - d(z - h v)) / 2h        at a few codes z, in random directions v

A part that is cut from the graph (detach, a straight-through estimator, a formula of its own in the backward pass)
gives a Jacobian that is not the decoder's, and nothing else would show it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unseam.rng import generator

_POINTS = 8
_STEPS = (1e-3, 1e-2)  # h, in standard deviations of the codes; a kink or rounding spoils one of them, not both
_APART = 0.1  # relative difference from which on it is said
_Columns = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # z (B, K), index (B, k) -> theta (B, ...), D (B, ..., k)


@torch.no_grad()
def derivative_warnings(
    decode: Callable[[Tensor], Tensor], columns: _Columns, z: Tensor, index: Tensor | None = None
) -> tuple[str, ...]:
    """One warning, or none. `index` says along which latents each row of z is moved; all of them when not given.

    >>> from unseam.geometry.jacobian import push
    >>> z = torch.randn(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> derivative_warnings(torch.sin, lambda p, _: push(torch.sin, p), z)
    ()
    >>> cut = lambda z: torch.sin(z) + 3 * z.detach()
    >>> derivative_warnings(cut, lambda p, _: push(cut, p), z)[0][:34]
    "the decoder's derivative is off by"
    """
    few = slice(None, None, max(1, len(z) // _POINTS))
    at = z[few][:_POINTS]
    k = torch.arange(z.shape[1], device=z.device).expand_as(at) if index is None else index[few][:_POINTS].to(z.device)
    random = torch.randn(k.shape, generator=generator(0, "derivative"), dtype=torch.float64, device="cpu").to(at)
    size = random * z.std(0)[k]  # (B, k)
    v = torch.zeros_like(at).scatter(1, k, size)
    D = columns(at, k)[1]
    found = (D * size.reshape(len(at), *[1] * (D.ndim - 2), -1)).sum(-1)
    slopes = [(decode(at + h * v) - decode(at - h * v)) / (2 * h) for h in _STEPS]
    apart = min(float((found - slope).norm() / slope.norm().clamp_min(1e-30)) for slope in slopes)
    if not apart > _APART:
        return ()
    return (
        f"the decoder's derivative is off by {apart:.0%} of what it is by finite differences: a part of it is cut from "
        "the graph (detach, rounding) or has a backward pass of its own, and the numbers here are of the rest",
    )
