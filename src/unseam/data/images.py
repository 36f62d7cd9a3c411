"""Real images: scikit-learn's digits, pictures and folders of them, and resizing."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from unseam.axes import Array, Factor, FactorSpace
from unseam.data.base import within
from unseam.data.table import Table, TableDataset
from unseam.errors import BadInput
from unseam.readers import DAMAGE, Columns, load_array

_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")
_PIXELS = 1 << 26  # of one picture
_STRAY = 0.02  # share of a folder's pictures that may be of another size or colour (thumbnails), and are left out


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
    return decode(path, str(path), "RGB")


def read_grey(path: Path) -> Array:  # (H, W) uint8
    """One picture as grey bytes."""
    return decode(path, str(path), "L")


@contextmanager
def _opened(file: Any, name: str) -> Iterator[Any]:
    """A Pillow image with a checked header: 8 bits a channel, of a size that is safe to unpack."""
    from PIL import Image

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(file) as image:  # Pillow's own limit is a warning
            if image.mode.startswith(("I", "F")):  # conversion would cut these off at 255
                raise BadInput(f"{name!r} has more than 8 bits a channel (mode {image.mode}); save it with 8 bits")
            if image.width * image.height > _PIXELS:
                raise BadInput(
                    f"{name!r} is {image.height}x{image.width} pixels, more than {_PIXELS:,}; make it smaller"
                )
            yield image
    except BadInput:
        raise
    except FileNotFoundError:
        raise BadInput(f"{name!r}: no such file") from None
    except Image.DecompressionBombError:
        raise BadInput(f"{name!r} has more than {_PIXELS:,} pixels; make it smaller") from None
    except DAMAGE as error:
        raise BadInput(f"{name!r} is not a readable image: {' '.join(str(error).split())}") from None


def is_grey(image: Any) -> bool:
    return image.mode in ("1", "L", "LA")


def decode(file: Any, name: str, mode: str) -> Array:  # (H, W) for L, (H, W, 3) for RGB; uint8
    """One picture, a path or a stream."""
    with _opened(file, name) as image:
        return np.asarray(image.convert(mode))


class Pictures:
    """The images under a folder, in the order of their names: headers are read now, pixels by rows."""

    def __init__(self, folder: Path, size: int | None = None, channels: int | None = None) -> None:
        self.paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _ENDINGS and not p.name.startswith("."))
        if not self.paths:
            raise BadInput(f"data={str(folder)!r} holds no images ({', '.join(_ENDINGS)})")
        self.folder, self.size = folder, size
        heads = [self._head(path) for path in self.paths]
        chosen = _majority(
            [(shape if size is None else None, grey if channels is None else None) for shape, grey in heads]
        )
        self.strays = [path for path, keep in zip(self.paths, chosen, strict=True) if not keep]
        self.paths = [path for path, keep in zip(self.paths, chosen, strict=True) if keep]
        heads = [head for head, keep in zip(heads, chosen, strict=True) if keep]
        self.mode = _mode(channels, [grey for _, grey in heads], self.paths, folder)
        side = (size, size) if size is not None else _one_size([shape for shape, _ in heads], self.paths, folder)
        self.shape = (len(self.paths), *side, *((3,) if self.mode == "RGB" else ()))
        self.dtype, self.ndim = np.dtype(np.uint8), len(self.shape)

    @staticmethod
    def _head(path: Path) -> tuple[tuple[int, int], bool]:
        with _opened(path, str(path)) as image:
            return (image.height, image.width), is_grey(image)

    def __getitem__(self, index: Any) -> Array:
        rows = range(len(self.paths))[index] if isinstance(index, slice) else index
        images = [decode(self.paths[int(row)], str(self.paths[int(row)]), self.mode) for row in rows]
        if self.size is not None:
            images = [resize(image[None], self.size)[0] for image in images]
        return np.stack(images) if images else np.zeros((0, *self.shape[1:]), np.uint8)

    def labels(self) -> Columns | None:
        """The names of the folders that the images lie in, one column a level that varies; None if there are none."""
        parents = [path.relative_to(self.folder).parts[:-1] for path in self.paths]
        levels = [np.array(level, dtype=object) for level in zip(*parents, strict=False)]
        varying = [level for level in levels if len(set(level)) > 1]
        names = ["folder"] if len(varying) == 1 else [f"folder{i + 1}" for i in range(len(varying))]
        return Columns(names, varying) if varying else None


def _majority(kinds: list[Any]) -> list[bool]:
    """Which pictures are of the commonest kind, if at most _STRAY of them are not; else all, and a message follows.

    >>> sum(_majority([((8, 8), True)] * 99 + [((90, 90), False)])), sum(_majority(["a", "a", "b"]))
    (99, 3)
    """
    (kind, count), *_ = Counter(kinds).most_common(1)
    few = len(kinds) - count <= _STRAY * len(kinds)
    return [k == kind or not few for k in kinds]


def _mode(channels: int | None, grey: list[bool], paths: list[Path], folder: Path) -> str:
    if channels is None and any(grey) and not all(grey):
        one, other = paths[grey.index(True)].name, paths[grey.index(False)].name
        raise BadInput(
            f"data={str(folder)!r} mixes grey ({one}) and colour ({other}): {sum(grey)} of {len(grey)} are grey; pass "
            "channels=1 or channels=3"
        )
    return "L" if (channels == 1 if channels is not None else grey[0]) else "RGB"


def _one_size(shapes: list[tuple[int, int]], paths: list[Path], folder: Path) -> tuple[int, int]:
    for path, shape in zip(paths, shapes, strict=True):
        if shape != shapes[0]:
            (h, w), (a, b) = shape, shapes[0]
            raise BadInput(
                f"data={str(folder)!r}: {path.name} is {h}x{w} pixels, but {paths[0].name} is {a}x{b}; "
                "make them one size or pass size=64"
            )
    return shapes[0]


@dataclass(frozen=True)
class Digits(TableDataset):
    """scikit-learn's 1,797 handwritten digits, 8x8 (17 grey levels); `size` resizes them.

    Examples
    --------
    >>> data = Digits(size=16)
    >>> len(data), data.shape, data.space.names
    (1797, (1, 16, 16), ('digit',))
    """

    size: int = 8
    """side in pixels; convolutional networks need a multiple of 16"""

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
