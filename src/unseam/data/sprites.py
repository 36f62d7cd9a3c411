"""`sprites`: the factor space of dSprites (Matthey et al. 2017), drawn by us.

The variants follow Locatello et al. (2019): `colour` draws a colour in [0.5, 1]^3 per observation, `noisy` puts uniform
noise behind the sprite, `background` a random, randomly tinted crop of an image with the sprite as its negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam import rng
from unseam.data.checks import at_least, factor_rows, within
from unseam.data.grid import GridDataset
from unseam.data.images import read_picture
from unseam.data.sprite_atlas import PIXELS, SHAPES, atlas
from unseam.errors import BadInput
from unseam.types import Factor, FactorSpace


@lru_cache(maxsize=4)
def _background(path: str, size: int) -> Tensor:  # (C=3, H, W)
    picture = read_picture(path)
    if min(picture.shape[:2]) < size:
        h, w = picture.shape[:2]
        raise BadInput(f"background={path!r} is {h}x{w} pixels; it must be at least {size}x{size}")
    return torch.from_numpy(picture.astype(np.float32)).permute(2, 0, 1) / 255


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
    colour: bool = False  # a random colour per observation
    noisy: bool = False  # uniform noise as background
    background: str | None = None  # an image (or .npy) whose random crops are the background

    name = "sprites"
    likelihood = "bernoulli"

    def __post_init__(self) -> None:
        within("size", self.size, 8, 512)
        within("shapes", self.shapes, 1, len(SHAPES))
        for name in ("scales", "orientations", "xs", "ys"):
            at_least(name, getattr(self, name), 1)
        if self.noisy and self.background:
            raise BadInput(f"noisy=True and background={self.background!r} both fill the background; choose one")
        if self.background:
            _background(self.background, self.size)

    @property
    def stochastic(self) -> bool:  # type: ignore[override]
        return self.colour or self.noisy or self.background is not None

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (3 if self.stochastic else 1, self.size, self.size)

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

    def masks(self, factors: Tensor) -> Tensor:  # (B, F) -> (B, 1, H, W)
        """How much of each pixel the sprite covers."""
        binary = self.size >= PIXELS if self.binary is None else self.binary
        a = atlas(self.size, binary, self.shapes, self.scales, self.orientations, self.xs, self.ys)
        shape, scale, orientation, x, y = factor_rows(factors, self.space).unbind(1)
        sprite = (shape * self.scales + scale) * self.orientations + orientation
        (shift_y, top), (shift_x, left) = a.y[y].unbind(1), a.x[x].unbind(1)
        canvas = (sprite * a.shifts[0] + shift_y) * a.shifts[1] + shift_x
        return a.windows[canvas, top, left].unsqueeze(1).float().div_(255)

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        m = self.masks(factors)
        if not self.stochastic:
            return m
        draw = generator or rng.generator(0, "sprites")
        behind = self._behind(m, draw)
        if self.colour:
            front: Any = 0.5 + 0.5 * torch.rand(m.shape[0], 3, 1, 1, generator=draw)
        else:
            front = 1 - behind if self.background else 1.0
        return m * front + (1 - m) * behind

    def _behind(self, m: Tensor, draw: torch.Generator) -> Tensor:  # (B, 3, H, W), or zero
        B = m.shape[0]
        if self.noisy:
            return torch.rand(B, *self.shape, generator=draw)
        if not self.background:
            return torch.zeros(1)
        picture = _background(self.background, self.size)
        windows = picture.unfold(1, self.size, 1).unfold(2, self.size, 1)  # (3, tops, lefts, H, W)
        top, left = (torch.randint(n, (B,), generator=draw) for n in windows.shape[1:3])
        tint = torch.rand(B, 3, 1, 1, generator=draw)
        return (windows[:, top, left].movedim(0, 1) + tint) / 2
