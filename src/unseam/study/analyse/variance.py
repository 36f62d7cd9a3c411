"""L5, variance explained by the objective, and by objective and strength together.

explained = SS between / SS total; pure noise has (groups - 1) / (n - 1) of it on average
adjusted  = 1 - (1 - explained) (n - 1) / (n - groups); pure noise has 0 on average
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from unseam.axes import Array
from unseam.study.analyse.columns import metric_columns

NEEDS = "two methods (or two settings) and more finished models than groups, on one data set"
PERMUTATIONS = 1000
BY = {"objective": ["method"], "objective x strength": ["method", "strength"]}


def _explained(y: Array, groups: Array) -> Array:  # (..., n), (n,) in 0..G-1 -> (...)
    """The share of each row's variance that lies between the groups.

    >>> _explained(np.array([[0.0, 0, 1, 1], [0, 1, 0, 1]]), np.array([0, 0, 1, 1]))
    array([1., 0.])
    """
    y = y - y.mean(axis=-1, keepdims=True)
    member = np.eye(groups.max() + 1)[groups]  # (n, G)
    between = ((y @ member) ** 2 / member.sum(axis=0)).sum(axis=-1)
    return between / (y**2).sum(axis=-1)


def adjusted(share: float, n: int, groups: int) -> float:
    """What is left when the share that as many random groups would explain is taken off.

    >>> adjusted(1.0, 10, 2), round(adjusted(2 / 10, 11, 3), 12)  # 2 / 10 is what three random groups explain of 11
    (1.0, 0.0)
    """
    return 1 - (1 - share) * (n - 1) / (n - groups)


def variance(models: pd.DataFrame, code: str = "mean", permutations: int = PERMUTATIONS, seed: int = 0) -> pd.DataFrame:
    """data, metric, by, n, groups, explained, adjusted, null (its mean), null_high (its 95 % point), p."""
    generator = np.random.default_rng(seed)
    rows = []
    for data, group in models.groupby("data", sort=True):
        for metric in metric_columns(models, code):
            part = group.dropna(subset=metric)
            for by, columns in BY.items():
                found = against_chance(part[metric].to_numpy(), part.groupby(columns).ngroup(), permutations, generator)
                rows += [{"data": data, "metric": metric, "by": by, **found}] if found else []
    names = ["data", "metric", "by", "n", "groups", "explained", "adjusted", "null", "null_high", "p"]
    return pd.DataFrame(rows, columns=names)


def against_chance(
    y: Array, groups: pd.Series[int], permutations: int, generator: np.random.Generator
) -> dict[str, float]:
    """Explained and adjusted beside the same of `permutations` shuffles; empty where there is nothing to explain."""
    g, n = np.unique(groups, return_inverse=True)[1], len(y)
    count = int(g.max()) + 1 if n else 0
    if count < 2 or n <= count or not np.ptp(y):
        return {}
    share = float(_explained(y, g))
    null = _explained(generator.permuted(np.tile(y, (permutations, 1)), axis=1), g)
    p = (1 + int((null >= share - 1e-12).sum())) / (1 + permutations)
    return {"n": n, "groups": count, "explained": share, "adjusted": adjusted(share, n, count),
            "null": float(null.mean()), "null_high": float(np.quantile(null, 0.95)), "p": p}  # fmt: skip
