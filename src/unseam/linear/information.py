"""Gaussian mutual information of groups of variables, from log-determinants.

    I(a; b) = 1/2 (log|S_aa| + log|S_bb| - log|S_ab,ab|)

A set of factors is a bit mask: bit j set means factor j is in it. All 2^s sets are evaluated once, into `Tables`;
every partition is then a sum of entries (`unseam.linear.partition`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.linear.checks import checked_covariance

_MOST = 1 - 1e-9  # a squared multiple correlation above this counts as this: no information exceeds 10.4 nats
_MOST_FACTORS = 16  # 2^16 sets; more would not fit the tables


@dataclass(frozen=True)
class Tables:
    """I(x_i; v_S) for every latent i and set S, and I(v_S; v_T) for disjoint sets."""

    gain: Array  # (..., m, 2^s), column 0 (the empty set) is 0
    between: Callable[[Array, Array], Array]  # masks, masks -> nats; 0 when one is empty
    monotone: bool  # true information grows with its sets; an estimate need not

    @property
    def m(self) -> int:
        return int(self.gain.shape[-2])

    @property
    def s(self) -> int:
        return int(self.gain.shape[-1]).bit_length() - 1


def _members(s: int, size: int) -> Array:  # (sets, size)
    """All sets of `size` factors, as rows of indices.

    >>> _members(3, 2)
    array([[0, 1],
           [0, 2],
           [1, 2]])
    """
    return np.array(list(combinations(range(s), size)), dtype=int)


def masks_of(rows: Array) -> Array:  # (sets, size) -> (sets,)
    """Rows of indices -> bit masks.

    >>> masks_of(np.array([[0, 1], [0, 2]]))
    array([3, 5])
    """
    return (1 << rows).sum(-1)


def gaussian_tables(Sv: Any, variances: Any, Sxv: Any) -> Tables:  # (s, s), (..., m), (..., m, s)
    """The tables from Cov(V), Var(x_i) and Cov(X, V); leading axes are further codes of the same factors.

    I(x_i; v_S) = -1/2 log(1 - R2), R2 = c' S_v^-1 c / Var(x_i). A latent without variance knows nothing.

    Parameters
    ----------
    Sv : array of shape (s, s)
        Covariance of the factors.
    variances : array of shape (..., m)
        Variance of each latent.
    Sxv : array of shape (..., m, s)
        Covariances of latents and factors.

    Returns
    -------
    Tables
        For every group of factors, what each latent knows of it, and what groups share.

    Examples
    --------
    >>> t = gaussian_tables(np.eye(2), [2.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> t.gain.round(4), t.between(1, 2)
    (array([[0.    , 0.3466, 0.    , 0.3466],
           [0.    , 0.    , 0.3466, 0.3466]]), np.float64(0.0))
    """
    Sv = checked_covariance("the factors' covariance", Sv)
    s = few(len(Sv), _MOST_FACTORS, "sets")
    c, variances = np.asarray(Sxv, np.float64), np.asarray(variances, np.float64)
    if c.shape[-1] != s or c.shape[:-1] != variances.shape:
        raise BadInput(f"Cov(X, V) has shape {c.shape}; with {s} factors and Var(x) {variances.shape} it cannot")
    gain, log_det = np.zeros((*c.shape[:-1], 2**s)), np.zeros(2**s)
    for size in range(1, s + 1):
        rows = _members(s, size)
        block = Sv[rows[:, :, None], rows[:, None, :]]
        log_det[masks_of(rows)] = np.linalg.slogdet(block)[1]
        parts = c[..., rows]  # (..., m, sets, size)
        r2 = np.einsum("...tk,tkl,...tl->...t", parts, np.linalg.inv(block), parts, optimize=True)
        r2 = np.divide(r2, variances[..., None], out=np.zeros_like(r2), where=variances[..., None] > 0)
        gain[..., masks_of(rows)] = -np.log1p(-np.clip(r2, 0, _MOST)) / 2

    def between(a: Array, b: Array) -> Array:
        return np.maximum(log_det[a] + log_det[b] - log_det[np.bitwise_or(a, b)], 0) / 2

    return Tables(gain, between, monotone=True)


def few(s: int, most: int, what: str) -> int:
    """s, or an error when 2^s is too many."""
    if s > most:
        raise BadInput(f"{s} factors need {2**s} {what}, at most {most} factors can be used; leave some out")
    return s
