"""`dsprites`: the official archive, if it is in the data folder.

dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz unpacks to 3 GB. We read it once, in blocks, into one bit a pixel
(377 MB on disk, memory-mapped), so that a batch touches only its own rows.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from unseam.data.arrays import load_array
from unseam.data.checks import factor_rows
from unseam.data.files import data_folder
from unseam.data.grid import GridDataset
from unseam.errors import BadInput
from unseam.files import atomic_file
from unseam.progress import bar
from unseam.types import Array, Factor, FactorSpace, Kind

FACTORS: tuple[tuple[str, Kind], ...] = (
    ("colour", "categorical"),
    ("shape", "categorical"),
    ("scale", "ordinal"),
    ("orientation", "cyclic"),
    ("x", "ordinal"),
    ("y", "ordinal"),
)
BLOCK = 4096  # images read at a time
WEBSITE = "https://github.com/google-deepmind/dsprites-dataset"


def find_archive() -> Path:
    """The official file in the data folder."""
    found = sorted(data_folder().glob("dsprites_*.npz"))
    if not found:
        raise BadInput(f"data='dsprites': no dsprites_*.npz in {data_folder()}; copy it there from {WEBSITE}")
    return found[0]


def read_header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the .npy stream."""
    version = np.lib.format.read_magic(file)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = reader(file)
    if fortran or dtype != np.uint8 or len(shape) != 3:
        raise BadInput(f"{where}: imgs has dtype {dtype} and shape {shape}; it must be uint8 (N, H, W)")
    return shape, dtype


def image_blocks(file: IO[bytes], shape: tuple[int, ...]) -> Iterator[Array]:
    """The images (b, H * W), a block at a time."""
    n = shape[1] * shape[2]
    for start in range(0, shape[0], BLOCK):
        rows = min(BLOCK, shape[0] - start)
        content = file.read(rows * n)
        if len(content) != rows * n:
            raise EOFError("imgs ends too early")
        yield np.frombuffer(content, np.uint8).reshape(rows, n)


@lru_cache(maxsize=2)
def packed_images(path: Path) -> tuple[Array, tuple[int, ...]]:
    """(N, ceil(H W / 8)) bits on disk, and (N, H, W); unpacked from the archive the first time."""
    where = f"file {str(path)!r}"
    try:
        with zipfile.ZipFile(path) as archive, archive.open("imgs.npy") as file:
            shape, _ = read_header(file, where)
            stat = path.stat()
            identity = f"{path.resolve()}\n{stat.st_size}\n{stat.st_mtime_ns}"
            cache = data_folder() / "cache" / f"dsprites-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.npy"
            grid_sizes(path, shape[0])
            if not cache.is_file():
                _pack(file, shape, cache, where)
    except BadInput:
        raise
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise BadInput(f"{where} is damaged or not the dSprites archive: {error}") from None
    return np.load(cache, mmap_mode="r", allow_pickle=False), shape


def _pack(file: IO[bytes], shape: tuple[int, ...], cache: Path, where: str) -> None:
    with atomic_file(cache) as temporary, bar("unpacking dsprites", shape[0]) as advance:
        bits = np.lib.format.open_memmap(
            temporary, mode="w+", dtype=np.uint8, shape=(shape[0], -(-shape[1] * shape[2] // 8))
        )
        start = 0
        for block in image_blocks(file, shape):
            if block.max(initial=0) > 1:
                raise BadInput(f"{where}: imgs holds {block.max()}; dSprites images hold 0 and 1 only")
            bits[start : start + len(block)] = np.packbits(block, axis=1)
            start += len(block)
            advance(len(block))
        bits.flush()


@lru_cache(maxsize=2)
def grid_sizes(path: Path, count: int) -> tuple[int, ...]:
    """How many values each factor has; the rows must be the full grid in order."""
    where = f"file {str(path)!r}"
    classes = load_array(path, where, "latents_classes")
    if classes.ndim != 2 or classes.shape != (count, len(FACTORS)) or classes.dtype.kind not in "iu":
        raise BadInput(
            f"{where}: latents_classes is {classes.dtype} {classes.shape}, not whole ({count}, {len(FACTORS)})"
        )
    sizes = tuple(int(size) for size in classes.max(0) + 1)
    grid = np.indices(sizes).reshape(len(sizes), -1).T if np.prod(sizes) == count else None
    if grid is None or not np.array_equal(classes, grid):
        raise BadInput(f"{where}: latents_classes is not the full grid of {sizes} in order")
    return sizes


@dataclass(frozen=True)
class DSprites(GridDataset):
    """The official dSprites (Matthey et al. 2017): 737,280 binary images of one sprite, 64x64."""

    path: str | None = None  # of the archive; default: dsprites_*.npz in the data folder

    name = "dsprites"
    likelihood = "bernoulli"
    stochastic = False

    def __post_init__(self) -> None:
        self._images, self.space  # noqa: B018  missing or damaged files are reported now

    @staticmethod
    def locate() -> None:
        """Refuse if the archive is not in the data folder."""
        find_archive()

    @cached_property
    def _path(self) -> Path:
        if self.path is not None and not Path(self.path).is_file():
            raise BadInput(f"path={self.path!r}: no such file")
        return Path(self.path) if self.path is not None else find_archive()

    @property
    def _images(self) -> tuple[Array, tuple[int, ...]]:
        return packed_images(self._path)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (1, *self._images[1][1:])

    @cached_property
    def space(self) -> FactorSpace:  # type: ignore[override]
        """The factors that vary: colour takes one value, so it is left out."""
        sizes = grid_sizes(self._path, self._images[1][0])
        return FactorSpace(
            tuple(Factor(n, s, k) for (n, k), s in zip(FACTORS, sizes, strict=True) if n != "colour" or s > 1)
        )

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        rows = self.space.index_of(factor_rows(factors, self.space).numpy())
        bits, (_, height, width) = self._images
        pixels = np.unpackbits(bits[rows], axis=1, count=height * width)
        return torch.from_numpy(pixels).float().reshape(-1, 1, height, width)
