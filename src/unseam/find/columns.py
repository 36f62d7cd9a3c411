"""What the columns of a table are, which of them can be used, and in which unit they are compared.

Every choice is kept as a word: a column is constant, identifier-like, a copy, words, binary, counts, whole numbers or
continuous. The first four are left out by name. Counts are taken as log(1 + count); binary columns as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unseam.errors import BadInput
from unseam.read import ENDINGS, TABLES, Columns, load_array, load_table
from unseam.types import Array

Scale = Literal["auto", "standard", "common", "none"]
Kind = Literal["continuous", "binary", "counts", "whole", "constant", "identifier", "copy", "words"]
USED: tuple[Kind, ...] = ("continuous", "binary", "counts", "whole")
LEAST_ROWS = 10
MOST_COLUMNS = 5000
SAME_UNIT = 10.0  # spreads (9th decile over 1st) within this factor are taken to share a unit
IDENTIFIER = re.compile(r"(^|[_ ])(id|ids|uuid|index|row|number|nr|no)$", re.IGNORECASE)
Truth = Array | None


@dataclass(frozen=True)
class Prepared:
    """A table made ready: which columns are used, how each was changed, and the numbers (N, n) that are modelled."""

    names: tuple[str, ...]  # of all columns that came in
    kinds: tuple[Kind, ...]
    used: tuple[int, ...]
    logged: Array  # (n,) bool: taken as log(1 + x)
    mean: Array  # (n,)
    unit: Array  # (n,) what one unit of x is in the column's own
    scale: str
    x: Array  # (N, n)
    notes: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self.names[i] for i in self.used)

    def again(self, raw: Array) -> Array:  # (M, all columns) -> (M, n)
        """New rows, scaled as those the model was fitted on."""
        x = raw[:, list(self.used)].astype(np.float64)
        x = np.where(self.logged, np.log1p(np.maximum(x, 0)), x)
        return (x - self.mean) / self.unit

    def raw(self, x: Array) -> Array:  # (M, n) -> (M, n)
        """Back to the columns' own units."""
        out = self.mean + x * self.unit
        out[:, self.logged] = np.expm1(out[:, self.logged])
        return out

    def says(self) -> str:
        """How many columns of which kind, and which were left out."""
        counted = {kind: self.kinds.count(kind) for kind in dict.fromkeys(self.kinds)}
        parts = [f"{count} {kind}" for kind, count in counted.items()]
        left = [f"{n!r} ({k})" for n, k in zip(self.names, self.kinds, strict=True) if k not in USED]
        said = f"{len(self.x):,} rows, {len(self.names):,} columns: {', '.join(parts)}"
        if left:
            said += f"; left out {', '.join(left[:8])}" + (f" and {len(left) - 8} more" if len(left) > 8 else "")
        return "; ".join([said, SCALES[self.scale], *self.notes])


SCALES = {
    "standard": "each column divided by its own standard deviation",
    "common": "columns have similar spreads: all divided by one number, so that their geometry stays",
    "none": "columns taken as they are",
}


def read(source: Any, key: str | None = None) -> tuple[Columns, Truth]:
    """The columns of a file, a table, an array or a data set by name, and its factors if it has some.

    >>> read(np.eye(3))[0].names
    ['column0', 'column1', 'column2']
    """
    if isinstance(source, (str, Path)):
        return _named(str(source), key)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return load_table(source, "data"), None
    if hasattr(source, "detach"):
        source = source.detach().cpu().numpy()
    return _array(np.asarray(source), "data"), None


def _named(name: str, key: str | None) -> tuple[Columns, Truth]:
    path, where = Path(name), f"data={name!r}"
    if path.suffix.lower() in TABLES:
        table = load_table(path, where, key)
        plain = [f"factor{i}" for i in range(len(table.names))] == table.names  # read's names where a file has none
        return (table._replace(names=[f"column{i}" for i in range(len(table.names))]) if plain else table), None
    if path.suffix.lower() in ENDINGS:
        return _array(np.asarray(load_array(path, where, key)[:]), where), None
    return _dataset(name)


def _dataset(name: str, most: int = 20_000) -> tuple[Columns, Truth]:
    """Rows of a data set by name or a folder of images, at most 20,000."""
    import torch

    from unseam.data import load_data
    from unseam.rng import generator

    data = load_data(name)
    if int(np.prod(data.shape)) > MOST_COLUMNS:
        raise BadInput(
            f"data={name!r} has {int(np.prod(data.shape)):,} values a row; at most {MOST_COLUMNS:,} are read"
        )
    rows = torch.randperm(len(data), generator=generator(0, "find"))[:most].sort().values
    x = data.batch(rows, generator(0, "find", "noise") if data.stochastic else None).flatten(1).numpy()
    factors = None if data.space is None else data.factors(rows).numpy().astype(np.float64)
    return _array(x, f"data={name!r}"), factors


def _array(x: Array, where: str) -> Columns:
    if x.dtype.kind not in "biuf":
        raise BadInput(f"{where} has dtype {x.dtype}; it must be numbers")
    if x.ndim < 2:
        raise BadInput(f"{where} has shape {x.shape}: it has one column; factors are shared by several (N, n)")
    if 0 in x.shape:
        raise BadInput(f"{where} has shape {x.shape}: it is empty")
    x = x.reshape(len(x), -1)
    return Columns([f"column{i}" for i in range(x.shape[1])], list(x.T))


def prepare(table: Columns, scale: Scale = "auto", leave_out: Sequence[str] = (), least: int = LEAST_ROWS) -> Prepared:
    """Recognise the columns, leave out what cannot be used, and bring the rest to one unit.

    >>> t = Columns(["id", "a", "b"], [np.arange(50), np.sin(np.arange(50.0)), np.cos(np.arange(50.0))])
    >>> prepare(t).kinds
    ('identifier', 'continuous', 'continuous')
    """
    if len(table) < least:
        raise BadInput(
            f"the data has {len(table)} row{'s' * (len(table) != 1)}; find needs at least {least}, and 100 to know"
        )
    for name in leave_out:
        table.pick([name], "leave_out")
    table = table.without(list(leave_out)) if leave_out else table
    kinds = _copies(table, [recognise(n, c) for n, c in zip(table.names, table.columns, strict=True)])
    used = [i for i, kind in enumerate(kinds) if kind in USED]
    _usable(table, kinds, used)
    x = np.stack([table.columns[i].astype(np.float64) for i in used], axis=1)
    logged = np.array([kinds[i] == "counts" for i in used])
    x = np.where(logged, np.log1p(np.maximum(x, 0)), x)
    chosen, unit = units(x, scale)
    notes = _notes(table, kinds, len(used))
    made = Prepared(tuple(table.names), tuple(kinds), tuple(used), logged, x.mean(0), unit, chosen, x, tuple(notes))
    return replace(made, x=(x - made.mean) / unit)


def _usable(table: Columns, kinds: Sequence[Kind], used: Sequence[int]) -> None:
    if len(table.names) > MOST_COLUMNS:
        raise BadInput(
            f"the data has {len(table.names):,} columns; at most {MOST_COLUMNS:,} are read, choose some of them"
        )
    if len(used) >= 2:
        return
    what = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    said = ", ".join(f"{count} {kind}" for kind, count in what.items())
    raise BadInput(
        f"the data has n_features={len(used)} usable column{'s' * (len(used) != 1)} of {len(kinds)} ({said}); factors "
        "are shared by several: give at least 2 columns of numbers that vary"
    )


def _notes(table: Columns, kinds: Sequence[Kind], n: int) -> list[str]:
    notes = list(table.notes)
    if "counts" in kinds:
        notes.append("counts taken as log(1 + count): no count likelihood yet")
    if "binary" in kinds:
        notes.append("binary columns taken as numbers: no Bernoulli likelihood in tables yet")
    if n >= len(table):
        notes.append(f"more columns ({n:,}) than rows ({len(table):,}): only strong factors can be seen")
    return notes


def recognise(name: str, column: Array) -> Kind:  # (N,)
    """What a column is; NaN and infinity are refused by name and row.

    >>> recognise("a", np.array([0, 1, 1])), recognise("n", np.array([0, 40, 3, 2, 0])), recognise("id", np.arange(9))
    ('binary', 'counts', 'identifier')
    """
    if column.dtype.kind not in "biuf":
        return "words"
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        what = "only missing cells" if np.isnan(column).all() else "NaN or infinity"
        raise BadInput(
            f"column {name!r} holds {what} (first in row {int(bad[0])}); fill these cells or leave the column or the "
            "rows out: missing values are not modelled yet"
        )
    numbers = column.astype(np.float64)
    if np.ptp(numbers) <= 1e-12 * max(1.0, float(np.abs(numbers).max())):
        return "constant"
    if (numbers % 1 != 0).any():
        return "continuous"
    return _whole(name, numbers)


def _whole(name: str, numbers: Array) -> Kind:
    values = np.unique(numbers)
    if len(values) == 2:
        return "binary"
    steps = np.diff(numbers)
    if len(values) == len(numbers) and ((steps == steps[0]).all() or IDENTIFIER.search(name)):
        return "identifier"
    skew = float((((numbers - numbers.mean()) / numbers.std()) ** 3).mean())
    skewed = 0 <= numbers.min() < numbers.max() / 10 and numbers.max() > 10 and skew > 1
    return "counts" if skewed else "whole"


def _copies(table: Columns, kinds: list[Kind]) -> list[Kind]:
    """A column that repeats an earlier one exactly says nothing of its own."""
    seen: set[bytes] = set()
    out: list[Kind] = []
    for column, kind in zip(table.columns, kinds, strict=True):
        content = column.astype(np.float64).tobytes() if kind in USED else b""
        out.append("copy" if content and content in seen else kind)
        seen.add(content)
    return out


def units(x: Array, scale: Scale) -> tuple[str, Array]:  # (N, n) -> name, (n,)
    """What each column is divided by.

    >>> units(np.array([[0.0, 0.0], [2.0, 200.0]]), "auto")
    ('standard', array([  1., 100.]))
    """
    spread = x.std(0)
    if scale == "auto":
        low, high = np.quantile(spread, 0.1, method="lower"), np.quantile(spread, 0.9, method="higher")
        scale = "common" if high <= SAME_UNIT * low else "standard"
    if scale == "standard":
        return scale, spread
    one = float(np.sqrt((spread**2).mean())) if scale == "common" else 1.0
    return scale, np.full(x.shape[1], one)
