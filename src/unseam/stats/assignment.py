"""One-to-one matchings of rows with columns, and the lead of the best column over the second."""

from typing import NamedTuple

import numpy as np
import scipy

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.stats.correlation import rank_correlations

_PATIENCE = 0.05  # profit that a row gives up before it looks beyond its list


class Matching(NamedTuple):
    """What each row got: the matched entry (0 if none was left for it) and its column (-1 if none)."""

    values: Array  # (A,)
    columns: Array  # (A,)


def matched(strengths: Array) -> Matching:  # (A, B)
    """Match rows to columns one to one so that the sum is largest; rows that find no column count 0.

    >>> matched(np.array([[0.9, 0.8], [0.7, 0.1]])).values
    array([0.8, 0.7])
    >>> matched(np.array([[0.9], [0.7]]))
    Matching(values=array([0.9, 0. ]), columns=array([ 0, -1]))
    """
    strengths = np.asarray(strengths, dtype=float)
    if strengths.ndim != 2 or not np.isfinite(strengths).all():
        raise BadInput(f"strengths of shape {strengths.shape} must be a finite matrix, one row for each to be matched")
    rows, columns = scipy.optimize.linear_sum_assignment(strengths, maximize=True)
    found = Matching(np.zeros(len(strengths)), np.full(len(strengths), -1))
    found.values[rows], found.columns[rows] = strengths[rows, columns], columns
    return found


def matched_codes(a: Array, b: Array) -> Matching:  # (N, A), (N, B)
    """Columns of a to columns of b, two codes of the same rows, by |rank correlation|.

    >>> t = np.arange(6.0)
    >>> matched_codes(np.stack([t, t % 2], 1), np.stack([t % 2, -t], 1)).columns
    array([1, 0])
    """
    return matched(np.abs(rank_correlations(a, b)))


class Auction(NamedTuple):
    """A matching on lists of candidates, and the proof of how good it is."""

    columns: Array  # (A,) -1: none
    bound: float  # no matching of all rows with all columns has a larger sum


def auction(values: Array, columns: Array, size: int, step: float = 3e-4) -> Auction:  # (A, k), (A, k)
    """Match rows with `size` columns one to one by an auction; each row bids for the candidates in its list only.

    Every unmatched row bids for the column j with the largest v_ij - p_j and raises its price p_j to where the row's
    second choice is as good, plus `step` (Bertsekas 1988). First, a row waits once its profit falls below t_i, the
    lowest value of its list, because a column outside the list may then be as good; then rows that wait go on bidding
    until they make 0.05 less than that. Rows that are still without a column have -1.

    For any prices p >= 0 weak duality gives

        largest sum over all rows and columns <= sum_i max(t_i, max_k (v_ik - p_k)) + sum_j p_j

    since columns outside the list of row i have v_ij - p_j <= t_i. The bound is that of the prices after the first
    part. Where every list holds all columns there is nothing outside, and t_i is 0.

    >>> found = auction(np.array([[0.9, 0.8], [0.7, 0.1]]), np.array([[0, 1], [0, 1]]), 2)
    >>> found.columns, round(found.bound, 2)
    (array([1, 0]), 1.5)
    """
    v = np.asarray(values, dtype=float)
    lowest = v.min(axis=1) if v.shape[1] < size else np.zeros(len(v))
    prices, owners, mine = np.zeros(size), np.full(size, -1), np.full(len(v), -1)
    _bid(v, columns, lowest, step, prices, owners, mine)
    bound = np.maximum(lowest, (v - prices[columns]).max(axis=1)).sum() + prices.sum()
    _bid(v, columns, lowest - _PATIENCE, step, prices, owners, mine)
    return Auction(mine, float(bound))


def _bid(v: Array, columns: Array, least: Array, step: float, prices: Array, owners: Array, mine: Array) -> None:
    """Unmatched rows bid, all at once, until each has a column or makes less than `least`. The last three change."""
    left = np.flatnonzero(mine < 0)
    while len(left):
        profit = v[left] - prices[columns[left]]
        each, choice = np.arange(len(left)), profit.argmax(axis=1)
        first = profit[each, choice]
        profit[each, choice] = -np.inf
        second = np.maximum(profit.max(axis=1), least[left])
        stays = np.flatnonzero(first >= least[left])
        rows, wanted = left[stays], columns[left[stays], choice[stays]]
        bids = prices[wanted] + first[stays] - second[stays] + step
        order = np.lexsort((-bids, wanted))
        won = order[np.diff(wanted[order], prepend=-1) != 0]  # the highest bid for each column
        sold = wanted[won]
        out = owners[sold][owners[sold] >= 0]
        mine[out] = -1
        owners[sold], mine[rows[won]], prices[sold] = rows[won], sold, bids[won]
        left = np.concatenate([np.delete(rows, won), out])


def top_two_gap(matrix: Array) -> Array:  # (..., A, B) -> (..., A)
    """Largest minus second largest entry of each row; a row of one entry has the second 0.

    >>> top_two_gap(np.array([[0.9, 0.2, 0.1], [0.3, 0.3, 0.0]])).round(6)
    array([0.7, 0. ])
    """
    ordered = np.sort(matrix, axis=-1)
    return ordered[..., -1] - (ordered[..., -2] if ordered.shape[-1] > 1 else 0.0)
