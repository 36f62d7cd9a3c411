"""What a careful reader would say of a table: columns left out, copies, far values, labels, rows that are a series."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from unseam.axes import Array
from unseam.finding.kinds import CLASSES, USED, Kind, content_of, distinct, named_columns, quote_name
from unseam.readers import Columns, is_number

_LABEL = re.compile(r"(^|[_ ])(class|label|target|y|group|category|species)s?$", re.IGNORECASE)
_CALENDAR = re.compile(r"(year|yr|quarter|month|week|day|weekday)$", re.IGNORECASE)
_ALIKE = 0.5  # correlation of neighbouring rows from which they may be a series
KNOWS = 100  # rows below which nothing is called found
_FAR = 3.0  # ranges of all other values, beyond which a value is no part of them


def remarks(table: Columns, kinds: Sequence[Kind], n: int) -> list[str]:
    """All that its cells say; n columns are used."""
    notes = [*table.notes, *_left_out(table, kinds), *_repeats(table, kinds)]
    if "counts" in kinds:
        notes.append("counts: log(1 + count) for linear models, Poisson for parts, negative binomial for networks")
    if "binary" in kinds:
        notes.append("binary columns: numbers for linear models, Bernoulli for networks")
    notes += [
        *warn_of_classes(table, kinds),
        *warn_of_words(table, kinds),
        *_told(table, kinds),
        *_labels(table, kinds),
    ]
    notes += _calendar(table, kinds)
    if n >= len(table):
        notes.append(f"more columns ({n:,}) than rows ({len(table):,}): only strong factors can be seen")
    return notes


def _left_out(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Identifiers and labels are no measurements, and how to use them all the same."""
    said = []
    for kind, reason in (("identifier", "an identifier"), ("label", "a label")):
        names = [name for name, _, own in named_columns(table, kinds) if own == kind]
        if names:
            looks = f"looks like {reason} and is" if len(names) == 1 else f"look like {kind}s and are"
            said.append(f"{', '.join(map(quote_name, names[:5]))} {looks} left out (to use it: keep {names[0]})")
    return said


def warn_of_classes(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Classes are left out unless asked for."""
    names = [name for name, _, kind in named_columns(table, kinds) if kind == "classes"]
    if not names:
        return []
    return [f"left out: {', '.join(names[:5])} (kinds {names[0]}=categorical: a column a class but for the first)"]


def warn_of_words(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """A column of words most of which are numbers is one of numbers with a few cells that are none."""
    said = []
    for name, column, kind in named_columns(table, kinds):
        cells = [str(c) for c in column if c is not None and c == c] if kind in ("words", "classes") else []
        wrong = [cell for cell in cells if not is_number(cell)]
        if 0 < len(wrong) < len(cells) / 2:
            said.append(
                f"{name!r} is left out, though {len(cells) - len(wrong):,} of its {len(cells):,} cells are numbers: "
                f"leave cells such as {wrong[0]!r} empty"
            )
    return said


def far_values(table: Columns, kinds: Sequence[Kind]) -> dict[str, tuple[float, int]]:
    """Columns with a value (how often) that is further from the others than three times what these spread over."""
    out = {}
    for name, column, kind in named_columns(table, kinds):
        if kind not in ("continuous", "whole"):
            continue
        v = np.unique(column[column == column].astype(np.float64))
        if len(v) > 4 and max(v[1] - v[0], v[-1] - v[-2]) > _FAR * (v[-2] - v[1]):
            end = v[0] if v[1] - v[0] > v[-1] - v[-2] else v[-1]
            out[name] = (float(end), int((column == end).sum()))
    return out


def warn_of_far_values(far: Mapping[str, tuple[float, int]]) -> list[str]:
    """One sentence on what `far_values` found."""
    if not far:
        return []
    name, (value, rows) = next(iter(far.items()))
    more = f" (and one in {len(far) - 1} more columns)" if len(far) > 1 else ""
    where = f"in {rows} row{'s' * (rows != 1)} of {name!r}"
    return [f"{value:g} {where} is far from all other values{more}: an error, or a missing cell? Leave it empty"]


def _neighbours(x: Array) -> Array:  # (N, n) -> (n,)
    """Correlation of each column with itself one row further, in the order the rows came in."""
    z = (x - x.mean(0)) / np.maximum(x.std(0), 1e-300)
    return np.asarray((z[1:] * z[:-1]).mean(0))


def _effective(x: Array) -> float:  # (N, n)
    """How many independent rows N rows of a series are worth, N (1 - r) / (1 + r), by the column that is one least.

    >>> g = np.random.default_rng(0)
    >>> _effective(g.normal(size=(500, 3))) > 400, _effective(g.normal(size=(500, 3)).cumsum(0)) < 20
    (True, True)
    """
    r = float(np.clip(_neighbours(x).min(), 0, 1))
    return len(x) * (1 - r) / (1 + r)


def is_series(x: Array) -> bool:  # (N, n)
    """Whether every column is a series, so that the rows are worth too few independent ones."""
    return bool(_neighbours(x).min() > _ALIKE and _effective(x) < KNOWS)


def warn_of_series(x: Array) -> list[str]:  # (N, n)
    """Rows that follow each other are no independent samples; sorted ones look the same."""
    r = float(np.median(_neighbours(x)))
    if r < _ALIKE:
        return []
    few = f" ({_effective(x):.0f} independent ones, too few to know)" if is_series(x) else ""
    return [
        f"neighbouring rows are alike (correlation {r:.2f}): of a series {len(x):,} rows are worth fewer{few}; "
        "find its changes instead, or shuffle rows that are only sorted"
    ]


def _labels(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Whole numbers, few of them, may stand for classes."""
    said = []
    for name, column, kind in named_columns(table, kinds):
        few = kind == "ordinal" or (kind == "whole" and len(np.unique(column[column == column])) <= CLASSES)
        if few and _LABEL.search(name):
            said.append(f"{name!r} is taken as a number: if it is a label, leave it out (leave_out {name})")
    return said


def _calendar(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """When a row was taken is rarely something that was measured."""
    names = [name for name, _, kind in named_columns(table, kinds) if kind in USED and _CALENDAR.match(name)]
    if not names:
        return []
    return [f"taken as numbers: {', '.join(names)}; where they only say when a row was taken, leave them out"]


def _repeats(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Which column each copy is one of."""
    first: dict[bytes, str] = {}
    said = []
    for name, column, kind in named_columns(table, kinds):
        if (kind in USED or kind == "copy") and column.dtype.kind in "biuf" and "copy" in kinds:
            of = first.setdefault(content_of(column.astype(np.float64)), name)
            said += [f"{name!r} of {of!r}"] if kind == "copy" else []
    more = f" and {len(said) - 5} more" * (len(said) > 5)
    return [f"copies, perhaps in another unit: {', '.join(said[:5])}{more}"] if said else []


def _told(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """A column of two values that a threshold of another gives exactly may be a label that was left in."""
    numbers = [(n, c.astype(float)) for n, c, k in named_columns(table, kinds) if k in ("continuous", "whole")]
    said = []
    for name, column, kind in named_columns(table, kinds):
        two = distinct(column) if kind == "binary" else []
        one = np.array([str(cell) == two[0] for cell in column]) if two else np.zeros(0, bool)
        for other, x in numbers if two else []:
            a, b = x[one & ~np.isnan(x)], x[~one & ~np.isnan(x)]
            if min(len(a), len(b)) > 5 and (a.max() < b.min() or b.max() < a.min()):
                said.append(f"{name!r} is a threshold of {other!r}: if it is a label, leave it out (leave_out {name})")
                break
    return said
