"""Two dictionaries matched by cosine: exactly where they are small, by an auction with a proof of its loss where not.

Chance has two levels. *Random axes*: 512 directions of the first set, rotated together at random, matched the same
way. *Hard negatives*: 512 directions of the first set matched with the second when none may have its own partner:
what directions of the same data have in common without being the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.matching.candidates import nearest, similarities, unit
from unseam.rng import numpy_generator
from unseam.stats import auction, matched

EXACT = 2000  # directions on each side up to which the assignment is solved exactly
LISTED = 16  # nearest directions that are candidates for each direction of larger sets
SAMPLE = 512  # directions behind each chance level


class MatchedDirections(NamedTuple):
    """What is known of two dictionaries after the matching."""

    values: Array  # (A,) similarity to the partner; 0: no partner
    partners: Array  # (A,) -1: none
    loss: float  # the mean value of the best matching of all is larger by at most this
    edges: tuple[Array, Array, Array]  # directions of the first, of the second, and how similar they are
    random: Array  # values that random axes reach
    negatives: Array  # values that hard negatives reach


def match_directions(
    a: Array, b: Array, signed: bool, seed: int, advance: Callable[[int], Any] | None = None
) -> MatchedDirections:  # (A, n), (B, n)
    """Match the rows of a with those of b one to one, and find what chance would give.

    Parameters
    ----------
    a, b
        Dictionaries, one direction for each row, of the same length n. Rows of length 0 have no partner.
    signed
        A direction and its opposite are two.
    seed
        Of the random axes and of the directions drawn for the chance levels.
    advance
        Called with the number of rows of a that are done.

    Examples
    --------
    >>> W = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    >>> match_directions(W, -W[::-1], signed=False, seed=0).partners
    array([3, 2, 1, 0])
    """
    values, partners = np.zeros(len(a)), np.full(len(a), -1)
    first, second = (np.flatnonzero(_lengths(w) > 0) for w in (a, b))
    if len(first) <= len(second):
        (rows, columns, found), edges, loss = _pair(a, b, first, second, signed, advance)
    else:  # the smaller side bids: only then can each bidder have a partner
        (columns, rows, found), (j, i, s), loss = _pair(b, a, second, first, signed, advance)
        edges = (i, j, s)
    values[rows], partners[rows] = found, columns
    rng = numpy_generator(seed, "chance")
    chosen = rng.permutation(len(a))[:SAMPLE]
    random = _chance(rotated(unit(a[chosen]), rng), b, signed)
    negatives = _chance(a[chosen], b, signed, partners[chosen])
    return MatchedDirections(values, partners, loss, edges, random, negatives)


def _lengths(w: Array) -> Array:  # (A, n) -> (A,)
    """Length of each row, from blocks of rows."""
    return np.concatenate([np.linalg.norm(w[i : i + 4096], axis=1) for i in range(0, len(w), 4096)])


_Triples = tuple[Array, Array, Array]  # rows, columns and values of as many pairs


def _pair(
    a: Array, b: Array, rows: Array, columns: Array, signed: bool, advance: Callable[[int], Any] | None
) -> tuple[_Triples, _Triples, float]:
    """Match each row of a with a row of b of its own; b has at least as many rows.

    The pairs, all entries of the lists, and how much larger the mean value could be at most. Rows whose whole list is
    taken come again, with lists of the columns that are free.
    """
    if not len(rows):
        nothing = (rows, rows, np.zeros(0))
        return nothing, nothing, 0.0
    x, y = _some(a, rows), _some(b, columns)
    near = nearest(x, y, LISTED, signed, advance=advance)
    edges = np.repeat(rows, near.columns.shape[1]), columns[near.columns.ravel()], near.values.ravel()
    if max(len(x), len(y)) <= EXACT:
        found = matched(similarities(x, y, signed))
        return (rows, columns[found.columns], found.values), edges, 0.0
    got, bound = auction(near.values, near.columns, len(y))
    values = near.values[np.arange(len(x)), (near.columns == got[:, None]).argmax(axis=1)]
    done = got >= 0
    others = _pair(a, b, rows[~done], np.delete(columns, got[done]), signed, None)[0]
    chosen = (rows[done], columns[got[done]], values[done].astype(float))
    i, j, v = (np.concatenate(both) for both in zip(chosen, others, strict=True))
    return (i, j, v), edges, max(0.0, bound - float(v.sum())) / len(rows)


def _some(w: Array, rows: Array) -> Array:
    """Some rows; the array itself where they are all of them."""
    return w if len(rows) == len(w) else w[rows]


def _chance(x: Array, b: Array, signed: bool, without: Array | None = None) -> Array:  # (S, n), (B, n) -> at most (S,)
    """Values of directions that are matched with those of b the way two sets are, without their partners if given."""
    if max(len(x), len(b)) <= EXACT:
        table = similarities(x, b, signed)
        barred = np.zeros(len(x), bool) if without is None else without >= 0
        if without is not None:
            table[barred, without[barred]] = -2
        found = matched(table)
        return found.values[found.values > -2]
    near = nearest(x, b, LISTED, signed, without)
    got = auction(near.values, near.columns, len(b)).columns
    listed = near.columns == got[:, None]
    return np.where(got >= 0, (near.values * listed).sum(axis=1), near.values.min(axis=1)).astype(float)


def rotated(a: Array, rng: np.random.Generator) -> Array:  # (S, n) -> (S, n)
    """Directions rotated together by a random rotation: the angles between them stay.

    >>> w = unit(np.random.default_rng(0).normal(size=(5, 9)))
    >>> turned = rotated(w, np.random.default_rng(1))
    >>> bool(np.allclose(turned @ turned.T, w @ w.T, atol=1e-5))
    True
    """
    inside: Array = np.asarray(np.linalg.qr(a.astype(np.float64).T, mode="r"))  # a = inside^T Q^T, Q^T Q = 1
    axes = np.linalg.qr(rng.normal(size=(a.shape[1], len(inside))))[0]
    return (inside.T @ axes.T).astype(np.float32)
