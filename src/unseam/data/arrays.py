"""Arrays from files, without pickles: .npy (memory-mapped), .npz, .h5 (extra). Errors name the file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from unseam.errors import BadInput, unknown
from unseam.types import Array


def load_array(path: str | Path, where: str, key: str | None = None) -> Any:
    """The array in a file; .npy and .h5 stay on disk and are read by rows.

    >>> load_array("missing.npy", "data='missing.npy'")
    Traceback (most recent call last):
    unseam.errors.BadInput: data='missing.npy': no such file
    """
    path = Path(path)
    if not path.is_file():
        raise BadInput(f"{where}: no such file")
    readers: dict[str, Callable[[Path, str, str | None], Any]] = {
        ".npy": _npy,
        ".npz": _npz,
        ".h5": _hdf5,
        ".hdf5": _hdf5,
    }
    if path.suffix not in readers:
        raise BadInput(f"{where} ends in {path.suffix!r}; known are {', '.join(readers)} and folders of images")
    return readers[path.suffix](path, where, key)


def _npy(path: Path, where: str, key: str | None) -> Array:
    if key is not None:
        raise BadInput(f"key={key!r}: {where} holds a single array; leave key out")
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise BadInput(f"{where} cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if any(word in text for word in ("Object arrays", "pickled", "Python objects")):
        return "it is an object array or a pickle; save plain numbers with numpy.save"
    if "mmap length" in text:
        return "it is truncated (shorter than its header says); copy it again"
    return text or type(error).__name__


def _npz(path: Path, where: str, key: str | None) -> Array:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return archive[_choose(list(archive.files), key, where)]
    except BadInput:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BadInput(f"{where} is corrupt or no .npz archive: {_reason(error)}") from None


def _choose(keys: list[str], key: str | None, where: str) -> str:
    if key is not None:
        if key not in keys:
            raise unknown(f"{where}: key", key, keys)
        return key
    if len(keys) != 1:
        raise BadInput(f"{where} holds {len(keys)} arrays ({', '.join(keys)}); say which with key=NAME")
    return keys[0]


class Rows:
    """An HDF5 array read by rows in any order, as NumPy would index it."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim

    def __getitem__(self, index: Any) -> Array:
        if isinstance(index, slice):
            return self.array[index]
        rows, inverse = np.unique(index, return_inverse=True)  # HDF5 wants increasing row numbers
        return self.array[rows][inverse]


def _hdf5(path: Path, where: str, key: str | None) -> Rows:
    try:
        import h5py
    except ImportError:
        raise BadInput(f"{where} needs h5py; run: pip install 'unseam[hdf5]'") from None
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise BadInput(f"{where} is corrupt or no HDF5 file: {_reason(error)}") from None
    keys = [name for name, item in file.items() if isinstance(item, h5py.Dataset)]
    return Rows(file[_choose(keys, key, where)])
