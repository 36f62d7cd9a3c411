"""Rank correlations of columns over the models of a data set: the common part of L2, L3, L6, L7 and L8."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from unseam.stats import spearman
from unseam.study.analyse.intervals import of_rank_correlation

_LEAST = 4  # models: fewer say nothing about an order


def relation(x: pd.Series[float], y: pd.Series[float], sign: int = 1) -> dict[str, Any] | None:
    """Spearman's rho (times sign) over the rows that have both, with its interval; None where it is not defined.

    >>> found = relation(pd.Series([1.0, 2, 3, 4, 5]), pd.Series([2.0, 1, 3, 5, 4]))
    >>> found["rho"], found["n"]
    (0.8, 5)
    """
    both = x.notna() & y.notna()
    rho = spearman(x[both], y[both]) if both.sum() >= _LEAST else None
    if rho is None:
        return None
    low, high = of_rank_correlation(sign * rho, int(both.sum()))
    return {"rho": sign * rho, "low": low, "high": high, "n": int(both.sum())}


def relations(frame: pd.DataFrame, pairs: Iterable[tuple[str, str, int]], by: str = "data") -> pd.DataFrame:
    """rho of every pair (a, b, sign) of columns on every data set: by, a, b, rho, low, high, n."""
    pairs = list(pairs)
    rows = [
        {by: name, "a": a, "b": b, **found}
        for name, group in frame.groupby(by, sort=True)
        for a, b, sign in pairs
        if (found := relation(group[a], group[b], sign))
    ]
    return pd.DataFrame(rows, columns=[by, "a", "b", "rho", "low", "high", "n"])


def matrix(found: pd.DataFrame, value: str = "rho") -> pd.DataFrame:
    """One table, rows a, columns b, in the order they come; the mean where a pair stands more than once."""
    table = found.pivot_table(value, "a", "b", aggfunc="mean", sort=False)
    return table.reindex(index=found["a"].unique(), columns=found["b"].unique())
