"""The synthetic sets of Zietlow (2022), section 3.3.1: a unit square embedded in R^3 or R^6, and Allen's ring.

Neither is centred or rescaled: the thesis names no such step, and its networks have biases. `centred` takes the mean
of the points away, which is the other reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseam import rng
from unseam.axes import Factor, FactorSpace
from unseam.data.base import MAX_ROWS, GridDataset, SampledDataset, at_least, factor_rows, within

SQUARE = FactorSpace((Factor("w1", None, "continuous"), Factor("w2", None, "continuous")))


def rotation_about(axis: tuple[float, float, float], degrees: float) -> Tensor:  # (3, 3)
    """Rodrigues: R = I + sin(t) A + (1 - cos(t)) A^2, with A u = axis/|axis| x u.

    >>> rotation_about((0, 0, 1), 90).round().abs() @ torch.tensor([1.0, 0, 0]).double()
    tensor([0., 1., 0.], dtype=torch.float64)
    """
    a, b, c = (component / math.hypot(*axis) for component in axis)
    A = torch.tensor([[0, -c, b], [c, 0, -a], [-b, a, 0]], dtype=torch.float64)
    t = math.radians(degrees)
    return torch.eye(3, dtype=torch.float64) + math.sin(t) * A + (1 - math.cos(t)) * A @ A


def uniform_square(size: int, seed: int) -> Tensor:  # (N, 2)
    """N points of V = [0, 1]^2."""
    return torch.rand(size, 2, generator=rng.generator(seed, "square"), dtype=torch.float64)


def centre(x: Tensor, centred: bool) -> Tensor:  # (N, n) -> (n,)
    """What is taken away from every point: the mean of all, or nothing."""
    return x.mean(0) if centred else torch.zeros_like(x[0])


@dataclass(frozen=True)
class SynthLinear(SampledDataset):
    """x = R diag(ratio, 1) w in R^3: stretch one axis, embed, rotate 45 degrees about (1, -1, 1).

    Examples
    --------
    >>> data = SynthLinear(size=100)
    >>> data.batch(torch.arange(2)).shape
    torch.Size([2, 3])
    """

    ratio: float = 2.0
    """how much longer w1 is than w2 (Table 3.4: 1.0, 1.2, 1.5)"""
    size: int = 50_000
    """rows"""
    seed: int = 0
    """of the draws"""
    centred: bool = False
    """subtract the mean of each column"""

    name = "synth-linear"
    shape = (3,)
    space = SQUARE
    likelihood = "gaussian"

    def __post_init__(self) -> None:
        at_least("ratio", self.ratio, 1e-6)
        within("size", self.size, 1, MAX_ROWS)

    def draw(self) -> Tensor:
        return uniform_square(self.size, self.seed)

    @cached_property
    def matrix(self) -> Tensor:  # (3, 2)
        """The linear map; its columns are orthogonal with lengths `ratio` and 1."""
        embed = torch.eye(3, 2, dtype=torch.float64)
        return rotation_about((1, -1, 1), 45) @ embed @ torch.diag(torch.tensor([self.ratio, 1.0]).double())

    def function(self, factors: Tensor) -> Tensor:
        return factors @ self.matrix.T - self.centre

    @cached_property
    def centre(self) -> Tensor:  # (3,)
        return centre(self.draw() @ self.matrix.T, self.centred)


@dataclass(frozen=True)
class SynthNonlinear(SampledDataset):
    """x = W2 tanh(W1 w + b1) + b2 in R^6: a random network 2-10-6, every entry U(-1, 1) / sqrt(fan in).

    Examples
    --------
    >>> SynthNonlinear(size=100).batch(torch.arange(2)).shape
    torch.Size([2, 6])
    """

    size: int = 50_000
    """rows"""
    seed: int = 0
    """of the network and of the points"""
    centred: bool = False
    """subtract the mean of each column"""

    name = "synth-nonlinear"
    shape = (6,)
    space = SQUARE
    likelihood = "gaussian"

    def __post_init__(self) -> None:
        within("size", self.size, 1, MAX_ROWS)

    def draw(self) -> Tensor:
        return uniform_square(self.size, self.seed)

    @cached_property
    def layers(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """((W1, b1), (W2, b2))."""
        draw = rng.generator(self.seed, "network")

        def uniform(*shape: int, fan_in: int) -> Tensor:
            return (2 * torch.rand(*shape, generator=draw, dtype=torch.float64) - 1) / math.sqrt(fan_in)

        widths = ((2, 10), (10, 6))
        return tuple((uniform(b, a, fan_in=a), uniform(b, fan_in=a)) for a, b in widths)

    def function(self, factors: Tensor) -> Tensor:
        return self.network(factors) - self.centre

    def network(self, factors: Tensor) -> Tensor:
        """W2 tanh(W1 w + b1) + b2 of each row."""
        (W1, b1), (W2, b2) = self.layers
        return torch.tanh(factors @ W1.T + b1) @ W2.T + b2

    @cached_property
    def centre(self) -> Tensor:  # (6,)
        return centre(self.network(self.draw()), self.centred)


@dataclass(frozen=True)
class Ring(GridDataset):
    """2-D points on small circles that sit on a ring (Allen 2024, Figure 2, after Rezende and Viola 2018).

    x = radius (cos a, sin a) + small (cos b, sin b). With Var[x|z] = beta the default lengths put the merging of
    neighbours (beta of a few), of circles and of everything (beta 60 > radius^2 / 2) where the figure has them.

    Examples
    --------
    >>> data = Ring(circles=4, points=2, radius=10, small=1)
    >>> data.batch(torch.tensor([0, 1])).round()
    tensor([[11., 0.], [ 9., 0.]])
    """

    circles: int = 8
    """circles on the ring"""
    points: int = 16
    """on each circle"""
    radius: float = 10.0
    """of the ring"""
    small: float = 3.0
    """radius of each circle"""

    name = "ring"
    shape = (2,)
    likelihood = "gaussian"
    stochastic = False

    def __post_init__(self) -> None:
        for name in ("circles", "points"):
            at_least(name, getattr(self, name), 1)
        for name in ("radius", "small"):
            at_least(name, getattr(self, name), 0)

    @cached_property
    def space(self) -> FactorSpace:  # type: ignore[override]
        return FactorSpace((Factor("circle", self.circles, "cyclic"), Factor("point", self.points, "cyclic")))

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        turns = factor_rows(factors, self.space).double() / torch.tensor([self.circles, self.points])
        angles = 2 * math.pi * turns  # (B, 2): a, b
        lengths = torch.tensor([self.radius, self.small], dtype=torch.float64)
        return torch.stack([(lengths * angles.cos()).sum(1), (lengths * angles.sin()).sum(1)], 1).float()
