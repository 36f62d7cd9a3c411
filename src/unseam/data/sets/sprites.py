"""`sprites`: the factor space of dSprites (Matthey et al. 2017), drawn by us."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array, Factor, FactorSpace
from unseam.data.base import GridDataset, at_least, factor_rows, within


@dataclass(frozen=True)
class Sprites(GridDataset):
    """White sprites on black: shape 3 x scale 6 x orientation 40 x x 32 x y 32 = 737,280 images.

    Examples
    --------
    >>> data = Sprites(size=16, orientations=1)
    >>> len(data), data.space.names
    (18432, ('shape', 'scale', 'orientation', 'x', 'y'))
    >>> data.batch(torch.tensor([0, 5])).shape
    torch.Size([2, 1, 16, 16])
    """

    size: int = 64
    """side of the image in pixels"""
    shapes: int = 3
    """the first of square, ellipse, heart"""
    scales: int = 6
    """from 0.5 to 1"""
    orientations: int = 40
    """from 0 to 2 pi, both ends, as in the original"""
    xs: int = 32
    """columns, left to right"""
    ys: int = 32
    """rows, top to bottom"""
    binary: bool | None = None
    """only 0 and 1, or grey edges; None: binary from 64 pixels up"""

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
        binary = self.size >= _PIXELS if self.binary is None else self.binary
        a = atlas(self.size, binary, self.shapes, self.scales, self.orientations, self.xs, self.ys)
        shape, scale, orientation, x, y = factor_rows(factors, self.space).unbind(1)
        sprite = (shape * self.scales + scale) * self.orientations + orientation
        (shift_y, top), (shift_x, left) = a.y[y].unbind(1), a.x[x].unbind(1)
        canvas = (sprite * a.shifts[0] + shift_y) * a.shifts[1] + shift_x
        return a.windows[canvas, top, left].unsqueeze(1).float().div_(255)


# Every sprite of `sprites`, drawn once and laid out so that an image is one strided copy.
#
# A sprite (shape x scale x orientation) is drawn on a grid finer than the pixels, moved by each fraction of a pixel
# that the position grid needs, averaged over pixels, and put into the middle of a canvas; the image of a position is
# then a window of that canvas. Lengths are in pixels of the 64x64 original; other sizes scale them.


_PIXELS = 64  # side of the original
_REACH = 16.0  # half the side of the patch that holds any sprite; centres run over [REACH, PIXELS - REACH]
STEPS_PER_PIXEL = 4  # positions are exact to 1/4 pixel


def square(x: Array, y: Array) -> Array:
    return np.maximum(abs(x), abs(y)) <= 9.2  # so that the six scales differ by whole pixels


def ellipse(x: Array, y: Array) -> Array:
    return (x / 7) ** 2 + (y / 14) ** 2 <= 1


def heart(x: Array, y: Array) -> Array:
    """x^2 + (1.2 y - 0.75 sqrt|x|)^2 <= 1, 20 pixels wide, upside up, turned about its centroid."""
    x, y = x / 10, 0.38 - y / 10
    return x * x + (1.2 * y - 0.75 * np.sqrt(abs(x))) ** 2 <= 1


Inside = Callable[[Array, Array], Array]  # is the point (x right, y down) in the sprite?
SHAPES: dict[str, Inside] = {"square": square, "ellipse": ellipse, "heart": heart}


def spread(low: float, high: float, count: int, alone: float) -> Array:
    """`count` values from low to high; a single one is `alone`.

    >>> spread(0, 1, 3, alone=0.5), spread(0, 1, 1, alone=0.5)
    (array([0. , 0.5, 1. ]), array([0.5]))
    """
    return np.linspace(low, high, count) if count > 1 else np.array([alone])


class Axis(NamedTuple):
    """The positions along one axis: whole pixels, and fractions of a pixel in fine steps."""

    shifts: Array  # the distinct fractions
    which: Array  # (positions,) which of them
    pixel: Array  # (positions,) whole pixels

    @property
    def room(self) -> int:
        """How many windows a canvas must offer along this axis."""
        return int(self.pixel.max() - self.pixel.min()) + 1

    def places(self) -> Tensor:  # (positions, 2)
        """Per position: which shift, which window."""
        return torch.from_numpy(np.stack([self.which, self.pixel.max() - self.pixel], axis=1))


def positions(count: int, size: int, fine: int) -> Axis:
    """`count` centres over the middle half of the image, rounded to 1/STEPS_PER_PIXEL."""
    step = fine // STEPS_PER_PIXEL
    centres = spread(_REACH + 0.5, _PIXELS - _REACH - 0.5, count, _PIXELS / 2) * size / _PIXELS * fine
    offset = round(centres[0]) % step
    fine_pixel = (np.round((centres - offset) / step) * step + offset).astype(int)
    shifts, which = np.unique(fine_pixel % fine, return_inverse=True)
    return Axis(shifts, which, fine_pixel // fine)


def draw(inside: Inside, scale: float, angles: Array, half: int, unit: float) -> Array:
    """Which points of the fine grid are covered: (orientations, 2 half, 2 half), the centre in the middle."""
    r = ((np.arange(2 * half) - half + 0.5) * unit / scale).astype(np.float32)
    c, s = (f(angles).astype(np.float32)[:, None, None] for f in (np.cos, np.sin))
    x, y = r[None, None, :], r[None, :, None]
    return inside(c * x + s * y, c * y - s * x)


def pool(drawn: Array, down: int, right: int, fine: int) -> Array:
    """Move by a fraction of a pixel (in fine steps) and average over pixels: (orientations, side, side)."""
    count, n, _ = drawn.shape
    side = n // fine + 1
    moved = np.zeros((count, side * fine, side * fine), np.uint8)
    moved[:, down : down + n, right : right + n] = drawn
    rows = moved.reshape(count, side, fine, side * fine).sum(2, dtype=np.uint16)
    return rows.reshape(count, side, side, fine).sum(3, dtype=np.uint16) / np.float32(fine * fine)


def paint(canvas: Array, grey: Array, top: int, left: int, binary: bool) -> None:
    """Put patches (orientations, side, side) onto canvases (orientations, height, width)."""
    patch = np.where(grey > 0.5, 255, 0) if binary else np.round(255 * grey)
    rows, columns = canvas.shape[1] - top, canvas.shape[2] - left
    canvas[:, top : top + grey.shape[1], left : left + grey.shape[2]] = patch[:, :rows, :columns]


class Atlas(NamedTuple):
    """All sprites, ready to be placed: windows[canvas, top, left] is an image (H, W)."""

    windows: Tensor  # (canvases, tops, lefts, H, W) uint8, a strided view
    x: Tensor  # (xs, 2): which shift, which left
    y: Tensor  # (ys, 2): which shift, which top
    shifts: tuple[int, int]  # how many in y and in x; canvas = (sprite * shifts[0] + shift_y) * shifts[1] + shift_x


@lru_cache(maxsize=8)
def atlas(size: int, binary: bool, shapes: int, scales: int, orientations: int, xs: int, ys: int) -> Atlas:
    """Draw the sprites of one configuration (about half a second), once per process."""
    fine = STEPS_PER_PIXEL * max(1, math.ceil(_PIXELS / size))
    half = math.ceil(_REACH * size / _PIXELS)  # of the patch, in pixels
    Y, X = (positions(n, size, fine) for n in (ys, xs))
    height, width = size + Y.room - 1, size + X.room - 1
    kinds = [(inside, scale) for inside in list(SHAPES.values())[:shapes] for scale in spread(0.5, 1, scales, 1.0)]
    angles = spread(0, 2 * math.pi, orientations, 0.0)
    canvas = np.zeros((len(kinds), orientations, len(Y.shifts), len(X.shifts), height, width), np.uint8)
    for k, (inside, scale) in enumerate(kinds):
        drawn = draw(inside, scale, angles, half * fine, _PIXELS / (size * fine))
        for i, down in enumerate(Y.shifts.tolist()):
            for j, right in enumerate(X.shifts.tolist()):
                grey = pool(drawn, down, right, fine)
                paint(canvas[k, :, i, j], grey, Y.pixel.max() - half, X.pixel.max() - half, binary)
    windows = torch.from_numpy(canvas).as_strided(
        (canvas.size // (height * width), Y.room, X.room, size, size), (height * width, width, 1, width, 1)
    )
    return Atlas(windows, X.places(), Y.places(), (len(Y.shifts), len(X.shifts)))
