"""L4, does the method decide: how far the scores of methods, and of strengths of one method, overlap.

theta = P(A beats B) = P(a > b) + P(a = b) / 2 for random models a of A and b of B.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import rankdata, t

from unseam.axes import Array
from unseam.rng import numpy_generator
from unseam.study.analyse.columns import metric_columns
from unseam.study.analyse.intervals import TAIL_SHARE

NEEDS = "two methods (or two strengths of one) with two finished models each, on one data set"
_SHUFFLES = 20  # of the scores, behind what chance gives
_COLUMNS = ["p", "low", "high", "n_a", "n_b"]


class Beats(NamedTuple):
    p: float
    low: float
    high: float
    n_a: int
    n_b: int


def beats(a: ArrayLike, b: ArrayLike) -> Beats:  # (n_a,), (n_b,)
    """P(A beats B), ties half, with Brunner & Munzel's (2000) interval on the logit.

    Where every pair ends alike it is that of k = min(n_a, n_b) separate pairs: what happened k times of k has a
    probability q with q^k >= 2.5 %.

    >>> beats([3, 4, 5], [1, 3, 3, 4]).p
    0.79...
    """
    x, y = np.asarray(a, float), np.asarray(b, float)
    wins_x, wins_y = _shares(x, y), _shares(y, x)
    p, n_x, n_y = float(wins_x.mean()), len(x), len(y)
    v_x, v_y = wins_x.var(ddof=1) / n_x, wins_y.var(ddof=1) / n_y
    if not v_x + v_y:
        q = float(TAIL_SHARE ** (1 / min(n_x, n_y)))
        return Beats(p, p * q, 1 - (1 - p) * q, n_x, n_y)
    freedom = (v_x + v_y) ** 2 / (v_x**2 / (n_x - 1) + v_y**2 / (n_y - 1))
    half = t.ppf(1 - TAIL_SHARE, freedom) * np.sqrt(v_x + v_y) / (p * (1 - p))
    return Beats(p, float(expit(logit(p) - half)), float(expit(logit(p) + half)), n_x, n_y)


def _shares(x: Array, y: Array) -> Array:  # (n_x,), (n_y,) -> (n_x,)
    """How much of y each of x beats: (rank among both - rank among x) / n_y."""
    return (rankdata(np.concatenate([x, y]))[: len(x)] - rankdata(x)) / len(y)


def methods(models: pd.DataFrame, code: str = "mean") -> pd.DataFrame:
    """data, metric, a, b, p, low, high, n_a, n_b for every two methods."""
    rows = [
        {"data": data, "metric": metric, "a": a, "b": b, **beats(scores[a], scores[b])._asdict()}
        for (data, metric), scores in _scores(models, metric_columns(models, code), "method")
        for a, b in combinations(scores, 2)
    ]
    return pd.DataFrame(rows, columns=["data", "metric", "a", "b", *_COLUMNS])


def strength_overlap(models: pd.DataFrame, code: str = "mean") -> pd.DataFrame:
    """A method's worst strength against its best (by the mean of the same models): how often the bad one wins.

    Worst and best are chosen by the scores that are then compared, so that noise alone gives less than a half: `null`
    is the mean of the same number with the scores shuffled over the strengths.
    """
    rows, rng = [], numpy_generator(0, "strengths")
    for method, group in models.groupby("method", sort=False):
        for (data, metric), scores in _scores(group, metric_columns(models, code), "strength"):
            worst, best = _ends(scores)
            found = beats(scores[worst], scores[best])._asdict()
            null = float(np.mean([_worst_beats_best(_shuffled(scores, rng)) for _ in range(_SHUFFLES)]))
            met = bool(scores[worst].max() > scores[best].min())
            rows.append({"data": data, "metric": metric, "method": method, "worst": worst, "best": best, **found,
                         "null": null, "overlap": met})  # fmt: skip
    return pd.DataFrame(rows, columns=["data", "metric", "method", "worst", "best", *_COLUMNS, "null", "overlap"])


def _ends(scores: dict[Any, Array]) -> tuple[Any, Any]:
    """The groups of the lowest and the highest mean."""
    return min(scores, key=lambda s: scores[s].mean()), max(scores, key=lambda s: scores[s].mean())


def _worst_beats_best(scores: dict[Any, Array]) -> float:
    worst, best = _ends(scores)
    return float(_shares(scores[worst], scores[best]).mean())


def _shuffled(scores: dict[Any, Array], rng: np.random.Generator) -> dict[Any, Array]:
    """The same scores in groups of the same sizes, at random."""
    every = rng.permutation(np.concatenate(list(scores.values())))
    ends = np.cumsum([len(values) for values in scores.values()])[:-1]
    return dict(zip(scores, np.split(every, ends), strict=True))


def _scores(models: pd.DataFrame, columns: list[str], by: str) -> list[tuple[tuple[Any, str], dict[Any, Array]]]:
    """(data, metric) -> the scores of each group, where two groups have two models each."""
    found = []
    for data, group in models.groupby("data", sort=True):
        for metric in columns:
            parts = {name: part[metric].dropna().to_numpy() for name, part in group.groupby(by, sort=False)}
            enough = {name: values for name, values in parts.items() if len(values) > 1}
            if len(enough) > 1:
                found.append(((data, metric), enough))
    return found


def mutual(p: pd.Series[float]) -> pd.Series[float]:
    """How far two groups overlap: 1 when either is as likely to win, 0 when one always does."""
    return 1 - 2 * (p - 0.5).abs()
