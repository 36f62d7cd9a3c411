"""Arrays from files: .npy, .npz, .csv (or .tsv), .parquet. One reader for `unseam score`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unseam.errors import BadInput, unknown


def read_array(place: str, wanted: str) -> Any:
    """The array or table in a file. `file.npz:name` picks an array; without a name `wanted`, or the only one.

    >>> read_array("nowhere.npy", "codes")
    Traceback (most recent call last):
    unseam.errors.BadInput: codes: nowhere.npy does not exist; give a .npy, .npz, .csv, .tsv or .parquet file
    """
    path, _, key = place.partition(":") if not Path(place).exists() else (place, "", "")
    readers = {".npy": read_npy, ".npz": read_npz, ".csv": read_csv, ".tsv": read_csv, ".parquet": read_parquet}
    if not Path(path).is_file():
        raise BadInput(f"{wanted}: {path} does not exist; give a .npy, .npz, .csv, .tsv or .parquet file")
    suffix = Path(path).suffix.lower()
    if suffix not in readers:
        raise BadInput(f"{wanted}: {path} has the ending {suffix!r}; known: {', '.join(readers)}")
    try:
        return readers[suffix](Path(path), key, wanted)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{wanted}: {path} cannot be read as {suffix} ({str(error).splitlines()[0]})") from None


def read_npy(path: Path, key: str, wanted: str) -> Any:
    return np.load(path, allow_pickle=False)


def read_npz(path: Path, key: str, wanted: str) -> Any:
    with np.load(path, allow_pickle=False) as archive:
        name = key or (wanted if wanted in archive.files else "")
        if not name and len(archive.files) == 1:
            name = archive.files[0]
        if not name:
            raise BadInput(f"{wanted}: {path} holds {', '.join(archive.files)}; pick one with {path}:NAME")
        if name not in archive.files:
            raise unknown(f"array in {path}", name, archive.files)
        return archive[name]


def read_csv(path: Path, key: str, wanted: str) -> Any:
    """A table with a header line if its first line holds words, else plain numbers."""
    import pandas

    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    first = path.open().readline().strip().split(separator)
    header = None if all(is_number(word) for word in first) else 0
    frame = pandas.read_csv(path, sep=separator, header=header)
    return frame if header == 0 else frame.rename(columns=lambda c: f"{wanted.removesuffix('s').split('_')[-1]}{c}")


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def read_parquet(path: Path, key: str, wanted: str) -> Any:
    import pandas

    try:
        return pandas.read_parquet(path)
    except ImportError:
        raise BadInput(f"{wanted}: reading {path} needs pyarrow; pip install 'unseam[parquet]'") from None
