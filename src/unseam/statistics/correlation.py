"""Correlation of columns, with a guard for columns that do not vary."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from unseam.errors import BadInput
from unseam.types import Array

TINY = 1e-12  # a standard deviation below this share of a column's largest value is rounding, not variation


def correlations(a: Array, b: Array) -> Array:  # (N, A), (N, B) -> (A, B)
    """Pearson's r of every column of a with every column of b; 0 for a constant column.

    >>> correlations(np.array([[0.0], [1.0], [2.0]]), np.array([[0.0, 5.0], [-1.0, 5.0], [-2.0, 5.0]]))
    array([[-1.,  0.]])
    """
    a, b = _centred(a), _centred(b)
    n = len(a) - 1
    va, vb = (a * a).sum(axis=0) / n, (b * b).sum(axis=0) / n
    alive = (va > TINY**2)[:, None] & (vb > TINY**2)[None]
    return np.divide(a.T @ b / n, np.sqrt(np.outer(va, vb)), out=np.zeros((len(va), len(vb))), where=alive)


def _centred(x: Array) -> Array:  # (N, A) -> (N, A)
    """Columns with largest value 1, then without their mean: r does not depend on their scale, squares would."""
    largest = np.abs(x).max(axis=0)
    x = x / np.where(largest > 0, largest, 1.0)
    return x - x.mean(axis=0)


def ranks(x: Array) -> Array:  # (N, ...) -> (N, ...)
    """From 1, down each column; ties share their mean."""
    return scipy.stats.rankdata(x, axis=0)


def rank_correlations(a: Array, b: Array) -> Array:  # (N, A), (N, B) -> (A, B)
    """Spearman's rho of every column of a with every column of b; 0 for a constant column.

    >>> t = np.arange(5.0)[:, None]
    >>> rank_correlations(t, np.hstack([np.exp(t), -t, 0 * t])).round(12)
    array([[ 1., -1.,  0.]])
    """
    return correlations(ranks(a), ranks(b))


def pearson(a: ArrayLike, b: ArrayLike) -> float | None:  # (N,), (N,)
    """Pearson's r; None where one side is constant.

    >>> pearson([1, 2, 3], [2, 4, 6]), pearson([1, 2, 3], [5, 5, 5])
    (1.0, None)
    """
    x, y = (np.asarray(side, dtype=float) for side in (a, b))
    if x.shape != y.shape or x.ndim != 1 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise BadInput(f"columns of shape {x.shape} and {y.shape} cannot be correlated; give two finite ones, as long")
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    x, y = x - x.mean(), y - y.mean()
    r = (x @ y) / np.sqrt((x @ x) * (y @ y))
    return round(float(np.clip(r, -1, 1)), 12)  # so that a perfect order is 1


def spearman(a: ArrayLike, b: ArrayLike) -> float | None:  # (N,), (N,)
    """Spearman's rho, the correlation of the ranks; None where one side is constant.

    >>> spearman([1, 2, 3], [1, 10, 100]), spearman([1, 2, 3], [5, 5, 5])
    (1.0, None)
    """
    x, y = (np.asarray(side, dtype=float) for side in (a, b))
    finite = x.ndim == y.ndim == 1 and np.isfinite(x).all() and np.isfinite(y).all()
    return pearson(ranks(x), ranks(y)) if finite else pearson(x, y)  # which says what is wrong


def multiple_correlation(angle: Array, codes: Array) -> Array:  # (N,), (N, K) -> (K,)
    """R of each column on (cos, sin) of an angle (Mardia & Jupp 2000, eq. 11.2.1).

    R^2 = (c^2 + s^2 - 2 c s m) / (1 - m^2), m the correlation of cos and sin.

    >>> angle = 2 * np.pi * np.arange(8) / 8
    >>> np.round(multiple_correlation(angle, np.stack([np.sin(angle + 1), np.cos(2 * angle)], axis=1)), 6)
    array([1., 0.])
    """
    waves = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    c, s = correlations(waves, codes)
    m = correlations(waves[:, :1], waves[:, 1:])[0, 0]
    if m**2 > 1 - 1e-9:  # two values only: cosine and sine say the same
        return np.maximum(np.abs(c), np.abs(s))
    return np.sqrt(np.clip((c**2 + s**2 - 2 * c * s * m) / (1 - m**2), 0.0, 1.0))
