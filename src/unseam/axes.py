"""What flows through the tree. One meaning per axis letter, everywhere:

S members of a cohort (seed x hyperparameters), B batch, N data set, K latents (d in the papers),
F factors, C H W image channels, height and width, n observed dimensions (C*H*W for images).

This module imports no torch, so that metrics on plain arrays start fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from unseam.errors import BadInput, unknown

if TYPE_CHECKING:
    from torch import Tensor

    from unseam.models.posterior import Posterior

FactorKind = Literal["categorical", "ordinal", "cyclic", "continuous"]
FACTOR_KINDS: tuple[FactorKind, ...] = get_args(FactorKind)
Array = NDArray[Any]


@dataclass(frozen=True)
class Factor:
    """One ground-truth factor of variation.

    Parameters
    ----------
    name : str
        What the factor is called.
    size : int or None
        How many values it takes: the integers 0..size-1. None exactly when `kind` is "continuous".
    kind : {"ordinal", "categorical", "cyclic", "continuous"}, default="ordinal"
        Ordinal values are ordered, cyclic ones wrap round (an orientation), categorical ones are just names.

    Examples
    --------
    >>> Factor("orientation", 40, "cyclic").discrete
    True
    """

    name: str
    size: int | None
    kind: FactorKind = "ordinal"

    def __post_init__(self) -> None:
        if self.kind not in FACTOR_KINDS:
            raise unknown(f"kind of factor {self.name!r}", self.kind, FACTOR_KINDS)
        if (self.size is None) != (self.kind == "continuous"):
            raise BadInput(
                f"factor {self.name!r}: size={self.size} with kind={self.kind!r}; a continuous factor has no size, "
                "every other kind needs one"
            )
        if self.size is not None and self.size < 1:
            raise BadInput(f"factor {self.name!r}: size={self.size} must be at least 1")

    @property
    def discrete(self) -> bool:
        return self.size is not None


@dataclass(frozen=True)
class FactorSpace:
    """The factors of a data set, in the order of the columns of a factor table (N, F).

    Parameters
    ----------
    factors : tuple of Factor
        Their names must differ.

    Examples
    --------
    >>> space = FactorSpace((Factor("shape", 3, "categorical"), Factor("x", 4)))
    >>> space.names, space.count
    (('shape', 'x'), 12)
    >>> space.index_of(np.array([[0, 0], [1, 1], [2, 3]]))
    array([ 0,  5, 11])
    """

    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.factors):
            raise BadInput(f"factor names must differ, got {', '.join(self.names)}")

    def __len__(self) -> int:
        return len(self.factors)

    def __iter__(self) -> Any:
        return iter(self.factors)

    def __getitem__(self, i: int) -> Factor:
        return self.factors[i]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.factors)

    @property
    def sizes(self) -> tuple[int | None, ...]:
        return tuple(f.size for f in self.factors)

    @property
    def kinds(self) -> tuple[FactorKind, ...]:
        return tuple(f.kind for f in self.factors)

    @property
    def discrete(self) -> bool:
        """True when every factor takes finitely many values, so that the grid can be enumerated."""
        return all(f.discrete for f in self.factors)

    @property
    def count(self) -> int:
        """How many combinations the full grid has (discrete spaces only)."""
        if not self.discrete:
            raise BadInput("a space with a continuous factor has no finite grid")
        return int(np.prod([f.size or 0 for f in self.factors], dtype=np.int64)) if self.factors else 0

    def index_of(self, factors: Array) -> Array:  # (B, F) -> (B,)
        """Factor values -> grid position; the last factor changes fastest."""
        sizes = tuple(int(f.size or 0) for f in self.factors)
        return np.ravel_multi_index(tuple(np.asarray(factors).T), sizes)

    def to_json(self) -> list[dict[str, Any]]:
        """The factors as plain JSON."""

        return [{"name": f.name, "size": f.size, "kind": f.kind} for f in self.factors]

    @staticmethod
    def from_json(rows: Sequence[Mapping[str, Any]]) -> FactorSpace:
        """The factors that `to_json` wrote."""

        return FactorSpace(tuple(Factor(r["name"], r["size"], r["kind"]) for r in rows))


class Pass(NamedTuple):
    """One forward pass of one member: x (B, ...), q(z|x), z ~ q (B, K), theta = d(z) (B, ...)."""

    x: Tensor
    posterior: Posterior
    z: Tensor
    theta: Tensor


@dataclass(frozen=True)
class Terms:
    """The named parts of an objective, in nats, each per sample (B,) or for the whole batch ().

    loss = sum_k weight_k * mean(value_k); a term without a weight has weight 1, weight 0 only logs it.
    """

    values: Mapping[str, Tensor]
    weights: Mapping[str, Any] = field(default_factory=dict)

    def loss(self) -> Tensor:  # ()
        parts = [self.weights.get(name, 1.0) * value.mean() for name, value in self.values.items()]
        return sum(parts[1:], start=parts[0])


@dataclass(frozen=True)
class Representation:
    """What a model says of a data set: codes (N, K) = E q(z|x), their posterior variances, and the truth if known."""

    codes: Array  # (N, K) posterior means
    variances: Array | None = None  # (N, K) posterior variances (diagonal), None for arrays from outside
    factors: Array | None = None  # (N, F)
    space: FactorSpace | None = None
    index: Array | None = None  # (N,) rows of the data set
