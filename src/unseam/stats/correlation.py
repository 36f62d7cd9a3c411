"""Correlation of columns, with a guard for columns that do not vary; matchings of the columns of two codes by it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from unseam.axes import Array
from unseam.errors import BadInput

_ROWS = 1 << 17  # taken at a time; with more, arrays may be files that are read by rows (`unseam.readers.FileRows`)
_RANKS = 1 << 28  # bytes of ranks in memory at a time
_TINY = 1e-12  # a standard deviation below this share of a column's largest value is rounding, not variation


def correlations(a: Array, b: Array) -> Array:  # (N, A), (N, B) -> (A, B)
    """Pearson's r of every column of a with every column of b; 0 for a constant column.

    >>> correlations(np.array([[0.0], [1.0], [2.0]]), np.array([[0.0, 5.0], [-1.0, 5.0], [-2.0, 5.0]]))
    array([[-1.,  0.]])
    """
    n = a.shape[0] - 1
    if n < _ROWS:
        a, b = _centred(a), _centred(b)
        va, vb, product = (a * a).sum(axis=0), (b * b).sum(axis=0), a.T @ b
    else:
        va, vb, product = _moments(a, b)
    va, vb = va / n, vb / n
    alive = (va > _TINY**2)[:, None] & (vb > _TINY**2)[None]
    return np.divide(product / n, np.sqrt(np.outer(va, vb)), out=np.zeros((len(va), len(vb))), where=alive)


def _moments(a: Array, b: Array) -> tuple[Array, Array, Array]:  # (N, A), (N, B) -> (A,), (B,), (A, B)
    """Sums of squares and of products of columns scaled and centred as in `_centred`, from blocks of rows."""
    scales = [_largest(x) for x in (a, b)]
    means = [
        sum((block / scale).sum(axis=0) for block in _blocks(x)) / x.shape[0]
        for x, scale in zip((a, b), scales, strict=True)
    ]
    va, vb, product = np.zeros(a.shape[1]), np.zeros(b.shape[1]), np.zeros((a.shape[1], b.shape[1]))
    for blocks in zip(_blocks(a), _blocks(b), strict=True):
        x, y = (block / scale - mean for block, scale, mean in zip(blocks, scales, means, strict=True))
        va, vb, product = va + (x * x).sum(axis=0), vb + (y * y).sum(axis=0), product + x.T @ y
    return va, vb, product


def _blocks(x: Array) -> Iterator[Array]:
    """Rows in blocks, as float64."""
    for i in range(0, x.shape[0], _ROWS):
        yield np.asarray(x[i : i + _ROWS], dtype=float)


def _largest(x: Array) -> Array:  # (N, A) -> (A,)
    """Largest absolute value of each column; 1 where all are 0."""
    found = np.max([np.abs(block).max(axis=0) for block in _blocks(x)], axis=0)
    return np.where(found > 0, found, 1.0)


def _centred(x: Array) -> Array:  # (N, A) -> (N, A)
    """Columns with largest value 1, then without their mean: r does not depend on their scale, squares would."""
    x = np.asarray(x, dtype=float)
    largest = np.abs(x).max(axis=0)
    x = x / np.where(largest > 0, largest, 1.0)
    return x - x.mean(axis=0)


def _ranks(x: Array) -> Array:  # (N, ...) -> (N, ...)
    """From 1, down each column; ties share their mean."""
    return scipy.stats.rankdata(x, axis=0)


def rank_correlations(a: Array, b: Array) -> Array:  # (N, A), (N, B) -> (A, B)
    """Spearman's rho of every column of a with every column of b; 0 for a constant column.

    >>> t = np.arange(5.0)[:, None]
    >>> rank_correlations(t, np.hstack([np.exp(t), -t, 0 * t])).round(12)
    array([[ 1., -1.,  0.]])

    Beyond 131,072 rows the ranks are made column by column and at most 256 MiB of them are in memory at a time.
    """
    n = a.shape[0]
    if n <= _ROWS:
        return correlations(_ranks(a), _ranks(b))
    out = np.empty((a.shape[1], b.shape[1]))
    step = max(1, _RANKS // (16 * n))  # columns of both sides, of 8 bytes each
    for i in range(0, a.shape[1], step):
        left = _ranked_columns(a, slice(i, i + step))
        for j in range(0, b.shape[1], step):
            out[i : i + step, j : j + step] = correlations(left, _ranked_columns(b, slice(j, j + step)))
    return out


def _ranked_columns(x: Array, columns: slice) -> Array:  # (N, A) -> (N, columns)
    """Ranks of some columns of an array or of a file that is read by rows."""
    parts = (np.asarray(x[i : i + _ROWS])[:, columns].T for i in range(0, x.shape[0], _ROWS))
    out = np.empty((len(range(*columns.indices(x.shape[1]))), x.shape[0]))
    for i, part in enumerate(parts):
        out[:, i * _ROWS : i * _ROWS + part.shape[1]] = part
    for column in out:
        column[:] = scipy.stats.rankdata(column)
    return out.T


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
    return pearson(_ranks(x), _ranks(y)) if finite else pearson(x, y)  # which says what is wrong


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


# Columns made comparable: standardised, ranked, as labels, or in random axes.


def standardise(train: Array, *others: Array) -> list[Array]:  # (N, K), (M, K) ... -> the same
    """Columns of mean 0 and standard deviation 1 on the training rows; constant columns become 0.

    >>> standardise(np.array([[0.0, 7.0], [2.0, 7.0]]))[0]
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    mean, std = train.mean(axis=0), train.std(axis=0)
    alive = (np.ptp(train, axis=0) > 0) & (std > 0)
    return [np.where(alive, (x - mean) / np.where(alive, std, 1.0), 0.0) for x in (train, *others)]


def normal_scores(x: Array, generator: np.random.Generator) -> Array:  # (N, p) -> (N, p)
    """Each column's ranks as normal quantiles, ties in random order: no information between columns is lost.

    >>> normal_scores(np.array([[1.0], [8.0], [2.0]]), np.random.default_rng(0)).round(2).ravel()
    array([-0.97,  0.97,  0.  ])
    """
    jitter = generator.random(x.shape)
    order = np.stack([np.lexsort((j, column)) for j, column in zip(jitter.T, np.asarray(x).T, strict=True)], axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(x))[:, None], axis=0)
    return np.asarray(scipy.special.ndtri((ranks + 0.5) / len(x)))


def in_random_axes(
    a: Array, b: Array, generator: np.random.Generator, draws: int
) -> Iterator[tuple[Array, Array]]:  # (N, A), (N, B)
    """Both codes as chance would have them: b, or a where b is one column alone, whitened and rotated at random.

    Two single columns have nothing to rotate with, so the rows of b are shuffled. Constant directions stay 0.

    >>> one, two = next(in_random_axes(np.arange(6.0).reshape(3, 2), np.ones((3, 1)), np.random.default_rng(0), 1))
    >>> one.shape, two.ravel()
    ((3, 2), array([1., 1., 1.]))
    """
    turn = b if b.shape[1] > 1 else a
    u, s, _ = np.linalg.svd(turn - turn.mean(axis=0), full_matrices=False)
    white = u * (s > 1e-9 * max(s[0], 1e-300)) * np.sqrt(len(turn))
    for _ in range(draws):
        if turn.shape[1] == 1:
            yield a, generator.permuted(b, axis=0)
        else:
            turned = white @ np.linalg.qr(generator.normal(size=(white.shape[1],) * 2))[0]
            yield (a, turned) if turn is b else (turned, b)


def unique_values(column: Array) -> tuple[Array, Array]:  # (N,) -> (C,), (N,)
    """np.unique with its inverse; by counting when the values are integers in a small range, which is linear.

    >>> unique_values(np.array([7, 5, 7]))
    (array([5, 7]), array([1, 0, 1]))
    """
    if column.dtype.kind not in "iu" or int(column.max()) - int(column.min()) > 4 * len(column):
        return np.unique(column, return_inverse=True)
    offset = column.astype(np.int64) - int(column.min())
    found = np.flatnonzero(np.bincount(offset))
    place = np.zeros(found[-1] + 1, np.int64)
    place[found] = np.arange(len(found))
    return (found + int(column.min())).astype(column.dtype), place[offset]


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


def top_two_gap(matrix: Array) -> Array:  # (..., A, B) -> (..., A)
    """Largest minus second largest entry of each row; a row of one entry has the second 0.

    >>> top_two_gap(np.array([[0.9, 0.2, 0.1], [0.3, 0.3, 0.0]])).round(6)
    array([0.7, 0. ])
    """
    ordered = np.sort(matrix, axis=-1)
    return ordered[..., -1] - (ordered[..., -2] if ordered.shape[-1] > 1 else 0.0)
