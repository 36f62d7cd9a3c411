"""`shapes3d`: the official 3dshapes.h5 (Burgess and Kim 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from unseam.axes import Factor, FactorKind, FactorSpace
from unseam.data.archives.rows import GridArchive, archive_path, cached, find_archive, grid_sizes, row_slices
from unseam.errors import BadInput
from unseam.readers import load_array

_FACTORS: tuple[tuple[str, FactorKind], ...] = (
    ("floor", "cyclic"),
    ("wall", "cyclic"),
    ("object", "cyclic"),
    ("scale", "ordinal"),
    ("shape", "categorical"),
    ("orientation", "ordinal"),
)
COSTLY = 1 << 20  # bytes to unpack for one row, from which a copy on disk is worth its space


@lru_cache(maxsize=2)
def read_shapes3d(path: Path) -> tuple[Any, tuple[int, ...]]:
    """(images by rows, sizes of the factors). A file whose chunks hold many rows is unpacked once, on disk."""
    where = f"file {str(path)!r}"
    images, labels = load_array(path, where, "images"), load_array(path, where, "labels")
    if images.ndim != 4 or images.dtype != np.uint8 or images.shape[3] != 3:
        raise BadInput(f"{where}: images is {images.dtype} {images.shape}; it must be uint8 (N, H, W, 3)")
    if labels.shape != (images.shape[0], len(_FACTORS)):
        raise BadInput(f"{where}: labels has shape {labels.shape}, not ({images.shape[0]}, {len(_FACTORS)})")
    sizes = grid_sizes(labels[:], where, "labels")
    if images.row_cost <= COSTLY:
        return images, sizes
    return cached("shapes3d", [path], images.shape, lambda: row_slices(images)), sizes


@dataclass(frozen=True)
class Shapes3D(GridArchive):
    """The official Shapes3D (Burgess and Kim 2018): 480,000 colour images of a solid in a room, 64x64.

    Examples
    --------
    >>> from unseam.data import own_parameters
    >>> sorted(own_parameters(Shapes3D))  # load_data("shapes3d") needs the official files
    ['path']
    """

    path: str | None = None
    """of 3dshapes.h5; default: in the data folder"""

    name = "shapes3d"

    def __post_init__(self) -> None:
        self._read  # noqa: B018  missing or damaged files are reported now

    @staticmethod
    def locate() -> None:
        """Find the files; refuse, with the command that fetches them, where they are missing."""
        find_archive("shapes3d", "3dshapes.h5")

    @cached_property
    def _read(self) -> tuple[Any, tuple[int, ...]]:
        return read_shapes3d(archive_path("shapes3d", self.path, "3dshapes.h5"))

    @property
    def images(self) -> Any:
        return self._read[0]

    @cached_property
    def space(self) -> FactorSpace:  # type: ignore[override]
        return FactorSpace(
            tuple(Factor(name, s, kind) for (name, kind), s in zip(_FACTORS, self._read[1], strict=True))
        )
