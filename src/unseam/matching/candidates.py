"""The nearest directions of another dictionary, from blocks of cosines: no more than a block is ever in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from unseam.axes import Array

_ROWS, _COLUMNS = 1024, 4096  # of a block of cosines
_COPY = 1 << 30  # bytes that the normalised copy of the second set may take; larger sets are normalised again and again


class Nearest(NamedTuple):
    """For each direction, the k directions of the other set that are most similar, in no particular order."""

    values: Array  # (A, k) float32
    columns: Array  # (A, k)


def unit(w: Array) -> Array:  # (A, n) -> (A, n) float32
    """Rows of length 1; those of length 0 stay.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    w = np.asarray(w)
    length = np.linalg.norm(w, axis=1, keepdims=True)
    return (w / np.where(length > 0, length, 1)).astype(np.float32)


def similarities(a: Array, b: Array, signed: bool) -> Array:  # (A, n), (B, n) -> (A, B) float32
    """Cosines, or |cosines| where a direction and its opposite are the same.

    >>> similarities(np.array([[2.0, 0.0]]), np.array([[-1.0, 0.0], [0.0, 5.0]]), signed=False)
    array([[1., 0.]], dtype=float32)
    """
    found = unit(a) @ unit(b).T
    return found if signed else np.abs(found, out=found)


def nearest(
    a: Array,  # (A, n)
    b: Array,  # (B, n)
    count: int,
    signed: bool = False,
    without: Array | None = None,  # (A,) a direction of b that must not be in each list; -1: none
    advance: Callable[[int], Any] | None = None,
) -> Nearest:
    """The `count` most similar directions of b for each of a; all of them where b has fewer.

    Memory: a block of 1,024 x 4,096 cosines, the lists, and a normalised copy of b where that takes at most 1 GiB.

    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> nearest(W[:2], W, 1).columns.ravel()
    array([0, 1])
    >>> nearest(W[:2], W, 1, without=np.array([0, 1])).columns.ravel()
    array([2, 2])
    """
    k = min(count, len(b) - (without is not None))
    found = Nearest(np.empty((len(a), k), np.float32), np.empty((len(a), k), np.int64))
    copy = 4 * b.size <= _COPY
    if copy:
        b = np.concatenate([unit(b[j : j + _COLUMNS]) for j in range(0, len(b), _COLUMNS)])
    for i in range(0, len(a), _ROWS):
        rows = unit(a[i : i + _ROWS])
        best = Nearest(np.empty((len(rows), 0), np.float32), np.empty((len(rows), 0), np.int64))
        for j in range(0, len(b), _COLUMNS):
            block = rows @ (b[j : j + _COLUMNS] if copy else unit(b[j : j + _COLUMNS])).T
            if not signed:
                np.abs(block, out=block)
            if without is not None:
                barred = without[i : i + _ROWS] - j
                here = np.flatnonzero((barred >= 0) & (barred < block.shape[1]))
                block[here, barred[here]] = -np.inf
            best = _merge(best, block, j, k)
        found.values[i : i + _ROWS], found.columns[i : i + _ROWS] = best
        if advance is not None:
            advance(len(rows))
    return found


def _merge(best: Nearest, block: Array, start: int, k: int) -> Nearest:
    """The k best of the lists so far and of a block whose first column is number `start`.

    Once the lists are full, few entries of a block are above a row's lowest: only those are compared.
    """
    if best.values.shape[1] < k:
        m = min(k, block.shape[1])
        place = np.argpartition(block, -m, axis=1)[:, -m:]
        values, columns = np.take_along_axis(block, place, axis=1), place + start
    else:
        flat = np.flatnonzero(block > best.values.min(axis=1, keepdims=True, initial=np.inf))
        rows, places = np.divmod(flat, block.shape[1])
        counts = np.bincount(rows, minlength=len(block))
        order = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        values = np.full((len(block), counts.max(initial=0)), -np.inf, np.float32)
        columns = np.zeros(values.shape, np.int64)
        values[rows, order], columns[rows, order] = block.ravel()[flat], places + start
    values, columns = np.hstack([best.values, values]), np.hstack([best.columns, columns])
    if values.shape[1] <= k:
        return Nearest(values, columns)
    place = np.argpartition(values, -k, axis=1)[:, -k:] if k else np.empty((len(values), 0), np.int64)
    return Nearest(np.take_along_axis(values, place, axis=1), np.take_along_axis(columns, place, axis=1))
