"""One checked reader for arrays and tables: .npy .npz .csv .tsv .parquet .h5. No pickle, no torch, no surprises.

Sizes that a file declares are held against the bytes it has, or against this machine's memory, before anything is read;
whatever is wrong ends in one line that names the file. A table says what was read: rows, columns, how each was taken.
"""

from __future__ import annotations

import csv
import lzma
import os
import re
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import IO, Any, NamedTuple

import numpy as np
from safetensors import SafetensorError

from unseam.errors import BadInput, unknown
from unseam.types import Array

TABLES = (".csv", ".tsv", ".parquet")
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
SPARSE = 1200  # HDF5: declared / stored bytes above this were never written (gzip reaches 1032)
SMALL = 1 << 24  # bytes that may be declared by any file
WHOLE = 1 << 26  # bytes up to which an array is read at once


def memory() -> int:
    """Bytes that one array may take when it is unpacked: half of this machine's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 4 << 30


@contextmanager
def refusing(where: str, what: str) -> Iterator[None]:
    """Whatever goes wrong inside becomes one line that names the file."""
    try:
        yield
    except BadInput:
        raise
    except DAMAGE as error:
        raise BadInput(f"{where} is {what}: {reason(error)}") from None


def reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if any(word in text for word in ("Object arrays", "pickled", "Python objects")):
        return "it is an object array or a pickle; save plain numbers with numpy.save"
    return text[:200] or type(error).__name__


# Arrays


def load_array(path: str | Path, where: str, key: str | None = None) -> Any:
    """The array in a file; what can stay on disk stays there and is read by rows. Tables must hold numbers only.

    >>> load_array("missing.npy", "data='missing.npy'")
    Traceback (most recent call last):
    unseam.errors.BadInput: data='missing.npy': no such file
    """
    path = existing(path, where)
    if path.suffix.lower() in TABLES:
        return load_table(path, where, key).numbers(where)
    readers: dict[str, Callable[[Path, str, str | None], Any]] = {".npy": npy, ".npz": npz, ".h5": h5, ".hdf5": h5}
    with refusing(where, f"corrupt or no {path.suffix} file"):
        return readers[path.suffix.lower()](path, where, key)


def existing(path: str | Path, where: str) -> Path:
    path = Path(path)
    if not path.is_file():
        raise BadInput(f"{where}: no such file")
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"{where} ends in {path.suffix!r}; known are {', '.join(ENDINGS)} and folders of images")
    return path


class Header(NamedTuple):
    """What an .npy stream says of itself."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int  # bytes of the header

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


def npy_header(file: IO[bytes], size: int, where: str) -> Header:
    """The header, refused if it is no header or declares more than the `size` bytes there are."""
    start = file.tell()
    version = np.lib.format.read_magic(file)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = reader(file)
    if dtype.hasobject:
        raise BadInput(f"{where} is an object array or a pickle; save plain numbers with numpy.save")
    if any(isinstance(side, bool) or not isinstance(side, int) or side < 0 for side in shape):
        raise BadInput(f"{where} declares the shape {shape}; sides must be whole numbers from 0")
    header = Header(shape, fortran, dtype, file.tell() - start)
    if header.start + header.bytes > size:
        raise BadInput(
            f"{where} declares {dtype} {shape}, {header.bytes:,} bytes, but holds {max(0, size - header.start):,}: "
            "it is truncated (shorter than its header says); copy it again"
        )
    return header


class FileRows:
    """A large array in a file, read by rows as NumPy would index it; a file cut short meanwhile is an error.

    (A memory map would end the process there, by SIGBUS.)
    """

    def __init__(self, path: Path, header: Header, offset: int, where: str) -> None:
        self.path, self.header, self.offset, self.where = path, header, offset, where
        self.shape, self.dtype, self.ndim = header.shape, header.dtype, len(header.shape)
        self.row = int(np.prod(self.shape[1:], dtype=object)) * self.dtype.itemsize  # bytes of one
        self.file, self.lock = path.open("rb", buffering=0), Lock()  # open: whoever replaces the file changes nothing

    def __getitem__(self, index: Any) -> Array:
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(self.shape[0])
            out = np.empty((max(0, stop - start), *self.shape[1:]), self.dtype)
            self._fill(out.reshape(-1).view(np.uint8).data, start)
            return out
        rows = np.asarray(index)
        if rows.dtype.kind not in "iu" or (rows.size and not 0 <= rows.min() <= rows.max() < self.shape[0]):
            rows = np.arange(self.shape[0])[index]  # as NumPy has it: steps, masks, negative ones
        out = np.empty((rows.size, *self.shape[1:]), self.dtype)
        view = out.reshape(-1).view(np.uint8).data
        for place, row in enumerate(rows.ravel().tolist()):
            self._fill(view[place * self.row : (place + 1) * self.row], row)
        return out.reshape(*rows.shape, *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype)

    def __reduce__(self) -> Any:
        return FileRows, (self.path, self.header, self.offset, self.where)

    def reshape(self, *shape: int) -> FileRows:
        return FileRows(self.path, self.header._replace(shape=shape), self.offset, self.where)

    def _fill(self, view: memoryview, row: int) -> None:
        done = 0
        with self.lock:
            self.file.seek(self.offset + row * self.row)
            while done < view.nbytes:
                if not (got := self.file.readinto(view[done:])):
                    raise BadInput(f"{self.where}: {self.path} was cut short while it was in use; copy it again")
                done += got

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


def in_file(path: Path, header: Header, offset: int, where: str) -> Array | FileRows:
    """The array that begins at the offset: in memory if it is small, else left where it is and read by rows."""
    rows = FileRows(path, header, offset + header.start, where)
    if header.bytes > WHOLE and not header.fortran:
        return rows
    if header.bytes > memory():
        raise BadInput(f"{where} has {header.bytes:,} bytes column by column; save numpy.ascontiguousarray of it")
    flat = np.asarray(rows.reshape(int(np.prod(header.shape, dtype=object))))
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


def npy(path: Path, where: str, key: str | None) -> Array | FileRows:
    if key is not None:
        raise BadInput(f"key={key!r}: {where} holds a single array; leave key out")
    with path.open("rb") as file:
        return in_file(path, npy_header(file, path.stat().st_size, where), 0, where)


def npz(path: Path, where: str, key: str | None) -> Array | FileRows:
    """A member that is stored is read in place; a compressed one is unpacked, if there is room for it."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        info = members[choose([name for name in members if f"{name}.npy" == members[name].filename], key, where)]
        with archive.open(info) as file:
            header = npy_header(file, info.file_size, where)
            if info.compress_type == zipfile.ZIP_STORED:
                return in_file(path, header, member_offset(path, info), where)
            if header.bytes > memory():
                raise BadInput(
                    f"{where} unpacks to {header.bytes:,} bytes, more than half of this machine's memory; save it as "
                    ".npy, which is read by rows"
                )
            content = np.empty(header.bytes, np.uint8)
            if file.readinto(content) != header.bytes or file.read(1):  # type: ignore[attr-defined]
                raise EOFError("the array ends too early or too late")
    return np.ndarray(header.shape, header.dtype, content, order="F" if header.fortran else "C")


def member_offset(path: Path, info: zipfile.ZipInfo) -> int:
    """Where the bytes of a stored member begin: behind its local header, whose name and extra field vary."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = struct.unpack("<4s22xHH", file.read(30))
    if local[0] != b"PK\x03\x04":
        raise zipfile.BadZipFile("no local header")
    return info.header_offset + 30 + int(local[1]) + int(local[2])


def choose(keys: list[str], key: str | None, where: str) -> str:
    if key is not None:
        if key not in keys:
            raise unknown(f"{where}: key", key, keys)
        return key
    if len(keys) != 1:
        raise BadInput(f"{where} holds {len(keys)} arrays ({', '.join(keys)}); say which with key=NAME")
    return keys[0]


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


def h5(path: Path, where: str, key: str | None) -> Hdf5Rows:
    try:
        import h5py
    except ImportError:
        raise BadInput(f"{where} needs h5py; run: pip install 'unseam[hdf5]'") from None
    file = h5py.File(path, "r")
    found: dict[str, Any] = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    array = found[choose(list(found), key, where)]
    if array.shape is None or array.dtype.hasobject or array.is_virtual or array.external:
        raise BadInput(f"{where}: {array.name} is no plain array in this file; store numbers in it")
    declared, stored = array.size * array.dtype.itemsize, array.id.get_storage_size()
    if declared > SMALL and declared > SPARSE * stored:
        raise BadInput(
            f"{where} declares {array.dtype} {array.shape}, {declared:,} bytes, but stores {stored:,}: most of it was "
            "never written"
        )
    return Hdf5Rows(array, where)


# Tables


class Columns(NamedTuple):
    """Names and columns of a table, and what was noticed while reading it."""

    names: list[str]
    columns: list[Array]  # each (N,): numbers, booleans or words
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def pick(self, names: list[str], where: str) -> Columns:
        for name in names:
            if name not in self.names:
                raise unknown(f"{where}: column", name, self.names)
        return Columns(names, [self.columns[self.names.index(name)] for name in names], self.notes)

    def without(self, names: list[str]) -> Columns:
        return self.pick([name for name in self.names if name not in names], "")

    def numbers(self, where: str) -> Array:  # (N, F) float64
        """All columns as one matrix; a column of words is refused by name."""
        for name, column in zip(self.names, self.columns, strict=True):
            if column.dtype.kind not in "biuf":
                raise BadInput(
                    f"{where}: column {name!r} holds words ({str(column[0])!r}), but data must be numbers; leave it "
                    f"out, or take it as a factor with labels={name}"
                )
        return np.stack([column.astype(np.float64) for column in self.columns], axis=1)

    def says(self) -> str:
        """What was read.

        >>> Columns(["ash", "kind"], [np.array([1.0, 2.5]), np.array(["a", "b"])]).says()
        "2 rows, 2 columns: 'ash' as numbers, 'kind' as words"
        """
        taken = {"b": "true or false", "i": "whole numbers", "u": "whole numbers", "f": "numbers"}
        kinds = [taken.get(column.dtype.kind, "words") for column in self.columns]
        each = [f"{name!r} as {kind}" for name, kind in zip(self.names, kinds, strict=True)]
        if len(each) > 12:
            each = [f"{kinds.count(kind)} as {kind}" for kind in dict.fromkeys(kinds)]
        return "; ".join([f"{len(self):,} rows, {len(self.names):,} columns: {', '.join(each)}", *self.notes])


def load_table(source: Any, where: str, key: str | None = None, gaps: bool = False) -> Columns:
    """The columns of a file, of a DataFrame (which keeps its names) or of an array; with `gaps` cells may be missing.

    >>> load_table(np.array([[1, 2], [3, 4]]), "factors").names
    ['factor0', 'factor1']
    """
    if hasattr(source, "columns") and hasattr(source, "iloc"):
        names = [str(name) for name in source.columns]
        return checked(Columns(names, [source.iloc[:, i].to_numpy() for i in range(len(names))]), where, gaps)
    if isinstance(source, (str, Path)):
        path = existing(source, where)
        if path.suffix.lower() in TABLES:
            with refusing(where, f"no readable {path.suffix[1:].upper()}"):
                table = (parquet if path.suffix.lower() == ".parquet" else text)(path, where)
            return checked(table.pick(key.split(","), where) if key else table, where, gaps)
        source = load_array(path, where, key)
    array = np.asarray(source[:] if isinstance(source, (Hdf5Rows, FileRows)) else source)
    if array.ndim == 1 and array.dtype.names:
        return checked(Columns(list(array.dtype.names), [array[name] for name in array.dtype.names]), where, gaps)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.dtype.kind not in "biufU":
        raise BadInput(f"{where} has shape {array.shape} and dtype {array.dtype}; it must be numbers (N, F)")
    names = [key.rpartition("/")[2]] if key and array.shape[1] == 1 else [f"factor{i}" for i in range(array.shape[1])]
    return checked(Columns(names, list(array.T)), where, gaps)


def checked(table: Columns, where: str, gaps: bool = False) -> Columns:
    """Every column one number, truth value or word a row; none empty, but for `gaps`; names that differ."""
    if not len(table):
        raise BadInput(f"{where} has 0 rows: it is empty")
    if len(set(table.names)) != len(table.names):
        twice = next(name for name in table.names if table.names.count(name) > 1)
        raise BadInput(f"{where} has two columns named {twice!r}; names must differ")
    plain = [_plain(name, column, where, gaps) for name, column in zip(table.names, table.columns, strict=True)]
    return Columns(table.names, plain, table.notes)


def _plain(name: str, column: Array, where: str, gaps: bool) -> Array:
    if gaps and column.dtype.kind in "mM":  # as a text file has them
        column, gone = column.astype(str).astype(object), np.isnat(column)
        column[gone] = None
    if column.ndim != 1 or column.dtype.kind not in "biufUOT":
        raise BadInput(f"{where}: column {name!r} is {column.dtype} {column.shape[1:]}; it must be numbers or words")
    if column.dtype.kind == "f":
        empty = np.flatnonzero(np.isnan(column))
    elif column.dtype.kind in "OT":
        if any(isinstance(cell, (list, tuple, dict, set, bytes, np.ndarray)) for cell in column):
            raise BadInput(f"{where}: column {name!r} holds lists or objects; it must be numbers or words")
        empty = np.flatnonzero([cell is None or cell != cell for cell in column])
    else:
        empty = np.zeros(0, int)
    if empty.size and not gaps:
        raise BadInput(
            f"{where}: column {name!r} has {empty.size:,} empty or NaN cells (first in row {int(empty[0])}); every "
            "cell must be given"
        )
    if column.dtype.kind not in "OT":
        return column
    if len(column) and all(isinstance(cell, (bool, np.bool_)) for cell in column):
        return column.astype(bool)
    words = [None if cell is None or cell != cell else cell if isinstance(cell, str) else str(cell) for cell in column]
    return np.array(words, dtype=object)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


DECIMAL = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?$")


def text(path: Path, where: str) -> Columns:
    """CSV or TSV; a byte-order mark, blank lines, comments above, quotes, `;` between cells and then decimal commas are
    understood."""
    import pandas

    with path.open(encoding="utf-8-sig", newline="") as file:
        skipped, comments, first = _head(file)
        below = list(islice(file, 20))
    mark = "\t" if path.suffix.lower() == ".tsv" else _mark(first)
    cells = next(csv.reader([first], delimiter=mark, skipinitialspace=True)) if first else []
    if not cells:
        raise BadInput(f"{where} is no readable CSV: it is empty")
    some = (cell.strip(' "\r\n') for line in (first, *below) for cell in line.split(mark))
    decimal = "," if mark != "," and any(DECIMAL.match(cell) for cell in some) else "."
    named = not all(is_number(cell.replace(decimal, ".")) for cell in cells if cell)
    names = [cell.strip() for cell in cells] if named else [f"factor{i}" for i in range(len(cells))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # pandas only warns when a row is longer than the header
        frame = pandas.read_csv(
            path, sep=mark, header=None, names=range(len(cells)), skiprows=skipped + named, index_col=False,
            skipinitialspace=True, encoding="utf-8-sig", low_memory=False, decimal=decimal,
        )  # fmt: skip
    columns = [frame[i].to_numpy() for i in range(len(cells))]
    notes = [f"{comments} comment lines skipped"] if comments else []
    notes += ["decimal commas"] if decimal == "," else []
    if not named:
        notes.append("no header line")
    if named and not names[0] and len(names) > 1 and np.array_equal(columns[0], np.arange(len(frame))):
        names, columns = names[1:], columns[1:]
        notes.append("the row numbers in the first, unnamed column left out")
    return Columns(names, columns, tuple(notes))


def _mark(line: str) -> str:
    """What stands between the cells: the commonest, but `;` between numbers that have decimal commas.

    >>> _mark("a,b,c"), _mark("1,5;2,25"), _mark("x;y,z;w")
    (',', ';', ';')
    """
    cells = line.split(";")
    if len(cells) > 1 and all(is_number(cell.replace(",", ".")) for cell in cells):
        return ";"
    return max(",;\t", key=line.count)


def _head(file: IO[str]) -> tuple[int, int, str]:
    """(lines before the table, how many of them are comments, the table's first line)."""
    comments = 0
    for number, line in enumerate(file):
        if line.lstrip().startswith("#"):
            comments += 1
        elif line.strip():
            return number, comments, line.strip("\r\n")
    return 0, comments, ""


def parquet(path: Path, where: str) -> Columns:
    """Flat columns; words stay coded, so that a long word in a million rows is kept once."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet
    except ImportError:
        raise BadInput(f"{where} needs pyarrow; run: pip install 'unseam[parquet]'") from None
    with refusing(where, "no readable PARQUET"), arrow.parquet.ParquetFile(path) as file:
        rows, schema = file.metadata.num_rows, file.schema_arrow
    names = [name for name in schema.names if not name.startswith("__index_level_")]
    words = []
    for name in names:
        kind = schema.field(name).type
        if arrow.types.is_nested(kind) or arrow.types.is_binary(kind):
            raise BadInput(f"{where}: column {name!r} holds {kind}; it must be numbers or words")
        if arrow.types.is_string(kind) or arrow.types.is_large_string(kind):
            words.append(name)
    if 8 * rows * len(names) > memory():
        raise BadInput(
            f"{where} declares {rows:,} rows of {len(names):,} columns, more than this machine's memory holds"
        )
    table = arrow.parquet.read_table(path, columns=names, read_dictionary=words)
    left = [f"pandas' index left out: {name!r}" for name in schema.names if name not in names]
    return Columns(names, [table[name].to_pandas().to_numpy() for name in names], tuple(left))
