"""The checked input that every metric reads: rows, held-out rows, the factors' space, and a memo for shared work."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from unseam.axes import Array, FactorSpace
from unseam.errors import BadInput
from unseam.rng import numpy_generator

if TYPE_CHECKING:
    from unseam.metrics.shared.interventions import Interventions

_P = ParamSpec("_P")
_T = TypeVar("_T")
MANY_CLASSES = 500  # classifiers refuse more


@dataclass(frozen=True)
class Observations:
    """Some observations: what the code says and what the factors were."""

    codes: Array  # (N, K)
    values: Array  # (N, F) factor values as numbers
    labels: Array  # (N, F) class labels 0..C-1; -1 for a continuous factor

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: Array) -> Observations:
        return Observations(self.codes[index], self.values[index], self.labels[index])


@dataclass(frozen=True)
class Inputs:
    """Checked input: the rows, the held-out rows if any, the space, and notes."""

    rows: Observations
    space: FactorSpace
    classes: tuple[int, ...]  # per factor: how many distinct values occur (train and test); 0 for a continuous factor
    held_out: Observations | None = None
    variances: Array | None = None  # (N, K) posterior variances of the codes, when a model gave them
    prune: float = 0.0  # a latent whose standard deviation is below this has collapsed, for metrics that ignore scale
    passive: tuple[int, ...] = ()  # latents that do not vote: they were made constant
    suspects: tuple[int, ...] = ()  # latents that look unused and vote all the same
    group: Array | None = None  # (K,) the latent that each column belongs to, when latents are vectors
    source: Interventions | None = None  # new observations, when a sampler was given
    seed: int = 0
    workers: int | None = None
    notes: tuple[str, ...] = ()
    splits: dict[float, tuple[Observations, Observations]] = field(default_factory=dict, compare=False, repr=False)
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    for_factors: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)  # what no code changes

    def halves(self, share: float = 2 / 3) -> tuple[Observations, Observations]:
        """(train, test): the held-out rows when given, else a seeded random split of the rows."""
        if self.held_out is not None:
            return self.rows, self.held_out
        if share not in self.splits:
            self.splits[share] = _split(self.rows, share, self.seed)
        return self.splits[share]

    def all_rows(self) -> Observations:
        """The rows and the held-out rows together."""
        if self.held_out is None:
            return self.rows
        pairs = ((getattr(self.rows, k), getattr(self.held_out, k)) for k in ("codes", "values", "labels"))
        return Observations(*(np.concatenate(pair) for pair in pairs))

    def by_latent(self, matrix: Array) -> Array:  # (F, K) -> (F, latents)
        """Importances of columns, summed over those of a latent that is a vector."""
        if self.group is None:
            return matrix
        return np.stack([matrix[:, self.group == g].sum(axis=1) for g in range(int(self.group.max()) + 1)], axis=1)

    @property
    def continuous(self) -> list[str]:
        return [f.name for f in self.space if not f.discrete]

    def __len__(self) -> int:
        return len(self.rows)


def computed_once(function: Callable[Concatenate[Inputs, _P], _T]) -> Callable[Concatenate[Inputs, _P], _T]:
    """Above a function of Inputs: what several metrics need is computed once for each input and settings."""
    signature = inspect.signature(function)

    @wraps(function)
    def once(inputs: Inputs, *args: _P.args, **settings: _P.kwargs) -> _T:
        bound = signature.bind(inputs, *args, **settings)
        bound.apply_defaults()
        key = (function, *bound.args[1:])
        if key not in inputs.memo:
            inputs.memo[key] = function(inputs, *args, **settings)
        return inputs.memo[key]

    return once


def _split(rows: Observations, share: float, seed: int) -> tuple[Observations, Observations]:
    order = numpy_generator(seed, "split").permutation(len(rows))
    cut = min(max(round(share * len(rows)), 1), len(rows) - 1)
    return rows.take(order[:cut]), rows.take(order[cut:])


def require_classes(inputs: Inputs, metric: str, why: str) -> None:
    """Refuse continuous factors, for a metric that is defined on classes only."""
    if inputs.continuous:
        raise BadInput(
            f"{metric} cannot use continuous factor(s) {', '.join(inputs.continuous)}: {why}; "
            "leave them out or bin them on purpose with bin_continuous=20"
        )


def require_few_classes(inputs: Inputs, metric: str) -> None:
    """Refuse more classes than a classifier can be fitted to in reasonable time."""
    many = [f"{f.name} ({c})" for f, c in zip(inputs.space, inputs.classes, strict=True) if c > MANY_CLASSES]
    if many:
        raise BadInput(f"{metric} fits classifiers of at most {MANY_CLASSES} classes, got {', '.join(many)}")
