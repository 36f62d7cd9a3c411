"""`rooms`: the factor space of Shapes3D (Burgess and Kim 2018), drawn by us: a coloured solid in a coloured room.

The 480 views (scale x shape x orientation) are traced once per size and kept; hues are then a product of each view's
four paints (see raytrace) with colours.
"""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from unseam.data.checks import at_least, factor_rows, within
from unseam.data.files import cached_array
from unseam.data.grid import GridDataset
from unseam.data.raytrace import SOLIDS, trace
from unseam.data.sprite_atlas import spread
from unseam.types import Array, Factor, FactorSpace

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
    return np.stack([trace(angle, sizes, size, FINE) for angle in angles], axis=2)


@lru_cache(maxsize=4)
def views(size: int, scales: int, orientations: int) -> Tensor:  # (views, 4, size * size) uint8
    """All views of one configuration; traced once, then read from the data folder's cache."""
    name = f"rooms-{VERSION}-{size}-{scales}-{orientations}.npy"
    shape = (scales, len(SOLIDS), orientations, 4, size, size)
    paints = cached_array(name, shape, lambda: render(size, scales, orientations))
    return torch.from_numpy(paints).reshape(-1, 4, size * size)


@dataclass(frozen=True)
class Rooms(GridDataset):
    """Floor hue 10 x wall hue 10 x object hue 10 x scale 8 x shape 4 x orientation 15 = 480,000 images.

    >>> data = Rooms(size=16, orientations=1, scales=1)
    >>> data.shape, data.space.names
    ((3, 16, 16), ('floor', 'wall', 'object', 'scale', 'shape', 'orientation'))
    """

    size: int = 64  # side of the image in pixels
    colours: int = 10  # hues of floor, wall and object each
    scales: int = 8  # from 0.75 to 1.25
    shapes: int = 4  # the first of cube, cylinder, sphere, pill
    orientations: int = 15  # from -30 to 30 degrees

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
        paints = views(self.size, self.scales, self.orientations)[view].float()  # (B, 4, H W)
        white = torch.full_like(factors[:, :1], self.colours)
        colours = self._paints[torch.cat([factors[:, :3], white], dim=1)]  # (B, 4, 3)
        x = (colours.mT / 255) @ paints  # each pixel: sum over paints of colour * amount
        return x.clamp_(max=1).reshape(-1, *self.shape)
