"""How sure is a score? An interval, its bias and the chance level, for any metrics at once.

Half of the rows are drawn without replacement, again and again. The variance of a statistic over half-samples, given
the data, is its sampling variance on all rows (Politis, Romano & Wolf 1999, section 2.2), and no row occurs twice,
which would fool nearest neighbours and inflate mutual information. The interval is value +- 1.96 standard deviations,
cut to the metric's range: it is about the value at this number of rows.

Bias: if E[value at N rows] = limit + c/N, half the rows have twice the bias, so mean over half-samples - value
estimates c/N, by which the value lies above its limit. Only for metrics for which this was measured (`halving`).

Chance level: the same metric after the rows of the codes are shuffled, so that nothing is left to find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, Observations
from unseam.metrics.registry import Metric
from unseam.progress import bar
from unseam.rng import numpy_generator

_ROUNDS = {True: 100, False: 20}  # cheap metrics, others
_QUANTILE = 1.96  # of the normal distribution: 95 % lie within
_SHUFFLES = {True: 10, False: 1}


def add_intervals(
    scores: dict[str, Score],
    metrics: Sequence[Metric],
    inputs: Inputs,
    rounds: int | None,
    ci: bool = True,
    bias: bool = False,
) -> None:
    """Fill in `ci` and `bias` of every score."""
    found = repeat(metrics, inputs, half_sample, rounds, _ROUNDS, "bootstrap")
    for metric in metrics:
        score, values = scores[metric.name], np.array(found[metric.name])
        if len(values) > 1:
            about = _interval(score.value, float(values.std(ddof=1)), metric.range) if ci else None
            above = float(values.mean() - score.value) if bias and metric.halving else None
            scores[metric.name] = annotated(score, {"ci_rounds": len(values)}).having(ci=about, bias=above)


def _interval(value: float, deviation: float, limits: tuple[float, float]) -> tuple[float, float]:
    """95 % of a normal distribution, cut to the metric's range.

    >>> _interval(0.5, 0.1, (0.0, 0.6))
    (0.304, 0.6)
    """
    width = _QUANTILE * deviation
    return float(max(value - width, limits[0])), float(min(value + width, limits[1]))


def add_chance(scores: dict[str, Score], metrics: Sequence[Metric], inputs: Inputs, rounds: int | None) -> None:
    """Fill in `chance` of every supervised score."""
    supervised = [m for m in metrics if m.supervised]
    found = repeat(supervised, inputs, _shuffled, rounds, _SHUFFLES, "chance")
    for name, values in found.items():
        if values:
            scores[name] = annotated(scores[name], {"chance_rounds": len(values)}).having(chance=float(np.mean(values)))


def annotated(score: Score, more: dict[str, int]) -> Score:
    return score.having(settings={**score.settings, **more})


def repeat(
    metrics: Sequence[Metric],
    inputs: Inputs,
    vary: Callable[[Inputs, np.random.Generator], Inputs],
    rounds: int | None,
    default: dict[bool, int],
    what: str,
) -> dict[str, list[float]]:
    """Values of the metrics on varied tables; the metrics of one round share what they share."""
    times = {m.name: rounds or default[m.cheap] for m in metrics}
    found: dict[str, list[float]] = {m.name: [] for m in metrics}
    total = max(times.values(), default=0)
    with bar(what, total) as advance:
        for r in range(total):
            varied = vary(inputs, numpy_generator(inputs.seed, what, r))
            for m in metrics:
                if r < times[m.name]:
                    found[m.name] += _attempt(m, varied)
            advance()
    return found


def _attempt(metric: Metric, inputs: Inputs) -> list[float]:
    """The value, or nothing when a part of the rows is too few for this metric."""
    try:
        value = metric.compute(inputs).value
    except BadInput:
        return []
    return [value] if np.isfinite(value) else []


def half_sample(inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """Half of the rows, and half of each split that the metrics have used."""

    def half(rows: Observations) -> Observations:
        return rows.take(half_of(len(rows), rng))

    chosen = half_of(len(inputs), rng)
    splits = {share: (half(a), half(b)) for share, (a, b) in inputs.splits.items()}
    return replace(
        inputs,
        rows=inputs.rows.take(chosen),
        held_out=None if inputs.held_out is None else half(inputs.held_out),
        variances=None if inputs.variances is None else inputs.variances[chosen],
        splits=splits,
        memo={},
        for_factors={},
    )


def half_of(n: int, rng: np.random.Generator) -> Array:
    return np.sort(rng.permutation(n)[: max(n // 2, 2)])


def _shuffled(inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """The same rows with the codes in another order."""

    def mix(rows: Observations) -> Observations:
        return replace(rows, codes=rows.codes[rng.permutation(len(rows))])

    order = rng.permutation(len(inputs))
    return replace(
        inputs,
        rows=replace(inputs.rows, codes=inputs.rows.codes[order]),
        held_out=None if inputs.held_out is None else mix(inputs.held_out),
        variances=None if inputs.variances is None else inputs.variances[order],
        splits={},
        memo={},
    )
