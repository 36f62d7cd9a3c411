"""Data sets made of a data set: other pixels (pixels.py), other rows (row_subsets.py), or other factors (here).

Each is a frozen dataclass like any other set; `load_data` wraps in the order of WRAPPERS.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from unseam.axes import FactorSpace
from unseam.data.base import ORDER, Wrapper, checked_rows
from unseam.data.table import factor_table
from unseam.data.wrap.pixels import DRAWN, Dressed, Grey, Noise, Padded, Scaled, fold
from unseam.data.wrap.row_subsets import Correlated, Shared, Subset, Without, whole_data

__all__ = [
    "DRAWN", "ORDER", "WRAPPERS", "Correlated", "Dressed", "Grey", "Labelled", "Noise", "Padded", "Scaled", "Shared",
    "Subset", "Without", "Wrapper", "fold", "whole_data",
]  # fmt: skip


@dataclass(frozen=True)
class Labelled(Wrapper):
    """The same observations with factors from a table: one row per observation."""

    table: Any = None  # path, DataFrame or array

    def __post_init__(self) -> None:
        self._known  # noqa: B018  a table that does not fit is refused now

    @cached_property
    def _known(self) -> tuple[Tensor, FactorSpace]:
        return factor_table(self.table, len(self.of))

    @property
    def space(self) -> FactorSpace | None:  # type: ignore[override]
        return self._known[1]

    def factors(self, index: Tensor) -> Tensor:
        return self._known[0][checked_rows(index, len(self))]


WRAPPERS: tuple[type[Wrapper], ...] = (Dressed, Grey, Noise, Padded, Scaled, Without, Shared, Correlated)  # as ORDER
