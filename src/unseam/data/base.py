"""The contract of a data set: an index or a row of factors -> an observation, vectorised, rendered on the fly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unseam.types import FactorSpace

LikelihoodName = Literal["bernoulli", "gaussian"]
Scale = Literal["none", "standard", "unit"]


class Asked:
    """What any data set can be asked for beside its own fields; `load_data` wraps it (wrappers.py explains each)."""

    colour: bool
    noisy: bool
    background: str | None
    grey: float
    noise: float
    noise_fixed: bool
    pad: int
    without: str | None
    share: float | None
    correlate: str | None
    subset_seed: int
    scale: Scale


class Dataset(Asked, ABC):
    """N observations, addressed by index, of one shape: (n,) for vectors, (C, H, W) with values in [0, 1] for images.

    A concrete set is a frozen dataclass whose fields are its whole configuration: same fields, same bytes.
    Nothing needs the whole set in memory; `batch` renders what it is asked for. `space` is None for data whose
    factors nobody knows; then `factors` and `observe` are not called.
    """

    name: ClassVar[str]
    shape: tuple[int, ...]
    space: FactorSpace | None
    likelihood: LikelihoodName  # what the data is naturally modelled with
    renders: bool = True  # False when `observe` can only find given rows
    stochastic: bool  # True when two observations of one row differ (noise, random colours): pass `batch` a generator

    @abstractmethod
    def __len__(self) -> int:
        """N, how many observations can be addressed."""

    @abstractmethod
    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Observations (B, *shape), float32, at rows index (B,). `generator` is used by stochastic sets only."""

    @abstractmethod
    def factors(self, index: Tensor) -> Tensor:
        """The true factors (B, F) at rows index (B,): int64 if every factor is discrete, else float32."""

    @abstractmethod
    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Observations (B, *shape) of any factor values (B, F), whether or not a row has them."""
