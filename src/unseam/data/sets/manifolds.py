"""`manifolds`: non-linear ground truths whose Jacobian has exactly orthogonal columns of different lengths.

x = Q g(S w), w ~ N(0, I): w is stretched, mapped by orthogonal curvilinear coordinates g, and embedded in R^n by
a frame Q with orthonormal columns (an isometry). In the plane any analytic function is such a g: by
Cauchy-Riemann d/du and d/dv are orthogonal and both of length |f'|, so the stretch alone sets the ratio of the two
singular values. The torus is curved and its two lengths vary along the surface. More than two factors are a product
of pairs, each shorter than the one before. `shear` mixes the factors of a pair, and breaks the orthogonality.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseam import rng
from unseam.axes import Factor, FactorSpace
from unseam.data.base import MAX_ROWS, SampledDataset, at_least, within
from unseam.errors import lookup


class _Coordinates(NamedTuple):
    """g: (B, 2) -> (B, m) and its Jacobian (B, m, 2). The first coordinate is the one that gets the longer column."""

    dims: int
    point: Callable[[Tensor], Tensor]
    jacobian: Callable[[Tensor], Tensor]


def analytic(f: Callable[[Tensor], Tensor], derivative: Callable[[Tensor], Tensor], centre: float) -> _Coordinates:
    """g(v, u) = f(centre + u + i v): columns d/dv = i f' and d/du = f'."""

    def z(c: Tensor) -> Tensor:
        return torch.complex(centre + c[:, 1], c[:, 0])

    def jacobian(c: Tensor) -> Tensor:
        d = derivative(z(c))
        return torch.stack([torch.view_as_real(1j * d), torch.view_as_real(d)], dim=2)

    return _Coordinates(2, lambda c: torch.view_as_real(f(z(c))), jacobian)


def _torus(c: Tensor) -> Tensor:  # (B, 2) -> (B, 3)
    """((2 + cos t) cos p, (2 + cos t) sin p, sin t) at p, t: columns of length 2 + cos t >= 1 and exactly 1."""
    p, t = c.unbind(1)
    return torch.stack([(2 + t.cos()) * p.cos(), (2 + t.cos()) * p.sin(), t.sin()], dim=1)


def _torus_jacobian(c: Tensor) -> Tensor:  # (B, 2) -> (B, 3, 2)
    p, t = c.unbind(1)
    along = torch.stack([-(2 + t.cos()) * p.sin(), (2 + t.cos()) * p.cos(), torch.zeros_like(p)], dim=1)
    round_ = torch.stack([-t.sin() * p.cos(), -t.sin() * p.sin(), t.cos()], dim=1)
    return torch.stack([along, round_], dim=2)


COORDINATE_SYSTEMS: dict[str, _Coordinates] = {
    "log-polar": analytic(torch.exp, torch.exp, 0.0),  # angle and log radius
    "parabolic": analytic(lambda z: z * z / 2, lambda z: z, 2.0),
    "elliptic": analytic(torch.cosh, torch.sinh, 1.5),
    "torus": _Coordinates(3, _torus, _torus_jacobian),
}


@dataclass(frozen=True)
class Manifolds(SampledDataset):
    """Gaussian factors on an orthogonal curvilinear grid in R^n.

    Examples
    --------
    >>> data = Manifolds(kind="torus", size=100)
    >>> J = data.jacobian(data.factors(torch.arange(100)))
    >>> bool((J[:, :, 0] * J[:, :, 1]).sum(1).abs().max() < 1e-12)
    True
    """

    kind: str = "log-polar"
    """log-polar, parabolic, elliptic or torus"""
    pairs: int = 1
    """the data has 2 * pairs factors"""
    ratio: float = 2.0
    """of the lengths of neighbouring Jacobian columns (for torus: at least)"""
    spread: float = 0.7
    """standard deviation of the first coordinate"""
    shear: float = 0.0
    """0 keeps the columns orthogonal"""
    dims: int = 12
    """n"""
    size: int = 50_000
    """rows"""
    seed: int = 0
    """of the draws"""

    name = "manifolds"
    likelihood = "gaussian"

    def __post_init__(self) -> None:
        coordinates = lookup(COORDINATE_SYSTEMS, self.kind, "kind")
        at_least("pairs", self.pairs, 1)
        within("size", self.size, 1, MAX_ROWS)
        at_least("ratio", self.ratio, 1.0)
        at_least("spread", self.spread, 1e-6)
        at_least("dims", self.dims, self.pairs * coordinates.dims)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.dims,)

    @cached_property
    def space(self) -> FactorSpace:  # type: ignore[override]
        return FactorSpace(tuple(Factor(f"w{i + 1}", None, "continuous") for i in range(2 * self.pairs)))

    def draw(self) -> Tensor:
        return torch.randn(self.size, 2 * self.pairs, generator=rng.generator(self.seed, "w"), dtype=torch.float64)

    @cached_property
    def frame(self) -> Tensor:  # (n, pairs * m)
        """Q, with Q^T Q = I."""
        gauss = rng.numpy_generator(self.seed, "frame").standard_normal(
            (self.dims, self.pairs * COORDINATE_SYSTEMS[self.kind].dims)
        )
        return torch.from_numpy(np.linalg.qr(gauss)[0])

    @cached_property
    def stretch(self) -> Tensor:  # (2, 2)
        """One pair's w -> coordinates: diag(spread, spread / ratio), after the shear."""
        S = torch.diag(torch.tensor([self.spread, self.spread / self.ratio], dtype=torch.float64))
        return S @ torch.tensor([[1.0, self.shear], [0.0, 1.0]], dtype=torch.float64)

    def _lengths(self) -> Tensor:  # (pairs, 1)
        """Pair p is ratio^(2 p) times shorter than the first."""
        return (max(self.ratio, math.sqrt(2)) ** (-2.0 * torch.arange(self.pairs, dtype=torch.float64))).unsqueeze(1)

    def function(self, factors: Tensor) -> Tensor:
        c = factors.reshape(-1, 2) @ self.stretch.T  # (B * pairs, 2)
        g = COORDINATE_SYSTEMS[self.kind].point(c).reshape(len(factors), self.pairs, -1) * self._lengths()
        return g.flatten(1) @ self.frame.T

    def jacobian(self, factors: Tensor) -> Tensor:  # (B, F) -> (B, n, F), float64
        """dx/dw in closed form."""
        B, m = len(factors), COORDINATE_SYSTEMS[self.kind].dims
        c = factors.double().reshape(-1, 2) @ self.stretch.T
        J = (COORDINATE_SYSTEMS[self.kind].jacobian(c) @ self.stretch).reshape(B, self.pairs, m, 2) * self._lengths()[
            ..., None
        ]
        Q = self.frame.reshape(self.dims, self.pairs, m)
        return torch.einsum("npm,bpmk->bnpk", Q, J).flatten(2)
