"""How many dimensions the data support: Minka 2000, "Automatic choice of dimensionality for PCA".

The evidence p(data | d) of probabilistic PCA, with W integrated out by Laplace's method. With eigenvalues l of the
sample covariance (largest first), s2 the mean of l_{d+1}..l_n, and l~ = l for the first d, s2 for the rest,

    log p = log p(U) - N/2 sum_{i<=d} log l_i - N (n-d)/2 log s2 + (q + d)/2 log 2pi - 1/2 log|A_z| - d/2 log N
    log p(U) = -d log 2 + sum_{i<=d} [log Gamma((n-i+1)/2) - (n-i+1)/2 log pi],     q = n d - d (d+1)/2
    log|A_z| = sum_{i<=d} sum_{i<j<=n} log[(1/l~_j - 1/l~_i) (l_i - l_j) N]
"""

from typing import Any

import numpy as np
from scipy.special import gammaln

from unseam.axes import Array
from unseam.linear.checks import latent_dimension, spectrum


def log_evidence(eigenvalues: Any, d: int, count: int) -> float:  # (n,), N
    """log p(data | d) up to a constant that does not depend on d; -inf when two kept eigenvalues coincide.

    >>> round(log_evidence([5.0, 3.0, 1.0, 0.9], 2, 100) - log_evidence([5.0, 3.0, 1.0, 0.9], 1, 100), 2)
    16.56
    """
    l = spectrum("eigenvalues", eigenvalues)
    n, N = len(l), count
    d = latent_dimension(d, n)
    s2 = l[d:].mean()
    i = np.arange(1, d + 1)
    half = (n - i + 1) / 2
    log_U = -d * np.log(2) + (gammaln(half) - half * np.log(np.pi)).sum()
    q = n * d - d * (d + 1) / 2
    fit = -N / 2 * np.log(l[:d]).sum() - N * (n - d) / 2 * np.log(s2)
    return float(log_U + fit + (q + d) / 2 * np.log(2 * np.pi) - _log_det_A(l, d, s2, N) / 2 - d / 2 * np.log(N))


def _log_det_A(l: Array, d: int, s2: float, N: int) -> float:
    flat = np.where(np.arange(len(l)) < d, l, s2)
    i, j = np.triu_indices(d, 1, len(l))
    curvature = (1 / flat[j] - 1 / flat[i]) * (l[i] - l[j]) * N
    with np.errstate(divide="ignore"):
        return np.inf if (curvature <= 0).any() else float(np.log(curvature).sum())


def best_dimension(eigenvalues: Any, count: int) -> int:  # (n,), N
    """The d in 1..n-1 with the highest evidence.

    >>> best_dimension([5.0, 3.0, 1.1, 1.0, 0.9], 50)
    2
    """
    l = spectrum("eigenvalues", eigenvalues)
    return 1 + int(np.argmax([log_evidence(l, d, count) for d in range(1, len(l))]))
