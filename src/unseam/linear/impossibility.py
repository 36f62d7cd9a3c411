"""Why unsupervised disentanglement is impossible without a bias: the map of Locatello et al. 2019, Theorem 1.

For a factorising p(u) there is a bijection f that leaves p(u) as it is and entangles every coordinate with
every other: f = g^-1 o h^-1 o A o h o g, with g the marginal distribution functions, h the normal quantile and
A = I - 2 v v^T a reflection without a zero entry (v_1 = sqrt(a), v_i = sqrt((1 - a)/(d - 1)), 0 < a < 1/2).
A model cannot tell u from f(u) by looking at data; a metric can, with the true factors.
"""

from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from unseam.axes import Array
from unseam.errors import BadInput

_SMALLEST = np.finfo(np.float64).tiny


class Marginal(Protocol):
    """One continuous marginal distribution, such as a frozen scipy.stats one."""

    def cdf(self, x: Any) -> Any: ...

    def ppf(self, q: Any) -> Any: ...


def reflection(d: int, a: float = 0.25) -> Array:  # (d, d)
    """A = I - 2 v v^T: orthogonal, symmetric, and without a zero entry.

    >>> A = reflection(3)
    >>> np.allclose(A @ A, np.eye(3)), bool((np.abs(A) > 0.1).all())
    (True, True)
    """
    if d < 2:
        raise BadInput(f"d={d} must be at least 2; one coordinate cannot be entangled with another")
    if not 0 < a < 0.5:
        raise BadInput(f"a={a} must lie strictly between 0 and 0.5; otherwise an entry of A can be 0")
    v = np.full(d, np.sqrt((1 - a) / (d - 1)))
    v[0] = np.sqrt(a)
    return np.eye(d) - 2 * np.outer(v, v)


def entangle(u: Array, marginal: Marginal | None = None, a: float = 0.25) -> Array:  # (N, d) -> (N, d)
    """f(u): the same distribution, every coordinate a mixture of all. f is its own inverse.

    `marginal` is the distribution of every coordinate of u, the standard normal when None.

    Parameters
    ----------
    u : array of shape (N, d)
        Independent coordinates.
    marginal : Marginal, optional
        The distribution of every coordinate; the standard normal by default.
    a : float, default=0.25
        The strength of the mixing.

    Returns
    -------
    array of shape (N, d)
        The mixed coordinates, of the same distribution.

    Examples
    --------
    >>> u = np.random.default_rng(0).normal(size=(1000, 4))
    >>> np.allclose(entangle(entangle(u)), u), bool(np.abs(entangle(u) - u).mean() > 0.5)
    (True, True)
    """
    u = np.asarray(u, dtype=np.float64)
    matrix = reflection(u.shape[1], a)
    if marginal is None:
        return u @ matrix.T
    g = np.clip(marginal.cdf(u), _SMALLEST, 1 - np.finfo(np.float64).epsneg)
    return np.asarray(marginal.ppf(ndtr(ndtri(g) @ matrix.T)))


def entangling_jacobian(u: Array, marginal: Marginal | None = None, a: float = 0.25) -> Array:  # (N, d) -> (N, d, d)
    """df_i/du_j = A_ij * [slope of h o g at u_j] / [slope of h o g at f_i]: nowhere 0.

    >>> from scipy.stats import uniform
    >>> u = np.random.default_rng(0).uniform(size=(100, 3))
    >>> bool((np.abs(entangling_jacobian(u, uniform)) > 1e-6).all())
    True
    """
    u = np.asarray(u, dtype=np.float64)
    matrix = reflection(u.shape[1], a)
    if marginal is None:
        return np.broadcast_to(matrix, (len(u), *matrix.shape))
    f = entangle(u, marginal, a)
    return matrix * _slope(u, marginal)[:, None, :] / _slope(f, marginal)[:, :, None]


def _slope(x: Array, marginal: Marginal, step: float = 1e-6) -> Array:
    """d/dx of h(g(x)) = density(x) / normal density at h(g(x)); the density by a central difference of g."""
    density = (np.asarray(marginal.cdf(x + step)) - np.asarray(marginal.cdf(x - step))) / (2 * step)
    return density / norm.pdf(ndtri(np.clip(marginal.cdf(x), _SMALLEST, 1 - np.finfo(np.float64).epsneg)))
