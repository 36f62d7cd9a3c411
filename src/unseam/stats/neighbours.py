"""Mutual information by counting neighbours, without bins, in nats.

Ross (2014) for a discrete and a continuous variable; Kraskov, Stoegbauer & Grassberger (2004), estimator 1, called
KSG, for two continuous ones or two groups of them. Values are put on a fine grid where their differences are exact
whole numbers, so that "strictly nearer" means it. Large groups and few rows bias the estimates towards 0.
"""

import numpy as np
import scipy

from unseam.axes import Array

_GRID = 2.0**40  # steps to a standard deviation


def psi(count: Array | int) -> Array:
    """The digamma function."""
    return np.asarray(scipy.special.digamma(count))


def on_grid(x: Array) -> Array:  # (N,) -> (N,)
    """Standardised values rounded to multiples of 2^-40, as float64 integers: their differences are exact."""
    x = x.astype(np.float64)
    scale = x.std()
    return np.round((x - x.mean()) / scale * _GRID) if scale > 0 else np.zeros_like(x)


def ross(labels: Array, z: Array, k: int = 3) -> float:  # (N,) 0..C-1, (N,)
    """I(v; z) of a discrete v and a continuous z (Ross 2014): psi(N) + psi(k) - <psi(N_v)> - <psi(m)>.

    m counts the points nearer than the k-th nearest of the same class. Classes of one row are left out.

    >>> v = np.repeat([0, 1], 500)
    >>> round(ross(v, np.random.default_rng(0).normal(size=1000) + 20 * v), 3)
    0.694
    """
    x = on_grid(z)
    groups = [np.sort(x[labels == c]) for c in range(int(labels.max()) + 1)]
    groups = [g for g in groups if len(g) > 1]
    if not groups:
        return 0.0
    line = np.sort(np.concatenate(groups))
    terms = np.concatenate([ross_terms(g, line, min(k, len(g) - 1)) for g in groups])
    return float(max(psi(len(line)) + terms.mean(), 0.0))


def ross_terms(group: Array, line: Array, k: int) -> Array:
    """psi(k) - psi(N_v) - psi(m) of each point of one class; tied points count their ties instead of k."""
    radius = neighbour_distance(group, k)
    near = np.where(radius == 0, on_line(group, group, 0 * radius), k)
    return psi(near) - psi(len(group)) - psi(on_line(line, group, radius))


def neighbour_distance(s: Array, k: int) -> Array:  # sorted (n,) -> (n,)
    """Distance of each point of a sorted line to its k-th nearest neighbour: the best of k + 1 windows."""
    padded = np.concatenate([np.full(k, -np.inf), s, np.full(k, np.inf)])
    n = len(s)
    left = [s - padded[k - j : k - j + n] for j in range(k + 1)]
    right = [padded[k + j : k + j + n] - s for j in range(k + 1)]
    return np.min([np.maximum(left[j], right[k - j]) for j in range(k + 1)], axis=0)


def on_line(line: Array, x: Array, radius: Array) -> Array:
    """How many points of a sorted line are strictly nearer to x than the radius (radius 0: at x), x itself included."""
    reach = np.maximum(radius - 0.5, 0)  # distances are whole numbers
    return np.searchsorted(line, x + reach, "right") - np.searchsorted(line, x - reach, "left")


def ksg(a: Array, b: Array, k: int = 3) -> float:  # (N,) or (N, p), (N,) or (N, q)
    """I(a; b) of two continuous variables, or two groups: psi(N) + psi(k) - <psi(n_a + 1) + psi(n_b + 1)> (eq. 8).

    n counts the points strictly nearer than the k-th neighbour in the joint space (maximum norm). Points that
    coincide with k others are counted as in Gao et al. (2017), so repeated values need no added noise.

    >>> x = np.random.default_rng(0).normal(size=(2000, 3)) @ np.array([[1, 0.6, 0], [0, 0.8, 0], [0, 0, 1]])
    >>> print(f"{ksg(x[:, 0], x[:, 1]):.2f}, {ksg(x[:, 0], x[:, 1:]):.2f}, exactly {-0.5 * np.log(1 - 0.6**2):.2f}")
    0.23, 0.27, exactly 0.22
    """
    sides = [[on_grid(column) for column in x.reshape(len(x), -1).T] for x in (a, b)]
    joint = np.stack([*sides[0], *sides[1]], axis=1)
    n, k = len(joint), min(k, len(joint) - 1)
    radius = np.asarray(scipy.spatial.cKDTree(joint).query(joint, [k + 1], p=np.inf)[0])[:, 0]
    near = np.where(radius == 0, coincidences(joint), k) if (radius == 0).any() else np.full(n, k)
    inside = [strictly_nearer(columns, radius) for columns in sides]
    return float(max(psi(n) + (psi(near) - psi(inside[0]) - psi(inside[1])).mean(), 0.0))


def strictly_nearer(columns: list[Array], radius: Array) -> Array:  # p of (N,), (N,) -> (N,)
    """How many points are strictly nearer than each point's radius (radius 0: at its place), itself included."""
    if len(columns) == 1:
        return on_line(np.sort(columns[0]), columns[0], radius)
    points, reach = np.stack(columns, axis=1), np.maximum(radius - 0.5, 0)
    return np.asarray(scipy.spatial.cKDTree(points).query_ball_point(points, reach, p=np.inf, return_length=True))


def coincidences(points: Array) -> Array:  # (N, p) -> (N,)
    """For each point, how many points are at the same place (itself included)."""
    _, inverse, counts = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    return counts[inverse.ravel()]
