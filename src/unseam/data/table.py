"""Data sets that are given rows (arrays, image files), with a factor table or without."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseam.data.base import Dataset, LikelihoodName
from unseam.data.checks import factor_rows, rows
from unseam.errors import BadInput
from unseam.types import Array, FactorSpace

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
        return self._known()[0][rows(index, len(self))]

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.table.observations(rows(index, len(self)).numpy())

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A row with these factor values; any of them when there are several and a generator."""
        checked = factor_rows(factors, self._known()[1])
        return self.table.observations(self._lookup.find(checked, generator))
