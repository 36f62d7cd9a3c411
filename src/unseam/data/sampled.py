"""Data sets of N rows of continuous factors drawn once from a seed: x = f(w), w ~ p(w)."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.data.checks import factor_rows, rows
from unseam.errors import BadInput
from unseam.types import FactorSpace

ROWS = 10**8  # as many draws are kept, at most


class SampledDataset(Dataset):
    """N draws of the factors, kept (they are few numbers), and x = f(w) for all of them.

    A concrete set adds `draw` and `function`; f is computed in double precision and rounded to float32.
    """

    space: FactorSpace
    size: int
    stochastic = False

    @abstractmethod
    def draw(self) -> Tensor:
        """The factors (N, F) of all rows."""

    @abstractmethod
    def function(self, factors: Tensor) -> Tensor:
        """f: (B, F) -> (B, n), both float64."""

    @cached_property
    def _drawn(self) -> Tensor:
        return self.draw().float()

    @cached_property
    def _observed(self) -> Tensor:
        x = self.observe(self._drawn)
        if not x.isfinite().all():
            raise BadInput(f"data={self.name!r} with these parameters leaves the finite numbers; choose smaller ones")
        return x

    def __len__(self) -> int:
        return self.size

    def factors(self, index: Tensor) -> Tensor:
        return self._drawn[rows(index, self.size)]

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self._observed[rows(index, self.size)]

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.function(factor_rows(factors, self.space).double()).float()
