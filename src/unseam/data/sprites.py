"""`sprites`: the factor space of dSprites (Matthey et al. 2017), drawn by us."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseam.data.checks import at_least, factor_rows, within
from unseam.data.grid import GridDataset
from unseam.data.sprite_atlas import PIXELS, SHAPES, atlas
from unseam.types import Factor, FactorSpace


@dataclass(frozen=True)
class Sprites(GridDataset):
    """White sprites on black: shape 3 x scale 6 x orientation 40 x x 32 x y 32 = 737,280 images.

    >>> data = Sprites(size=16, orientations=1)
    >>> len(data), data.space.names
    (18432, ('shape', 'scale', 'orientation', 'x', 'y'))
    >>> data.batch(torch.tensor([0, 5])).shape
    torch.Size([2, 1, 16, 16])
    """

    size: int = 64  # side of the image in pixels
    shapes: int = 3  # the first of square, ellipse, heart
    scales: int = 6  # from 0.5 to 1
    orientations: int = 40  # from 0 to 2 pi, both ends, as in the original
    xs: int = 32  # columns, left to right
    ys: int = 32  # rows, top to bottom
    binary: bool | None = None  # only 0 and 1, or grey edges; None: binary from 64 pixels up

    name = "sprites"
    likelihood = "bernoulli"
    stochastic = False

    def __post_init__(self) -> None:
        within("size", self.size, 8, 512)
        within("shapes", self.shapes, 1, len(SHAPES))
        for name in ("scales", "orientations", "xs", "ys"):
            at_least(name, getattr(self, name), 1)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (1, self.size, self.size)

    @cached_property
    def space(self) -> FactorSpace:  # type: ignore[override]
        return FactorSpace(
            (
                Factor("shape", self.shapes, "categorical"),
                Factor("scale", self.scales),
                Factor("orientation", self.orientations, "cyclic"),
                Factor("x", self.xs),
                Factor("y", self.ys),
            )
        )

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """How much of each pixel the sprite covers."""
        binary = self.size >= PIXELS if self.binary is None else self.binary
        a = atlas(self.size, binary, self.shapes, self.scales, self.orientations, self.xs, self.ys)
        shape, scale, orientation, x, y = factor_rows(factors, self.space).unbind(1)
        sprite = (shape * self.scales + scale) * self.orientations + orientation
        (shift_y, top), (shift_x, left) = a.y[y].unbind(1), a.x[x].unbind(1)
        canvas = (sprite * a.shifts[0] + shift_y) * a.shifts[1] + shift_x
        return a.windows[canvas, top, left].unsqueeze(1).float().div_(255)
