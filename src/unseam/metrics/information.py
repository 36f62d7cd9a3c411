"""Entropy and mutual information of discrete and continuous variables, in nats.

A discrete factor and a continuous code: the code is cut into bins (20 equal widths, as in the reference; or
quantiles) and the plug-in estimate is taken, or Ross (2014) counts neighbours without bins. A continuous
factor and a code: Kraskov, Stoegbauer & Grassberger (2004), estimator 1, called KSG. The cost of the binned
estimate is linear in the rows.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from unseam.errors import BadInput
from unseam.metrics.neighbours import ksg_mi, ross_mi
from unseam.types import Array

Estimator = Literal["histogram", "quantile", "knn"]


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
    return np.stack([discretise_column(z, bins, rule) for z in codes.T]).T  # each column in one piece of memory


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
