"""Tables: columns with names, from text, Parquet and DataFrames, each cell checked."""

from __future__ import annotations

import csv
import re
import warnings
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput, unknown
from unseam.readers import limits
from unseam.readers.limits import refusing


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
        kind_names = {"b": "true or false", "i": "whole numbers", "u": "whole numbers", "f": "numbers"}
        kinds = [kind_names.get(column.dtype.kind, "words") for column in self.columns]
        each = [f"{name!r} as {kind}" for name, kind in zip(self.names, kinds, strict=True)]
        if len(each) > 12:
            each = [f"{kinds.count(kind)} as {kind}" for kind in dict.fromkeys(kinds)]
        return "; ".join([f"{len(self):,} rows, {len(self.names):,} columns: {', '.join(each)}", *self.notes])


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
        column, missing = column.astype(str).astype(object), np.isnat(column)
        column[missing] = None
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


SEPARATOR = re.compile(r'"?sep=([,;|\t])"?', re.IGNORECASE)
DECIMAL = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?$")


def read_text(path: Path, where: str) -> Columns:
    """CSV or TSV; a byte-order mark, blank lines, comments above, quotes, `;` between cells and then decimal commas are
    understood."""
    import pandas

    with path.open(encoding="utf-8-sig", newline="") as file:
        skipped, comments, first = _head(file)
        separator = SEPARATOR.fullmatch(first)
        if separator:  # Excel's first line
            more, _, first = _head(file)
            skipped += 1 + more
        below = list(islice(file, 20))
    mark = separator[1] if separator else "\t" if path.suffix.lower() == ".tsv" else _mark(first)
    reader = csv.reader([f"{first}\n", *below], delimiter=mark, skipinitialspace=True)
    cells = next(reader) if first else []
    below = below[reader.line_num - 1 :]  # a name may have several lines
    if not cells:
        raise BadInput(f"{where} is not a readable CSV file: it is empty")
    some = (cell.strip(' "\r\n') for line in (first, *below) for cell in line.split(mark))
    decimal = "," if mark != "," and any(DECIMAL.match(cell) for cell in some) else "."
    named = not all(is_number(cell.replace(decimal, ".")) for cell in cells if cell)
    names = (
        [re.sub(r"\s*\n\s*", " ", cell).strip() for cell in cells]
        if named
        else [f"factor{i}" for i in range(len(cells))]
    )
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


def read_parquet(path: Path, where: str) -> Columns:
    """Flat columns; words stay coded, so a long word in a million rows is stored once."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet
    except ImportError:
        raise BadInput(f"{where} needs pyarrow; run: pip install 'unseam[parquet]'") from None
    with refusing(where, "not a readable PARQUET file"), arrow.parquet.ParquetFile(path) as file:
        rows, schema = file.metadata.num_rows, file.schema_arrow
    names = [name for name in schema.names if not name.startswith("__index_level_")]
    words = []
    for name in names:
        kind = schema.field(name).type
        if arrow.types.is_nested(kind) or arrow.types.is_binary(kind):
            raise BadInput(f"{where}: column {name!r} holds {kind}; it must be numbers or words")
        if arrow.types.is_string(kind) or arrow.types.is_large_string(kind):
            words.append(name)
    if 8 * rows * len(names) > limits.memory():
        raise BadInput(
            f"{where} declares {rows:,} rows of {len(names):,} columns, more than this machine's memory holds"
        )
    table = arrow.parquet.read_table(path, columns=names, read_dictionary=words)
    left = [f"pandas' index left out: {name!r}" for name in schema.names if name not in names]
    return Columns(names, [table[name].to_pandas().to_numpy() for name in names], tuple(left))
