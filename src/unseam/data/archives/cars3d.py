"""`cars3d`: renderings of 183 car models (Reed et al. 2015), one MATLAB file a model, in the order of list.txt.

disentanglement_lib takes the models in the order of a directory listing, which differs between machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from unseam.data.archives.rows import GridArchive, cached, find, located, shrink
from unseam.data.checks import within
from unseam.errors import BadInput
from unseam.read import refusing
from unseam.types import Array, Factor, FactorSpace

PATTERNS = ("data/cars/list.txt", "cars/list.txt", "list.txt")


def models(listing: Path) -> list[Path]:
    """The MATLAB files that list.txt names, all of which must be there."""
    with refusing(f"file {str(listing)!r}", "no list of names"):
        names = [
            Path(line.strip()).name.removesuffix(".mat") for line in listing.read_text().splitlines() if line.strip()
        ]
    paths = [listing.with_name(f"{name}.mat") for name in names]
    for path in paths:
        if not path.is_file():
            raise BadInput(
                f"file {str(listing)!r} names {path.stem}, but {path.name} is not beside it; unpack all of it"
            )
    if not paths:
        raise BadInput(f"file {str(listing)!r} is empty")
    return paths


def views(path: Path, like: tuple[int, ...] | None = None) -> Array:  # (H, W, 3, azimuths, elevations) uint8
    """All pictures of one model; declared sizes are looked at before anything is read."""
    from scipy.io import loadmat, whosmat

    where = f"file {str(path)!r}"
    with refusing(where, "damaged or no MATLAB file"):
        declared = {name: (shape, kind) for name, shape, kind in whosmat(path)}
        shape, kind = declared.get("im", ((), "nothing"))
        if kind != "uint8" or len(shape) != 5 or shape[2] != 3 or shape[0] != shape[1] or (like and shape != like):
            wanted = like or "(H, H, 3, azimuths, elevations)"
            raise BadInput(f"{where}: im is {kind} {shape}; it must be uint8 {wanted}")
        if int(np.prod(shape, dtype=object)) > 1 << 28:
            raise BadInput(f"{where}: im has shape {shape}, which is too large for one car")
        return np.asarray(loadmat(path, variable_names=["im"])["im"])


@lru_cache(maxsize=2)
def read(listing: Path, size: int) -> tuple[Array, tuple[int, int, int]]:
    """(images (N, size, size, 3) by rows, (elevations, azimuths, models)); rows: elevation, azimuth, then model."""
    paths = models(listing)
    shape = views(paths[0]).shape
    azimuths, elevations = shape[3:]

    def blocks() -> Iterator[Array]:
        for path in paths:
            im = views(path, shape).transpose(4, 3, 0, 1, 2)  # (elevations, azimuths, H, W, 3)
            small = shrink(np.ascontiguousarray(im).reshape(-1, *shape[:3]), size)
            yield small.reshape(1, elevations * azimuths, size, size, 3)

    rows = cached(f"cars3d-{size}", [listing, *paths], (len(paths), elevations * azimuths, size, size, 3), blocks)
    return rows, (elevations, azimuths, len(paths))


class ModelsLast:
    """Stored model by model, addressed with the model as the fastest factor."""

    def __init__(self, rows: Array) -> None:
        self.rows, self.dtype = rows, rows.dtype
        self.shape = (rows.shape[0] * rows.shape[1], *rows.shape[2:])

    def __getitem__(self, index: Array) -> Array:
        view, model = np.divmod(index, self.rows.shape[0])
        return self.rows[model, view]


@dataclass(frozen=True)
class Cars3D(GridArchive):
    """The official Cars3D (Reed et al. 2015): 17,568 colour images of 183 cars, 4 elevations and 24 azimuths."""

    size: int = 64  # side in pixels (the files have 128)
    path: str | None = None  # of list.txt, the MATLAB files beside it; default: in the data folder

    name = "cars3d"

    def __post_init__(self) -> None:
        within("size", self.size, 4, 512)
        self._read  # noqa: B018  missing or damaged files are reported now

    @staticmethod
    def locate() -> None:
        find("cars3d", *PATTERNS)

    @cached_property
    def _read(self) -> tuple[Array, tuple[int, int, int]]:
        return read(located("cars3d", self.path, *PATTERNS), self.size)

    @cached_property
    def images(self) -> Any:
        return ModelsLast(self._read[0])

    @cached_property
    def space(self) -> FactorSpace:  # type: ignore[override]
        elevations, azimuths, types = self._read[1]
        return FactorSpace(
            (
                Factor("elevation", elevations),
                Factor("azimuth", azimuths, "cyclic"),
                Factor("type", types, "categorical"),
            )
        )
