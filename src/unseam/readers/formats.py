"""Arrays and tables in the formats that people have: which reader a file needs, by the ending of its name.

Text and Parquet are read in `tables.py`, .npy and HDF5 in `npy.py` and `hdf5.py`; Excel, JSON, Feather, Stata and SPSS
here. Packed tables are unpacked up to a limit.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from unseam.errors import BadInput, MissingPackage
from unseam.readers import limits
from unseam.readers.frames import as_array, as_frame, frame_columns
from unseam.readers.hdf5 import Hdf5Rows, read_hdf5
from unseam.readers.limits import TABLES, ending, existing, refusing
from unseam.readers.npy import FileRows, read_npy, read_npz
from unseam.readers.tables import Columns, checked, is_number, read_parquet, read_text

_UNPACKED = 1 << 32  # bytes that a packed table may have, at most
_BLOCK = 1 << 20
_GROWS = 8  # bytes in memory for a byte of JSON text, about
_NESTED = ("data", "rows", "records")  # keys under which documents keep their rows


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
    if isinstance(source, (str, Path)):
        path = existing(source, where)
        if ending(path) in TABLES:
            with refusing(where, f"not a readable {ending(path)[1:].upper()} file"):
                table = read_table(path, where)
            return checked(table.pick(key.split(","), where) if key else table, where, gaps)
        source = load_array(path, where, key)
    elif (frame := as_frame(source, where)) is not None:
        return checked(frame_columns(frame), where, gaps)
    array = np.asarray(source[:] if isinstance(source, (Hdf5Rows, FileRows)) else as_array(source, where))
    if array.ndim == 1 and array.dtype.names:
        return checked(Columns(list(array.dtype.names), [array[name] for name in array.dtype.names]), where, gaps)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.dtype.kind not in "biufU":
        raise BadInput(f"{where} has shape {array.shape} and dtype {array.dtype}; it must be numbers (N, F)")
    names = [key.rpartition("/")[2]] if key and array.shape[1] == 1 else [f"factor{i}" for i in range(array.shape[1])]
    return checked(Columns(names, list(array.T)), where, gaps)


def read_table(path: Path, where: str) -> Columns:
    """The table in a file, by the ending of its name.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "t.json"
    >>> _ = place.write_text('[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]')
    >>> read_table(place, "data").names
    ['a', 'b']
    """
    kind = ending(path)
    if kind == ".zip":
        return _zipped(path, where)
    if kind.endswith(".gz"):
        with gzip.open(path) as source:
            return _unpacked(source, kind.removesuffix(".gz"), where)
    return _READERS[kind](path, where)


def _unpacked(source: IO[bytes] | gzip.GzipFile, kind: str, where: str, note: str = "") -> Columns:
    """The content of a stream as a file of this kind; it may be larger than declared."""
    most = min(limits.memory(), _UNPACKED)
    with tempfile.TemporaryDirectory() as folder:
        inner, size = Path(folder) / f"table{kind}", 0
        with inner.open("wb") as out:
            while block := source.read(_BLOCK):
                size += len(block)
                if size > most:
                    raise BadInput(f"{where} unpacks to more than {most:,} bytes; unpack it yourself, or use Parquet")
                out.write(block)
        table = _READERS[kind](inner, where)
    return Columns(table.names, table.columns, (*table.notes, note)) if note else table


def _zipped(path: Path, where: str) -> Columns:
    """The one table in a zip; files that systems add (__MACOSX, .DS_Store) are ignored."""
    with zipfile.ZipFile(path) as archive:
        named = [info for info in archive.infolist() if not info.is_dir()]
        named = [i for i in named if not any(p.startswith((".", "__MACOSX")) for p in Path(i.filename).parts)]
        tables = [info for info in named if ending(info.filename) in _READERS]
        if len(tables) != 1:
            held = ", ".join(info.filename for info in (tables or named)[:8]) or "no files"
            raise BadInput(
                f"{where} holds {len(tables)} tables ({held}); it must hold one: unpack it and name the file"
            )
        if tables[0].flag_bits & 1:
            raise BadInput(f"{where} is encrypted; unpack it yourself")
        with archive.open(tables[0]) as source:
            return _unpacked(source, ending(tables[0].filename), where, f"{tables[0].filename!r} of the zip")


def _read_excel(path: Path, where: str) -> Columns:
    """The first sheet that is not empty; the first line holds names unless all of it is numbers."""
    import pandas

    _need("openpyxl", where, "excel")
    with zipfile.ZipFile(path) as archive:  # an .xlsx is a zip of XML
        declared = sum(info.file_size for info in archive.infolist())
    if declared > min(limits.memory() // _GROWS, _UNPACKED):
        raise BadInput(f"{where} unpacks to {declared:,} bytes of XML, more than this machine reads; save it as .csv")
    with pandas.ExcelFile(path, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        frames = ((name, book.parse(name, header=None)) for name in sheets)
        name, frame = next(((n, f) for n, f in frames if len(f)), ("", pandas.DataFrame()))
    if not len(frame):
        raise BadInput(f"{where} has no sheet with cells")
    table = _with_header(frame)
    notes = [f"sheet {name!r} of {len(sheets)}"] if len(sheets) > 1 else []
    return Columns(table.names, table.columns, (*table.notes, *notes))


def _with_header(frame: Any) -> Columns:
    """Columns of cells whose first line may hold their names."""
    first = list(frame.iloc[0])
    if all(is_number(str(cell)) for cell in first):
        table = frame_columns(frame.infer_objects())
        return Columns([f"factor{i}" for i in range(len(first))], table.columns, ("no header line",))
    names = [f"column{i}" if cell is None or cell != cell else str(cell).strip() for i, cell in enumerate(first)]
    table = frame_columns(frame.iloc[1:].infer_objects())
    return Columns(names, table.columns)


def _read_json(path: Path, where: str) -> Columns:
    """A list of objects, an object of columns, or either of them under "data", "rows" or "records"."""
    _small(path, where)
    document = json.loads(path.read_text(encoding="utf-8-sig"))
    for name in _NESTED:
        if isinstance(document, dict) and isinstance(document.get(name), (list, dict)) and len(document) <= 4:
            document = document[name]
    if isinstance(document, dict):
        document = {name: list(c.values()) if isinstance(c, dict) else c for name, c in document.items()}
        lengths = {len(column) for column in document.values() if isinstance(column, list)}
        if len(lengths) != 1 or not all(isinstance(column, list) for column in document.values()):
            raise BadInput(f"{where} holds no table: it must be a list of objects, or an object of equally long lists")
        return _objects([dict(zip(document, row, strict=True)) for row in zip(*document.values(), strict=True)], where)
    return _objects(document, where)


def _read_json_lines(path: Path, where: str) -> Columns:
    """One object per line."""
    _small(path, where)
    with path.open(encoding="utf-8-sig") as file:
        return _objects([json.loads(line) for line in file if line.strip()], where)


def _small(path: Path, where: str) -> None:
    if _GROWS * path.stat().st_size > limits.memory():
        raise BadInput(f"{where} has {path.stat().st_size:,} bytes of JSON, too many to be read; save it as Parquet")


def _objects(rows: Any, where: str) -> Columns:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise BadInput(f"{where} holds no table: it must be a list of objects, one for each row")
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(names) * len(rows) * 8 > limits.memory():
        raise BadInput(
            f"{where} has {len(rows):,} rows with {len(names):,} names in all; name columns alike in each row"
        )
    return Columns([str(name) for name in names], [_cells([row.get(name) for row in rows]) for name in names])


def _cells(values: list[Any]) -> Any:  # -> (N,)
    """Numbers with missing ones as NaN, truth values, or words; whole numbers beyond 64 bits become floats."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        with suppress(OverflowError):
            if len(known) == len(values) and all(isinstance(value, int) for value in known):
                return np.array(values, np.int64)
        return np.array([np.nan if value is None else float(value) for value in values])
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _read_feather(path: Path, where: str) -> Columns:
    """An Arrow file (Feather version 2), batch by batch, so that a small file cannot unpack without end."""
    _need("pyarrow", where, "parquet")
    import pyarrow

    size, batches = 0, []
    with pyarrow.OSFile(str(path)) as file, pyarrow.ipc.open_file(file) as reader:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            size += batch.nbytes
            if size > limits.memory():
                raise BadInput(f"{where} unpacks to more than {limits.memory():,} bytes, more than memory holds")
            batches.append(batch)
        table = pyarrow.Table.from_batches(batches, reader.schema)
    for name in table.schema.names:
        if pyarrow.types.is_nested(table.schema.field(name).type):
            raise BadInput(
                f"{where}: column {name!r} holds {table.schema.field(name).type}; it must be numbers or words"
            )
    return frame_columns(table.to_pandas())


def _read_stata(path: Path, where: str) -> Columns:
    """Stata; values with labels are read as their labels."""
    import pandas

    return frame_columns(pandas.read_stata(path, convert_categoricals=True))


def _read_spss(path: Path, where: str) -> Columns:
    """SPSS; values are read as they are, not as their labels: scales are numbers."""
    _need("pyreadstat", where, "spss")
    import pyreadstat

    try:
        _, about = pyreadstat.read_sav(path, metadataonly=True)
        if 8 * (about.number_rows or 0) * (about.number_columns or 0) > limits.memory():
            raise BadInput(f"{where} declares {about.number_rows:,} rows of {about.number_columns:,} columns, too many")
        frame, _ = pyreadstat.read_sav(path)
    except pyreadstat.ReadstatError as error:
        raise BadInput(f"{where} is not a readable SAV file: {error}") from None
    return frame_columns(frame)


def _need(package: str, where: str, extra: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise MissingPackage(where, package, extra)


_READERS: dict[str, Callable[[Path, str], Columns]] = {
    ".csv": read_text,
    ".tsv": read_text,
    ".parquet": read_parquet,
    ".json": _read_json,
    ".jsonl": _read_json_lines,
    ".feather": _read_feather,
    ".arrow": _read_feather,
    ".xlsx": _read_excel,
    ".dta": _read_stata,
    ".sav": _read_spss,
}
if missing := {kind for kind in TABLES if kind != ".zip" and not kind.endswith(".gz")} ^ set(_READERS):
    raise AssertionError(f"endings without a reader, or readers without an ending: {missing}")
