"""Entropy and mutual information of labels, in nats, and the bins that make labels of a column."""

from typing import Literal

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput

Rule = Literal["histogram", "quantile"]


def entropy(labels: Array) -> float:  # (N,) -> nats
    """H(v) = -sum_c p_c log p_c of class labels 0..C-1.

    >>> round(entropy(np.array([0, 1, 0, 1])), 6)
    0.693147
    """
    return entropy_of_counts(np.bincount(labels))


def entropy_of_counts(counts: Array) -> float:
    """The same of how often each label occurs; counts may be fractions.

    >>> round(entropy_of_counts(np.array([[0.5, 0.0], [0.0, 0.5]])), 6)
    0.693147
    """
    p = counts[counts > 0] / counts.sum()
    return float(max(-(p * np.log(p)).sum(), 0.0))


def discretise(codes: Array, bins: int = 20, rule: Rule = "histogram") -> Array:  # (N, K) -> (N, K) 0..bins-1
    """Each column cut into equal widths between its extremes ("histogram") or into equal counts ("quantile").

    >>> z = np.array([[0.0], [0.4], [0.6], [10.0]])
    >>> discretise(z, 2).ravel(), discretise(z, 2, "quantile").ravel()
    (array([0, 0, 0, 1]), array([0, 0, 1, 1]))
    """
    if bins < 2:
        raise BadInput(f"bins={bins} must be at least 2")
    return np.stack([discretise_column(z, bins, rule) for z in codes.T]).T  # each column in one piece of memory


def discretise_column(z: Array, bins: int, rule: Rule) -> Array:  # (N,) -> (N,)
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


def discrete_information(a: Array, b: Array) -> float:
    """I(a; b) = H(a) + H(b) - H(a, b), the plug-in estimate.

    >>> x = np.array([0, 0, 1, 1])
    >>> round(discrete_information(x, x), 6), round(discrete_information(x, np.array([0, 1, 0, 1])), 6)
    (0.693147, 0.0)
    """
    joint = contingency(a, b)
    h = [entropy_of_counts(counts) for counts in (joint.sum(1), joint.sum(0), joint.ravel())]
    return max(h[0] + h[1] - h[2], 0.0)
