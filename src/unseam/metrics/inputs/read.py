"""Files for `unseam score`, through the one checked reader (`unseam.readers`), with a sentence on what was read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unseam.data.download.web import is_address, local_copy
from unseam.errors import BadInput
from unseam.readers import ENDINGS, TABLES, Columns, Hdf5Rows, ending, load_array, load_table, refusing


class Read(NamedTuple):
    """What a file held, and what to tell of it."""

    content: Any  # an array, or a DataFrame where the columns have names
    reading_note: str


def read_array(place: str, wanted: str) -> Read:
    """The array or table in a file; `file.npz:name` picks an array (without a name: `wanted`, or the only one).

    >>> read_array("nowhere.npy", "codes")
    Traceback (most recent call last):
    unseam.errors.BadInput: codes: nowhere.npy does not exist; give a file that ends in .npy, .npz, .h5, .hdf5, ...
    """
    path, key = _split(place, wanted)
    if not Path(path).is_file():
        raise BadInput(f"{wanted}: {path} does not exist; give a file that ends in {', '.join(ENDINGS)}")
    where, suffix = f"{wanted}: {path}", ending(path)
    if suffix in TABLES:
        table = load_table(path, where, key or None)
        return Read(frame(table, wanted, where), f"{where}: {table.says()}")
    if suffix == ".npz" and not key:
        held = _members(path, where)
        if wanted not in held and len(held) != 1:
            raise BadInput(f"{where} holds {', '.join(held) or 'no arrays'}; pick one with {path}:NAME")
        key = wanted if wanted in held else held[0]
    array = load_array(path, where, key or None)
    array = np.array(array[:] if isinstance(array, Hdf5Rows) else array)
    reading_note = f"{where}: {array.dtype} {array.shape}"
    if wanted.endswith("factors"):
        return Read(frame(load_table(_words(array, where), where), wanted, where), reading_note)
    return Read(array, reading_note)


def _split(place: str, wanted: str) -> tuple[str, str]:
    """`file:name` -> (file, name); of an address the local copy, and what stands behind its last colon."""
    if is_address(place):
        scheme, _, rest = place.partition("://")
        address, _, key = rest.rpartition(":") if ":" in rest.rpartition("/")[2] else (rest, "", "")
        return str(local_copy(f"{scheme}://{address}", wanted)), key
    path, _, key = place.partition(":") if not Path(place).exists() else (place, "", "")
    return path, key


def _members(path: str, where: str) -> list[str]:
    """The names of the arrays in an .npz."""
    with refusing(where, "corrupt or not an .npz file"), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def frame(table: Columns, wanted: str, where: str) -> Any:
    """A DataFrame of the columns; those of codes must be numbers."""
    import pandas

    if not wanted.endswith("factors"):
        return pandas.DataFrame(table.numbers(where), columns=table.names)
    return pandas.DataFrame(dict(zip(table.names, table.columns, strict=True)))


def _words(array: Any, where: str) -> Any:
    """Bytes as words."""
    if array.dtype.kind != "S":
        return array
    try:
        return array.astype(str)
    except UnicodeDecodeError:
        raise BadInput(f"{where} contains non-ASCII bytes; save text columns as strings") from None
