"""Multinomial logistic regression, several times faster than a general solver on tall, narrow tables.

    minimise  1/N sum_i a_i [ log sum_c exp(w_c x_i + b_c) - (w_y x_i + b_y) ]  +  1/(2 C N) |w|^2

by L-BFGS from zero, the objective, algorithm and stopping rule of scikit-learn's LogisticRegression, so the
results agree. It is fast because logits are laid out class by class, in single precision, in blocks of rows that
stay in the processor's cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from unseam.axes import Array
from unseam.metrics.shared.parallel import one_blas_thread

CACHE = 80_000  # logits in a block


@dataclass(frozen=True)
class Softmax:
    """A fitted model: weights (C, K + 1), the last column the intercept. Class c is label c."""

    weights: Array

    def probabilities(self, x: Array) -> Array:  # (N, K) -> (C, N)
        """p(c | x), class by class."""
        w = self.weights.astype(np.float32)
        return softmax(w[:, :-1] @ x.T.astype(np.float32) + w[:, -1:])

    def predict(self, x: Array) -> Array:  # (N, K) -> (N,)
        return self.probabilities(x).argmax(axis=0)


def softmax(logits: Array) -> Array:  # (C, N), in place
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits


def fit_softmax(
    x: Array,  # (N, K)
    labels: Array,  # (N,) 0..C-1
    classes: int,
    penalty: float = 1.0,  # 1/C of scikit-learn; 0 for none
    balanced: bool = False,
    tolerance: float = 1e-4,
    iterations: int = 100,
    precision: Any = np.float32,
) -> Softmax:
    """Fit by L-BFGS. Labels that do not occur get a very small probability.

    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> fit_softmax(x, np.array([0, 0, 1, 1]), 2).predict(x)
    array([0, 0, 1, 1])
    """
    n, k = x.shape
    a = np.concatenate([x.T, np.ones((1, n))]).astype(precision)  # (K + 1, N)
    counts = np.bincount(labels, minlength=classes)
    weight = n / ((counts > 0).sum() * np.maximum(counts, 1)) if balanced else np.ones(classes)
    rows = (weight[labels] / (weight * counts).sum()).astype(precision)  # (N,) sum to 1
    targets = np.stack([np.bincount(labels, rows * row, classes) for row in a], axis=1)  # (C, K + 1)
    # two classes: scikit-learn penalises the difference of the two weight vectors, which is twice as much
    ridge = (2 if classes == 2 else 1) * penalty / (weight * counts).sum()
    size = max(256, CACHE // classes)
    blocks = [
        (np.ascontiguousarray(a[:, i : i + size]), rows[i : i + size], np.empty((classes, min(size, n - i)), precision))
        for i in range(0, n, size)
    ]

    def loss(flat: Array) -> tuple[float, Array]:
        w = flat.reshape(classes, k + 1)
        parts = [log_partition(w.astype(precision), *block) for block in blocks]
        value = sum(v for v, _ in parts) - (w * targets).sum()
        gradient = np.sum([g for _, g in parts], axis=0, dtype=np.float64) - targets
        gradient[:, :k] += ridge * w[:, :k]
        return float(value + 0.5 * ridge * (w[:, :k] ** 2).sum()), gradient.ravel()

    start = np.zeros(classes * (k + 1))
    with one_blas_thread():
        best = fmin_l_bfgs_b(loss, start, maxiter=iterations, pgtol=tolerance, factr=64, maxls=50)[0]
    return Softmax(best.reshape(classes, k + 1))


def log_partition(w: Array, a: Array, rows: Array, p: Array) -> tuple[float, Array]:
    """sum_i rows_i log sum_c exp(w_c a_i) and its gradient (C, K + 1); p (C, n) is workspace."""
    np.matmul(w, a, out=p)
    top = p.max(axis=0)
    np.subtract(p, top, out=p)
    np.exp(p, out=p)
    z = p.sum(axis=0)
    np.multiply(p, rows / z, out=p)
    return float((rows * (np.log(z) + top)).sum(dtype=np.float64)), p @ a.T
