"""`dsprites`: the official file, as HDF5 (which holds no pickle) or .npz (whose pickled member is never read).

It unpacks to 3 GB. We read it once, in blocks, into one bit per pixel (377 MB on disk, memory-mapped), so that a batch
touches only its own rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array, Factor, FactorKind, FactorSpace
from unseam.data.archives.rows import archive_path, cached, find_archive, grid_sizes, npz_blocks, npz_header, row_slices
from unseam.data.base import GridDataset, factor_rows
from unseam.errors import BadInput
from unseam.readers import load_array

_FACTORS: tuple[tuple[str, FactorKind], ...] = (
    ("colour", "categorical"),
    ("shape", "categorical"),
    ("scale", "ordinal"),
    ("orientation", "cyclic"),
    ("x", "ordinal"),
    ("y", "ordinal"),
)
_PATTERNS = ("dsprites_*.hdf5", "dsprites_*.h5", "dsprites_*.npz")


@lru_cache(maxsize=2)
def packed_images(path: Path) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:
    """(N, ceil(H W / 8)) bits on disk, (N, H, W), and how many values each factor has."""
    where = f"file {str(path)!r}"
    packed = path.suffix == ".npz"
    imgs: Any = npz_header(path, "imgs", where) if packed else load_array(path, where, "imgs")
    shape = tuple(imgs.shape)
    if len(shape) != 3 or imgs.dtype != np.uint8 or (packed and imgs.fortran):
        raise BadInput(f"{where}: imgs has dtype {imgs.dtype} and shape {shape}; it must be uint8 (N, H, W)")
    name = "latents_classes" if packed else "latents/classes"
    classes = np.asarray(load_array(path, where, name)[:])
    if classes.shape != (shape[0], len(_FACTORS)) or classes.dtype.kind not in "iu":
        raise BadInput(f"{where}: {name} is {classes.dtype} {classes.shape}, not whole ({shape[0]}, {len(_FACTORS)})")
    sizes = grid_sizes(classes, where, name)
    blocks = npz_blocks(path, "imgs", where, 2) if packed else row_slices(imgs)
    bits = cached("dsprites", [path], (shape[0], -(-shape[1] * shape[2] // 8)), lambda: _bits(blocks, where))
    return bits, shape, sizes


def _bits(blocks: Iterator[Array], where: str) -> Iterator[Array]:
    for block in blocks:
        if block.max(initial=0) > 1:
            raise BadInput(f"{where}: imgs holds {block.max()}; dSprites images hold 0 and 1 only")
        yield np.packbits(block.reshape(len(block), -1), axis=1)


@dataclass(frozen=True)
class DSprites(GridDataset):
    """The official dSprites (Matthey et al. 2017): 737,280 binary images of one sprite, 64x64.

    Examples
    --------
    >>> from unseam.data import own_parameters
    >>> sorted(own_parameters(DSprites))  # load_data("dsprites") needs the official files
    ['path']
    """

    path: str | None = None
    """of the .hdf5 or .npz; default: dsprites_* in the data folder"""

    name = "dsprites"
    likelihood = "bernoulli"
    stochastic = False

    def __post_init__(self) -> None:
        self._images  # noqa: B018  missing or damaged files are reported now

    @staticmethod
    def locate() -> None:
        """Refuse if the file is not in the data folder."""
        find_archive("dsprites", *_PATTERNS)

    @cached_property
    def _images(self) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:
        return packed_images(archive_path("dsprites", self.path, *_PATTERNS))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (1, *self._images[1][1:])

    @cached_property
    def space(self) -> FactorSpace:  # type: ignore[override]
        """The factors that vary: colour takes one value, so it is left out."""
        pairs = zip(_FACTORS, self._images[2], strict=True)
        return FactorSpace(
            tuple(Factor(name, size, kind) for (name, kind), size in pairs if name != "colour" or size > 1)
        )

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        rows = self.space.index_of(factor_rows(factors, self.space).numpy())
        bits, (_, height, width), _ = self._images
        pixels = np.unpackbits(bits[rows], axis=1, count=height * width)
        return torch.from_numpy(pixels).float().reshape(-1, 1, height, width)
