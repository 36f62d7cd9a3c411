"""95 % intervals, each with the rule by which it is made."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, t

from unseam.axes import Array

_LEVEL = 0.95
TAIL_SHARE = (1 - _LEVEL) / 2


def of_rank_correlation(rho: float, n: int) -> tuple[float, float]:
    """Bonett & Wright (2000): tanh(atanh rho +- z sqrt((1 + rho^2 / 2) / (n - 3))).

    A perfect order of n is drawn half a step of its scale inwards: 1 - 6 / (n (n^2 - 1)).

    >>> [round(end, 2) for end in of_rank_correlation(0.5, 100)]
    [0.33, 0.64]
    """
    most = 1 - 6 / (n * (n**2 - 1))
    centre = np.arctanh(np.clip(rho, -most, most))
    half = norm.ppf(1 - TAIL_SHARE) * np.sqrt((1 + rho**2 / 2) / (n - 3))
    return float(np.tanh(centre - half)), float(np.tanh(centre + half))


def of_mean(values: ArrayLike) -> tuple[float, float]:  # (n,)
    """Student's: mean +- t s / sqrt(n); nothing is known from one value.

    >>> [round(end, 3) for end in of_mean([1.0, 2.0, 3.0])]
    [-0.484, 4.484]
    """
    x = np.asarray(values, float)
    if len(x) < 2:
        return float("nan"), float("nan")
    half = t.ppf(1 - TAIL_SHARE, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
    return float(x.mean() - half), float(x.mean() + half)


def by_leaving_out(statistic: Callable[[Array], float], n: int) -> tuple[float, float]:
    """The jackknife: n units, each left out once; s^2 = (n - 1) / n sum (theta_-i - mean)^2, Student's t with n - 1.

    `statistic` takes the numbers of the units that are kept.

    >>> x = np.array([1.0, 2.0, 3.0])
    >>> [round(end, 3) for end in by_leaving_out(lambda kept: x[kept].mean(), 3)]  # of a mean: Student's
    [-0.484, 4.484]
    """
    units = np.arange(n)
    without = np.array([statistic(units[units != i]) for i in units if n > 2])
    if n < 3 or not np.isfinite(without).all():
        return float("nan"), float("nan")
    half = t.ppf(1 - TAIL_SHARE, n - 1) * np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    centre = statistic(units)
    return float(centre - half), float(centre + half)
