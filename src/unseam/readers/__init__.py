"""One checked reader for arrays and tables: .npy .npz .h5, text, JSON, Parquet, Feather, Excel, Stata and SPSS files,
packed or not, and the tables of other libraries. No pickle, no torch, no surprises.

Sizes that a file declares are held against the bytes it has, or against this machine's memory, before anything is read;
every error is one line that names the file. A table reports what was read: rows, columns, and the kind of each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from unseam.errors import BadInput
from unseam.readers.formats import read_table
from unseam.readers.frames import as_array, as_frame, frame_columns
from unseam.readers.hdf5 import Hdf5Rows, read_hdf5
from unseam.readers.limits import DAMAGE, ENDINGS, TABLES, ending, existing, memory, refusing
from unseam.readers.npy import FileRows, Header, npy_header, read_npy, read_npz
from unseam.readers.tables import Columns, checked, is_number

__all__ = [
    "DAMAGE", "ENDINGS", "TABLES", "Columns", "FileRows", "Hdf5Rows", "Header", "as_array", "as_frame",
    "checked", "ending", "existing", "is_number", "load_array", "load_table", "memory", "npy_header", "refusing",
]  # fmt: skip


def load_array(path: str | Path, where: str, key: str | None = None) -> Any:
    """The array in a file; what can stay on disk stays there and is read by rows. Tables must hold numbers only.

    >>> load_array("missing.npy", "data='missing.npy'")
    Traceback (most recent call last):
    unseam.errors.BadInput: data='missing.npy': no such file
    """
    path = existing(path, where)
    if ending(path) in TABLES:
        return load_table(path, where, key).numbers(where)
    readers: dict[str, Callable[[Path, str, str | None], Any]] = {
        ".npy": read_npy,
        ".npz": read_npz,
        ".h5": read_hdf5,
        ".hdf5": read_hdf5,
    }
    with refusing(where, f"corrupt or not a {path.suffix} file"):
        return readers[path.suffix.lower()](path, where, key)


def load_table(source: Any, where: str, key: str | None = None, gaps: bool = False) -> Columns:
    """The columns of a file, of a DataFrame (which keeps its names) or of an array; with `gaps` cells may be missing.

    >>> load_table(np.array([[1, 2], [3, 4]]), "factors").names
    ['factor0', 'factor1']
    """
    if (frame := as_frame(source, where)) is not None:
        return checked(frame_columns(frame), where, gaps)
    if isinstance(source, (str, Path)):
        path = existing(source, where)
        if ending(path) in TABLES:
            with refusing(where, f"not a readable {ending(path)[1:].upper()} file"):
                table = read_table(path, where)
            return checked(table.pick(key.split(","), where) if key else table, where, gaps)
        source = load_array(path, where, key)
    array = np.asarray(source[:] if isinstance(source, (Hdf5Rows, FileRows)) else as_array(source, where))
    if array.ndim == 1 and array.dtype.names:
        return checked(Columns(list(array.dtype.names), [array[name] for name in array.dtype.names]), where, gaps)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.dtype.kind not in "biufU":
        raise BadInput(f"{where} has shape {array.shape} and dtype {array.dtype}; it must be numbers (N, F)")
    names = [key.rpartition("/")[2]] if key and array.shape[1] == 1 else [f"factor{i}" for i in range(array.shape[1])]
    return checked(Columns(names, list(array.T)), where, gaps)
