"""Data sets that are given rows (arrays, image files), with a factor table or without."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array, Factor, FactorKind, FactorSpace
from unseam.data.base import Dataset, LikelihoodName, checked_rows, factor_rows
from unseam.errors import BadInput, unknown
from unseam.readers import Columns, load_table

Layout = Literal["vectors", "hw", "hwc", "chw"]


class Table(NamedTuple):
    """Rows as they are stored: uint8 means pixels in 0..255, anything else is taken as it is."""

    x: Any  # (N, n), (N, H, W), (N, H, W, C) or (N, C, H, W); on disk or in memory
    layout: Layout
    factors: Tensor | None = None  # (N, F)
    space: FactorSpace | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation: (n,) or (C, H, W)."""
        one = tuple(int(side) for side in self.x.shape[1:])
        if self.layout == "hw":
            return (1, *one)
        return (one[2], one[0], one[1]) if self.layout == "hwc" else one

    def observations(self, index: Array) -> Tensor:  # (B,) -> (B, *shape)
        out = torch.from_numpy(np.asarray(self.x[index], dtype=np.float32))
        if self.x.dtype == np.uint8:
            out.div_(255)
        if self.layout == "hwc":
            return out.movedim(3, 1).contiguous()
        return out.reshape(-1, *self.shape)


class Lookup:
    """Which rows have these factor values? Rows are grouped by their distinct factor rows, once."""

    def __init__(self, factors: Tensor) -> None:
        self.keys, inverse = np.unique(self.bytes(factors), return_inverse=True)
        self.order = np.argsort(inverse, kind="stable")
        self.counts = np.bincount(inverse)
        self.starts = np.cumsum(self.counts) - self.counts

    @staticmethod
    def bytes(factors: Tensor) -> Array:  # (B, F) -> (B,) one opaque key a row
        plain = np.ascontiguousarray(factors.numpy() + 0)  # -0.0 + 0 = 0.0
        return plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()

    def find(self, factors: Tensor, generator: torch.Generator | None) -> Array:  # (B, F) -> (B,)
        """A row with these values: the first one, or any of them when there is a generator."""
        query = self.bytes(factors)
        group = np.searchsorted(self.keys, query).clip(max=len(self.keys) - 1)
        missing = np.flatnonzero(self.keys[group] != query)
        if missing.size:
            values = factors[int(missing[0])].tolist()
            raise BadInput(f"factors={values} occur in no row of this data set, and it cannot render new ones")
        u = np.zeros(len(query)) if generator is None else torch.rand(len(query), generator=generator).numpy()
        return self.order[self.starts[group] + (u * self.counts[group]).astype(int).clip(max=self.counts[group] - 1)]


class TableDataset(Dataset):
    """Rows from a table. A concrete set adds `table`; everything else follows from it."""

    renders = False
    stochastic = False  # a row is always the same, but several rows may share their factors

    @property
    @abstractmethod
    def table(self) -> Table: ...

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self._known()[0])

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.table.shape

    @property
    def space(self) -> FactorSpace | None:  # type: ignore[override]
        return self.table.space

    @property
    def likelihood(self) -> LikelihoodName:  # type: ignore[override]
        return "gaussian" if self.table.layout == "vectors" else "bernoulli"

    def __len__(self) -> int:
        return int(self.table.x.shape[0])

    def _known(self) -> tuple[Tensor, FactorSpace]:
        if self.table.factors is None or self.table.space is None:
            raise BadInput(f"the data set {self.name!r} has no factor table; pass factors=FILE.csv")
        return self.table.factors, self.table.space

    def factors(self, index: Tensor) -> Tensor:
        return self._known()[0][checked_rows(index, len(self))]

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.table.observations(checked_rows(index, len(self)).numpy())

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A row with these factor values; any of them when there are several and a generator."""
        checked = factor_rows(factors, self._known()[1])
        return self.table.observations(self._lookup.find(checked, generator))


# A user's factor table -> factors (N, F) and their space. Kinds are inferred from the values, or given.
#
# Strings and booleans are categorical, whole numbers ordinal, other numbers continuous; `kinds` overrides that.
# A discrete column is stored as the rank of its value among the distinct values that occur, in sorted order.


Kinds = str | Sequence[str] | Mapping[str, str] | None


def factor_table(source: Any, count: int, kinds: Kinds = None, key: str | None = None) -> tuple[Tensor, FactorSpace]:
    """The factors of `count` observations, from a path, a DataFrame, an array, or columns that were read already.

    >>> table, space = factor_table(np.array([[10, 0.5], [20, 0.1], [10, 0.2]]), 3)
    >>> space.kinds, table[:, 0].tolist()
    (('ordinal', 'continuous'), [0.0, 1.0, 0.0])
    """
    where = f"factors={str(source)!r}" if isinstance(source, (str, Path)) else "factors"
    read = source if isinstance(source, Columns) else load_table(source, where, key)
    if len(read) != count:
        raise BadInput(
            f"{where} has {len(read)} rows, but the data has {count} observations; they must agree row by row"
        )
    kind_of = _kinds_by_name(kinds, read.names, where)
    coded = [
        _code(name, column, kind_of.get(name), where) for name, column in zip(read.names, read.columns, strict=True)
    ]
    space = FactorSpace(tuple(factor for factor, _ in coded))
    table = np.stack([values for _, values in coded], axis=1)
    return torch.from_numpy(table.astype(np.int64 if space.discrete else np.float32)), space


def _kinds_by_name(kinds: Kinds, names: list[str], where: str) -> dict[str, str]:
    """`kinds` as the user wrote it ("cyclic,ordinal", "hue=cyclic", a list or a dictionary) -> {name: kind}."""
    if kinds is None:
        return {}
    if isinstance(kinds, str):
        parts = [part.strip() for part in kinds.split(",")]
        kinds = dict(tuple(p.split("=", 1)) for p in parts) if all("=" in p for p in parts) else parts  # type: ignore[misc]
    if not isinstance(kinds, (Mapping, Sequence)):
        raise BadInput(f"kinds={kinds!r} must be text, a list or an object of {', '.join(get_args(FactorKind))}")
    if not isinstance(kinds, Mapping):
        if len(kinds) != len(names):
            raise BadInput(f"kinds has {len(kinds)} entries, but {where} has {len(names)} columns: {', '.join(names)}")
        kinds = dict(zip(names, kinds, strict=True))
    for name, kind in kinds.items():
        if name not in names:
            raise unknown("kinds: factor", name, names)
        if kind not in get_args(FactorKind):
            raise unknown(f"kinds: kind of {name!r}", kind, get_args(FactorKind))
    return dict(kinds)


def _infer(column: Array) -> FactorKind:
    if column.dtype.kind in "biu":
        return "categorical" if column.dtype.kind == "b" else "ordinal"
    if column.dtype.kind == "f":
        return "ordinal" if (column == np.round(column)).all() else "continuous"
    return "categorical"


def _code(name: str, column: Array, kind: Any, where: str) -> tuple[Factor, Array]:
    """One column -> its factor, and its values as numbers."""
    if column.dtype.kind == "f" and not (abs(column) <= np.finfo(np.float32).max).all():
        raise BadInput(f"{where}: factor {name!r} holds NaN or infinity (in float32); every factor must be finite")
    kind = kind or _infer(column)
    if kind == "continuous":
        if column.dtype.kind not in "biuf":
            raise BadInput(f"{where}: factor {name!r} holds words ({column[0]!r}); a continuous one needs numbers")
        return Factor(name, None, "continuous"), column.astype(np.float64)
    values, ranks = np.unique(column, return_inverse=True)
    return Factor(name, len(values), kind), ranks.astype(np.float64)
