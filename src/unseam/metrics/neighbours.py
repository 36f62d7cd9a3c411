"""Mutual information by counting neighbours, without bins, in nats.

Ross (2014) for a discrete and a continuous variable; Kraskov, Stoegbauer & Grassberger (2004), estimator 1, called
KSG, for two continuous ones. Values are put on a fine grid where their differences are exact, so that "strictly
nearer" means it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import digamma

from unseam.types import Array

GRID = 2.0**40  # steps to a standard deviation


def on_grid(x: Array) -> Array:
    """Standardised values rounded to multiples of 2^-40, as float64 integers: their differences are exact."""
    x = x.astype(np.float64)
    scale = x.std()
    return np.round((x - x.mean()) / scale * GRID) if scale > 0 else np.zeros_like(x)


def neighbour_distance(s: Array, k: int) -> Array:  # sorted (n,) -> (n,)
    """Distance of each point of a sorted line to its k-th nearest neighbour: the best of k + 1 windows."""
    padded = np.concatenate([np.full(k, -np.inf), s, np.full(k, np.inf)])
    n = len(s)
    left = [s - padded[k - j : k - j + n] for j in range(k + 1)]
    right = [padded[k + j : k + j + n] - s for j in range(k + 1)]
    return np.min([np.maximum(left[j], right[k - j]) for j in range(k + 1)], axis=0)


def within(line: Array, x: Array, radius: Array, closed: bool) -> Array:
    """How many points of a sorted line lie within the radius of x, x itself included."""
    sides: tuple[Literal["left", "right"], Literal["left", "right"]] = (
        ("right", "left") if closed else ("left", "right")
    )
    return np.searchsorted(line, x + radius, sides[0]) - np.searchsorted(line, x - radius, sides[1])


def ross_mi(labels: Array, z: Array, k: int = 3) -> float:
    """I(v; z) of a discrete v and a continuous z (Ross 2014): psi(N) + psi(k) - <psi(N_v)> - <psi(m)>.

    m counts the points nearer than the k-th nearest of the same class. Classes of one row are left out.

    >>> v = np.repeat([0, 1], 500)
    >>> round(ross_mi(v, np.random.default_rng(0).normal(size=1000) + 20 * v), 3)
    0.694
    """
    x = on_grid(z)
    groups = [np.sort(x[labels == c]) for c in range(int(labels.max()) + 1)]
    groups = [g for g in groups if len(g) > 1]
    if not groups:
        return 0.0
    line = np.sort(np.concatenate(groups))
    terms = np.concatenate([ross_terms(g, line, min(k, len(g) - 1)) for g in groups])
    return float(max(digamma(len(line)) + terms.mean(), 0.0))


def ross_terms(group: Array, line: Array, k: int) -> Array:
    """psi(k) - psi(N_v) - psi(m) of each point of one class; tied points count their ties instead of k."""
    radius = neighbour_distance(group, k)
    tied = radius == 0
    near = np.where(tied, within(group, group, 0 * group, True), k)
    m = np.where(tied, within(line, group, 0 * group, True), within(line, group, radius, False))
    return digamma(near) - digamma(len(group)) - digamma(m)


def ksg_mi(v: Array, z: Array, k: int = 3) -> float:
    """I(v; z) of two continuous variables: psi(N) + psi(k) - <psi(n_v + 1) + psi(n_z + 1)> (Kraskov, eq. 8).

    n counts the points strictly nearer than the k-th neighbour in the plane (maximum norm). Points that
    coincide with k others are counted as in Gao et al. (2017), so repeated values need no added noise.

    >>> x = np.random.default_rng(0).normal(size=(2000, 2)) @ np.array([[1, 0.6], [0, 0.8]])
    >>> print(f"{ksg_mi(x[:, 0], x[:, 1]):.2f}, exactly {-0.5 * np.log(1 - 0.6**2):.2f}")
    0.21, exactly 0.22
    """
    from scipy.spatial import cKDTree

    a, b = on_grid(v), on_grid(z)
    n, k = len(a), min(k, len(a) - 1)
    plane = np.stack([a, b], axis=1)
    radius = np.asarray(cKDTree(plane).query(plane, [k + 1], p=np.inf)[0])[:, 0]
    tied = radius == 0
    line_a, line_b = np.sort(a), np.sort(b)
    n_a, n_b = within(line_a, a, radius, False), within(line_b, b, radius, False)
    near = np.full(n, float(k))
    if tied.any():
        near[tied] = coincidences(plane)[tied]
        n_a[tied], n_b[tied] = within(line_a, a, 0 * a, True)[tied], within(line_b, b, 0 * b, True)[tied]
    return float(max(digamma(n) + (digamma(near) - digamma(n_a) - digamma(n_b)).mean(), 0.0))


def coincidences(plane: Array) -> Array:
    """For each point, how many points are at the same place (itself included)."""
    _, inverse, counts = np.unique(plane, axis=0, return_inverse=True, return_counts=True)
    return counts[inverse.ravel()]
