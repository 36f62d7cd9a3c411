"""One-to-one matchings of many rows and columns, where a full table of values would not fit into memory."""

from typing import NamedTuple

import numpy as np

from unseam.axes import Array

_PATIENCE = 0.05  # profit that a row gives up before it looks beyond its list


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
