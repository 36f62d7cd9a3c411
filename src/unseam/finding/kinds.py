"""What the columns of a table are, recognised from their cells or called so by the user; and what a careful reader
would say of them: columns left out, copies, far values, labels, rows that are a series."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput, unknown
from unseam.readers import Columns, is_number

Kind = Literal[
    "continuous",
    "binary",
    "ordinal",
    "counts",
    "whole",
    "categorical",
    "classes",
    "constant",
    "empty",
    "identifier",
    "label",
    "copy",
    "dates",
    "words",
]
USED: tuple[Kind, ...] = ("continuous", "binary", "ordinal", "counts", "whole", "categorical")
_ASKED: tuple[Kind, ...] = (*USED, "constant")  # what a user may call a column; constant leaves it out
CLASSES = 20  # words up to which a column is classes
_LEVELS = 7  # different numbers up to which a column is ordinal
_MOST_LEVELS = 20  # that a column may have which is called ordinal by the user
_SEEN = 10  # rows for each level on average, from which a level is one
_LARGEST = 1e150  # its square is a number
# A name that says row name or key: such a column is never a measurement, whatever its numbers are.
_KEY = re.compile(
    r"((.*[_ .-])?(?i:id|ids|uuid|guid)|.*[a-z]I[dD]|(?i:row[ ._-]?(id|names?)|unnamed: ?\d+|level_\d+)|)$"
)
# A name that may say so: only whole numbers that never repeat are taken for an identifier.
_NUMBER = re.compile(r"(^|[_ .-])(index|key|row|number|nr|no)$", re.IGNORECASE)
_TARGET = re.compile(r"(target|label)s?$", re.IGNORECASE)  # a label, whatever its numbers are
_CODE = re.compile(
    r"(class(es)?|classification|y|group|category|species|cluster)$", re.IGNORECASE
)  # if it has few values
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?$|\d\d?[./]\d\d?[./]\d{2,4}$")
_LABEL = re.compile(r"(^|[_ ])(class|label|target|y|group|category|species)s?$", re.IGNORECASE)
_CALENDAR = re.compile(r"(year|yr|quarter|month|week|day|weekday)$", re.IGNORECASE)
_ALIKE = 0.5  # correlation of neighbouring rows from which they may be a series
KNOWS = 100  # rows below which nothing is called found
_FAR = 3.0  # ranges of all other values, beyond which a value is no part of them


def column_kinds(table: Columns, kinds: Mapping[str, str], pixels: bool, keep: Sequence[str] = ()) -> list[Kind]:
    """What each column is; `kinds` overrides what was recognised, and columns to `keep` are neither identifiers nor
    labels."""
    for name, kind in kinds.items():
        table.pick([name], "kinds")
        if kind not in _ASKED:
            raise unknown(f"kinds: the kind of {name!r}", kind, _ASKED)
    table.pick(list(keep), "keep")
    if pixels:
        return ["constant" if np.ptp(column) == 0 else "continuous" for column in table.columns]
    named = [_named(n, table, recognise(n, c)) for n, c in zip(table.names, table.columns, strict=True)]
    own = [
        recognise("column", c) if n in keep and k in ("identifier", "label") else k
        for n, c, k in named_columns(table, named)
    ]
    found = _copies(table, own)
    return [_allowed(n, c, kinds[n]) if n in kinds else k for n, c, k in named_columns(table, found)]


def _named(name: str, table: Columns, kind: Kind) -> Kind:
    """A column that is used unless its name says that it is a label; `y` beside `x` is a coordinate."""
    few = kind in ("binary", "ordinal") or (
        kind == "whole" and len(np.unique(table.columns[table.names.index(name)])) <= CLASSES
    )
    coordinate = name.lower() == "y" and any(other.lower() == "x" for other in table.names)
    label = _TARGET.match(name) or (few and _CODE.match(name) and not coordinate)
    return "label" if kind in USED and label else kind


def named_columns(table: Columns, kinds: Sequence[Kind]) -> Iterator[tuple[str, Array, Kind]]:
    """Name, cells and kind of every column."""
    return zip(table.names, table.columns, kinds, strict=True)


def quote_name(name: str) -> str:
    """A column's name as it is shown.

    >>> quote_name("age"), quote_name("")
    ("'age'", 'the column without a name')
    """
    return repr(name) if name.strip() else "the column without a name"


def _allowed(name: str, column: Array, kind: str) -> Kind:
    if column.dtype.kind not in "biuf" and kind in ("continuous", "counts", "whole", "ordinal"):
        raise BadInput(f"kinds: {name!r} holds words ({str(column[0])!r}), which cannot be {kind}")
    if kind in USED and recognise(name, column) in ("constant", "empty"):
        raise BadInput(f"kinds: {name!r} has fewer than two values; there is nothing in it that could be {kind}")
    if kind == "ordinal" and len(distinct(column)) > _MOST_LEVELS:
        count = len(distinct(column))
        raise BadInput(f"kinds: {name!r} has {count} different values; an ordinal column has at most {_MOST_LEVELS}")
    if kind == "counts" and not (np.nan_to_num(column.astype(float)) >= 0).all():
        raise BadInput(f"kinds: {name!r} holds negative numbers, which cannot be counts")
    return kind  # type: ignore[return-value]


def distinct(column: Array) -> list[str]:
    """The words in a column, sorted; missing cells are none."""
    return sorted({str(cell) for cell in column if cell is not None and cell == cell})


def recognise(name: str, column: Array) -> Kind:  # (N,)
    """What a column is; infinity is refused by name and row, missing cells (NaN) are not looked at.

    >>> recognise("a", np.array([0, 1, 1])), recognise("n", np.array([0, 40, 3, 2, 0])), recognise("id", np.arange(9))
    ('binary', 'counts', 'identifier')
    """
    if column.dtype.kind not in "biuf":
        return _word(column)
    numbers = column.astype(np.float64)
    bad = np.flatnonzero(np.abs(numbers) > _LARGEST)
    if len(bad):
        what = "infinity" if np.isinf(numbers[bad[0]]) else f"{numbers[bad[0]]:g}, too large to be squared"
        raise BadInput(
            f"column {name!r} holds {what} (first in row {int(bad[0])}); correct it, or leave the column out"
        )
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return "empty"
    if np.ptp(numbers) <= 1e-12 * max(1.0, float(np.abs(numbers).max())):
        return "constant"
    if _KEY.match(name.strip()):
        return "identifier"
    values = np.unique(numbers)
    whole = not (numbers % 1 != 0).any()
    if len(values) == 2 and whole:
        return "binary"
    if 2 < len(values) <= _LEVELS and len(numbers) >= _SEEN * len(values):
        return "ordinal"
    return _whole(name, numbers, values) if whole else "continuous"


def _word(column: Array) -> Kind:
    words = distinct(column)
    if len(words) < 2:
        return "constant" if words else "empty"
    if all(_DATE.match(word) for word in words):
        return "dates"
    return "binary" if len(words) == 2 else "classes" if len(words) <= min(CLASSES, len(column) // 5) else "words"


def _whole(name: str, numbers: Array, values: Array) -> Kind:
    """Whole numbers that never repeat are an identifier if they go up by equal steps, if they only go up and leave few
    numbers out (row numbers of a table that has lost rows), or if the name says so."""
    steps = np.diff(numbers)
    dense = (steps > 0).all() and values[-1] - values[0] < 2 * len(values)
    if len(values) == len(numbers) and ((steps == steps[0]).all() or dense or _NUMBER.search(name)):
        return "identifier"
    skew = float((((numbers - numbers.mean()) / numbers.std()) ** 3).mean())
    skewed = 0 <= numbers.min() < numbers.max() / 10 and numbers.max() > 10 and skew > 1
    return "counts" if skewed else "whole"


def _copies(table: Columns, kinds: list[Kind]) -> list[Kind]:
    """A column that repeats an earlier one, perhaps in another unit, says nothing of its own."""
    seen: set[bytes] = set()
    out: list[Kind] = []
    for column, kind in zip(table.columns, kinds, strict=True):
        numeric = kind in USED and column.dtype.kind in "biuf"
        content = content_of(column.astype(np.float64)) if numeric else b""
        out.append("copy" if content and content in seen else kind)
        seen.add(content)
    return out


def content_of(column: Array) -> bytes:  # (N,)
    """Seven digits of its standardised cells, the first above 0: the same for a column and for a + b times it."""
    z = (column - np.nanmean(column)) / np.nanstd(column)
    first = z[np.flatnonzero(np.abs(z) > 1e-3)[0]]
    return np.round(z * np.sign(first), 7).tobytes() + b"."


# --- what a careful reader would say of the table ------------------------------------------------------------------


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
        *_thresholds(table, kinds),
        *_labels(table, kinds),
    ]
    notes += _calendar(table, kinds)
    if n >= len(table):
        notes.append(f"more columns ({n:,}) than rows ({len(table):,}): only strong factors can be seen")
    return notes


def _left_out(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Identifiers and labels are no measurements, and how to use them all the same."""
    notes = []
    for kind, reason in (("identifier", "an identifier"), ("label", "a label")):
        names = [name for name, _, own in named_columns(table, kinds) if own == kind]
        if names:
            looks = f"looks like {reason} and is" if len(names) == 1 else f"look like {kind}s and are"
            use = f"to use it: --keep {quote_name(names[0])}, or keep="
            notes.append(f"{', '.join(map(quote_name, names[:5]))} {looks} left out ({use})")
    return notes


def warn_of_classes(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Classes are left out unless asked for."""
    names = [name for name, _, kind in named_columns(table, kinds) if kind == "classes"]
    if not names:
        return []
    use = f"to use one, with a column for each class: --kinds {names[0]}=categorical, or kinds="
    return [f"words are left out: {', '.join(names[:5])} ({use})"]


def warn_of_words(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """A column of words most of which are numbers is one of numbers with a few cells that are none."""
    notes = []
    for name, column, kind in named_columns(table, kinds):
        cells = [str(c) for c in column if c is not None and c == c] if kind in ("words", "classes") else []
        wrong = [cell for cell in cells if not is_number(cell)]
        if 0 < len(wrong) < len(cells) / 2:
            notes.append(
                f"{name!r} is left out, though {len(cells) - len(wrong):,} of its {len(cells):,} cells are numbers: "
                f"leave cells such as {wrong[0]!r} empty"
            )
    return notes


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
    notes = []
    for name, column, kind in named_columns(table, kinds):
        few = kind == "ordinal" or (kind == "whole" and len(np.unique(column[column == column])) <= CLASSES)
        if few and _LABEL.search(name):
            notes.append(f"{name!r} is taken as a number: if it is a label, leave it out (leave_out {name})")
    return notes


def _calendar(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """When a row was taken is rarely something that was measured."""
    names = [name for name, _, kind in named_columns(table, kinds) if kind in USED and _CALENDAR.match(name)]
    if not names:
        return []
    return [f"taken as numbers: {', '.join(names)}; where they only say when a row was taken, leave them out"]


def _repeats(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Which column each copy is one of."""
    first: dict[bytes, str] = {}
    notes = []
    for name, column, kind in named_columns(table, kinds):
        if (kind in USED or kind == "copy") and column.dtype.kind in "biuf" and "copy" in kinds:
            of = first.setdefault(content_of(column.astype(np.float64)), name)
            notes += [f"{name!r} of {of!r}"] if kind == "copy" else []
    more = f" and {len(notes) - 5} more" * (len(notes) > 5)
    return [f"copies, perhaps in another unit: {', '.join(notes[:5])}{more}"] if notes else []


def _thresholds(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """A column of two values that a threshold of another gives exactly may be a label that was left in."""
    numbers = [(n, c.astype(float)) for n, c, k in named_columns(table, kinds) if k in ("continuous", "whole")]
    notes = []
    for name, column, kind in named_columns(table, kinds):
        two = distinct(column) if kind == "binary" else []
        one = np.array([str(cell) == two[0] for cell in column]) if two else np.zeros(0, bool)
        for other, x in numbers if two else []:
            a, b = x[one & ~np.isnan(x)], x[~one & ~np.isnan(x)]
            if min(len(a), len(b)) > 5 and (a.max() < b.min() or b.max() < a.min()):
                notes.append(f"{name!r} is a threshold of {other!r}: if it is a label, leave it out (leave_out {name})")
                break
    return notes
