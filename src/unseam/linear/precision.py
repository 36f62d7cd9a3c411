"""The stochastic part of the reconstruction loss, minimised directly (thesis 3.14-3.24, 4.1-4.2).

A decoder (or its Jacobian) M receives noise eps ~ N(0, diag sigma^2) and a fixed precision budget
sum_j -log sigma_j^2 = C. The noise that reaches the output is E|M eps|^2 = sum_j |M_j|^2 sigma_j^2, so by the
inequality of arithmetic and geometric means

    min over sigma:         d (prod_j |M_j|^2)^{1/d} e^{-C/d}     at sigma_j^2 proportional to 1/|M_j|^2
    min over a rotation V:  d (det M'M)^{1/d} e^{-C/d}            iff the columns of M V' are orthogonal (Hadamard)

The thesis prints e^{-C} for d = 2, which is the same with the budget counted in -log sigma; its numbers 24.5 and
52.4 are the values at C = 0 either way.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.linear.checks import checked_covariance
from unseam.linear.ppca import principal_axes


@dataclass(frozen=True)
class Allocation:
    """Noise variances that spend the budget best, and the squared error they cause."""

    variances: Array  # (d,) sigma^2
    value: float  # E|M eps|^2


def allocate(M: Any, budget: float = 0.0) -> Allocation:  # (n, d)
    """Thesis (3.18), (3.19): the best sigma for a given decoder.

    >>> M1 = np.array([[4, 1], [-3, 1], [5, -1]])
    >>> a = allocate(M1)
    >>> print(f"{a.value:.1f} at sx2/sy2 = {a.variances[0] / a.variances[1]:.4f} = {3 / 50}")
    24.5 at sx2/sy2 = 0.0600 = 0.06
    >>> turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    >>> round(allocate(M1 @ turn.T).value, 1)
    52.4
    """
    squares = (_decoder(M) ** 2).sum(0)  # |M_j|^2
    if not squares.all():
        raise BadInput("M has a column of zeros: that latent needs no precision and the problem no minimum; drop it")
    return _spend(squares, budget)


def rotate(M: Any, budget: float = 0.0) -> tuple[Array, Allocation]:  # (n, d) -> (d, d)
    """Thesis (3.16), (3.17), (3.23): the rotation V that makes the columns of M V' orthogonal, and its best sigma.

    >>> M1 = np.array([[4, 1], [-3, 1], [5, -1]])
    >>> V, a = rotate(M1)
    >>> columns = M1 @ V.T
    >>> print(f"{a.value:.2f}, columns at {abs(columns[:, 0] @ columns[:, 1]):.6f}")
    23.15, columns at 0.000000
    """
    M = _decoder(M)
    gram = checked_covariance("M'M", M.T @ M)
    V = principal_axes(gram)[1].T
    return V, allocate(M @ V.T, budget)


@dataclass(frozen=True)
class Embedding:
    """The solution of (4.1), (4.2): decoder = axes * scales, noise variances, and the stochastic loss."""

    axes: Array  # (n, d) orthonormal columns
    scales: Array  # (d,)
    variances: Array  # (d,)
    value: float


def embed(S: Any, budget: float = 0.0) -> Embedding:  # (n, n)
    """Thesis (4.1), (4.2) and Theorem 2: reconstructions with covariance S are fixed, latents have unit variance.

    For axes U the scales are the standard deviations along them, scale_j^2 = (U' S U)_jj, and the loss with the
    best sigma is d (prod_j scale_j^2)^{1/d} e^{-C/d}. Hadamard: least iff U' S U is diagonal, so U holds the
    principal axes and V is a signed permutation: a linear VAE performs PCA.

    >>> e = embed(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> np.abs(e.axes).round(4), e.scales.round(4), round(e.value, 4)
    (array([[0.7071, 0.7071],
           [0.7071, 0.7071]]), array([1.7321, 1.    ]), 3.4641)
    """
    l, U = principal_axes(checked_covariance("S", S))
    a = _spend(l, budget)
    return Embedding(U, np.sqrt(l), a.variances, a.value)


def _spend(squares: Array, budget: float) -> Allocation:  # (d,) squared column norms
    level = np.exp(np.log(squares).mean() - budget / len(squares))
    return Allocation(level / squares, float(len(squares) * level))


def _decoder(M: Any) -> Array:
    M = np.asarray(M, np.float64)
    if M.ndim != 2 or not np.isfinite(M).all():
        raise BadInput(f"M has shape {M.shape}; give a finite decoder matrix (n, d)")
    return M
