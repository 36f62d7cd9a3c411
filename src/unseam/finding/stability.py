"""Whether a factor comes back: the same search twice, on other rows or from another seed, compared one to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.rng import numpy_generator
from unseam.stats import matched_codes, rank_correlations

MIXES = 0.35  # a correlation above this says that two factors take each other's place
AGREES = 0.9  # a factor that comes back
Twice = tuple[Array, Array]  # codes of the same rows by two searches, (M, a) and (M, b)


class Agreement(NamedTuple):
    """For each factor: how well it comes back, what chance gives, and which others it mixes with."""

    alone: Array  # (d,) rank correlation between two searches, one to one, the median over repetitions
    chance: float  # the same for random axes of the same space
    group: Array  # (d,) number of the group of factors that take each other's place
    together: Array  # (d,) how well the factor is given by its whole group in another search

    @property
    def mean(self) -> float:
        return float(self.alone.mean()) if len(self.alone) else 0.0


def agreement(codes: Array, twice: Sequence[Twice], seed: int = 0) -> Agreement:  # (M, d)
    """Both searches are first matched to the reference codes, then compared with each other.

    >>> g = np.random.default_rng(0)
    >>> u = g.uniform(size=(500, 2))
    >>> agreement(u, [(u, -u[:, ::-1])]).alone
    array([1., 1.])
    """
    d = codes.shape[1]
    cross = np.stack([_cross(codes, a, b) for a, b in twice])  # (T, d, d)
    alone = np.median(cross[:, np.arange(d), np.arange(d)], axis=0)
    mixing = np.maximum(np.mean(cross, 0), np.mean(cross, 0).T)
    group = groups(np.where(np.minimum.outer(alone, alone) < AGREES, mixing, 0) > MIXES)
    together = np.median([_together(codes, a, b, group) for a, b in twice], axis=0)
    return Agreement(alone, chance_level(codes, seed), group, together)


def halves(train: Array, splits: int, seed: int) -> Iterator[Twice]:  # (N,) -> row numbers, twice (N / 2,)
    """Training rows cut in two, so many times."""
    for split in range(splits):
        order = numpy_generator(seed, "halves", split).permutation(train)
        yield order[::2], order[1::2]


def _in_order(codes: Array, other: Array) -> Array:  # (M, d), (M, k) -> (M, d)
    """The columns of another search in the order of the reference; a factor it does not have is 0."""
    found = matched_codes(codes, other).columns
    return np.where(found >= 0, other[:, found], 0.0)


def _cross(codes: Array, a: Array, b: Array) -> Array:
    return np.abs(rank_correlations(_in_order(codes, a), _in_order(codes, b)))


def _together(codes: Array, a: Array, b: Array, group: Array) -> Array:  # -> (d,)
    """Multiple correlation of each factor of one search with the factors of its group in the other."""
    a, b = _in_order(codes, a), _in_order(codes, b)
    return np.array([_multiple(a[:, j], b[:, group == group[j]]) for j in range(len(group))])


def _multiple(y: Array, x: Array) -> float:  # (M,), (M, k)
    y, x = y - y.mean(), x - x.mean(0)
    if not (y**2).sum():
        return 0.0
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(np.sqrt(max(0.0, 1 - (left**2).sum() / (y**2).sum())))


def groups(linked: Array) -> Array:  # (d, d) bool -> (d,)
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(linked, directed=False)[1])


def chance_level(codes: Array, seed: int = 0, draws: int = 20) -> float:  # (M, d)
    """Mean matched rank correlation of the codes with random rotations of themselves (whitened first).

    With one factor there is nothing to rotate: then of unrelated rows.
    """
    generator, d = numpy_generator(seed, "chance"), codes.shape[1]
    white = codes - codes.mean(0)
    if d == 1:
        draws_of = [generator.permuted(white, axis=0) for _ in range(draws)]
    else:
        white = white @ np.linalg.pinv(np.linalg.cholesky(np.cov(white.T) + 1e-9 * np.eye(d))).T
        draws_of = [white @ np.linalg.qr(generator.standard_normal((d, d)))[0] for _ in range(draws)]
    return float(np.mean([matched_codes(codes, other).values.mean() for other in draws_of]))
