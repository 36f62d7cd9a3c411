"""`mnist` and `fashion-mnist`: the original idx files (LeCun et al. 1998, Xiao et al. 2017), plain or gzipped.

They are looked for in DATA/NAME, where DATA is the data folder, and where Debian's dataset packages put them;
`unseam data fetch NAME` downloads them.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from unseam.axes import Array, Factor, FactorSpace
from unseam.data.base import within
from unseam.data.cache import data_folder
from unseam.data.images import resize
from unseam.data.table import Table, TableDataset
from unseam.errors import BadInput, lookup

_SPLITS = {"train": ("train",), "test": ("t10k",), "all": ("train", "t10k")}
DEBIAN = Path("/usr/share/datasets")


def parse_idx(content: bytes, where: str) -> Array:
    """An idx file: two zero bytes, the type (8 = bytes), the number of axes, their lengths, the numbers.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), "labels")
    array([7, 9], dtype=uint8)
    """
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise BadInput(f"{where} is not an idx file of bytes (it starts with {content[:4].hex(' ') or 'nothing'})")
    start = 4 + 4 * content[3]
    shape = tuple(np.frombuffer(content[4:start], ">u4").tolist()) if len(content) >= start else ()
    wanted = start + int(np.prod(shape, dtype=object))
    if not shape or len(content) != wanted:
        raise BadInput(f"{where} has {len(content)} bytes, but its header says {wanted}: truncated or damaged")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_idx(path: Path) -> Array:
    """The array of an idx or idx.gz file."""
    where = f"file {str(path)!r}"
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{where} is damaged: {error}") from None
    return parse_idx(content, where)


def _find(name: str, stem: str) -> Path:
    """Where the file is: in the data folder first, then where Debian puts it."""
    folders = (data_folder() / name, DEBIAN / name)
    for path in (folder / (stem + ending) for folder in folders for ending in ("", ".gz")):
        if path.is_file():
            return path
    hint = f"; or: apt-get install dataset-{name}" if name == "fashion-mnist" else ""
    raise BadInput(
        f"data={name!r}: {stem} is neither in {folders[0]} nor in {folders[1]}; run: unseam data fetch {name}{hint}"
    )


def locate_all(name: str) -> list[Path]:
    """All four files, or an error that says what to do."""
    return [_find(name, f"{p}-{kind}-ubyte") for p in _SPLITS["all"] for kind in ("images-idx3", "labels-idx1")]


@lru_cache(maxsize=4)
def _table(paths: tuple[tuple[Path, Path], ...], factor: str, size: int) -> Table:
    images = np.concatenate([read_idx(pair[0]) for pair in paths])
    labels = np.concatenate([read_idx(pair[1]) for pair in paths])
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise BadInput(
            f"file {str(paths[0][0])!r} has shape {images.shape} but its labels {labels.shape}; they must agree"
        )
    if labels.max(initial=0) > 9:
        raise BadInput(f"file {str(paths[0][1])!r} holds the label {labels.max()}; labels are 0..9")
    pixels = images if images.shape[1:] == (size, size) else resize(images, size)
    space = FactorSpace((Factor(factor, 10, "categorical"),))
    return Table(pixels, "hw", torch.from_numpy(labels.astype(np.int64)).unsqueeze(1), space)


def idx_table(name: str, factor: str, split: str, size: int) -> Table:
    within("size", size, 4, 512)
    parts = lookup(_SPLITS, split, "split")
    files = tuple((_find(name, f"{p}-images-idx3-ubyte"), _find(name, f"{p}-labels-idx1-ubyte")) for p in parts)
    return _table(files, factor, size)


@dataclass(frozen=True)
class IdxDataset(TableDataset):
    """What both sets share; a concrete one has a name and a factor."""

    size: int = 28
    """side in pixels; convolutional networks need a multiple of 16"""
    split: str = "train"
    """train, test or all"""

    factor: ClassVar[str]

    def __post_init__(self) -> None:
        self.table  # noqa: B018  missing files are reported now

    @classmethod
    def locate(cls) -> None:
        """Refuse if a file is not there."""
        locate_all(cls.name)

    @cached_property
    def table(self) -> Table:
        return idx_table(self.name, self.factor, self.split, self.size)


@dataclass(frozen=True)
class Mnist(IdxDataset):
    """Handwritten digits, 28x28: 60,000 to train, 10,000 to test.

    Examples
    --------
    >>> from unseam.data import own_parameters
    >>> sorted(own_parameters(Mnist))  # load_data("mnist") needs the official files
    ['size', 'split']
    """

    name, factor = "mnist", "digit"


@dataclass(frozen=True)
class FashionMnist(IdxDataset):
    """Photographs of clothes, 28x28: 60,000 to train, 10,000 to test.

    Examples
    --------
    >>> from unseam.data import own_parameters
    >>> sorted(own_parameters(FashionMnist))  # load_data("fashion-mnist") needs the official files
    ['size', 'split']
    """

    name, factor = "fashion-mnist", "article"
