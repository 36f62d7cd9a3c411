"""`smallnorb`: photographs of 50 toys (LeCun, Huang and Bottou 2004), the left camera.

The files are little-endian: int32 magic (the type), int32 axes, max(3, axes) int32 lengths, then the numbers. Category,
elevation, azimuth and lighting are the factors; which of its category's toys is seen is a nuisance: rows share their
factors, and `observe` draws one of them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from unseam.axes import Array, Factor, FactorSpace
from unseam.data.archives.rows import ROW_BLOCK, cached, find_archive, shrink
from unseam.data.base import within
from unseam.data.table import Table, TableDataset
from unseam.errors import BadInput, lookup
from unseam.readers import memory, refusing

_TYPES = {0x1E3D4C55: "u1", 0x1E3D4C54: "<i4", 0x1E3D4C56: "<i2", 0x1E3D4C51: "<f4", 0x1E3D4C53: "<f8"}
_SPLITS = {"train": ("training",), "test": ("testing",), "all": ("training", "testing")}
SPACE = FactorSpace(
    (
        Factor("category", 5, "categorical"),
        Factor("elevation", 9),
        Factor("azimuth", 18, "cyclic"),
        Factor("lighting", 6),
    )
)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], tuple[int, ...], np.dtype[Any]]]:
    """The numbers of a file, plain or gzipped: (stream behind the header, shape, type)."""
    where = f"file {str(path)!r}"
    with refusing(where, "damaged"), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        start = file.read(8)
        head = np.frombuffer(start[: len(start) // 4 * 4], "<i4")
        if len(head) < 2 or int(head[0]) not in _TYPES:
            swapped = len(head) and int(head[:1].byteswap()[0]) in _TYPES
            why = (
                "its byte order is swapped" if swapped else f"it starts with {head[:1].tobytes().hex(' ') or 'nothing'}"
            )
            raise BadInput(f"{where} is not a NORB file of numbers: {why}")
        axes = int(head[1])
        content = file.read(4 * max(3, axes)) if 0 < axes < 9 else b""
        lengths = np.frombuffer(content, "<i4") if len(content) == 4 * max(3, axes) else np.zeros(1, int)
        if (lengths < 1).any():
            raise BadInput(f"{where} has a header of {axes} axes whose lengths cannot be read: truncated or damaged")
        yield file, tuple(int(n) for n in lengths[:axes]), np.dtype(_TYPES[int(head[0])])  # type: ignore[misc]


def read_rows(file: Any, rows: int, one: int, path: Path) -> bytes:
    content = file.read(rows * one)
    if len(content) != rows * one:
        raise BadInput(f"file {str(path)!r} ends before its header says: truncated")
    return bytes(content)


def at_end(file: Any, path: Path) -> None:
    """Nothing more may come; asking is what makes gzip compare its checksum."""
    if file.read(1):
        raise BadInput(f"file {str(path)!r} is longer than its header says: damaged")


def read_small(path: Path) -> Array:
    """The whole array of a labels file."""
    with _opened(path) as (file, shape, dtype):
        count = int(np.prod(shape, dtype=object))
        if count * dtype.itemsize > min(memory(), 1 << 30):
            raise BadInput(f"file {str(path)!r} declares {shape} numbers, too many for labels")
        content = read_rows(file, count, dtype.itemsize, path)
        at_end(file, path)
        return np.frombuffer(content, dtype).reshape(shape)


def left_camera(path: Path, shape: tuple[int, ...], size: int) -> Iterator[Array]:  # blocks of (b, size, size)
    with _opened(path) as (file, _, _):
        one = int(np.prod(shape[1:]))
        step = max(1, ROW_BLOCK // one)
        for start in range(0, shape[0], step):
            rows = min(step, shape[0] - start)
            pairs = np.frombuffer(read_rows(file, rows, one, path), np.uint8).reshape(rows, *shape[1:])
            yield shrink(pairs[:, 0], size)
        at_end(file, path)


def _files(part: str) -> list[Path]:
    kinds = ("dat", "cat", "info")
    return [
        find_archive("smallnorb", f"smallnorb-*-{part}-{kind}.mat", f"smallnorb-*-{part}-{kind}.mat.gz")
        for kind in kinds
    ]


def factors_of(cat: Array, info: Array, path: Path) -> Array:  # (N,), (N, 4) -> (N, 4)
    """info holds instance, elevation, azimuth (0, 2, .., 34) and lighting."""
    if cat.ndim != 1 or info.shape != (len(cat), 4):
        raise BadInput(f"file {str(path)!r} has shape {info.shape} but the categories {cat.shape}; they must agree")
    table = np.stack([cat, info[:, 1], info[:, 2] // 2, info[:, 3]], axis=1).astype(np.int64)
    sizes = np.array([factor.size for factor in SPACE])
    if (table < 0).any() or (table >= sizes).any() or (info[:, 2] % 2).any():
        raise BadInput(f"file {str(path)!r} holds values outside {SPACE.names} of sizes {sizes.tolist()}")
    return table


@lru_cache(maxsize=4)
def part_of(paths: tuple[Path, Path, Path], size: int) -> tuple[Array, Array]:
    """(images (N, size, size) by rows, factors (N, 4)) of the training or the testing files."""
    dat, cat, info = paths
    with _opened(dat) as (_, shape, dtype):
        if len(shape) != 4 or dtype != np.uint8 or shape[1] != 2:
            raise BadInput(f"file {str(dat)!r} is {dtype} {shape}; it must be uint8 (N, 2 cameras, H, W)")
    table = factors_of(read_small(cat), read_small(info), info)
    if len(table) != shape[0]:
        raise BadInput(f"file {str(dat)!r} has {shape[0]} images but {len(table)} labels; they must agree")
    return cached(f"smallnorb-{size}", [dat], (shape[0], size, size), lambda: left_camera(dat, shape, size)), table


class Joined:
    """Arrays one after the other, read by rows."""

    def __init__(self, parts: list[Array]) -> None:
        self.parts, self.dtype = parts, parts[0].dtype
        self.ends = np.cumsum([part.shape[0] for part in parts])
        self.shape = (int(self.ends[-1]), *parts[0].shape[1:])

    def __getitem__(self, index: Array) -> Array:
        out = np.empty((len(index), *self.shape[1:]), self.dtype)
        which = np.searchsorted(self.ends, index, side="right")
        for number, part in enumerate(self.parts):
            mine = which == number
            out[mine] = part[index[mine] - (self.ends[number] - part.shape[0])]
        return out


@dataclass(frozen=True)
class SmallNorb(TableDataset):
    """The official SmallNORB (LeCun et al. 2004): 48,600 photographs of 50 toys in 5 categories, left camera.

    Examples
    --------
    >>> from unseam.data import own_parameters
    >>> sorted(own_parameters(SmallNorb))  # load_data("smallnorb") needs the official files
    ['size', 'split']
    """

    size: int = 64
    """side in pixels (the files have 96)"""
    split: str = "all"
    """train (5 toys a category), test (the other 5) or all"""

    name = "smallnorb"

    def __post_init__(self) -> None:
        within("size", self.size, 4, 512)
        lookup(_SPLITS, self.split, "split")
        self.table  # noqa: B018  missing or damaged files are reported now

    @staticmethod
    def locate() -> None:
        """Find the files; refuse, with the command that fetches them, where they are missing."""
        for part in _SPLITS["all"]:
            _files(part)

    @cached_property
    def table(self) -> Table:
        parts = [part_of(tuple(_files(part)), self.size) for part in _SPLITS[self.split]]
        factors = torch.from_numpy(np.concatenate([labels for _, labels in parts]))
        return Table(Joined([images for images, _ in parts]), "hw", factors, SPACE)
