"""What one-to-one matching hides: directions that the other set has several times, or only as parts of a sum.

*split*: one direction of the first set is near several of the second. *merged*: several of the first are near one of
the second. *mixed*: several are near several. *sum*: a direction without a partner is nearly a sum of two of the
other set, as when a feature absorbs another that always comes with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from unseam.axes import Array
from unseam.matching.candidates import unit

SUM = 0.9  # cosine with a sum of two from which on a direction is that sum


class Group(NamedTuple):
    """Directions of the two sets that belong together."""

    kind: str  # split, merged, mixed or sum
    one: tuple[int, ...]
    two: tuple[int, ...]
    value: float  # the weakest link that holds it together; of a sum, the cosine with the sum

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "one": list(self.one), "two": list(self.two), "value": round(self.value, 6)}


def near_groups(edges: tuple[Array, Array, Array], level: float) -> list[Group]:
    """Directions that are connected by similarities of at least `level`, where there are more than two of them.

    >>> near_groups((np.array([0, 0, 1]), np.array([0, 1, 2]), np.array([0.9, 0.8, 0.9])), 0.7)
    [Group(kind='split', one=(0,), two=(0, 1), value=0.8)]
    """
    rows, columns, values = (part[edges[2] >= level] for part in edges)
    if not len(rows):
        return []
    first, second = np.unique(rows, return_inverse=True), np.unique(columns, return_inverse=True)
    a, b = len(first[0]), len(second[0])
    links = scipy.sparse.coo_matrix((np.ones(len(rows)), (first[1], a + second[1])), shape=(a + b, a + b))
    label = scipy.sparse.csgraph.connected_components(links, directed=False)[1]
    sizes = np.bincount(label)
    weakest = np.full(len(sizes), np.inf)
    np.minimum.at(weakest, label[first[1]], values)
    found = []
    members = np.split(np.argsort(label, kind="stable"), np.cumsum(sizes)[:-1])
    for group in np.flatnonzero(sizes > 2):
        nodes = members[group]
        one, two = first[0][nodes[nodes < a]], second[0][nodes[nodes >= a] - a]
        kind = "split" if len(one) == 1 else "merged" if len(two) == 1 else "mixed"
        found.append(Group(kind, tuple(one.tolist()), tuple(two.tolist()), float(weakest[group])))
    return found


def sum_groups(a: Array, b: Array, edges: tuple[Array, Array, Array], level: float, least: float) -> list[Group]:
    """Directions of either set that are below `level` of all others but nearly a sum of two of the other set.

    Both of the two must be at `least` or more. The cosine of x with the nearest point in the plane of y and z is

        sqrt((p^2 + q^2 - 2 p q r) / (1 - r^2)),   p = <x, y>, q = <x, z>, r = <y, z>.

    >>> W = np.eye(4)
    >>> one, two = W[:3], np.array([W[0] + W[1], W[2]])
    >>> edges = (np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([0.71, 0.71, 1.0]))
    >>> [(g.kind, g.one, g.two) for g in sum_groups(one, two, edges, 0.8, 0.4)]
    [('sum', (0, 1), (0,))]
    """
    rows, columns, values = (part[edges[2] >= least] for part in edges)
    found = []
    for first, whole, parts, xs, ys in ((True, a, b, rows, columns), (False, b, a, columns, rows)):
        for x, y, z in _two_strongest(xs, ys, values, level):
            u, (v, w) = unit(whole[x : x + 1])[0].astype(float), unit(parts[[y, z]]).astype(float)
            p, q, r = u @ v, u @ w, v @ w
            if abs(r) > SUM:
                continue
            cosine = float(np.sqrt((p * p + q * q - 2 * p * q * r) / (1 - r * r)))
            if cosine >= SUM:
                one, two = ((x,), (y, z)) if first else ((y, z), (x,))
                found.append(Group("sum", tuple(sorted(one)), tuple(sorted(two)), min(1.0, cosine)))
    return found


def _two_strongest(xs: Array, ys: Array, values: Array, level: float) -> list[tuple[int, int, int]]:
    """Of each x with at least two links, all below `level`: it, and the two y with the strongest links."""
    order = np.lexsort((-values, xs))
    xs, ys, values = xs[order], ys[order], values[order]
    start = np.flatnonzero(np.diff(xs, prepend=-1) != 0)
    several = np.diff(np.append(start, len(xs))) > 1
    start = start[several & (values[start] < level)] if len(start) else start
    return [(int(xs[s]), int(ys[s]), int(ys[s + 1])) for s in start]
