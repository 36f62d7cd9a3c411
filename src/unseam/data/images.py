"""Real images: scikit-learn's digits, pictures and folders of them, and resizing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from unseam.data.arrays import load_array
from unseam.data.checks import within
from unseam.data.table import Table, TableDataset
from unseam.errors import BadInput
from unseam.types import Array, Factor, FactorSpace

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


def resize(images: Array, size: int) -> Array:  # (N, H, W) or (N, H, W, C) -> (N, size, size[, C]), uint8
    """Bilinear, anti-aliased, to a square of `size` pixels.

    >>> resize(np.full((1, 8, 8), 200, np.uint8), 16).shape
    (1, 16, 16)
    """
    within("size", size, 1, 4096)
    out = np.empty((len(images), size, size, *images.shape[3:]), np.uint8)
    for start in range(0, len(images), 1024):
        block = torch.from_numpy(images[start : start + 1024].astype(np.float32))
        block = block.unsqueeze(1) if block.dim() == 3 else block.movedim(3, 1)
        new = functional.interpolate(block, (size, size), mode="bilinear", antialias=True).round().clamp(0, 255)
        out[start : start + 1024] = (new[:, 0] if images.ndim == 3 else new.movedim(1, 3)).byte().numpy()
    return out


def read_picture(path: str | Path) -> Array:  # (H, W, 3) uint8
    """One picture (or an .npy of one) as RGB bytes."""
    if str(path).endswith(".npy"):
        array = np.asarray(load_array(path, f"background={str(path)!r}"))
        if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
            raise BadInput(f"background={str(path)!r} is {array.dtype} {array.shape}; it must be uint8 (H, W, 3)")
        return array
    return _open(Path(path), "RGB")


def read_grey(path: Path) -> Array:  # (H, W) uint8
    """One picture as grey bytes."""
    return _open(path, "L")


def _open(path: Path, mode: str | None = None) -> Array:
    """Decode one file; `mode` None keeps grey images grey."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            if image.mode.startswith(("I", "F")):  # conversion would cut these off at 255
                raise BadInput(f"{str(path)!r} has more than 8 bits a channel (mode {image.mode}); save it with 8 bits")
            return np.asarray(image.convert(mode or ("L" if image.mode in ("1", "L", "LA") else "RGB")))
    except BadInput:
        raise
    except FileNotFoundError:
        raise BadInput(f"{str(path)!r}: no such file") from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise BadInput(f"{str(path)!r} is no readable image: {' '.join(str(error).split())}") from None


def read_folder(folder: Path, size: int | None) -> Array:  # (N, H, W) or (N, H, W, 3), uint8
    """All images under a folder, in the order of their names; resized if `size` is given, else all of one size."""
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in ENDINGS and not p.name.startswith("."))
    if not paths:
        raise BadInput(f"data={str(folder)!r} holds no images ({', '.join(ENDINGS)})")
    images = [_open(p) for p in paths]
    if any(im.ndim == 3 for im in images):
        images = [np.repeat(im[..., None], 3, axis=2) if im.ndim == 2 else im for im in images]
    if size is not None:
        return np.concatenate([resize(im[None], size) for im in images])
    for path, im in zip(paths, images, strict=True):
        if im.shape != images[0].shape:
            (h, w), (a, b) = im.shape[:2], images[0].shape[:2]
            raise BadInput(
                f"data={str(folder)!r}: {path.name} is {h}x{w} pixels, but {paths[0].name} is {a}x{b}; "
                "make them one size or pass size=64"
            )
    return np.stack(images)


@dataclass(frozen=True)
class Digits(TableDataset):
    """scikit-learn's 1,797 handwritten digits, 8x8 (17 grey levels); `size` resizes them.

    >>> data = Digits(size=16)
    >>> len(data), data.shape, data.space.names
    (1797, (1, 16, 16), ('digit',))
    """

    size: int = 8  # side in pixels; convolutional networks need a multiple of 16

    name = "digits"

    def __post_init__(self) -> None:
        within("size", self.size, 4, 512)

    @cached_property
    def table(self) -> Table:
        from sklearn.datasets import load_digits

        bunch = load_digits()
        grey = np.round(bunch.images * (255 / 16)).astype(np.uint8)
        images = grey if self.size == 8 else resize(grey, self.size)
        labels = torch.from_numpy(bunch.target.astype(np.int64)).unsqueeze(1)
        return Table(images, "hw", labels, FactorSpace((Factor("digit", 10, "categorical"),)))
