"""L6, choosing without labels: does a score that needs none choose a better model than chance, and as well as labels?

In a pool of models (restarts: the seeds of one data set, method and strength; settings: the methods and strengths of
one data set and seed) a selector takes its best model, by lot where several are best. A judge (one metric) says how
many of the others in the pool that one beats, ties half: chance has 1/2 exactly. Selectors: the paper's unsupervised
scores, our label-free ones, and, for comparison, labels: each metric that is not the judge, averaged.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from unseam.axes import Array
from unseam.study.analyse.columns import DIRECTIONS, metric_columns, selectors
from unseam.study.analyse.correlate import relations
from unseam.study.analyse.intervals import of_mean

NEEDS = "a score without labels and a metric, on pools of two finished models (two seeds of a setting, or two settings)"
_POOLS = {"restarts": ["data", "method", "strength"], "settings": ["data", "seed"]}
LABELS = "labels"
_NAMES = ["pool", "unit", "metric", "selector", "win", "gained", "possible"]
_COLUMNS = ["pool", "selector", "rate", "low", "high", "pools", "gain", "behind", "behind_low", "behind_high"]


def scores_against_metrics(models: pd.DataFrame, code: str = "mean") -> pd.DataFrame:
    """data, a (selector), b (metric), rho, low, high, n; rho > 0: what the selector prefers scores better."""
    pairs = [(a, b, DIRECTIONS[a]) for a in selectors(models) for b in metric_columns(models, code)]
    return relations(models, pairs)


def selection_outcomes(models: pd.DataFrame, code: str = "mean") -> pd.DataFrame:
    """One row for every pool, judge and selector: pool, unit, metric, selector, win, gained, possible.

    `gained` is the chosen model's score over the pool's mean, `possible` the best one's.
    """
    judges, free = metric_columns(models, code), selectors(models)
    x = models[[*free, *judges]].to_numpy() * np.array([*(DIRECTIONS[name] for name in free), *[1] * len(judges)])
    rows: list[tuple[str, int, str, str, float, float, float]] = []
    for pool, by in _POOLS.items():
        for unit, index in enumerate(models.groupby(by, sort=True).indices.values()):
            for judge in judges:
                found = zip(*selection_outcome(x[index], models[judge].to_numpy()[index]), strict=True)
                names = zip((*free, *judges), (*free, *[LABELS] * len(judges)), found, strict=True)
                rows += [(pool, unit, judge, called, *f) for own, called, f in names if own != judge and f[0] == f[0]]
    return pd.DataFrame(rows, columns=_NAMES)


def selection_outcome(x: Array, y: Array) -> tuple[Array, Array, Array]:  # (n, P), (n,) -> (P,), (P,), (P,)
    """What the model of the largest x beats of the others by y, what it gains, and what could be; NaN without two.

    >>> [float(v.round(2)[0]) for v in selection_outcome(np.array([[3.0], [9.0], [1.0]]), np.array([0.5, 0.6, 0.8]))]
    [0.5, -0.03, 0.17]
    """
    known = np.isfinite(x) & np.isfinite(y)[:, None]
    n = np.where(known.sum(axis=0) > 1, known.sum(axis=0), np.nan)
    best = known & (x == np.where(known, x, -np.inf).max(axis=0))
    beaten = (y[:, None] > y) + 0.5 * (y[:, None] == y)
    wins = (beaten @ known - 0.5) / (n - 1)  # (n, P); a model ties with itself, which is taken off
    y = np.where(np.isfinite(y), y, 0.0)
    mean, share = y @ known / n, best / np.maximum(best.sum(axis=0), 1)
    return (share * wins).sum(axis=0), y @ share - mean, np.where(known, y[:, None], -np.inf).max(axis=0) - mean


def selection(found: pd.DataFrame) -> pd.DataFrame:
    """For every kind of pool and selector: the rate of wins with its interval, the gain, and the rate minus labels'.

    `gain`: of what the best model of each pool has over the mean, the share that the chosen one has. `behind`: the rate
    minus that of labels, in the same pools by the same judges. Intervals are Student's over pools (the mean over judges
    of each), for data sets and grid as they are.
    """
    rows = []
    for pool, part in found.groupby("pool", sort=False):
        wins = part.groupby(["unit", "metric", "selector"])["win"].mean().unstack("selector")
        sums = part.groupby("selector")[["gained", "possible"]].sum()
        for name in part["selector"].unique():
            win, behind = _of_pools(wins[name]), _of_pools(wins[name] - wins.get(LABELS, np.nan))
            behind = behind[:0] if name == LABELS else behind
            gain = sums["gained"][name] / (sums["possible"][name] or np.nan)
            ends, apart = np.clip(of_mean(win), 0, 1), np.clip(of_mean(behind), -1, 1)
            rows.append([pool, name, win.mean(), *ends, len(win), gain, behind.mean(), *apart])
    return pd.DataFrame(rows, columns=_COLUMNS)


def _of_pools(wins: pd.Series[float]) -> pd.Series[float]:
    """The mean over judges in each pool."""
    return wins.dropna().groupby(level="unit").mean()


def by_metric(found: pd.DataFrame) -> pd.DataFrame:
    """Of `selection_outcomes`, the rates for each judge alone: pool, selector, metric, rate, low, high, pools."""
    rows = []
    for key, part in found.groupby(["pool", "selector", "metric"], sort=False):
        wins = part.groupby("unit")["win"].mean()
        rows.append([*key, wins.mean(), *np.clip(of_mean(wins), 0, 1), len(wins)])
    return pd.DataFrame(rows, columns=["pool", "selector", "metric", "rate", "low", "high", "pools"])
