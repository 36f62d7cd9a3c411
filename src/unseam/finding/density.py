"""One-dimensional densities, and what they say of axes: which rotation of the codes makes them most independent.

For codes u of covariance I and a rotation R, TC(R'u) = sum_j H(r_j'u) - H(u): the joint entropy does not see R, so
the rotation with the highest sum of marginal log densities on rows it has not seen has the smallest total correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm

from unseam.axes import Array
from unseam.rng import derive, numpy_generator

_POINTS = 1000  # kernels a density
_TAIL = 0.02  # share of a Student t, so that an outlier is rare and not impossible
_LEAST = 0.005  # of HSIC, from which on dependence is called one: less is what ICA leaves of its own error
_DEPENDS = 2.5  # standard deviations above shuffled columns that count as dependence (tuned: 1.6 without, 3.5 with)
TESTED = 2000  # rows of the shuffled tables


@dataclass(frozen=True)
class Density:
    """p(u) = (1 - TAIL) mean_i N(u; c_i, h^2) + TAIL t_3(u)."""

    centres: Array  # (m,)
    width: float

    def log(self, u: Array) -> Array:  # (N,) -> (N,)
        kernels = np.exp(-0.5 * ((u[:, None] - self.centres) / self.width) ** 2).sum(1)
        with np.errstate(divide="ignore"):  # far from every centre only the tail is left
            inside = np.log(kernels) - np.log(len(self.centres) * self.width * np.sqrt(2 * np.pi))
        outside = gammaln(2) - gammaln(1.5) - 0.5 * np.log(3 * np.pi) - 2 * np.log1p(u**2 / 3)
        return np.logaddexp(np.log1p(-_TAIL) + inside, np.log(_TAIL) + outside)


def density(u: Array) -> Density:  # (N,)
    """Silverman's rule on at most POINTS evenly spaced quantiles.

    >>> u = np.random.default_rng(0).standard_normal(4000)
    >>> abs(float(density(u).log(np.zeros(1))[0]) + 0.92) < 0.1
    True
    """
    centres = np.sort(u) if len(u) <= _POINTS else np.quantile(u, (np.arange(_POINTS) + 0.5) / _POINTS)
    inner = float(np.subtract(*np.quantile(u, (0.75, 0.25)))) / 1.34
    spread = min(float(u.std()), inner or float(u.std()))
    return Density(centres, max(0.9 * spread * len(u) ** -0.2, 1e-3))


def gaussian_log(u: Array) -> Array:
    return np.asarray(-0.5 * (u**2 + np.log(2 * np.pi)))


class Gain(NamedTuple):
    """A mean over rows, with its standard error."""

    mean: float
    error: float

    def sure(self, least: float = 0.0) -> bool:
        """Above `least`, by three standard errors."""
        return self.mean - 3 * self.error > least


def gain(rows: Array) -> Gain:  # (N,)
    return Gain(float(rows.mean()), float(rows.std() / np.sqrt(max(len(rows), 1))))


def log_marginals(train: Array, test: Array) -> Array:  # (N, d), (M, d) -> (M, d)
    """log p_j(u_j) of unseen rows, the densities fitted on the others."""
    return np.stack([density(a).log(b) for a, b in zip(train.T, test.T, strict=True)], axis=1)


def less_dependent(u: Array, v: Array, folds: int = 5) -> Gain:  # (N, d), (N, d): one cloud in two sets of axes
    """TC(v) - TC(u), each row by densities of the others: above 0 if u's axes are more independent.

    Both are whitened symmetrically, which turns no axis, so that the joint entropy is the same.
    """
    fold = np.arange(len(u)) % folds

    def logs(codes: Array) -> Array:
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(codes.T)))
        white = (codes - codes.mean(0)) @ ((vectors / np.sqrt(np.maximum(values, 1e-9))) @ vectors.T)
        return np.concatenate([log_marginals(white[fold != f], white[fold == f]).sum(1) for f in range(folds)])

    return gain(logs(u) - logs(v))


def rotation_by_independence(u: Array, seed: int, starts: int = 2) -> Array:  # (N, d) whitened -> (d, d)
    """FastICA (Hyvarinen 1999): the orthogonal R with independent columns of u R; the best of some starts."""
    d, best, score = u.shape[1], np.eye(u.shape[1]), -np.inf
    if d < 2:
        return best
    for start in range(starts):
        first = np.random.RandomState(derive(seed, "ica", start) % 2**32).normal(size=(d, d))
        try:
            R = _fast_ica(np.ascontiguousarray(u.T), first).T
        except np.linalg.LinAlgError:
            continue
        found = _contrast(u @ R)
        if np.isfinite(R).all() and found > score:
            best, score = R, found
    return best


def _fast_ica(x: Array, W: Array, most: int = 200, close: float = 1e-4) -> Array:  # (d, N), (d, d) -> (d, d)
    """All rows of W at once: W <- (E g(Wx) x' - diag(E g'(Wx)) W), made orthogonal, with g = tanh.

    scikit-learn's FastICA step by step, at a third of its time where rows are few. A Gaussian cloud does not
    converge; stability will tell.
    """
    W = _orthogonal(W)
    for _ in range(most):
        g = np.tanh(W @ x)
        new = _orthogonal(g @ x.T / x.shape[1] - (1 - g**2).mean(1)[:, None] * W)
        turned = np.abs(np.abs((new * W).sum(1)) - 1).max()
        W = new
        if turned < close:
            break
    return W


def _orthogonal(W: Array) -> Array:  # (d, d)
    """(W W')^-1/2 W."""
    s, U = np.linalg.eigh(W @ W.T)
    return np.asarray((U / np.sqrt(np.maximum(s, np.finfo(float).tiny))) @ U.T @ W)


def _contrast(u: Array) -> float:  # (N, d)
    """FastICA's own measure, sum_j (E log cosh u_j - E log cosh N(0, 1))^2."""
    return float(((np.logaddexp(u, -u) - np.log(2)).mean(0) - 0.374567).__pow__(2).sum())


def dependent(x: Array, seed: int, least: float = _LEAST, sure: float = _DEPENDS) -> Array:  # (N, n) -> (n, n) bool
    """Which columns depend on each other in any way, by HSIC, where it is `least` at least and further above the
    largest of shuffled tables than `sure` deviations.

    >>> t = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> dependent(np.stack([t[:, 0], t[:, 0] ** 2, t[:, 1]], axis=1), 0)
    array([[False,  True, False],
           [ True, False, False],
           [False, False, False]])
    """
    generator = numpy_generator(seed, "beyond")
    some, few = x[:TESTED], min(1.0, TESTED / len(x))  # without dependence HSIC falls as 1 / N
    null = [few * hsic(generator.permuted(some, axis=0)).max() for _ in range(20 if x.shape[1] <= 16 else 8)]
    return np.asarray(hsic(x) > max(float(np.mean(null) + sure * np.std(null)), few * least))


def hsic(x: Array) -> Array:  # (N, n) -> (n, n)
    """|C_ij|^2 / (|C_ii| |C_jj|), C the covariance of Fourier features of x_i at frequencies spread as a Gaussian's
    quantiles, which stand for a Gaussian kernel (Gretton 2005, Rahimi 2007).

    0 without any dependence, 1 for copies; features are bounded, so that tails and atoms do no harm.
    """
    N, n = x.shape
    m = 12 if n <= 16 else 4
    w = norm.ppf(0.5 + (np.arange(m) + 0.5) / (2 * m))
    angles = ((x - x.mean(0)) / (x.std(0) + 1e-12))[:, :, None] * w
    f = np.concatenate([np.cos(angles), np.sin(angles)], axis=2).reshape(N, 2 * n * m)
    f -= f.mean(0)
    squares = ((f.T @ f / N) ** 2).reshape(n, 2 * m, n, 2 * m).sum((1, 3))
    own = np.sqrt(np.maximum(np.diag(squares), 1e-300))
    out = squares / np.outer(own, own)
    np.fill_diagonal(out, 0)
    return np.asarray(out)
