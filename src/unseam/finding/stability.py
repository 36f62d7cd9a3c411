"""Whether a factor comes back: the same search twice, on other rows or from another seed, compared one to one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.rng import numpy_generator
from unseam.stats import matched, matched_codes, rank_correlations

AGREES = 0.9  # rank correlation from which a factor, or its group, comes back
_MIXES = 0.35  # a correlation above this says that two factors take each other's place
_CONGRUENT = 0.95  # Tucker's congruence from which loadings are called the same (Lorenzo-Seva & ten Berge 2006)
_CHANCE = 0.95  # quantile of random axes that coming back must exceed
Twice = tuple[Array, Array]  # codes of the same rows by two searches, (M, a) and (M, b)


class Agreement(NamedTuple):
    """For each factor: how well it comes back, what chance gives, and which others it mixes with."""

    alone: Array  # (d,) rank correlation between two searches, one to one, the median over repetitions
    chance: float  # the 95 % quantile of the same for random axes of the same space
    group: Array  # (d,) number of the group of factors that take each other's place
    together: Array  # (d,) how well the factor is given by its whole group in another search
    measure: str = "rank correlation of codes"
    agrees: float = AGREES  # from which on `alone` is called coming back

    @property
    def bar(self) -> float:
        """From which on a factor comes back by itself."""
        return max(self.agrees, self.chance)

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
    group = groups(np.where(np.minimum.outer(alone, alone) < AGREES, mixing, 0) > _MIXES)
    together = group_correlation(codes, twice, group)
    return Agreement(alone, chance_quantile(d, len(twice)), group, together)


def congruence_agreement(L: Array, twice: Sequence[Twice]) -> Agreement:  # (n, k)
    """The same for loadings: Tucker's congruence of the columns of two searches (n, k) each, matched to L's.

    >>> L = np.kron(np.eye(2), np.ones((3, 1)))
    >>> congruence_agreement(L, [(L, -L[:, ::-1])]).alone
    array([1., 1.])
    """
    from unseam.finding.simplicity import congruences

    d, ordered = L.shape[1], loadings_in_order(L, twice)
    cross = np.stack([congruences(a, b) for a, b in ordered])
    alone = np.median(cross[:, np.arange(d), np.arange(d)], axis=0)
    mixing = np.maximum(np.mean(cross, 0), np.mean(cross, 0).T)
    group = groups(np.where(np.minimum.outer(alone, alone) < AGREES, mixing, 0) > _MIXES)
    return Agreement(
        alone, chance_quantile(d, len(twice)), group, group_congruence(ordered, group),
        "Tucker congruence of loadings", _CONGRUENT,
    )  # fmt: skip


def not_alone(back: Agreement, identified: Array, together: Callable[[Array], Array]) -> Agreement:  # (d,) bool
    """Factors that a clue singles out, but that do not come back by themselves, have no known axes either: they are one
    group with the others without an axis, as far as that group's space comes back. `together(group)` says how well each
    factor is given by its whole group.
    """
    short = identified & (back.alone < back.bar)
    loose = short | ~identified
    if not short.any() or loose.sum() < 2:
        return back

    def joined(chosen: Array) -> Agreement:
        group = groups(np.outer(chosen, chosen) | (back.group[:, None] == back.group))
        return back._replace(group=group, together=together(group))

    comes_back = loose & (joined(loose).together >= AGREES)
    return joined(comes_back) if (comes_back & short).any() else back


def loadings_in_order(L: Array, twice: Sequence[Twice]) -> list[Twice]:  # (n, k)
    """Both loadings of each search with their columns in the order of L's; a factor it does not have is 0."""
    from unseam.finding.simplicity import congruences

    def in_order(other: Array) -> Array:
        found = matched(congruences(L, other)).columns
        return np.where(found >= 0, other[:, found], 0.0)

    return [(in_order(a), in_order(b)) for a, b in twice]


def group_congruence(ordered: Sequence[Twice], group: Array) -> Array:  # -> (d,)
    """How well each factor's loadings are given by those of its whole group in the other search, the median."""

    def each(a: Array, b: Array) -> list[float]:
        return [_explained(a[:, j], b[:, group == group[j]]) for j in range(len(group))]

    return np.asarray(np.median([each(a, b) for a, b in ordered], axis=0))


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


def group_correlation(codes: Array, twice: Sequence[Twice], group: Array) -> Array:  # (M, d) -> (d,)
    """How well each factor is given by its whole group in the other search, the median."""
    return np.asarray(np.median([_together(codes, a, b, group) for a, b in twice], axis=0))


def _together(codes: Array, a: Array, b: Array, group: Array) -> Array:  # -> (d,)
    """Multiple correlation of each factor of one search with the factors of its group in the other."""
    a, b = _in_order(codes, a), _in_order(codes, b)
    return np.array([_multiple(a[:, j], b[:, group == group[j]]) for j in range(len(group))])


def _multiple(y: Array, x: Array) -> float:  # (M,), (M, k)
    return _explained(y - y.mean(), x - x.mean(0))


def _explained(y: Array, x: Array) -> float:  # (M,), (M, k)
    if not (y**2).sum():
        return 0.0
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(np.sqrt(max(0.0, 1 - (left**2).sum() / (y**2).sum())))


def groups(linked: Array) -> Array:  # (d, d) bool -> (d,)
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(linked, directed=False)[1])


@lru_cache(maxsize=256)
def chance_quantile(d: int, times: int, level: float = _CHANCE, draws: int = 2000) -> float:
    """The quantile, over random axes, of what `alone` would be: two searches with axes drawn at random in the same
    d-dimensional space are matched, and the median over so many repetitions is taken.

    With one factor there is nothing to turn, and chance is 0.

    >>> chance_quantile(2, 1) > 0.99, 0.9 < chance_quantile(2, 15) < 0.98, chance_quantile(1, 5)
    (True, True, 0.0)
    """
    if d == 1:
        return 0.0
    generator = numpy_generator(0, "chance")
    count = draws if d <= 20 else 200
    tables = max(1, count // d)
    Q = np.abs(np.linalg.qr(generator.standard_normal((tables * times, d, d)))[0])
    values = np.stack([matched(q).values for q in Q]).reshape(tables, times, d)
    return float(np.quantile(np.median(values, axis=1), level))


def separations(gram: Array) -> Array:  # (p, k, k) -> (k,)
    """For each factor the smallest (s1 - s2) / s1 of its planes with the others; 0: no axis is preferred.

    s1 >= s2 are the singular values of columns i and j of J, by the 2 x 2 block of J'J; the lower median over points.
    (`geometry.degeneracy.plane_differences` is the same in torch; this one is for findings without a network.)

    Parameters
    ----------
    gram
        J'J at p points.

    Returns
    -------
    array
        One number a factor, 1 where it is the only one.

    >>> separations(np.diag([1.0, 0.81])[None]).round(3)
    array([0.1, 0.1])
    """
    k = gram.shape[-1]
    if k < 2:
        return np.ones(k)
    i, j = np.triu_indices(k, 1)
    a, b = gram[:, i, i], gram[:, j, j]
    middle, radius = (a + b) / 2, np.hypot((a - b) / 2, gram[:, i, j])
    s1, s2 = np.sqrt(middle + radius), np.sqrt(np.maximum(middle - radius, 0))
    difference = np.sort((s1 - s2) / np.maximum(s1, np.finfo(gram.dtype).tiny), axis=0)[(len(gram) - 1) // 2]
    return np.array([difference[(i == f) | (j == f)].min() for f in range(k)])
