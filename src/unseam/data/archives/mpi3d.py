"""`mpi3d`: the official .npz files (Gondal et al. 2019): a robot arm with an object, simulated or photographed.

An array has up to 12.7 GB. A stored member is read where it lies in the archive; a compressed one is unpacked once,
on disk. Two row counts are in use: 1,036,800 (6 colours, 6 shapes) and 460,800 (4 and 4: the complex shapes, and the
smaller "toy" file of disentanglement_lib, which papers mix up with mpi3d_toy).
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from unseam.axes import Factor, FactorKind, FactorSpace
from unseam.data.archives.rows import GridArchive, archive_path, cached, find_archive, npz_blocks, npz_header
from unseam.errors import BadInput, lookup
from unseam.readers import load_array

_FILES = {
    "toy": "mpi3d_toy.npz",
    "realistic": "mpi3d_realistic.npz",
    "real": "mpi3d_real.npz",
    "real-complex": "real3d_complicated_shapes_ordered.npz",
}
_FACTORS: tuple[tuple[str, FactorKind], ...] = (
    ("colour", "categorical"),
    ("shape", "categorical"),
    ("size", "ordinal"),
    ("camera", "ordinal"),
    ("background", "categorical"),
    ("horizontal", "ordinal"),
    ("vertical", "ordinal"),
)
_SIZES = {1_036_800: (6, 6, 2, 3, 3, 40, 40), 460_800: (4, 4, 2, 3, 3, 40, 40)}  # by the number of rows


@lru_cache(maxsize=4)
def read_mpi3d(path: Path) -> Any:
    """The images by rows, (N, H, W, 3) uint8."""
    where = f"file {str(path)!r}"
    header = npz_header(path, "images", where)
    side = header.shape[-3:]
    count = int(np.prod(header.shape[:-3]))  # some copies keep the seven factors as axes
    if header.dtype != np.uint8 or header.fortran or len(header.shape) < 4 or side[-1] != 3 or count not in _SIZES:
        raise BadInput(
            f"{where}: images is {header.dtype} {header.shape}; it must be uint8 (N, H, W, 3) with N one of "
            f"{', '.join(map(str, _SIZES))}"
        )
    with zipfile.ZipFile(path) as archive:
        stored = archive.getinfo("images.npy").compress_type == zipfile.ZIP_STORED
    if stored:
        return load_array(path, where, "images").reshape(count, *side)
    return cached(f"mpi3d-{path.stem}", [path], (count, *side), lambda: npz_blocks(path, "images", where, 3))


def complaint(path: Path) -> str:
    """Why the file is not an MPI3D archive, read to its end (zipfile compares the CRC); empty if it is one."""
    try:
        header = npz_header(path, "images", path.name)
        for _ in npz_blocks(path, "images", path.name, 3):
            pass
    except BadInput as error:
        return str(error)
    return "" if int(np.prod(header.shape[:-3])) in _SIZES else f"images has shape {header.shape}"


@dataclass(frozen=True)
class Mpi3D(GridArchive):
    """The official MPI3D (Gondal et al. 2019): 1,036,800 images of a robot arm, 64x64, in four variants.

    Examples
    --------
    >>> from unseam.data import own_parameters
    >>> sorted(own_parameters(Mpi3D))  # load_data("mpi3d") needs the official files
    ['path', 'variant']
    """

    variant: str = "toy"
    """toy, realistic, real or real-complex"""
    path: str | None = None
    """of the .npz; default: the variant's file in the data folder"""

    name = "mpi3d"

    def __post_init__(self) -> None:
        lookup(_FILES, self.variant, "variant")
        self.images  # noqa: B018  missing or damaged files are reported now

    @staticmethod
    def locate() -> None:
        """Find the files; refuse, with the command that fetches them, where they are missing."""
        find_archive("mpi3d", *_FILES.values(), fetch="mpi3d-toy")

    @cached_property
    def images(self) -> Any:
        return read_mpi3d(archive_path("mpi3d", self.path, _FILES[self.variant], fetch=f"mpi3d-{self.variant}"))

    @cached_property
    def space(self) -> FactorSpace:  # type: ignore[override]
        sizes = _SIZES[self.images.shape[0]]
        return FactorSpace(tuple(Factor(name, size, kind) for (name, kind), size in zip(_FACTORS, sizes, strict=True)))
