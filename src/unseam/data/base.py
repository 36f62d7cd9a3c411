"""The contract of a data set: an index or a row of factors -> an observation, vectorised, rendered on the fly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from unseam.axes import FactorSpace
from unseam.data.names import DataScale
from unseam.errors import BadInput, refuse_annotations

LikelihoodName = Literal["bernoulli", "gaussian"]


class CommonOptions:
    """Options that every data set takes beside its own fields; `load_data` wraps the data (data/wrap explains each)."""

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
    scale: DataScale


class Dataset(CommonOptions, ABC):
    """N observations, addressed by index, of one shape: (n,) for vectors, (C, H, W) with values in [0, 1] for images.

    A concrete set is a frozen dataclass whose fields are its whole configuration: same fields, same bytes.
    Nothing needs the whole set in memory; `batch` renders what it is asked for. `space` is None for data with
    unknown factors; then `factors` and `observe` are not called.
    """

    name: ClassVar[str]
    shape: tuple[int, ...]
    space: FactorSpace | None
    likelihood: LikelihoodName  # what the data is naturally modelled with
    renders: bool = True  # False when `observe` can only find given rows
    stochastic: bool  # True when two observations of one row differ (noise, random colours): pass `batch` a generator

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ != __name__:
            refuse_annotations(cls, ("name", "shape", "space", "likelihood", "renders", "stochastic"))

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


# What every data set checks: row numbers, factor values, parameters. Each error is one line, with a remedy.


def at_least(name: str, value: float, low: float) -> None:
    """Refuse a parameter below its limit.

    >>> at_least("size", 0, 1)
    Traceback (most recent call last):
    unseam.errors.BadInput: size=0 must be at least 1
    """
    if not low <= value < float("inf"):
        raise BadInput(f"{name}={value} must be at least {low}")


def within(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside [low, high].

    >>> within("shapes", 4, 1, 3)
    Traceback (most recent call last):
    unseam.errors.BadInput: shapes=4 must be between 1 and 3
    """
    if not low <= value <= high:
        raise BadInput(f"{name}={value} must be between {low} and {high}")


def checked_rows(index: Tensor, count: int) -> Tensor:  # (B,) -> (B,)
    """Row numbers, checked: integers in 0..count-1.

    >>> checked_rows(torch.tensor([0, 9]), 10)
    tensor([0, 9])
    >>> checked_rows(torch.tensor([10]), 10)
    Traceback (most recent call last):
    unseam.errors.BadInput: index holds 10, but the data set has the rows 0..9
    """
    index = torch.as_tensor(index)
    if index.dim() != 1 or index.is_floating_point() or index.dtype is torch.bool:
        raise BadInput(f"index has dtype {index.dtype} and shape {tuple(index.shape)}; it must be integers (B,)")
    if index.numel():
        low, high = (int(end) for end in torch.aminmax(index))
        if low < 0 or high >= count:
            raise BadInput(f"index holds {low if low < 0 else high}, but the data set has the rows 0..{count - 1}")
    return index.long()


def factor_rows(factors: Tensor, space: FactorSpace) -> Tensor:  # (B, F) -> (B, F)
    """Factor values, checked against their space; integers if every factor is discrete.

    >>> from unseam.axes import Factor
    >>> factor_rows(torch.tensor([[3]]), FactorSpace((Factor("shape", 3),)))
    Traceback (most recent call last):
    unseam.errors.BadInput: factor 'shape' holds 3, but its values are 0..2
    """
    factors = torch.as_tensor(factors)
    if factors.dim() != 2 or factors.shape[1] != len(space):
        names = ", ".join(space.names)
        raise BadInput(f"factors has shape {tuple(factors.shape)}; it must be (B, {len(space)}): {names}")
    if not torch.isfinite(factors).all():
        raise BadInput("factors holds NaN or infinity; every factor value must be finite")
    if factors.shape[0]:
        _check_ranges(factors, space)
    return factors.long() if space.discrete else factors.float()


def _check_ranges(factors: Tensor, space: FactorSpace) -> None:
    lows, highs = torch.aminmax(factors, dim=0)
    whole = (factors == factors.round()).all(0)
    for factor, low, high, is_whole in zip(space, lows.tolist(), highs.tolist(), whole.tolist(), strict=True):
        if factor.size is None:
            continue
        bad = low if low < 0 else high
        if low < 0 or high >= factor.size:
            raise BadInput(f"factor {factor.name!r} holds {bad:g}, but its values are 0..{factor.size - 1}")
        if not is_whole:
            raise BadInput(f"factor {factor.name!r} holds a fraction, but its values are whole numbers")


def unit_range(data: Dataset, block: int = 4096) -> None:
    """Refuse data that a Bernoulli likelihood cannot model: every value must lie in [0, 1].

    >>> from unseam.data import load_data
    >>> unit_range(load_data("ring"))
    Traceback (most recent call last):
    unseam.errors.BadInput: likelihood='bernoulli' needs values in [0, 1], but 'ring' has -13 in rows 0..127; use ...
    """
    if data.likelihood == "bernoulli":
        return
    for start in range(0, len(data), block):
        end = min(start + block, len(data))
        low, high = (float(v) for v in torch.aminmax(data.batch(torch.arange(start, end))))
        if low < 0 or high > 1:
            raise BadInput(
                f"likelihood='bernoulli' needs values in [0, 1], but {data.name!r} has {low if low < 0 else high:g} "
                f"in rows {start}..{end - 1}; use likelihood='gaussian' or rescale the data"
            )


def whole_numbers(data: Dataset, likelihood: str, block: int = 4096) -> None:
    """Refuse data that a likelihood of counts cannot model: every value must be a whole number from 0.

    >>> from unseam.data import load_data
    >>> whole_numbers(load_data("ring"), "poisson")
    Traceback (most recent call last):
    unseam.errors.BadInput: likelihood='poisson' needs whole numbers from 0, but 'ring' has 12.7716 in rows ...
    """
    for start in range(0, len(data), block):
        x = data.batch(torch.arange(start, min(start + block, len(data))))
        bad = x[(x < 0) | (x != x.round())]
        if len(bad):
            raise BadInput(
                f"likelihood={likelihood!r} needs whole numbers from 0, but {data.name!r} has {float(bad[0]):g} in "
                f"rows {start}..{start + len(x) - 1}; use likelihood='gaussian'"
            )


# Data sets that are the full grid of their discrete factors: row number <-> factor values is arithmetic.


class GridDataset(Dataset):
    """A set of all combinations, the last factor changing fastest. A concrete set adds `observe`."""

    space: FactorSpace

    def __len__(self) -> int:
        return self.space.count

    def factors(self, index: Tensor) -> Tensor:  # (B,) -> (B, F)
        rest = checked_rows(index, len(self))
        columns = []
        for factor in reversed(self.space.factors):
            columns.append(rest % (factor.size or 1))
            rest = rest // (factor.size or 1)
        return torch.stack(columns[::-1], dim=1)

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.observe(self.factors(index), generator)


# Data sets of N rows of continuous factors drawn once from a seed: x = f(w), w ~ p(w).


MAX_ROWS = 10**8  # draws held in memory, at most


class SampledDataset(Dataset):
    """N draws of the factors, held in memory, and x = f(w) for all of them.

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
        return self._drawn[checked_rows(index, self.size)]

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self._observed[checked_rows(index, self.size)]

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.function(factor_rows(factors, self.space).double()).float()


ORDER = ("Dressed", "Grey", "Noise", "Padded", "Scaled", "Without", "Shared", "Correlated")  # innermost first


class PassThrough(Dataset):
    """A data set that passes everything through to the one below it, `of`."""

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
    """The data set `of`, unchanged; a concrete wrapper changes one thing."""

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
