"""Arrays in HDF5 files, read by rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.readers.limits import refusing
from unseam.readers.npy import choose

_SPARSE = 1200  # HDF5: declared / stored bytes above this were never written (gzip reaches 1032)
_SMALL = 1 << 24  # bytes that may be declared by any file


class Hdf5Rows:
    """An HDF5 array read by rows in any order, as NumPy would index it."""

    def __init__(self, array: Any, where: str) -> None:
        self.array, self.where = array, where
        self.shape, self.dtype, self.ndim = tuple(array.shape), array.dtype, array.ndim

    def __getitem__(self, index: Any) -> Array:
        with refusing(self.where, "damaged"):
            if isinstance(index, slice):
                return self.block(index)
            rows, inverse = np.unique(index, return_inverse=True)  # HDF5 wants increasing row numbers
            return self.array[rows][inverse]

    def block(self, index: slice) -> Array:
        """Neighbouring rows. Where chunks cut through rows HDF5 is slow: they are read one by one and put together.

        h5py's own choice for 480,000 pictures of 64 x 64 x 3 bytes is chunks of 15,000 x 4 x 4 x 1.
        """
        start, stop, step = index.indices(self.shape[0])
        sides, parts = self.shape[1:], (self.array.chunks or self.shape)[1:]
        if step != 1 or sides == parts or any(side % part for side, part in zip(sides, parts, strict=True)):
            return self.array[index]
        grid, d = [side // part for side, part in zip(sides, parts, strict=True)], len(sides)
        out = np.empty((*grid, max(0, stop - start), *parts), self.dtype)
        for place in np.ndindex(*grid):
            chosen = (slice(i * part, (i + 1) * part) for i, part in zip(place, parts, strict=True))
            out[place] = self.array[(slice(start, stop), *chosen)]
        order = [
            d,
            *(axis for i in range(d) for axis in (i, d + 1 + i)),
        ]  # rows; then of each side its parts, their pixels
        return out.transpose(order).reshape(-1, *sides)

    @property
    def chunk(self) -> int:
        """Rows that are unpacked together."""
        return int(self.array.chunks[0]) if self.array.chunks else 1

    @property
    def row_cost(self) -> int:
        """Bytes that are unpacked to read one row: whole chunks."""
        return int(np.prod(self.shape[1:], dtype=object)) * self.dtype.itemsize * self.chunk


def read_hdf5(path: Path, where: str, key: str | None) -> Hdf5Rows:
    try:
        import h5py
    except ImportError:
        raise BadInput(f"{where} needs h5py; run: pip install 'unseam[hdf5]'") from None
    file = h5py.File(path, "r")
    found: dict[str, Any] = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    array = found[choose(list(found), key, where)]
    if array.shape is None or array.dtype.hasobject or array.is_virtual or array.external:
        raise BadInput(f"{where}: {array.name} is not a plain array in this file; store numbers in it")
    declared, stored = array.size * array.dtype.itemsize, array.id.get_storage_size()
    if declared > _SMALL and declared > _SPARSE * stored:
        raise BadInput(
            f"{where} declares {array.dtype} {array.shape}, {declared:,} bytes, but stores {stored:,}: most of it was "
            "never written"
        )
    return Hdf5Rows(array, where)
