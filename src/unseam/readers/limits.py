"""Errors about a file, in one line that names it; and how much may be read at once."""

from __future__ import annotations

import csv
import lzma
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from unseam.errors import BadInput

_TEXT = (".csv", ".tsv", ".json", ".jsonl")
TABLES = (*_TEXT, *(f"{text}.gz" for text in _TEXT), ".zip", ".parquet", ".feather", ".arrow", ".xlsx", ".dta", ".sav")
ENDINGS = (".npy", ".npz", ".h5", ".hdf5", *TABLES)
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    SyntaxError,
    Warning,
    tokenize.TokenError,
    struct.error,
    csv.Error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    SafetensorError,
)  # fmt: skip  what NumPy, zipfile, pandas, pyarrow, h5py and safetensors have been seen to raise over broken files


def memory() -> int:
    """Bytes that one array may take when it is unpacked: half of this machine's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 4 << 30


@contextmanager
def refusing(where: str, what: str) -> Iterator[None]:
    """Turn any error into a one-line message that names the file."""
    try:
        yield
    except BadInput:
        raise
    except DAMAGE as error:
        raise BadInput(f"{where} is {what}: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if any(word in text for word in ("Object arrays", "pickled", "Python objects")):
        return "it is an object array or a pickle; save plain numbers with numpy.save"
    return text[:200] or type(error).__name__


def ending(path: str | Path) -> str:
    """How a file's name ends, in small letters; of a packed one with what is inside.

    >>> ending("a/Table.CSV"), ending("b.csv.gz"), ending("v1.2.npz")
    ('.csv', '.csv.gz', '.npz')
    """
    name = Path(path).name.lower()
    inner = Path(name.removesuffix(".gz")).suffix if name.endswith(".gz") else ""
    return f"{inner}.gz" if name.endswith(".gz") else Path(name).suffix


def existing(path: str | Path, where: str) -> Path:
    path = Path(path)
    if not path.is_file():
        raise BadInput(f"{where}: no such file")
    if ending(path) not in ENDINGS:
        raise BadInput(f"{where} ends in {ending(path)!r}; known are {', '.join(ENDINGS)} and folders of images")
    return path
