"""Which column is best at what: a one-to-one matching, and the lead of the best over the second."""

from typing import NamedTuple

import numpy as np
import scipy

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.stats.correlation import rank_correlations


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


def nearest_matched(strengths: Array, exact: int = 2000) -> Matching:  # (A, B), which is overwritten
    """A one-to-one matching of many rows: pairs that are each other's best first, round by round; the last optimally.

    Where both sides have at most `exact` members left, they are matched by `matched`. Strengths must be above -1.

    >>> nearest_matched(np.array([[0.9, 0.8, 0.0], [0.85, 0.1, 0.0], [0.0, 0.0, 0.7]]), exact=1).columns
    array([0, 1, 2])
    """
    found = Matching(np.zeros(len(strengths)), np.full(len(strengths), -1))
    rows, columns, left = np.arange(len(strengths)), np.arange(strengths.shape[1]), strengths
    while max(left.shape) > exact and min(left.shape):
        best, back = left.argmax(axis=1), left.argmax(axis=0)
        mutual = np.flatnonzero(back[best] == np.arange(len(best)))
        found.values[rows[mutual]], found.columns[rows[mutual]] = left[mutual, best[mutual]], columns[best[mutual]]
        rest = np.delete(np.arange(len(rows)), mutual), np.delete(np.arange(len(columns)), best[mutual])
        rows, columns, left = rows[rest[0]], columns[rest[1]], left[np.ix_(*rest)]
    if min(left.shape):
        last = matched(left)
        got = last.columns >= 0
        found.values[rows[got]], found.columns[rows[got]] = last.values[got], columns[last.columns[got]]
    return found


def top_two_gap(matrix: Array) -> Array:  # (..., A, B) -> (..., A)
    """Largest minus second largest entry of each row; a row of one entry has the second 0.

    >>> top_two_gap(np.array([[0.9, 0.2, 0.1], [0.3, 0.3, 0.0]])).round(6)
    array([0.7, 0. ])
    """
    ordered = np.sort(matrix, axis=-1)
    return ordered[..., -1] - (ordered[..., -2] if ordered.shape[-1] > 1 else 0.0)
