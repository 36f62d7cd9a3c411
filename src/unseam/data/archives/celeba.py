"""`celeba`: 202,599 photographs of faces (Liu et al. 2015) with forty attributes, read from the folder or the zip."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch

from unseam.axes import Array, Factor, FactorSpace
from unseam.data.archives.rows import missing
from unseam.data.base import within
from unseam.data.cache import data_folder
from unseam.data.images import decode
from unseam.data.table import Table, TableDataset
from unseam.errors import BadInput, lookup
from unseam.readers import refusing

_SPLITS = {"train": 0, "valid": 1, "test": 2, "all": None}


def folder_of(path: str | None) -> Path:
    """The folder that holds list_attr_celeba.txt and the images."""
    folder = Path(path) if path is not None else data_folder() / "celeba"
    for name in ("list_attr_celeba.txt", "list_eval_partition.txt"):
        if not (folder / name).is_file():
            raise missing("celeba", name, "celeba") if path is None else BadInput(f"path={path!r} has no {name}")
    if not any((folder / name).exists() for name in ("img_align_celeba", "img_align_celeba.zip")):
        raise missing("celeba", "img_align_celeba (a folder, or the .zip)", "celeba")
    return folder


@lru_cache(maxsize=2)
def attributes(path: Path) -> tuple[tuple[str, ...], tuple[str, ...], Array]:
    """(names of the attributes, names of the files, (N, F) 0 or 1): a count, names, then a line a file of -1 and 1."""
    where = f"file {str(path)!r}"
    with refusing(where, "damaged"):
        lines = path.read_text(encoding="utf-8").splitlines()
        count, names = int(lines[0]), tuple(lines[1].split())
        rows = [line.split() for line in lines[2:] if line.strip()]
        if len(rows) != count or any(len(row) != len(names) + 1 for row in rows):
            raise BadInput(
                f"{where} promises {count} lines of {len(names)} attributes and has {len(rows)}, or torn ones"
            )
        values = np.array([row[1:] for row in rows]).astype(np.int64)
        if not np.isin(values, (-1, 1)).all():
            raise BadInput(f"{where} holds values other than -1 and 1")
    return names, tuple(row[0] for row in rows), (values + 1) // 2


def _partition(path: Path, files: tuple[str, ...]) -> Array:  # (N,): 0 train, 1 valid, 2 test
    where = f"file {str(path)!r}"
    with refusing(where, "damaged"):
        part = dict(line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
        return np.array([int(part[file]) for file in files])


class Photographs:
    """Pictures by row, decoded on demand: the middle square, resized."""

    def __init__(self, folder: Path, files: list[str], crop: int, size: int) -> None:
        self.folder, self.files, self.crop, self.size = folder, files, crop, size
        self.shape, self.dtype, self.ndim = (len(files), size, size, 3), np.dtype(np.uint8), 4

    @cached_property
    def archive(self) -> zipfile.ZipFile:
        path = self.folder / "img_align_celeba.zip"
        with refusing(f"file {str(path)!r}", "damaged or not a zip"):
            return zipfile.ZipFile(path)

    def content(self, name: str) -> bytes:
        if Path(name).name != name:
            raise BadInput(f"celeba: {name!r} is not a plain file name")
        path = self.folder / "img_align_celeba" / name
        with refusing(f"picture {name!r} of celeba", "not there, or damaged"):
            return path.read_bytes() if path.parent.is_dir() else self.archive.read(f"img_align_celeba/{name}")

    def __getitem__(self, index: Array) -> Array:  # (B,) -> (B, size, size, 3)
        names = (self.files[int(row)] for row in index)
        out = [_middle(decode(io.BytesIO(self.content(name)), name, "RGB"), self.crop, self.size) for name in names]
        return np.stack(out) if out else np.zeros((0, *self.shape[1:]), np.uint8)


def _middle(picture: Array, crop: int, size: int) -> Array:  # (H, W, 3) -> (size, size, 3)
    """The square of `crop` pixels in the middle, resized with Pillow's bilinear filter."""
    from PIL import Image

    top, left = ((side - crop) // 2 for side in picture.shape[:2])
    square = Image.fromarray(picture).crop((left, top, left + crop, top + crop))
    return np.asarray(square.resize((size, size), Image.Resampling.BILINEAR))


@dataclass(frozen=True)
class CelebA(TableDataset):
    """The aligned faces of CelebA (Liu et al. 2015): 202,599 photographs, 178x218, with 40 attributes as factors.

    Examples
    --------
    >>> from unseam.data import own_parameters
    >>> sorted(own_parameters(CelebA))  # load_data("celeba") needs the official files
    ['crop', 'path', 'size', 'split']
    """

    size: int = 64
    """side in pixels"""
    crop: int = 148
    """side of the square cut out of the middle"""
    split: str = "train"
    """train, valid, test or all"""
    path: str | None = None
    """of the folder with list_attr_celeba.txt; default: celeba in the data folder"""

    name = "celeba"

    def __post_init__(self) -> None:
        within("size", self.size, 4, 512)
        within("crop", self.crop, 4, 178)
        lookup(_SPLITS, self.split, "split")
        self.table  # noqa: B018  missing or damaged files are reported now

    @staticmethod
    def locate() -> None:
        """Find the files; refuse, with the command that fetches them, where they are missing."""
        folder_of(None)

    @cached_property
    def table(self) -> Table:
        folder, number = folder_of(self.path), _SPLITS[self.split]
        names, files, values = attributes(folder / "list_attr_celeba.txt")
        part = _partition(folder / "list_eval_partition.txt", files)
        numbers = np.flatnonzero(part == number) if number is not None else np.arange(len(files))
        if not len(numbers):
            raise BadInput(f"celeba: split={self.split!r} has no picture")
        photographs = Photographs(folder, [files[row] for row in numbers], self.crop, self.size)
        space = FactorSpace(tuple(Factor(name, 2, "categorical") for name in names))
        return Table(photographs, "hwc", torch.from_numpy(values[numbers]), space)
