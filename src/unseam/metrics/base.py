"""What a metric is and what it returns.

A metric is a pure function of arrays; `Metric` is its row in the registry METRICS, `Score` is its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from unseam.types import Array

if TYPE_CHECKING:
    from unseam.metrics.table import Table

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Score:
    """The answer of one metric: its value, and everything needed to see where the value comes from."""

    name: str
    value: float
    per_factor: Array | None = None  # (F,) NaN where the metric leaves a factor out; `notes` says which and why
    per_latent: Array | None = None  # (K,)
    matrix: Array | None = None  # (F, K) what the value was computed from, e.g. mutual information in nats
    settings: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)  # further numbers, e.g. the accuracy on the training half
    notes: tuple[str, ...] = ()  # warnings in plain words
    ci: tuple[float, float] | None = None  # bootstrap interval, on request
    chance: float | None = None  # the same metric on permuted codes, on request

    def to_json(self) -> dict[str, Any]:
        """Every field that holds something, ready for `cli.common.emit`."""
        row = {key: getattr(self, key) for key in self.__dataclass_fields__}
        return {k: v for k, v in row.items() if k == "value" or not (v is None or k == "name" or len_of(v) == 0)}

    def having(self, **changes: Any) -> Score:
        """The same score with some fields replaced."""
        return replace(self, **changes)


def len_of(value: Any) -> int | None:
    return len(value) if isinstance(value, (tuple, dict, Mapping)) else None


@dataclass(frozen=True)
class Metric:
    """One row of METRICS: what a metric is called, what it asks, how to read it, who proposed it."""

    name: str
    compute: Callable[[Table], Score]  # with the default settings, which are those of the reference
    question: str
    paper: str
    range: tuple[float, float] = (0.0, 1.0)
    direction: Direction = "higher"
    ceiling: str = "1"  # what a perfect code scores
    supervised: bool = True  # needs factors
    cheap: bool = True  # computes in well under a second at 10,000 rows; decides the default number of bootstraps
