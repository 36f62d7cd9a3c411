"""Many metrics of one representation, sharing what is expensive (mutual information, boosted trees)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from unseam.errors import BadInput, lookup
from unseam.metrics.base import Metric, Score
from unseam.metrics.inputs import Table, prepare
from unseam.metrics.registry import METRICS
from unseam.types import FactorSpace


class Scores(dict[str, Score]):
    """name -> Score, plus what was refused (name -> reason) and what was decided about the input (notes)."""

    def __init__(self, scores: dict[str, Score], refused: dict[str, str], table: Table) -> None:
        super().__init__(scores)
        self.refused = refused
        self.table = table
        self.notes = table.notes


def score(
    codes: Any,  # (N, K)
    factors: Any,  # (N, F)
    space: FactorSpace | None = None,
    metrics: str | Sequence[str] = "all",
    ci: bool | int = False,
    chance: bool | int = False,
    seed: int = 0,
    test_codes: Any = None,
    test_factors: Any = None,
    workers: int | None = None,
    **about: Any,
) -> Scores:
    """Score codes against factors by some or all metrics.

    `about` may hold `names`, `kinds`, `variances` (posterior variances of the codes) and `bin_continuous`.
    With `metrics="all"` a metric that cannot use the input is left out and its reason kept in `.refused`.

    >>> import numpy as np
    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> {name: round(s.value, 6) for name, s in score(v.astype(float), v, metrics="mig,mig-sup").items()}
    {'mig': 1.0, 'mig-sup': 1.0}
    """
    table = prepare(
        codes,
        factors,
        space,
        test_codes=test_codes,
        test_factors=test_factors,
        seed=seed,
        workers=workers,
        **about,
    )
    for note in table.notes:
        warnings.warn(note, stacklevel=2)
    chosen, strict = choose(metrics)
    scores, refused = {}, {}
    for metric in chosen:
        try:
            scores[metric.name] = metric.compute(table)
        except BadInput as reason:
            if strict:
                raise
            refused[metric.name] = str(reason)
    return Scores(scores, refused, table)


def choose(metrics: str | Sequence[str]) -> tuple[list[Metric], bool]:
    """The rows of METRICS that were asked for, and whether by name (then a refusal is an error)."""
    names = metrics.split(",") if isinstance(metrics, str) else list(metrics)
    if [n.strip() for n in names] == ["all"]:
        return list(METRICS.values()), False
    return [lookup(METRICS, n.strip(), "metric") for n in names], True
