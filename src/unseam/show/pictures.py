"""Tensors -> small PNGs for a page: film strips of frames, tables of frames, signed images.

Every picture is written into the page once, as a data URI behind a CSS class, and can be shown in many places.
"""

from __future__ import annotations

import io
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from unseam.axes import Array

if TYPE_CHECKING:  # findings of tables are shown where torch is not installed
    from torch import Tensor

_LARGEST = 64  # pixels: larger images are averaged down; a report shows them small
UP, DOWN = (213, 94, 0), (0, 114, 178)  # more and less: vermilion and blue, distinguishable for every eye


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether one observation can be shown as an image.

    >>> is_picture((1, 32, 32)), is_picture((6,))
    (True, False)
    """
    return len(shape) == 3


def as_pixels(
    images: Tensor, largest: int = _LARGEST
) -> Array:  # (..., C, H, W) in [0, 1] -> (..., H, W, 1 or 3) uint8
    """Grey or RGB bytes, at most `largest` pixels a side; any other number of channels is averaged to grey."""
    lead, (c, h, w) = images.shape[:-3], images.shape[-3:]
    flat = images.reshape(-1, c, h, w).float()
    if c not in (1, 3):
        flat = flat.mean(1, keepdim=True)
    if max(h, w) > largest:
        from torch.nn import functional

        scale = largest / max(h, w)
        flat = functional.interpolate(flat, (max(1, round(h * scale)), max(1, round(w * scale))), mode="area")
    grey = (flat.clamp(0, 1) * 255).round().byte().movedim(1, 3)
    return grey.reshape(*lead, *grey.shape[1:]).numpy()


def strip(images: Tensor, columns: int = 0, gap: int = 0, largest: int = _LARGEST) -> Array:  # (T, C, H, W)
    """Frames side by side (H, T (W + gap), 1 or 3); white between them, and where there are fewer than `columns`.

    >>> import torch
    >>> strip(torch.zeros(11, 1, 16, 16)).shape, strip(torch.zeros(2, 1, 16, 16), columns=3, gap=2).shape
    ((16, 176, 1), (16, 54, 1))
    """
    frames = np.pad(as_pixels(images, largest), ((0, 0), (0, 0), (0, gap), (0, 0)), constant_values=255)
    white = [np.full_like(frames[0], 255)] * (columns - len(frames))
    return np.concatenate([*frames, *white], axis=1)


def frames_table(images: Tensor) -> Array:  # (R, T, C, H, W) -> (R H, T W, C)
    """Rows of frames, one below the other."""
    return np.concatenate([np.concatenate(list(row), axis=1) for row in as_pixels(images)], axis=0)


def signed(image: Tensor, largest: float) -> Array:  # (C, H, W) -> (H, W, 4)
    """What grows is vermilion, what shrinks is blue, what stays is transparent (so it suits light and dark pages).

    Opacity is the square root of |value| / largest, so that faint changes are seen; channels are averaged.
    """
    from torch.nn import functional

    value = functional.avg_pool2d(image.mean(0, keepdim=True)[None], -(-max(image.shape[1:]) // _LARGEST))[0, 0]
    opacity = (value.abs() / max(largest, 1e-12)).clamp(0, 1).sqrt().numpy()
    colour = np.where(value.numpy()[..., None] > 0, np.array(UP), np.array(DOWN))
    return np.concatenate([colour, 255 * opacity[..., None]], axis=-1).round().astype(np.uint8)


def principal_plane(x: Tensor) -> tuple[Array, Array]:  # (N, n) -> (n,), (n, 2)
    """The middle of the data and the two directions in which it varies most; zeros where it has fewer.

    >>> import torch
    >>> middle, axes = principal_plane(torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 1.0], [4.0, 1.0]]))
    >>> middle.tolist(), np.abs(axes).tolist()
    ([2.0, 0.5], [[1.0, 0.0], [0.0, 1.0]])
    """
    points = x.flatten(1).double().numpy()
    middle = points.mean(0)
    axes = np.linalg.svd(points - middle, full_matrices=False)[2][:2].T
    return middle, np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))


def png(image: Array) -> bytes:  # (H, W, 1, 3 or 4) uint8
    """The bytes of a PNG file; colour pictures keep their 256 commonest colours, which halves a report.

    >>> png(np.zeros((2, 2, 1), np.uint8))[:4]
    b'\\x89PNG'
    """
    buffer = io.BytesIO()
    picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    (picture.quantize(256) if picture.mode == "RGB" else picture).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


@dataclass
class Album:
    """The pictures of a page: name -> data URI, each kept once."""

    pictures: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, image: Array) -> str:
        """Keep a picture; returns the CSS class that shows it."""
        self.pictures[name] = f"data:image/png;base64,{b64encode(png(image)).decode()}"
        return name

    def image(self, name: str) -> Array:  # (H, W, 4)
        """A picture that is in the album, as pixels."""
        content = b64decode(self.pictures[name].partition(",")[2])
        return np.asarray(Image.open(io.BytesIO(content)).convert("RGBA"))

    def size(self) -> int:
        return sum(map(len, self.pictures.values()))

    def css(self) -> str:
        """One rule a picture."""
        return "\n".join(f'.{name}{{background-image:url("{uri}")}}' for name, uri in self.pictures.items())
