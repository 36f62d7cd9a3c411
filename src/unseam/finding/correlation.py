"""Correlations of the normal variables behind columns of a few ordered levels: polychoric, in two steps.

    x_i = l  where  t_l < y_i <= t_(l+1),   (y_i, y_j) normal with correlation r
    step 1: t_l = Phi^-1(share of rows up to level l)            step 2: r maximises sum_lm N_lm log P_lm(r)
    P_lm(r) = [Phi2]  over the rectangle,   dPhi2(a, b; r)/dr = phi2(a, b; r)

The likelihood is maximised by Fisher scoring for all pairs at once, with the derivative in closed form and Phi2 by
Plackett's integral (Olsson 1979). A column of levels with any other column: Pearson's r times s / sum_l phi(t_l) (for
levels in steps of 1), the polyserial correlation in closed form (Olsson, Drasgow & Dorans 1982).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from unseam.axes import Array
from unseam.finding.columns import Prepared
from unseam.finding.factor_analysis import positive_definite

_MOST_PAIRS = 20_000  # of level columns; above, Pearson's correlations of the levels
_LARGEST = 0.99
_ROUNDS = 25
_CLOSE = 1e-6
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FAR = 8.0  # stands for an infinite threshold
_CHUNK = 2000  # pairs at once


class _Levels(NamedTuple):
    """Columns of levels: which level each cell has (-1 where it is missing), and the thresholds between levels."""

    cells: Array  # (N, m) int
    thresholds: Array  # (m, L + 1): -FAR, between neighbouring levels, FAR; FAR again behind the last level
    L: int


def _levels_of(columns: Array) -> _Levels:  # (N, m), NaN where missing
    """The levels of each column in order, and step 1."""
    values = [np.unique(column[~np.isnan(column)]) for column in columns.T]
    L = max(len(v) for v in values)
    cells = np.full(columns.shape, -1)
    thresholds = np.full((columns.shape[1], L + 1), _FAR)
    for j, (column, v) in enumerate(zip(columns.T, values, strict=True)):
        seen = ~np.isnan(column)
        cells[seen, j] = np.searchsorted(v, column[seen])
        share = np.cumsum(np.bincount(cells[seen, j], minlength=len(v))) / seen.sum()
        thresholds[j, 0], thresholds[j, 1 : len(v)] = -_FAR, norm.ppf(share[:-1])
    return _Levels(cells, thresholds, L)


def polychoric(columns: Array) -> Array:  # (N, m), NaN where missing -> (m, m)
    """Correlations of the normal variables behind columns of a few levels, each pair on the rows that have both.

    >>> g = np.random.default_rng(0)
    >>> y = g.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=5000)
    >>> x = np.digitize(y, [-0.5, 1.0])
    >>> bool(abs(polychoric(x * 1.0)[0, 1] - 0.6) < 0.04 < 0.6 - np.corrcoef(x.T)[0, 1])
    True
    """
    made = _levels_of(columns)
    m, L = columns.shape[1], made.L
    one_hot = (made.cells[:, :, None] == np.arange(L)).reshape(len(columns), m * L).astype(np.float64)
    counts = (one_hot.T @ one_hot).reshape(m, L, m, L)
    first, second = np.triu_indices(m, 1)
    out = np.eye(m)
    for start in range(0, len(first), _CHUNK):
        i, j = first[start : start + _CHUNK], second[start : start + _CHUNK]
        r = _scored(counts[i, :, j], made.thresholds[i], made.thresholds[j])
        out[i, j] = out[j, i] = r
    return out


def _scored(counts: Array, a: Array, b: Array) -> Array:  # (P, L, L), (P, L + 1), (P, L + 1) -> (P,)
    """Fisher scoring of r, from a small correlation of the right sign."""
    u, v = a[:, :, None], b[:, None, :]
    N = np.maximum(counts.sum((1, 2), keepdims=True), 1.0)  # 1: no row has both cells, and r stays 0
    centred = counts - counts.sum(2, keepdims=True) * counts.sum(1, keepdims=True) / N
    middle = np.arange(counts.shape[1]) - (counts.shape[1] - 1) / 2
    r = 0.3 * np.sign(np.einsum("plm,l,m->p", centred, middle, middle))
    for _ in range(_ROUNDS):
        P = np.maximum(_cells(bivariate_cdf(u, v, r[:, None, None])), 1e-12)
        dP = _cells(_bivariate_density(u, v, r[:, None, None]))
        score = (counts * dP / P).sum((1, 2))
        information = counts.sum((1, 2)) * (dP**2 / P).sum((1, 2))
        step = np.clip(score / np.maximum(information, 1e-12), -0.3, 0.3)
        new = np.clip(r + step, -_LARGEST, _LARGEST)
        moved, r = np.abs(new - r).max(initial=0.0), new
        if moved < _CLOSE:
            break
    return r


def _cells(corners: Array) -> Array:  # (P, L + 1, L + 1) -> (P, L, L)
    return np.diff(np.diff(corners, axis=1), axis=2)


def _bivariate_density(a: Array, b: Array, r: Array) -> Array:
    """phi2(a, b; r); 0 at thresholds that stand for infinity."""
    rest = 1 - r**2
    out = np.exp(-(a**2 - 2 * r * a * b + b**2) / (2 * rest)) / (2 * np.pi * np.sqrt(rest))
    return np.where((np.abs(a) < _FAR) & (np.abs(b) < _FAR), out, 0.0)


def bivariate_cdf(a: Array, b: Array, r: Array) -> Array:
    """Phi2(a, b; r) = Phi(a) Phi(b) + 1/(2 pi) int_0^asin(r) exp(-(a^2 + b^2 - 2 a b sin t) / (2 cos^2 t)) dt.

    >>> round(float(bivariate_cdf(np.array(0.0), np.array(0.0), np.array(0.5))), 12)  # 1/4 + asin(r) / (2 pi)
    0.333333333333
    """
    half = np.arcsin(r) / 2
    total = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(r)))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        t = half * (1 + node)
        total += weight * np.exp(-(a**2 + b**2 - 2 * a * b * np.sin(t)) / (2 * np.cos(t) ** 2))
    return np.asarray(norm.cdf(a) * norm.cdf(b) + half * total / (2 * np.pi))


def _attenuation(columns: Array) -> Array:  # (N, m) -> (m,)
    """cor(level, y) of a level column and the normal y behind it: sum_l phi(t_l) (v_(l+1) - v_l) / sd(level)."""
    out = []
    for column, t in zip(columns.T, _levels_of(columns).thresholds, strict=True):
        v = np.unique(column[~np.isnan(column)])
        out.append(float((norm.pdf(t[1 : len(v)]) * np.diff(v)).sum() / np.nanstd(column)))
    return np.array(out)


def latent_correlations(prepared: Prepared, rows: Array | None = None) -> Array:  # (M,) row numbers -> (n, n)
    """Correlations of the columns: polychoric where both are ordinal or binary, polyserial where one is, Pearson's.

    Missing cells are left out pair by pair where both columns have levels, and filled otherwise. The nearest positive
    definite matrix is taken where the pairs do not fit together. Classes (`categorical`) count as numbers.
    """
    rows = np.arange(len(prepared.x)) if rows is None else rows
    x, gaps = prepared.x[rows], prepared.gaps[rows]
    out = np.corrcoef(x.T)
    steps = np.flatnonzero([prepared.kinds[i] in ("ordinal", "binary") for i in prepared.used])
    if not len(steps) or len(steps) * (len(steps) - 1) // 2 > _MOST_PAIRS:
        return out
    raw = np.where(gaps, np.nan, np.round(prepared.raw(x), 9))[:, steps]
    steps, raw = steps[np.nanstd(raw, axis=0) > 0], raw[:, np.nanstd(raw, axis=0) > 0]
    factor = np.ones(len(out))
    factor[steps] = np.clip(_attenuation(raw), 0.3, 1.0)
    out = np.clip(out / np.outer(factor, factor), -_LARGEST, _LARGEST)
    out[np.ix_(steps, steps)] = polychoric(raw)
    np.fill_diagonal(out, 1.0)
    return positive_definite(out)
