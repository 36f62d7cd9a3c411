"""Which columns of a table can be used, in which unit they are compared, and the numbers that are modelled.

Every choice is given in words. Used are continuous columns, whole numbers, ordinal ones (3 to 7 different numbers),
counts (as logarithms where a linear model looks at them, as they are where parts do) and binary ones; classes of more
than two are left out unless asked for, and are then a column for each class but the first. Left out by name: constant,
empty, identifiers, labels, copies, words, dates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput, unknown
from unseam.finding.kinds import (
    USED,
    Kind,
    column_kinds,
    distinct,
    far_values,
    is_series,
    named_columns,
    quote_name,
    remarks,
    warn_of_classes,
    warn_of_far_values,
    warn_of_series,
    warn_of_words,
)
from unseam.finding.missing import Filler, by_hidden_cells, filler, ppca_fill
from unseam.readers import Columns
from unseam.rng import numpy_generator

Scale = Literal["auto", "standard", "common", "none"]
_LEAST_ROWS = 10
_MANY = 0.5  # missing cells, as a share: above, nothing is called found
MOST_COLUMNS = 5000
_NEAR_ZERO = 0.2  # of a column's spread: how close to 0 the smallest amount of a part must come
_TWO = "give at least 2 columns of numbers that vary"
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

    def one_row(self) -> Prepared:
        """The same without its rows but one: what a model needs to read new ones."""
        return replace(self, x=self.x[:1], gaps=self.gaps[:1])

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
        whole = all(k != "ordinal" or (r % 1 == 0).all() for k, r in zip(kinds, self.raw(self.x[:1000]).T, strict=True))
        return "continuous" not in kinds and 2 * kinds.count("counts") >= len(kinds) and whole

    @property
    def smooth(self) -> Array:  # (n,) bool
        """Columns whose noise may be the same everywhere: neither counts nor classes."""
        return np.array([self.kinds[i] in ("continuous", "whole", "ordinal") for i in self.used])

    @property
    def levels_only(self) -> Array:  # (n,) bool
        """Columns of a few ordered levels, binary or ordinal: their shape says nothing of the factors' shape."""
        return np.array([self.kinds[i] in ("binary", "ordinal", "categorical") for i in self.used])

    @property
    def positive(self) -> bool:
        """Whether rows may be sums of non-negative parts: no column is negative, and all come close to 0."""
        raw = self.raw(self.x)
        low = raw.min(0)
        return bool((low >= -1e-9 * raw.std(0)).all() and (low <= _NEAR_ZERO * raw.std(0)).all())

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
        left = [f"{quote_name(n)} ({k})" for n, k in zip(self.names, self.kinds, strict=True) if k not in USED]
        text = f"{len(self.x):,} rows, {len(self.names):,} columns: {', '.join(parts)}"
        if left:
            text += f"; left out {', '.join(left[:8])}" + (f" and {len(left) - 8} more" if len(left) > 8 else "")
        return [text, _SCALES[self.scale], *self.notes]


_SCALES = {
    "standard": "each column divided by its own standard deviation",
    "common": "all columns divided by one number, so that their geometry stays",
    "none": "columns taken as they are",
}


def prepare(
    table: Columns,
    scale: Scale = "auto",
    leave_out: str | Sequence[str] = (),
    least: int = _LEAST_ROWS,
    kinds: Mapping[str, str] | None = None,
    shape: Shape | None = None,
    keep: str | Sequence[str] = (),
) -> Prepared:
    """Recognise the columns (`kinds` overrides), leave out what cannot be used, bring the rest to one unit. Columns to
    `keep` are used although they look like identifiers or labels.

    >>> t = Columns(["id", "a", "b"], [np.arange(50), np.sin(np.arange(50.0)), np.cos(np.arange(50.0))])
    >>> prepare(t).kinds
    ('identifier', 'continuous', 'continuous')
    """
    if len(table) < least:
        raise BadInput(
            f"the data has {len(table)} row{'s' * (len(table) != 1)}; find needs at least {least}, and 100 to know"
        )
    if scale not in get_args(Scale):
        raise unknown("scale", scale, get_args(Scale))
    leave_out, keep = names_of(leave_out), names_of(keep)
    table.pick(leave_out, "leave_out")
    table = table.without(leave_out) if leave_out else table
    own = column_kinds(table, kinds or {}, shape is not None, keep)
    used, levels = _layout(table, own)
    _usable(table, own, used)
    x = _numbers(table.columns, used, levels)
    logged = np.array([own[i] == "counts" for i in used])
    x = np.where(logged, np.log1p(np.maximum(x, 0)), x)
    gaps = np.isnan(x)
    mean = np.nanmean(x, axis=0)
    same = shape is not None or _same_levels(x, [own[i] for i in used])
    automatic = scale == "auto" or shape is not None
    chosen, unit = _units(x, ("common" if same else "standard") if automatic else scale)
    filled, fills, filled_how = _fill((x - mean) / unit, gaps)
    far = far_values(table, own) if shape is None else {}
    notes = (
        *remarks(table, own, len(used)),
        *warn_of_far_values(far),
        *(warn_of_series(filled) if shape is None else []),
        *filled_how,
    )
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
        bool(gaps.mean() > _MANY or 2 * len(far) > len(used) or (shape is None and is_series(filled))),
    )


def _layout(table: Columns, kinds: Sequence[Kind]) -> tuple[list[int], list[str | None]]:
    """Which column, and which word of it, each of the modelled columns is made of."""
    used: list[int] = []
    levels: list[str | None] = []
    for i, kind in enumerate(kinds):
        if kind not in USED:
            continue
        words = distinct(table.columns[i]) if kind == "categorical" or table.columns[i].dtype.kind not in "biuf" else []
        own: list[str | None] = [*words[1:]] or [None]  # the first is what is left when no other is
        used += [i] * len(own)
        levels += own
    return used, levels


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
    text = f"{int(gaps.sum()):,} missing cells ({100 * gaps.mean():.1f} %) in {many} column{'s' * (many != 1)}"
    text += ": more than half, so that nothing can be sure" if gaps.mean() > _MANY else ""
    how = "by their expectation given the rest of the row (PPCA)" if d else "by the column's mean"
    return ppca_fill(x, seen, d), d, [f"{text}, filled {how}"]


def _usable(table: Columns, kinds: Sequence[Kind], used: Sequence[int]) -> None:
    if len(table.names) > MOST_COLUMNS:
        raise BadInput(
            f"the data has {len(table.names):,} columns; at most {MOST_COLUMNS:,} are read, choose some of them"
        )
    if len(used) >= 2:
        return
    what = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    text = ", ".join(f"{count} {kind}" for kind, count in what.items())
    words = next(
        (f"{n!r} holds words ({distinct(c)[0]!r})" for n, c, k in named_columns(table, kinds) if k == "words"), None
    )
    hints = "; ".join(
        [_TWO, *(warn_of_words(table, kinds)[:1] or ([words] if words else [])), *warn_of_classes(table, kinds)]
    )
    raise BadInput(
        f"the data has n_features={len(used)} usable column{'s' * (len(used) != 1)} of {len(kinds)} ({text}); factors "
        f"are shared by several: {hints}"
    )


def names_of(names: str | Sequence[str]) -> list[str]:
    """A list of column names, or one name.

    >>> names_of("cens"), names_of(("a", "b"))
    (['cens'], ['a', 'b'])
    """
    return [names] if isinstance(names, str) else list(names)


def _same_levels(x: Array, kinds: Sequence[Kind]) -> bool:  # (N, n)
    """Whether all columns are items with the same levels, so that they share a unit."""
    if not set(kinds) <= {"ordinal", "binary"}:
        return False
    low, high = np.nanmin(x, axis=0), np.nanmax(x, axis=0)
    return bool((low == low[0]).all() and (high == high[0]).all())


def _units(x: Array, scale: str) -> tuple[str, Array]:  # (N, n) -> name, (n,)
    """What each column is divided by.

    >>> _units(np.array([[0.0, 0.0], [2.0, 200.0]]), "standard")
    ('standard', array([  1., 100.]))
    """
    spread = np.nanstd(x, axis=0)
    if scale == "standard":
        return scale, spread
    one = float(np.sqrt((spread**2).mean())) if scale == "common" else 1.0
    return scale, np.full(x.shape[1], one)
