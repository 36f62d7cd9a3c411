"""PPCA with cells that nobody has seen: the likelihood of the others alone is maximised, by EM (Tipping & Bishop 1999).

A hidden cell is filled by its expectation given the row's other cells, the axes are fitted to the filled table, and so
on. The filled table is what every other method is given; hiding cells that are known tells how well a model predicts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.linear.ppca import axes_of_rows

_ROUNDS = 60
_CLOSE = 1e-4  # of a column's spread: cells that move less have settled
_ROWS = 1000  # on which the number of factors that fill is decided
_TRIED = (0, 1, 2, 3, 4, 5, 6, 8, 12, 20)
_HIDDEN = 0.1  # share of cells that are hidden to compare models


def ppca_fill(x: Array, seen: Array, d: int) -> Array:  # (N, n), (N, n) bool -> (N, n)
    """The table with unseen cells given by d factors, E[x_hidden | x_seen]; 0 factors give column means.

    >>> t = np.linspace(-1, 1, 50)[:, None] * [[1.0, 2.0, -1.0]]
    >>> seen = np.ones(t.shape, bool); seen[3, 1] = False
    >>> bool(abs(ppca_fill(np.where(seen, t, np.nan), seen, 1)[3, 1] - t[3, 1]) < 0.02)
    True
    """
    mean = np.nanmean(np.where(seen, x, np.nan), axis=0)
    full = np.where(seen, x, mean)
    if not d or seen.all():
        return full
    spread = full.std(0) + 1e-12
    for _ in range(_ROUNDS):
        new = np.where(seen, x, _expected(full, d))
        moved = float((np.abs(new - full) / spread).max())
        full = new
        if moved < _CLOSE:
            break
    return full


def _expected(full: Array, d: int) -> Array:  # (N, n)
    """mean + U s U'(x - mean): PPCA's posterior mean, decoded."""
    mean, U, s = filler(full, d)
    return np.asarray(mean + ((full - mean) @ U * s) @ U.T)


class Filler(NamedTuple):
    """Cells of new rows by their expectation given the row, under a PPCA that is already fitted.

    A row filled by mean + U s U'(x - mean) on its gaps and nowhere else has v = U'(x - mean) with
    (I - G s) v = U_seen'(x - mean)_seen,   G = U_gaps' U_gaps
    """

    mean: Array  # (n,)
    U: Array  # (n, d)
    s: Array  # (d,) 1 - s2 / L

    def __call__(self, x: Array) -> Array:  # (M, n), NaN where missing -> (M, n)
        """
        >>> t = np.linspace(-1, 1, 50)[:, None] * [[1.0, 2.0, -1.0]]
        >>> filler(t, 1)(np.array([[0.5, np.nan, -0.5], [np.nan, np.nan, np.nan]])).round(6) + 0.0
        array([[ 0.5,  1. , -0.5],
               [ 0. ,  0. ,  0. ]])
        """
        gaps, d = np.isnan(x), len(self.s)
        known = np.where(gaps, 0.0, x - self.mean)
        G = gaps @ (self.U[:, :, None] * self.U[:, None]).reshape(-1, d * d)
        A = (1 + 1e-9) * np.eye(d) - G.reshape(-1, d, d) * self.s
        v = np.linalg.solve(A, (known @ self.U)[:, :, None])[:, :, 0]
        return np.where(gaps, self.mean + (v * self.s) @ self.U.T, x)


def filler(full: Array, d: int) -> Filler:  # (N, n)
    """PPCA of a table without gaps, as a way to fill new rows."""
    l, U = axes_of_rows(full)
    d = min(d, U.shape[1])
    s2 = float(l[d:].mean()) if d < len(l) else 0.0
    return Filler(full.mean(0), U[:, :d], np.maximum(1 - s2 / np.maximum(l[:d], 1e-300), 0))


def by_hidden_cells(x: Array, seen: Array, generator: np.random.Generator) -> int:  # (N, n) -> d
    """How many factors predict cells best that are known but were hidden; 0 if the columns' means do.

    >>> g = np.random.default_rng(0)
    >>> x = g.normal(size=(200, 2)) @ g.normal(size=(2, 8)) + 0.1 * g.normal(size=(200, 8))
    >>> by_hidden_cells(x, g.uniform(size=x.shape) > 0.1, g)
    2
    """
    x, seen = x[:_ROWS], seen[:_ROWS]
    fit_on = hide(seen, generator)
    hidden = seen & ~fit_on
    fit_on |= ~fit_on.any(0)  # a column that was hidden whole
    tried = [d for d in _TRIED if d < min(x.shape)]
    errors = [float(((ppca_fill(x, fit_on, d) - x)[hidden] ** 2).sum()) for d in tried]
    return tried[int(np.argmin(errors))]


def hide(seen: Array, generator: np.random.Generator) -> Array:  # (N, n) bool -> (N, n) bool
    """What is left to fit on when some of the known cells are hidden."""
    return np.asarray(seen & (generator.uniform(size=seen.shape) >= _HIDDEN))
