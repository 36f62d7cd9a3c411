"""The checked input that every metric reads: rows, held-out rows, the factors' space, and a memo for shared work."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from unseam.errors import BadInput
from unseam.rng import numpy_generator
from unseam.types import Array, FactorSpace

T = TypeVar("T")
MANY_CLASSES = 500  # classifiers refuse more


@dataclass(frozen=True)
class Rows:
    """Some rows of a table."""

    codes: Array  # (N, K)
    values: Array  # (N, F) factor values as numbers
    labels: Array  # (N, F) class labels 0..C-1; -1 for a continuous factor

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: Array) -> Rows:
        return Rows(self.codes[index], self.values[index], self.labels[index])


@dataclass(frozen=True)
class Table:
    """Checked input: the rows, the held-out rows if any, the space, and what had to be said about it."""

    rows: Rows
    space: FactorSpace
    classes: tuple[int, ...]  # per factor: how many distinct values occur (train and test); 0 for a continuous factor
    held_out: Rows | None = None
    variances: Array | None = None  # (N, K) posterior variances of the codes, when a model gave them
    seed: int = 0
    workers: int | None = None
    notes: tuple[str, ...] = ()
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """An expensive intermediate, computed the first time a metric asks for it."""
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def halves(self, share: float = 2 / 3) -> tuple[Rows, Rows]:
        """(train, test): the held-out rows when given, else a seeded random split of the rows."""
        if self.held_out is not None:
            return self.rows, self.held_out
        return self.once(("halves", share), lambda: split(self.rows, share, self.seed))

    def all_rows(self) -> Rows:
        """The rows and the held-out rows together."""
        if self.held_out is None:
            return self.rows
        pairs = ((getattr(self.rows, k), getattr(self.held_out, k)) for k in ("codes", "values", "labels"))
        return Rows(*(np.concatenate(pair) for pair in pairs))

    def splits(self) -> dict[Hashable, tuple[Rows, Rows]]:
        """The splits that metrics have asked for so far."""
        return {key: value for key, value in self.memo.items() if isinstance(key, tuple) and key[0] == "halves"}

    @property
    def continuous(self) -> list[str]:
        return [f.name for f in self.space if not f.discrete]

    def __len__(self) -> int:
        return len(self.rows)


def split(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    order = numpy_generator(seed, "split").permutation(len(rows))
    cut = min(max(round(share * len(rows)), 1), len(rows) - 1)
    return rows.take(order[:cut]), rows.take(order[cut:])


def require_classes(table: Table, metric: str, why: str) -> None:
    """Refuse continuous factors, for a metric that is defined on classes only."""
    if table.continuous:
        raise BadInput(
            f"{metric} cannot use continuous factor(s) {', '.join(table.continuous)}: {why}; "
            "leave them out or bin them on purpose with bin_continuous=20"
        )


def require_few_classes(table: Table, metric: str) -> None:
    """Refuse more classes than a classifier can be fitted to in reasonable time."""
    many = [f"{f.name} ({c})" for f, c in zip(table.space, table.classes, strict=True) if c > MANY_CLASSES]
    if many:
        raise BadInput(f"{metric} fits classifiers of at most {MANY_CLASSES} classes, got {', '.join(many)}")
