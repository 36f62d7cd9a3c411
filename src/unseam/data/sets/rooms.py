"""`rooms`: the factor space of Shapes3D (Burgess and Kim 2018), drawn by us: a coloured solid in a coloured room.

The 480 views (scale x shape x orientation) are traced once per size and cached; hues are then a product of each view's
four paints (see `_trace`) with colours.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array, Factor, FactorSpace
from unseam.data.base import GridDataset, at_least, factor_rows, within
from unseam.data.cache import cached_array
from unseam.data.sets.sprites import spread

FINE = 3  # rays per pixel and axis
VERSION = 1  # of the pictures: raise it when they change


def hues(count: int) -> Tensor:  # (count, 3)
    """Fully saturated colours, 36 degrees apart if there are ten.

    >>> hues(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return torch.tensor([colorsys.hsv_to_rgb(i / count, 1, 1) for i in range(count)])


def render(size: int, scales: int, orientations: int) -> Array:  # (scales, 4 shapes, orientations, 4, size, size)
    sizes = spread(0.75, 1.25, scales, 1.0).tolist()
    angles = np.radians(spread(-30, 30, orientations, 0.0))
    return np.stack([_trace(angle, sizes, size, FINE) for angle in angles], axis=2)


@lru_cache(maxsize=4)
def room_views(size: int, scales: int, orientations: int) -> Tensor:  # (views, 4, size * size) uint8
    """All views of one configuration; traced once, then read from the data folder's cache."""
    name = f"rooms-{VERSION}-{size}-{scales}-{orientations}.npy"
    shape = (scales, len(SOLIDS), orientations, 4, size, size)
    paints = cached_array(name, shape, lambda: render(size, scales, orientations))
    return torch.from_numpy(paints).reshape(-1, 4, size * size)


@dataclass(frozen=True)
class Rooms(GridDataset):
    """Floor hue 10 x wall hue 10 x object hue 10 x scale 8 x shape 4 x orientation 15 = 480,000 images.

    Examples
    --------
    >>> data = Rooms(size=16, orientations=1, scales=1)
    >>> data.shape, data.space.names
    ((3, 16, 16), ('floor', 'wall', 'object', 'scale', 'shape', 'orientation'))
    """

    size: int = 64
    """side of the image in pixels"""
    colours: int = 10
    """hues of floor, wall and object each"""
    scales: int = 8
    """from 0.75 to 1.25"""
    shapes: int = 4
    """the first of cube, cylinder, sphere, pill"""
    orientations: int = 15
    """from -30 to 30 degrees"""

    name = "rooms"
    likelihood = "bernoulli"
    stochastic = False

    def __post_init__(self) -> None:
        within("size", self.size, 8, 256)
        within("shapes", self.shapes, 1, len(SOLIDS))
        for name in ("colours", "scales", "orientations"):
            at_least(name, getattr(self, name), 1)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (3, self.size, self.size)

    @cached_property
    def space(self) -> FactorSpace:  # type: ignore[override]
        hue = [Factor(name, self.colours, "cyclic") for name in ("floor", "wall", "object")]
        rest = [Factor("scale", self.scales), Factor("shape", self.shapes, "categorical")]
        return FactorSpace((*hue, *rest, Factor("orientation", self.orientations)))

    @cached_property
    def _paints(self) -> Tensor:  # (colours + 1, 3): the hues, then white
        return torch.cat([hues(self.colours), torch.ones(1, 3)])

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        factors = factor_rows(factors, self.space)
        scale, shape, orientation = factors[:, 3:].unbind(1)
        view = (scale * len(SOLIDS) + shape) * self.orientations + orientation
        paints = room_views(self.size, self.scales, self.orientations)[view].float()  # (B, 4, H W)
        white = torch.full_like(factors[:, :1], self.colours)
        colours = self._paints[torch.cat([factors[:, :3], white], dim=1)]  # (B, 4, 3)
        x = (colours.mT / 255) @ paints  # each pixel: sum over paints of colour * amount
        return x.clamp_(max=1).reshape(-1, *self.shape)


# The scene of `rooms`, traced: one solid on the floor of a square room, seen by a camera that walks round it.
#
# What comes out is not a picture but how strongly each pixel shows each of four paints (floor, wall, object, white
# highlight), averaged over many rays per pixel. A picture is then that, times colours: so hues cost nothing.
# Axes: x right, y away from the camera, z up; the floor is z = 0 and the solid stands on its middle.


Hit = tuple[Array, Array]  # distance along the ray (R,), infinite for a miss; surface normal (R, 3)

ROOM = 3.6  # half the width of the room
DISTANCE, _HEIGHT, LOOK_AT = 7.0, 2.6, 0.75  # of the camera from the middle, above the floor; where it looks
FIELD = math.tan(math.radians(15.5))  # half the field of view
LIGHT = (np.array([-0.45, -0.6, 0.95]) / np.linalg.norm([-0.45, -0.6, 0.95])).astype(
    np.float32
)  # direction to the lamp
SOFTNESS = 0.12  # size of the lamp
AMBIENT, SHADOW, GLOSS, SHININESS = 0.42, 0.55, 0.35, 24
_FLOOR, _WALL, OBJECT, WHITE = range(4)


def _dot(a: Array, b: Array) -> Array:  # (R, k), (R, k) -> (R,)
    return np.einsum("rk,rk->r", a, b)


def _first(t: Array, ok: Array) -> Array:
    return np.where(ok & (t > 1e-4), t, np.inf)


def _nearest(a: Hit, b: Hit) -> Hit:
    return np.minimum(a[0], b[0]), np.where((a[0] <= b[0])[:, None], a[1], b[1])


def _root(a: Array, b: Array, c: Array) -> Array:
    """The smaller root of a t^2 + 2 b t + c = 0, infinite if there is none."""
    square = b * b - a * c
    a = np.where(abs(a) < 1e-12, 1e-12, a)
    return np.where(square >= 0, (-b - np.sqrt(np.maximum(square, 0))) / a, np.inf)


def ball(o: Array, d: Array, radius: float, height: float) -> Hit:
    """|o + t d - (0, 0, height)| = radius."""
    o = o - np.array([0, 0, height], np.float32)
    t = _root(_dot(d, d), _dot(o, d), _dot(o, o) - radius**2)
    t = _first(t, np.isfinite(t))
    return t, (o + np.where(np.isfinite(t), t, 0)[:, None] * d) / radius


def tube(o: Array, d: Array, radius: float, low: float, high: float) -> Hit:
    """x^2 + y^2 = radius^2 between two heights, open at the ends."""
    flat_o, flat_d = o[:, :2], d[:, :2]
    t = _root(_dot(flat_d, flat_d), _dot(flat_o, flat_d), _dot(flat_o, flat_o) - radius**2)
    p = o + np.where(np.isfinite(t), t, 0)[:, None] * d
    return _first(t, np.isfinite(t) & (p[:, 2] >= low) & (p[:, 2] <= high)), p * np.array(
        [1, 1, 0], np.float32
    ) / radius


def _cube(o: Array, d: Array, s: float) -> Hit:
    half = 0.62 * s
    o = o - np.array([0, 0, half], np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.minimum((-half - o) / d, (half - o) / d)
        far = np.maximum((-half - o) / d, (half - o) / d)
    t, axis = near.max(1), near.argmax(1)
    normal = -np.sign(d) * (np.arange(3) == axis[:, None])
    return _first(t, t <= far.min(1)), normal


def cylinder(o: Array, d: Array, s: float) -> Hit:
    radius, high = 0.62 * s, 1.24 * s
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (high - o[:, 2]) / d[:, 2]
        p = o[:, :2] + t[:, None] * d[:, :2]
    lid = _first(t, _dot(p, p) <= radius**2), np.broadcast_to(np.array([0.0, 0, 1]), d.shape)
    return _nearest(lid, tube(o, d, radius, 0, high))


def sphere(o: Array, d: Array, s: float) -> Hit:
    return ball(o, d, 0.7 * s, 0.7 * s)


def pill(o: Array, d: Array, s: float) -> Hit:
    radius, high = 0.46 * s, 1.6 * s
    ends = _nearest(ball(o, d, radius, radius), ball(o, d, radius, high - radius))
    return _nearest(ends, tube(o, d, radius, radius, high - radius))


SOLIDS: dict[str, Callable[[Array, Array, float], Hit]] = {
    "cube": _cube,
    "cylinder": cylinder,
    "sphere": sphere,
    "pill": pill,
}


def camera(angle: float, size: int, fine: int) -> tuple[Array, Array]:
    """Position (1, 3) and one ray (fine * fine * size * size, 3) per sub-pixel; sub-pixels are the outer axis."""
    position = np.array([DISTANCE * math.sin(angle), -DISTANCE * math.cos(angle), _HEIGHT])
    forward = np.array([0, 0, LOOK_AT]) - position
    forward /= np.linalg.norm(forward)
    right = np.array([math.cos(angle), math.sin(angle), 0])
    up = np.cross(right, forward)
    steps = ((np.arange(size * fine) + 0.5) / (size * fine) * 2 - 1).reshape(size, fine) * FIELD
    sub_y, sub_x, y, x = np.meshgrid(*[np.arange(n) for n in (fine, fine, size, size)], indexing="ij")
    d = forward + steps[x, sub_x][..., None] * right - steps[y, sub_y][..., None] * up
    d = d.reshape(-1, 3) / np.linalg.norm(d.reshape(-1, 3), axis=1, keepdims=True)
    return position[None].astype(np.float32), d.astype(np.float32)


def lamps(rays: int, fine: int) -> Array:  # (rays, 3)
    """The direction to the lamp, which is a small square: each sub-pixel sees another point of it."""
    side = np.cross(LIGHT, [0, 0, 1.0])
    side /= np.linalg.norm(side)
    spots = (np.arange(fine) + 0.5) / fine * 2 - 1
    u, v = (grid.ravel() for grid in np.meshgrid(spots, spots))
    lamp = LIGHT + SOFTNESS * (u[:, None] * side + v[:, None] * np.cross(side, LIGHT))
    lamp = (lamp / np.linalg.norm(lamp, axis=1, keepdims=True)).astype(np.float32)
    return np.repeat(lamp, rays // len(lamp), axis=0)


def room(o: Array, d: Array) -> tuple[Array, Array, Array]:
    """Where each ray leaves the room: paint (FLOOR or WALL), brightness, point."""
    with np.errstate(divide="ignore", invalid="ignore"):
        down = np.where(d[:, 2] < 0, -o[:, 2] / d[:, 2], np.inf)
        out = np.where(d[:, :2] != 0, (np.sign(d[:, :2]) * ROOM - o[:, :2]) / d[:, :2], np.inf)
    t = np.minimum(down, out.min(1))
    point = o + t[:, None] * d
    is_floor = down <= out.min(1)
    inward = -np.sign(d[:, :2]) * (np.arange(2) == out.argmin(1)[:, None])
    lit = np.where(is_floor, LIGHT[2], np.maximum(inward @ LIGHT[:2], 0))
    edge = np.where(is_floor, ROOM - abs(point[:, :2]).max(1), np.minimum(point[:, 2], ROOM - abs(point[:, :2]).min(1)))
    return np.where(is_floor, _FLOOR, _WALL), _shade(lit) * (1 - 0.25 * np.exp(-2.5 * np.maximum(edge, 0))), point


def _shade(cosine: Array) -> Array:
    return AMBIENT + (1 - AMBIENT) * np.maximum(cosine, 0)


def _may_hit(o: Array, d: Array, s: float) -> Array:
    """Rays that come near enough: every solid of scale s is inside the ball of radius 1.2 s about (0, 0, 0.8 s)."""
    o = np.array([0, 0, 0.8 * s], np.float32) - o
    return np.flatnonzero(_dot(o, o) - _dot(o, d) ** 2 < (1.2 * s) ** 2)


def _trace(angle: float, sizes: list[float], size: int, fine: int) -> Array:
    """Paints (scales, solids, 4, size, size) as bytes, for one direction of the camera."""
    o, d = camera(angle, size, fine)
    paint, brightness, point = room(o, d)
    lamp = lamps(len(d), fine)
    floor = np.flatnonzero(paint == _FLOOR)
    empty = np.stack([np.where(paint == p, brightness, 0) for p in (_FLOOR, _WALL, OBJECT, WHITE)]).astype(np.float32)
    out = np.empty((len(sizes), len(SOLIDS), 4, size, size), np.uint8)
    for i, s in enumerate(sizes):
        near = _may_hit(o, d, s)
        under = floor[_may_hit(point[floor], lamp[floor], s)]
        for j, solid in enumerate(SOLIDS.values()):
            paints = empty.copy()
            dark = np.isfinite(solid(point[under], lamp[under], s)[0])
            paints[_FLOOR, under[dark]] *= SHADOW
            t, normal = solid(np.broadcast_to(o, d[near].shape), d[near], s)
            hit = np.isfinite(t)
            paints[:, near[hit]] = _polish(normal[hit], d[near[hit]])
            out[i, j] = np.round(255 / fine**2 * paints.reshape(4, fine * fine, size, size).sum(1))
    return out


def _polish(normal: Array, d: Array) -> Array:  # (R, 3), (R, 3) -> (4, R)
    """The solid's paint and its highlight (Phong): shade * (1 - k) of its colour and k of white."""
    mirrored = d - 2 * _dot(d, normal)[:, None] * normal
    k = GLOSS * np.maximum(mirrored @ LIGHT, 0) ** SHININESS
    none = np.zeros_like(k)
    return np.stack([none, none, _shade(normal @ LIGHT) * (1 - k), k])
