"""`sprites`: the factor space of dSprites (Matthey et al. 2017), drawn by us.

Every sprite (shape x scale x orientation: 720) is drawn once per configuration, with sub-pixel shifts where the
position grid needs them; an image is then one strided copy out of a canvas that holds the sprite in its middle.
Lengths are those of the 64x64 original; other sizes scale them. The variants follow Locatello et al. (2019):
`colour` draws a colour in [0.5, 1]^3 per observation, `noisy` puts uniform noise behind the sprite, `background`
a random, randomly tinted crop of an image with the sprite as its negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseam import rng
from unseam.data.checks import at_least, factor_rows, within
from unseam.data.grid import GridDataset
from unseam.errors import BadInput
from unseam.types import Array, Factor, FactorSpace

PIXELS = 64  # lengths below are in pixels of the original
REACH = 16.0  # half the side of the patch that holds any sprite; centres run over [REACH, PIXELS - REACH]
STEPS_PER_PIXEL = 4  # positions are exact to 1/4 pixel


def square(x: Array, y: Array) -> Array:
    return np.maximum(abs(x), abs(y)) <= 9.2  # so that the six scales differ by whole pixels


def ellipse(x: Array, y: Array) -> Array:
    return (x / 7) ** 2 + (y / 14) ** 2 <= 1


def heart(x: Array, y: Array) -> Array:
    """x^2 + (1.2 y - 0.75 sqrt|x|)^2 <= 1, 20 pixels wide, upside up, turned about its centroid."""
    x, y = x / 10, 0.38 - y / 10
    return x * x + (1.2 * y - 0.75 * np.sqrt(abs(x))) ** 2 <= 1


SHAPES: dict[str, Callable[[Array, Array], Array]] = {"square": square, "ellipse": ellipse, "heart": heart}


def spread(low: float, high: float, count: int, alone: float) -> Array:
    """`count` values from low to high; a single one is `alone`."""
    return np.linspace(low, high, count) if count > 1 else np.array([alone])


class Atlas(NamedTuple):
    """All sprites, ready to be placed: windows[c, top, left] is an image (H, W) of canvas c."""

    windows: Tensor  # (canvases, tops, lefts, H, W) uint8, a strided view
    x: Tensor  # (X, 2) per x value: which shift, which left
    y: Tensor  # (Y, 2) per y value: which shift, which top
    shifts: tuple[int, int]  # how many shifts in y and in x


def _grid(count: int, size: int, fine: int) -> tuple[Array, Array, Array]:
    """Positions of one axis -> shifts (distinct, in 1/fine pixel), and per value: which shift, whole pixel."""
    step = fine // STEPS_PER_PIXEL
    centres = spread(REACH + 0.5, PIXELS - REACH - 0.5, count, PIXELS / 2) * size / PIXELS * fine
    offset = round(centres[0]) % step
    places = (np.round((centres - offset) / step) * step + offset).astype(int)
    shifts, which = np.unique(places % fine, return_inverse=True)
    return shifts, which, places // fine


def _draw(inside: Callable[[Array, Array], Array], scale: float, angles: Array, half: int, unit: float) -> Array:
    """Coverage of the fine grid (orientations, 2 half, 2 half), the sprite's centre in the middle."""
    r = ((np.arange(2 * half) - half + 0.5) * unit / scale).astype(np.float32)
    c, s = (f(angles).astype(np.float32)[:, None, None] for f in (np.cos, np.sin))
    x, y = r[None, None, :], r[None, :, None]
    return inside(c * x + s * y, c * y - s * x)


def _pool(fine_images: Array, shift: tuple[int, int], fine: int, side: int) -> Array:
    """Move by a fraction of a pixel (in fine steps, down and right) and average over pixels: (O, side, side)."""
    count, n, _ = fine_images.shape
    room = np.zeros((count, side * fine, side * fine), np.uint8)
    room[:, shift[0] : shift[0] + n, shift[1] : shift[1] + n] = fine_images
    rows = room.reshape(count, side, fine, side * fine).sum(2, dtype=np.uint16)
    return rows.reshape(count, side, side, fine).sum(3, dtype=np.uint16) / np.float32(fine * fine)


@lru_cache(maxsize=8)
def atlas(size: int, binary: bool, shapes: int, scales: int, orientations: int, xs: int, ys: int) -> Atlas:
    """Draw the sprites of one configuration (about half a second), once per process."""
    fine = STEPS_PER_PIXEL * max(1, math.ceil(PIXELS / size))
    half = math.ceil(REACH * size / PIXELS) * fine
    side = 2 * half // fine + 1
    (shift_y, which_y, pixel_y), (shift_x, which_x, pixel_x) = (_grid(n, size, fine) for n in (ys, xs))
    # The patch (side x side) starts at pixel - half / fine; a canvas shows it to every window that any place needs.
    top, left = int(pixel_y.max()), int(pixel_x.max())
    height, width = (size + int(p.max() - p.min()) + 1 for p in (pixel_y, pixel_x))
    sprites = shapes * scales * orientations
    canvas = np.zeros((sprites, len(shift_y), len(shift_x), height, width), np.uint8)
    y0, x0 = top - half // fine, left - half // fine
    angles = spread(0, 2 * math.pi, orientations, 0.0)
    kinds = [(inside, s) for inside in list(SHAPES.values())[:shapes] for s in spread(0.5, 1, scales, 1.0)]
    for k, (inside, scale) in enumerate(kinds):
        drawn = _draw(inside, scale, angles, half, PIXELS / (size * fine))
        for i, dy in enumerate(shift_y):
            for j, dx in enumerate(shift_x):
                grey = _pool(drawn, (int(dy), int(dx)), fine, side)
                patch = np.where(grey > 0.5, 255, 0) if binary else np.round(255 * grey)
                rows = slice(k * orientations, (k + 1) * orientations)
                end_y, end_x = min(y0 + side, height), min(x0 + side, width)
                canvas[rows, i, j, y0:end_y, x0:end_x] = patch[:, : end_y - y0, : end_x - x0]
    flat = torch.from_numpy(canvas.reshape(-1, height, width))
    tops, lefts = height - size, width - size
    windows = flat.as_strided((flat.shape[0], tops, lefts, size, size), (height * width, width, 1, width, 1))
    places_x = torch.from_numpy(np.stack([which_x, left - pixel_x], 1))
    places_y = torch.from_numpy(np.stack([which_y, top - pixel_y], 1))
    return Atlas(windows, places_x, places_y, (len(shift_y), len(shift_x)))


@lru_cache(maxsize=4)
def _background(path: str, size: int) -> Tensor:  # (C=3, H, W)
    from unseam.data.images import read_picture

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
