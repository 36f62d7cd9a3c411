"""L6, transfer: does the setting (method, strength) that was best here choose well there?

On a source (data, metric) the best setting among the models of one seed s is taken; settings that tie for best share
the choice. On the target its model of another seed t is compared with the model of seed t of every other setting; a tie
counts half. Rates are exact means over all sources, seeds and opponents, not over random draws.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from unseam.axes import Array
from unseam.study.analyse.columns import metric_columns
from unseam.study.analyse.intervals import by_leaving_out

NEEDS = "two settings with the same two seeds on one data set (other data: two data sets; other metric: two metrics)"
# kind -> same metric?, same data?
TRANSFERS = {
    "same metric, same data": (True, True),
    "same metric, other data": (True, False),
    "other metric, same data": (False, True),
    "other metric, other data": (False, False),
}
PUBLISHED = {"same metric, same data": 80.7, "same metric, other data": 59.3, "other metric, other data": 54.9}


def transfer(models: pd.DataFrame, code: str = "mean") -> pd.DataFrame:
    """kind, rate, low, high (over seeds, data sets and metrics as they are), comparisons, seeds."""
    scores = _cube(models, metric_columns(models, code)) if len(models) else np.full((1, 1, 1, 1), np.nan)
    outcome = _rates(scores)  # (D, M, S, D, M, S)
    D, M, S = outcome.shape[:3]
    rows = []
    for kind, (metric, data) in TRANSFERS.items():
        mask = (np.eye(D, dtype=bool) == data)[:, None, :, None] & (np.eye(M, dtype=bool) == metric)[None, :, None, :]
        chosen = outcome.transpose(0, 1, 3, 4, 2, 5)[mask]  # (sources and targets, S, S)
        if np.isfinite(chosen).any():
            low, high = by_leaving_out(lambda others: _mean(chosen[:, others][:, :, others]), S)  # noqa: B023
            rows.append([kind, _mean(chosen), *np.clip([low, high], 0, 1), int(np.isfinite(chosen).sum()), S])
    return pd.DataFrame(rows, columns=["kind", "rate", "low", "high", "comparisons", "seeds"])


def _mean(x: Array) -> float:
    """Of what is there."""
    return float(x[np.isfinite(x)].mean()) if np.isfinite(x).any() else float("nan")


def _cube(models: pd.DataFrame, columns: list[str]) -> Array:  # (D, M, C, S), C settings, S seeds; NaN where missing
    """The scores as one array."""
    places = [models.groupby(by, sort=True).ngroup() for by in ("data", ["method", "strength"], "seed")]
    d, c, s = (place.to_numpy() for place in places)
    shape = [int(place.max()) + 1 if len(place) else 0 for place in (d, c, s)]
    out = np.full((shape[0], len(columns), *shape[1:]), np.nan)
    for m, column in enumerate(columns):
        out[d, m, c, s] = models[column]
    return out


def _rates(scores: Array) -> Array:  # (D, M, C, S) -> (D, M, S, D, M, S)
    """How often what was chosen at (data, metric, seed) wins at (data, metric, another seed); NaN at the same."""
    pick, win = picks(scores), wins(scores)
    known = np.isfinite(win)
    weight = np.einsum("dmcs,enct->dmsent", pick, known.astype(float))
    total = np.einsum("dmcs,enct->dmsent", pick, np.where(known, win, 0.0))
    out = np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 1e-12)
    out[:, :, np.arange(scores.shape[3]), :, :, np.arange(scores.shape[3])] = np.nan
    return out


def picks(scores: Array) -> Array:  # (D, M, C, S) -> the same
    """1 at the best setting, shared by ties; 0 everywhere where nothing was scored.

    >>> picks(np.array([[[[1.0], [2.0], [2.0], [np.nan]]]]))[0, 0, :, 0]
    array([0. , 0.5, 0.5, 0. ])
    """
    filled = np.where(np.isfinite(scores), scores, -np.inf)
    best = (filled == filled.max(axis=2, keepdims=True)) & np.isfinite(scores)
    return best / np.maximum(best.sum(axis=2, keepdims=True), 1)


def wins(scores: Array) -> Array:  # (D, M, C, S) -> the same
    """The share of the other settings that each beats at its seed, ties half: (rank - 1) / (n - 1).

    >>> wins(np.array([[[[1.0], [2.0], [2.0], [np.nan]]]]))[0, 0, :, 0]
    array([0.  , 0.75, 0.75,  nan])
    """
    n = np.isfinite(scores).sum(axis=2, keepdims=True)
    ranks = rankdata(scores, axis=2, nan_policy="omit") if scores.size else scores
    return np.divide(ranks - 1, n - 1, out=np.full(scores.shape, np.nan), where=(n > 1) & np.isfinite(scores))
