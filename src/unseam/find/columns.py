"""What the columns of a table are, which of them can be used, and in which unit they are compared.

Every choice is kept as a word. Used are continuous columns, whole numbers, counts (as logarithms where a linear model
looks at them, as they are where parts do) and binary ones; classes of more than two are left out unless asked for, and
are then a column for each class but the first. Left out by name: constant, empty, identifiers, copies, words, dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from unseam.errors import BadInput, unknown
from unseam.find.missing import Filler, by_hidden_cells, filler, ppca_fill
from unseam.read import Columns, is_number
from unseam.rng import numpy_generator
from unseam.types import Array

Scale = Literal["auto", "standard", "common", "none"]
Kind = Literal[
    "continuous",
    "binary",
    "counts",
    "whole",
    "categorical",
    "classes",
    "constant",
    "empty",
    "identifier",
    "copy",
    "dates",
    "words",
]
USED: tuple[Kind, ...] = ("continuous", "binary", "counts", "whole", "categorical")
ASKED: tuple[Kind, ...] = (*USED, "constant")  # what a user may call a column; constant leaves it out
CLASSES = 20  # words up to which a column is classes
LARGEST = 1e150  # its square is a number
LEAST_ROWS = 10
MANY = 0.5  # missing cells, as a share: above, nothing is called found
MOST_COLUMNS = 5000
NEAR_ZERO = 0.2  # of a column's spread: how close to 0 the smallest amount of a part must come
SAME_UNIT = 10.0  # spreads (9th decile over 1st) within this factor are taken to share a unit
IDENTIFIER = re.compile(r"(^|[_ ])(id|ids|uuid|index|row|number|nr|no)$", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?$|\d\d?[./]\d\d?[./]\d{2,4}$")
LABEL = re.compile(r"(^|[_ ])(class|label|target|y|group|category|species)s?$", re.IGNORECASE)
ALIKE = 0.5  # correlation of neighbouring rows from which they may be a series
KNOWS = 100  # rows below which nothing is called found
FAR = 3.0  # ranges of all other values, beyond which a value is no part of them
TWO = "give at least 2 columns of numbers that vary"
Shape = tuple[int, int, int]  # C, H, W


@dataclass(frozen=True)
class Prepared:
    """A table made ready: which columns are used, how each was changed, and the numbers (N, n) that are modelled."""

    names: tuple[str, ...]  # of all columns that came in
    kinds: tuple[Kind, ...]
    used: tuple[int, ...]  # which column each of the n is made of
    levels: tuple[str | None, ...]  # the word that it is 1 for, if the column is words
    logged: Array  # (n,) bool: taken as log(1 + x)
    mean: Array  # (n,)
    unit: Array  # (n,) what one unit of x is in the column's own
    scale: str
    x: Array  # (N, n), missing cells filled
    gaps: Array  # (N, n) bool: which these were
    notes: tuple[str, ...] = ()
    shape: Shape | None = None
    rest: Array | None = None  # of an image, all pixels: those that never change are drawn as they are
    fills: int | None = None  # factors that fill missing cells best, if there were some
    doubtful: bool = False  # most cells missing, most columns ruled by one value, or rows that follow each other

    @property
    def features(self) -> tuple[str, ...]:
        named = zip(self.used, self.levels, strict=True)
        return tuple(self.names[i] if level is None else f"{self.names[i]}={level}" for i, level in named)

    @property
    def needed(self) -> tuple[str, ...]:
        """Names of the columns that new rows must have."""
        return tuple(dict.fromkeys(self.names[i] for i in self.used))

    def again(self, columns: Sequence[Array]) -> Array:  # all columns, each (M,) -> (M, n)
        """New rows, scaled as those the model was fitted on; missing cells stay NaN."""
        return self.scaled(_numbers(columns, self.used, self.levels))

    @cached_property
    def filler(self) -> Filler:
        """How the missing cells of rows in model units are filled, old ones and new."""
        seen = np.ones(self.x.shape, bool)
        d = by_hidden_cells(self.x, seen, numpy_generator(0, "gaps")) if self.fills is None else self.fills
        return filler(self.x, d)

    def scaled(self, raw: Array) -> Array:  # (..., n) -> (..., n)
        """From the columns' own units to the model's."""
        x = np.where(self.logged, np.log1p(np.maximum(raw, 0)), raw)
        return np.asarray((x - self.mean) / self.unit)

    @property
    def poisson(self) -> bool:
        """Whether the table holds counts: whole numbers from 0, many of them recognised as counts."""
        kinds = [self.kinds[i] for i in self.used]
        return "continuous" not in kinds and 2 * kinds.count("counts") >= len(kinds)

    @property
    def smooth(self) -> Array:  # (n,) bool
        """Columns whose noise may be the same everywhere: neither counts nor classes."""
        return np.array([self.kinds[i] in ("continuous", "whole") for i in self.used])

    @property
    def positive(self) -> bool:
        """Whether rows may be sums of non-negative parts: no column is negative, and all come close to 0."""
        raw = self.raw(self.x)
        low = raw.min(0)
        return bool((low >= -1e-9 * raw.std(0)).all() and (low <= NEAR_ZERO * raw.std(0)).all())

    def raw(self, x: Array) -> Array:  # (M, n) -> (M, n)
        """Back to the columns' own units."""
        out = self.mean + x * self.unit
        out[:, self.logged] = np.expm1(out[:, self.logged])
        return out

    def by_kind(self) -> dict[str, list[str]]:
        """The names of the columns, by what they were taken for."""
        return {
            k: [n for n, own in zip(self.names, self.kinds, strict=True) if own == k] for k in dict.fromkeys(self.kinds)
        }

    def says(self) -> list[str]:
        """How many columns of which kind, which were left out, and what was done to them."""
        if self.shape is not None:
            still = self.kinds.count("constant")
            return [
                f"{len(self.x):,} images of {' x '.join(map(str, self.shape))}; {still} values never change",
                *self.notes,
            ]
        parts = [f"{len(names)} {kind}" for kind, names in self.by_kind().items()]
        left = [f"{n!r} ({k})" for n, k in zip(self.names, self.kinds, strict=True) if k not in USED]
        said = f"{len(self.x):,} rows, {len(self.names):,} columns: {', '.join(parts)}"
        if left:
            said += f"; left out {', '.join(left[:8])}" + (f" and {len(left) - 8} more" if len(left) > 8 else "")
        return [said, SCALES[self.scale], *self.notes]


SCALES = {
    "standard": "each column divided by its own standard deviation",
    "common": "columns have similar spreads: all divided by one number, so that their geometry stays",
    "none": "columns taken as they are",
}


def prepare(
    table: Columns,
    scale: Scale = "auto",
    leave_out: Sequence[str] = (),
    least: int = LEAST_ROWS,
    kinds: Mapping[str, str] | None = None,
    shape: Shape | None = None,
) -> Prepared:
    """Recognise the columns (`kinds` overrides), leave out what cannot be used, bring the rest to one unit.

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
    own = _called(table, kinds or {}, shape)
    used, levels = _layout(table, own)
    _usable(table, own, used)
    x = _numbers(table.columns, used, levels)
    logged = np.array([own[i] == "counts" for i in used])
    x = np.where(logged, np.log1p(np.maximum(x, 0)), x)
    gaps = np.isnan(x)
    mean = np.nanmean(x, axis=0)
    chosen, unit = units(x, scale if shape is None else "common")
    filled, fills, said = _fill((x - mean) / unit, gaps)
    far = _far(table, own) if shape is None else {}
    notes = (*_notes(table, own, len(used)), *_alarm(far), *_series(filled, shape), *said)
    rest = None if shape is None else np.array([column[0] for column in table.columns], np.float64)
    return Prepared(
        tuple(table.names),
        tuple(own),
        tuple(used),
        tuple(levels),
        logged,
        mean,
        unit,
        chosen,
        filled,
        gaps,
        notes,
        shape,
        rest,
        fills,
        bool(gaps.mean() > MANY or 2 * len(far) > len(used) or (shape is None and follow(filled))),
    )


def _called(table: Columns, kinds: Mapping[str, str], shape: Shape | None) -> list[Kind]:
    for name, kind in kinds.items():
        table.pick([name], "kinds")
        if kind not in ASKED:
            raise unknown(f"kinds: the kind of {name!r}", kind, ASKED)
    if shape is not None:  # pixels are pixels
        return ["constant" if np.ptp(column) == 0 else "continuous" for column in table.columns]
    found = _copies(table, [recognise(n, c) for n, c in zip(table.names, table.columns, strict=True)])
    return [
        _allowed(n, c, kinds[n]) if n in kinds else k for n, c, k in zip(table.names, table.columns, found, strict=True)
    ]


def _allowed(name: str, column: Array, kind: str) -> Kind:
    if column.dtype.kind not in "biuf" and kind in ("continuous", "counts", "whole"):
        raise BadInput(f"kinds: {name!r} holds words ({str(column[0])!r}), which cannot be {kind}")
    if kind in USED and recognise(name, column) in ("constant", "empty"):
        raise BadInput(f"kinds: {name!r} has fewer than two values; there is nothing in it that could be {kind}")
    if kind == "counts" and not (np.nan_to_num(column.astype(float)) >= 0).all():
        raise BadInput(f"kinds: {name!r} holds negative numbers, which cannot be counts")
    return kind  # type: ignore[return-value]


def _layout(table: Columns, kinds: Sequence[Kind]) -> tuple[list[int], list[str | None]]:
    """Which column, and which word of it, each of the modelled columns is made of."""
    used: list[int] = []
    levels: list[str | None] = []
    for i, kind in enumerate(kinds):
        if kind not in USED:
            continue
        words = _words(table.columns[i]) if kind == "categorical" or table.columns[i].dtype.kind not in "biuf" else []
        own: list[str | None] = [*words[1:]] or [None]  # the first is what is left when no other is
        used += [i] * len(own)
        levels += own
    return used, levels


def _words(column: Array) -> list[str]:
    return sorted({str(cell) for cell in column if cell is not None and cell == cell})


def _numbers(columns: Sequence[Array], used: Sequence[int], levels: Sequence[str | None]) -> Array:  # -> (M, n)
    return np.stack([_number(columns[i], level) for i, level in zip(used, levels, strict=True)], axis=1)


def _number(column: Array, level: str | None) -> Array:  # (M,)
    if level is None:
        try:
            return np.asarray(column, np.float64)
        except (TypeError, ValueError) as error:
            raise BadInput(f"the new rows hold words where the findings had numbers: {error}") from None
    return np.array([np.nan if cell is None or cell != cell else float(str(cell) == level) for cell in column])


def _fill(x: Array, gaps: Array) -> tuple[Array, int | None, list[str]]:  # (N, n)
    """Missing cells by their expectation given the row, as far as the rows share dimensions."""
    if not gaps.any():
        return x, None, []
    seen = ~gaps
    d = by_hidden_cells(x, seen, numpy_generator(0, "gaps"))
    many = int(gaps.any(0).sum())
    said = f"{int(gaps.sum()):,} missing cells ({100 * gaps.mean():.1f} %) in {many} column{'s' * (many != 1)}"
    said += ": more than half, so that nothing can be sure" if gaps.mean() > MANY else ""
    how = "by their expectation given the row (PPCA, likelihood of the others alone)" if d else "by the column's mean"
    return ppca_fill(x, seen, d), d, [f"{said}, filled {how}"]


def _usable(table: Columns, kinds: Sequence[Kind], used: Sequence[int]) -> None:
    if len(table.names) > MOST_COLUMNS:
        raise BadInput(
            f"the data has {len(table.names):,} columns; at most {MOST_COLUMNS:,} are read, choose some of them"
        )
    if len(used) >= 2:
        return
    what = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    said = ", ".join(f"{count} {kind}" for kind, count in what.items())
    words = next((f"{n!r} holds words ({_words(c)[0]!r})" for n, c, k in _each(table, kinds) if k == "words"), None)
    hints = "; ".join([TWO, *(_almost(table, kinds)[:1] or ([words] if words else [])), *_asking(table, kinds)])
    raise BadInput(
        f"the data has n_features={len(used)} usable column{'s' * (len(used) != 1)} of {len(kinds)} ({said}); factors "
        f"are shared by several: {hints}"
    )


def _each(table: Columns, kinds: Sequence[Kind]) -> Iterator[tuple[str, Array, Kind]]:
    return zip(table.names, table.columns, kinds, strict=True)


def _notes(table: Columns, kinds: Sequence[Kind], n: int) -> list[str]:
    notes = [*table.notes, *_repeats(table, kinds)]
    if "counts" in kinds:
        notes.append("counts: log(1 + count) for linear models, Poisson for parts, negative binomial for networks")
    if "binary" in kinds:
        notes.append("binary columns: numbers for linear models, Bernoulli for networks")
    notes += [*_asking(table, kinds), *_almost(table, kinds), *_told(table, kinds), *_labels(table, kinds)]
    if n >= len(table):
        notes.append(f"more columns ({n:,}) than rows ({len(table):,}): only strong factors can be seen")
    return notes


def _asking(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Classes are left out unless asked for."""
    names = [name for name, _, kind in _each(table, kinds) if kind == "classes"]
    if not names:
        return []
    return [f"left out: {', '.join(names[:5])} (kinds {names[0]}=categorical: a column a class but for the first)"]


def _almost(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """A column of words most of which are numbers is one of numbers with a few cells that are none."""
    said = []
    for name, column, kind in _each(table, kinds):
        cells = [str(c) for c in column if c is not None and c == c] if kind in ("words", "classes") else []
        wrong = [cell for cell in cells if not is_number(cell)]
        if 0 < len(wrong) < len(cells) / 2:
            said.append(
                f"{name!r} is left out, though {len(cells) - len(wrong):,} of its {len(cells):,} cells are numbers: "
                f"leave cells such as {wrong[0]!r} empty"
            )
    return said


def _far(table: Columns, kinds: Sequence[Kind]) -> dict[str, tuple[float, int]]:
    """Columns with a value (how often) that is further from the others than three times what these spread over."""
    out = {}
    for name, column, kind in _each(table, kinds):
        if kind not in ("continuous", "whole"):
            continue
        v = np.unique(column[column == column].astype(np.float64))
        if len(v) > 4 and max(v[1] - v[0], v[-1] - v[-2]) > FAR * (v[-2] - v[1]):
            end = v[0] if v[1] - v[0] > v[-1] - v[-2] else v[-1]
            out[name] = (float(end), int((column == end).sum()))
    return out


def _alarm(far: Mapping[str, tuple[float, int]]) -> list[str]:
    if not far:
        return []
    name, (value, rows) = next(iter(far.items()))
    more = f" (and one in {len(far) - 1} more columns)" if len(far) > 1 else ""
    where = f"in {rows} row{'s' * (rows != 1)} of {name!r}"
    return [f"{value:g} {where} is far from all other values{more}: an error, or a missing cell? Leave it empty"]


def neighbours(x: Array) -> Array:  # (N, n) -> (n,)
    """Correlation of each column with itself one row further, in the order the rows came in."""
    z = (x - x.mean(0)) / np.maximum(x.std(0), 1e-300)
    return np.asarray((z[1:] * z[:-1]).mean(0))


def effective(x: Array) -> float:  # (N, n)
    """How many independent rows N rows of a series are worth, N (1 - r) / (1 + r), by the column that is one least.

    >>> g = np.random.default_rng(0)
    >>> effective(g.normal(size=(500, 3))) > 400, effective(g.normal(size=(500, 3)).cumsum(0)) < 20
    (True, True)
    """
    r = float(np.clip(neighbours(x).min(), 0, 1))
    return len(x) * (1 - r) / (1 + r)


def follow(x: Array) -> bool:  # (N, n)
    """Whether every column is a series, so that the rows are worth too few independent ones."""
    return bool(neighbours(x).min() > ALIKE and effective(x) < KNOWS)


def _series(x: Array, shape: Shape | None) -> list[str]:
    """Rows that follow each other are no independent samples; sorted ones look the same."""
    r = float(np.median(neighbours(x))) if shape is None else 0.0
    if r < ALIKE:
        return []
    few = f" ({effective(x):.0f} independent ones, too few to know)" if follow(x) else ""
    return [
        f"neighbouring rows are alike (correlation {r:.2f}): of a series {len(x):,} rows are worth fewer{few}; "
        "find its changes instead, or shuffle rows that are only sorted"
    ]


def _labels(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Whole numbers, few of them, may stand for classes."""
    said = []
    for name, column, kind in _each(table, kinds):
        if kind == "whole" and LABEL.search(name) and len(np.unique(column[column == column])) <= CLASSES:
            said.append(f"{name!r} is taken as a number: if it is a label, leave it out (leave_out {name})")
    return said


def recognise(name: str, column: Array) -> Kind:  # (N,)
    """What a column is; infinity is refused by name and row, missing cells (NaN) are not looked at.

    >>> recognise("a", np.array([0, 1, 1])), recognise("n", np.array([0, 40, 3, 2, 0])), recognise("id", np.arange(9))
    ('binary', 'counts', 'identifier')
    """
    if column.dtype.kind not in "biuf":
        return _word(column)
    numbers = column.astype(np.float64)
    bad = np.flatnonzero(np.abs(numbers) > LARGEST)
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
    if (numbers % 1 != 0).any():
        return "continuous"
    return _whole(name, numbers)


def _word(column: Array) -> Kind:
    words = _words(column)
    if len(words) < 2:
        return "constant" if words else "empty"
    if all(DATE.match(word) for word in words):
        return "dates"
    return "binary" if len(words) == 2 else "classes" if len(words) <= min(CLASSES, len(column) // 5) else "words"


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
    """A column that repeats an earlier one, perhaps in another unit, says nothing of its own."""
    seen: set[bytes] = set()
    out: list[Kind] = []
    for column, kind in zip(table.columns, kinds, strict=True):
        numeric = kind in USED and column.dtype.kind in "biuf"
        content = _content(column.astype(np.float64)) if numeric else b""
        out.append("copy" if content and content in seen else kind)
        seen.add(content)
    return out


def _repeats(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """Which column each copy is one of."""
    first: dict[bytes, str] = {}
    said = []
    for name, column, kind in _each(table, kinds):
        if (kind in USED or kind == "copy") and column.dtype.kind in "biuf" and "copy" in kinds:
            of = first.setdefault(_content(column.astype(np.float64)), name)
            said += [f"{name!r} of {of!r}"] if kind == "copy" else []
    more = f" and {len(said) - 5} more" * (len(said) > 5)
    return [f"copies, perhaps in another unit: {', '.join(said[:5])}{more}"] if said else []


def _content(column: Array) -> bytes:  # (N,)
    """Seven digits of its standardised cells, the first above 0: the same for a column and for a + b times it."""
    z = (column - np.nanmean(column)) / np.nanstd(column)
    first = z[np.flatnonzero(np.abs(z) > 1e-3)[0]]
    return np.round(z * np.sign(first), 7).tobytes() + b"."


def _told(table: Columns, kinds: Sequence[Kind]) -> list[str]:
    """A column of two values that a threshold of another gives exactly may be a label that was left in."""
    numbers = [
        (n, c.astype(float))
        for n, c, k in zip(table.names, table.columns, kinds, strict=True)
        if k in ("continuous", "whole")
    ]
    said = []
    for name, column, kind in _each(table, kinds):
        two = _words(column) if kind == "binary" else []
        one = np.array([str(cell) == two[0] for cell in column]) if two else np.zeros(0, bool)
        for other, x in numbers if two else []:
            a, b = x[one & ~np.isnan(x)], x[~one & ~np.isnan(x)]
            if min(len(a), len(b)) > 5 and (a.max() < b.min() or b.max() < a.min()):
                said.append(f"{name!r} is a threshold of {other!r}: if it is a label, leave it out (leave_out {name})")
                break
    return said


def units(x: Array, scale: Scale) -> tuple[str, Array]:  # (N, n) -> name, (n,)
    """What each column is divided by.

    >>> units(np.array([[0.0, 0.0], [2.0, 200.0]]), "auto")
    ('standard', array([  1., 100.]))
    """
    spread = np.nanstd(x, axis=0)
    if scale == "auto":
        low, high = np.quantile(spread, 0.1, method="lower"), np.quantile(spread, 0.9, method="higher")
        scale = "common" if high <= SAME_UNIT * low else "standard"
    if scale == "standard":
        return scale, spread
    one = float(np.sqrt((spread**2).mean())) if scale == "common" else 1.0
    return scale, np.full(x.shape[1], one)
