"""Data sets that are the full grid of their discrete factors: row number <-> factor values is arithmetic."""

from __future__ import annotations

import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.data.checks import rows
from unseam.types import FactorSpace


class GridDataset(Dataset):
    """A set of all combinations, the last factor changing fastest. A concrete set adds `observe`."""

    space: FactorSpace

    def __len__(self) -> int:
        return self.space.count

    def factors(self, index: Tensor) -> Tensor:  # (B,) -> (B, F)
        rest = rows(index, len(self))
        columns = []
        for factor in reversed(self.space.factors):
            columns.append(rest % (factor.size or 1))
            rest = rest // (factor.size or 1)
        return torch.stack(columns[::-1], dim=1)

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.observe(self.factors(index), generator)
