"""`cars3d`: renderings of 183 car models (Reed et al. 2015), one MATLAB file a model, in the order of list.txt.

disentanglement_lib takes the models in the order of a directory listing, which differs between machines.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from unseam.axes import Array, Factor, FactorSpace
from unseam.data.archives.rows import GridArchive, archive_path, cached, find_archive, shrink
from unseam.data.base import within
from unseam.errors import BadInput
from unseam.readers import refusing

_LARGEST = 1 << 26  # bytes of one file; the official ones unpack to 6.3 MB
_PATTERNS = ("data/cars/list.txt", "cars/list.txt", "list.txt")


def _models(listing: Path) -> list[Path]:
    """The MATLAB files that list.txt names, all of which must be there."""
    with refusing(f"file {str(listing)!r}", "not a list of names"):
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


Element = tuple[int, bytes, int]  # type, content, where the next one begins
UINT8, MATRIX, COMPRESSED = 2, 14, 15  # types of elements
UINT8_CLASS = 9  # of a matrix


def element(content: bytes, at: int) -> Element:
    """One element of a MATLAB 5 file. (Not scipy.io.loadmat: a damaged file can crash it, and Python with it.)"""
    kind, size = struct.unpack_from("<II", content, at)
    start = at + 8
    if kind >> 16:  # up to four bytes are packed into the tag
        kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
    end = start + size
    if end > len(content):
        raise EOFError("an element ends behind the file")
    after = at + 8 if start == at + 4 else end + (-size % 8 if kind != COMPRESSED else 0)
    return kind, content[start:end], after


def _matrices(content: bytes) -> Iterator[tuple[str, int, tuple[int, ...], Element]]:
    """(name, class, shape, values) of the matrices in a file, in order."""
    if content[126:128] != b"IM":
        raise ValueError("it does not start like a little-endian MATLAB 5 file")
    at = 128
    while at < len(content):
        kind, body, at = element(content, at)
        if kind == COMPRESSED:
            unpack = zlib.decompressobj()
            kind, body, _ = element(unpack.decompress(body, _LARGEST), 0)
            if not unpack.eof:
                raise EOFError("a compressed matrix is too long, or torn")
        if kind == MATRIX:
            (_, flags, first), rest = element(body, 0), []
            for _ in range(3):
                rest.append(element(body, first))
                first = rest[-1][2]
            yield rest[1][1].decode("ascii"), flags[0], tuple(np.frombuffer(rest[0][1], "<i4").tolist()), rest[2]


def model_views(path: Path, like: tuple[int, ...] | None = None) -> Array:  # (H, W, 3, azimuths, elevations) uint8
    """All pictures of one model."""
    where = f"file {str(path)!r}"
    if path.stat().st_size > _LARGEST:
        raise BadInput(f"{where} has {path.stat().st_size:,} bytes, too many for one car")
    with refusing(where, "damaged or not a MATLAB 5 file"):
        for name, kind, shape, (coded, values, _) in _matrices(path.read_bytes()):
            if name != "im":
                continue
            fits = len(shape) == 5 and shape[2] == 3 and shape[0] == shape[1] and like in (None, shape)
            if kind != UINT8_CLASS or coded != UINT8 or not fits or min(shape) < 1 or len(values) != math.prod(shape):
                wanted = like or "(H, H, 3, azimuths, elevations)"
                raise BadInput(f"{where}: im has class {kind} and shape {shape}; it must be uint8 {wanted}")
            return np.frombuffer(values, np.uint8).reshape(shape, order="F")
    raise BadInput(f"{where} holds no im")


@lru_cache(maxsize=2)
def read_cars3d(listing: Path, size: int) -> tuple[Array, tuple[int, int, int]]:
    """(images (N, size, size, 3) by rows, (elevations, azimuths, models)); rows: elevation, azimuth, then model."""
    paths = _models(listing)
    shape = model_views(paths[0]).shape
    azimuths, elevations = shape[3:]

    def blocks() -> Iterator[Array]:
        for path in paths:
            im = model_views(path, shape).transpose(4, 3, 0, 1, 2)  # (elevations, azimuths, H, W, 3)
            small = shrink(np.ascontiguousarray(im).reshape(-1, *shape[:3]), size)
            yield small.reshape(1, elevations * azimuths, size, size, 3)

    rows = cached(f"cars3d-{size}", [listing, *paths], (len(paths), elevations * azimuths, size, size, 3), blocks)
    return rows, (elevations, azimuths, len(paths))


class ModelsLast:
    """Stored model by model, addressed with the model as the fastest factor."""

    def __init__(self, rows: Array) -> None:
        self.models, self.views = rows.shape[:2]
        self.shape, self.dtype = (self.models * self.views, *rows.shape[2:]), rows.dtype
        self.rows = rows.reshape(*self.shape)

    def __getitem__(self, index: Array) -> Array:
        view, model = np.divmod(index, self.models)
        return self.rows[model * self.views + view]


@dataclass(frozen=True)
class Cars3D(GridArchive):
    """The official Cars3D (Reed et al. 2015): 17,568 colour images of 183 cars, 4 elevations and 24 azimuths.

    Examples
    --------
    >>> from unseam.data import own_parameters
    >>> sorted(own_parameters(Cars3D))  # load_data("cars3d") needs the official files
    ['path', 'size']
    """

    size: int = 64
    """side in pixels (the files have 128)"""
    path: str | None = None
    """of list.txt, the MATLAB files beside it; default: in the data folder"""

    name = "cars3d"

    def __post_init__(self) -> None:
        within("size", self.size, 4, 512)
        self._read  # noqa: B018  missing or damaged files are reported now

    @staticmethod
    def locate() -> None:
        """Find the files; refuse, with the command that fetches them, where they are missing."""
        find_archive("cars3d", *_PATTERNS)

    @cached_property
    def _read(self) -> tuple[Array, tuple[int, int, int]]:
        return read_cars3d(archive_path("cars3d", self.path, *_PATTERNS), self.size)

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
