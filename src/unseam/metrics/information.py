"""Entropy and mutual information of discrete and continuous variables, in nats.

A discrete factor and a continuous code: the code is cut into bins (20 equal widths, as in the reference; or
quantiles) and the plug-in estimate is taken, or Ross (2014) counts neighbours without bins. A continuous
factor and a code: Kraskov, Stoegbauer & Grassberger (2004), estimator 1, called KSG. The cost of the binned
estimate is linear in the rows.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import digamma

from unseam.errors import BadInput
from unseam.types import Array

Estimator = Literal["histogram", "quantile", "knn"]
GRID = 2.0**40  # neighbour distances are computed on this grid of the standard deviation, where they are exact


def entropy(labels: Array) -> float:  # (N,) -> nats
    """H(v) = -sum_c p_c log p_c of class labels 0..C-1.

    >>> round(entropy(np.array([0, 1, 0, 1])), 6)
    0.693147
    """
    return entropy_of_counts(np.bincount(labels))


def entropy_of_counts(counts: Array) -> float:
    p = counts[counts > 0] / counts.sum()
    return float(max(-(p * np.log(p)).sum(), 0.0))


def discretise(
    codes: Array,  # (N, K)
    bins: int = 20,
    rule: Literal["histogram", "quantile"] = "histogram",
) -> Array:  # (N, K) integers 0..bins-1
    """Each column cut into equal widths between its extremes ("histogram") or into equal counts ("quantile").

    >>> z = np.array([[0.0], [0.4], [0.6], [10.0]])
    >>> discretise(z, 2).ravel(), discretise(z, 2, "quantile").ravel()
    (array([0, 0, 0, 1]), array([0, 0, 1, 1]))
    """
    if bins < 2:
        raise BadInput(f"bins={bins} must be at least 2")
    return np.stack([discretise_column(z, bins, rule) for z in codes.T], axis=1)


def discretise_column(z: Array, bins: int, rule: str) -> Array:  # (N,) -> (N,)
    z = z.astype(np.float64)  # as the reference has it: single-precision edges move a few rows
    try:
        inner = np.histogram_bin_edges(z, bins)[1:-1] if rule == "histogram" else quantile_edges(z, bins)
    except ValueError:  # the range is too narrow for `bins` floating-point numbers: the values are the bins
        inner = np.unique(z)[1:]
    return np.searchsorted(inner, z, side="right")


def quantile_edges(z: Array, bins: int) -> Array:
    return np.unique(np.quantile(z, np.arange(1, bins) / bins, method="higher"))


def contingency(a: Array, b: Array) -> Array:  # (N,), (N,) -> (A, B)
    """How often each pair of labels occurs.

    >>> contingency(np.array([0, 1, 1]), np.array([0, 0, 1]))
    array([[1, 0],
           [1, 1]])
    """
    rows, columns = int(a.max()) + 1, int(b.max()) + 1
    return np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns)


def discrete_mi(a: Array, b: Array) -> float:
    """I(a; b) = H(a) + H(b) - H(a, b), the plug-in estimate.

    >>> x = np.array([0, 0, 1, 1])
    >>> round(discrete_mi(x, x), 6), round(discrete_mi(x, np.array([0, 1, 0, 1])), 6)
    (0.693147, 0.0)
    """
    joint = contingency(a, b)
    return max(
        entropy_of_counts(joint.sum(1)) + entropy_of_counts(joint.sum(0)) - entropy_of_counts(joint.ravel()),
        0.0,
    )


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


def mutual_information(
    codes: Array,  # (N, K)
    labels: Array,  # (N, F), a column of -1 marks a continuous factor
    values: Array,  # (N, F)
    estimator: Estimator = "histogram",
    bins: int = 20,
    k: int = 3,
) -> Array:  # (F, K) nats
    """I(v_f; z_j) for every factor and latent; the estimator is for discrete factors, continuous take KSG.

    >>> v = np.arange(8).reshape(-1, 1) % 2
    >>> np.round(mutual_information(np.hstack([v, 0 * v]).astype(float), v, v), 4)
    array([[0.6931, 0.    ]])
    """
    discrete = np.asarray((labels >= 0).all(axis=0))
    binned = (
        discretise(codes, bins, "quantile" if estimator == "quantile" else "histogram") if estimator != "knn" else None
    )
    out = np.zeros((labels.shape[1], codes.shape[1]))
    for f in range(labels.shape[1]):
        for j in range(codes.shape[1]):
            if not discrete[f]:
                out[f, j] = ksg_mi(values[:, f], codes[:, j], k)
            elif binned is not None:
                out[f, j] = discrete_mi(labels[:, f], binned[:, j])
            else:
                out[f, j] = ross_mi(labels[:, f], codes[:, j], k)
    return out
