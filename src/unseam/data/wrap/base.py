"""A data set made of a data set. Concrete ones change its looks (pixels.py) or leave out rows (row_subsets.py)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unseam.axes import FactorSpace
from unseam.data.base import Dataset, LikelihoodName
from unseam.errors import BadInput

ORDER = ("Dressed", "Grey", "Noise", "Padded", "Scaled", "Without", "Shared", "Correlated")  # innermost first


class PassThrough(Dataset):
    """What a data set says when nothing is said of it: what the one below it, `of`, says."""

    of: Dataset

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.of.shape

    @property
    def space(self) -> FactorSpace | None:  # type: ignore[override]
        return self.of.space

    @property
    def likelihood(self) -> LikelihoodName:  # type: ignore[override]
        return self.of.likelihood

    @property
    def renders(self) -> bool:  # type: ignore[override]
        return self.of.renders

    @property
    def stochastic(self) -> bool:  # type: ignore[override]
        return self.of.stochastic

    def __len__(self) -> int:
        return len(self.of)

    def factors(self, index: Tensor) -> Tensor:
        return self.of.factors(index)

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.of.batch(index, generator)

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.of.observe(factors, generator)


@dataclass(frozen=True)
class Wrapper(PassThrough):
    """The data set `of`, as it is; a concrete wrapper changes one thing."""

    of: Dataset

    def __post_init__(self) -> None:
        if isinstance(self.of, Wrapper) and ORDER.index(type(self.of).__name__) >= ORDER.index(type(self).__name__):
            own, inner = type(self).__name__, type(self.of).__name__
            raise BadInput(f"{own} cannot go round {inner}; wrap in the order {', '.join(ORDER)}")
        if getattr(self, "subset_seed", 0) != getattr(self.of, "subset_seed", getattr(self, "subset_seed", 0)):
            raise BadInput(
                f"subset_seed={self.subset_seed} differs inside and outside; share and correlate have one seed"
            )
        self.check()

    def check(self) -> None:
        """Refuse parameters that do not fit."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.of.name


def layers(data: Dataset) -> list[Dataset]:
    """A data set and what it is made of, the innermost last."""
    return [data, *layers(data.of)] if isinstance(data, Wrapper) else [data]
