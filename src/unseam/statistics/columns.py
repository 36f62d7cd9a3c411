"""Columns made comparable: standardised, ranked, as labels, or in random axes."""

from collections.abc import Iterator

import numpy as np
import scipy

from unseam.types import Array


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


def distinct(column: Array) -> tuple[Array, Array]:  # (N,) -> (C,), (N,)
    """np.unique with its inverse; by counting when the values are integers in a small range, which is linear.

    >>> distinct(np.array([7, 5, 7]))
    (array([5, 7]), array([1, 0, 1]))
    """
    if column.dtype.kind not in "iu" or int(column.max()) - int(column.min()) > 4 * len(column):
        return np.unique(column, return_inverse=True)
    offset = column.astype(np.int64) - int(column.min())
    found = np.flatnonzero(np.bincount(offset))
    place = np.zeros(found[-1] + 1, np.int64)
    place[found] = np.arange(len(found))
    return (found + int(column.min())).astype(column.dtype), place[offset]
