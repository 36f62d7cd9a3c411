"""How good the matches are over how many of them are taken, best first."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.axes import Array

TOPS = (100, 2000)  # counts that a reader can compare between papers
_POINTS = 40  # of the curve


def coverage(values: Array, negatives: Array) -> dict[str, Any]:  # (P,), (S,)
    """Mean and lowest value of the best m matches, over m, beside the same share of the best hard negatives.

    Parameters
    ----------
    values
        How similar the two of each matched pair are.
    negatives
        The same of directions that are not partners.

    Returns
    -------
    dict
        `count`, `mean`, `lowest` and `negatives` of the curve, and `top`: the mean at 100, 2,000 and all, None where
        there are fewer matches.

    Examples
    --------
    >>> found = coverage(np.array([0.2, 0.9, 0.7]), np.array([0.1, 0.3]))
    >>> found["count"], found["mean"], found["top"]
    ([1, 2, 3], [0.9, 0.8, 0.6], {'100': None, '2000': None, 'all': 0.6})
    """
    total = len(values)
    if not total:
        return {"count": [], "mean": [], "lowest": [], "negatives": [], "top": dict.fromkeys([*map(str, TOPS), "all"])}
    ordered, means = np.sort(values)[::-1], _running_mean(values)
    counts = np.unique([*np.geomspace(1, total, _POINTS).round().astype(int), *(t for t in TOPS if t <= total)])
    others = _running_mean(negatives)
    share = np.maximum(1, np.round(counts / total * len(others)).astype(int))
    return {
        "count": counts.tolist(),
        "mean": _plain(means[counts - 1]),
        "lowest": _plain(ordered[counts - 1]),
        "negatives": _plain(others[share - 1]) if len(others) else [None] * len(counts),
        "top": {
            **{str(t): _plain(means[t - 1 : t])[0] if t <= total else None for t in TOPS},
            "all": _plain(means[-1:])[0],
        },
    }


def _running_mean(values: Array) -> Array:
    """Mean of the largest 1, 2, 3, ... values."""
    return np.cumsum(np.sort(values)[::-1]) / np.arange(1, len(values) + 1)


def _plain(values: Array) -> list[float]:
    return [round(float(value), 6) for value in values]
