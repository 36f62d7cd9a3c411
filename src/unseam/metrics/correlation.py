"""Correlation of every factor with every latent, for factors that have an order.

A cyclic factor (an angle) has no linear correlation worth the name: its entry is the multiple correlation of
the latent with the cosine and sine of the angle (Mardia & Jupp 2000, eq. 11.2.1).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.stats import rankdata

from unseam.errors import BadInput
from unseam.metrics.table import Table
from unseam.types import Array

Method = Literal["pearson", "spearman"]
TINY = 1e-12  # a variance below this counts as none (the reference's threshold)


def correlations(table: Table, method: Method) -> Array:  # (F, K) absolute values
    """|r| of every factor and latent; 0 where either is constant. Computed once a table."""
    return table.once(("correlation", method), lambda: _correlations(table, method))


def _correlations(table: Table, method: Method) -> Array:
    codes, values = table.rows.codes.astype(np.float64), table.rows.values
    if method == "spearman":
        codes, values = rankdata(codes, axis=0), rankdata(values, axis=0)
    out = np.abs(cross_correlation(values, codes))
    for f, factor in enumerate(table.space):
        if factor.kind == "cyclic" and factor.size:
            angle = 2 * np.pi * table.rows.values[:, f] / factor.size
            out[f] = circular(angle, codes)
    return out


def cross_correlation(a: Array, b: Array) -> Array:  # (N, A), (N, B) -> (A, B)
    """Pearson's r of every column of a with every column of b; 0 for a constant column.

    >>> cross_correlation(np.array([[0.0], [1.0], [2.0]]), np.array([[0.0, 5.0], [-1.0, 5.0], [-2.0, 5.0]]))
    array([[-1.,  0.]])
    """
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    n = len(a) - 1
    va, vb = (a * a).sum(axis=0) / n, (b * b).sum(axis=0) / n
    alive = (va > TINY)[:, None] & (vb > TINY)[None]
    return np.divide(a.T @ b / n, np.sqrt(np.outer(va, vb)), out=np.zeros((len(va), len(vb))), where=alive)


def circular(angle: Array, codes: Array) -> Array:  # (N,), (N, K) -> (K,)
    """R of z on (cos, sin): R^2 = (c^2 + s^2 - 2 c s m) / (1 - m^2), m the correlation of cos and sin.

    >>> angle = 2 * np.pi * np.arange(8) / 8
    >>> np.round(circular(angle, np.stack([np.sin(angle + 1), np.cos(2 * angle)], axis=1)), 6)
    array([1., 0.])
    """
    waves = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    c, s = cross_correlation(waves, codes)
    m = cross_correlation(waves[:, :1], waves[:, 1:])[0, 0]
    if m**2 > 1 - 1e-9:  # two values only: cosine and sine say the same
        return np.maximum(np.abs(c), np.abs(s))
    return np.sqrt(np.clip((c**2 + s**2 - 2 * c * s * m) / (1 - m**2), 0.0, 1.0))


def ordered_factors(table: Table, metric: str) -> tuple[Array, tuple[str, ...]]:
    """Which factors have an order (F,), and the note on those that do not."""
    kept = np.array([f.kind != "categorical" for f in table.space])
    if not kept.any():
        raise BadInput(f"{metric} needs factors with an order; all of {', '.join(table.space.names)} are categorical")
    left = [f.name for f in table.space if f.kind == "categorical"]
    return kept, (f"{metric} leaves out categorical factor(s) without an order: {', '.join(left)}",) if left else ()
