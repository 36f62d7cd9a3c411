"""Probabilistic PCA (Tipping & Bishop 1999): the linear Gaussian model whose maximum likelihood is known.

    x = mean + W z + noise,   z ~ N(0, I_d),   noise ~ N(0, s2 I_n)

Maximum likelihood: W = U (L - s2 I)^{1/2} R with the d largest eigenvalues L of the data covariance, their
eigenvectors U and any rotation R; s2 is the mean of the other eigenvalues. The posterior is
N(M^-1 W'(x - mean), s2 M^-1) with M = W'W + s2 I. The likelihood does not see R; a linear VAE with a diagonal
posterior does (`unseam.linear.linear_vae`; Allen 2024, section 2 and Corollary 1.1).

How many dimensions the data support: Minka 2000, "Automatic choice of dimensionality for PCA".

The evidence p(data | d) of probabilistic PCA, with W integrated out by Laplace's method. With eigenvalues l of the
sample covariance (largest first), s2 the mean of l_{d+1}..l_n, and l~ = l for the first d, s2 for the rest,

    log p = log p(U) - N/2 sum_{i<=d} log l_i - N (n-d)/2 log s2 + (q + d)/2 log 2pi - 1/2 log|A_z| - d/2 log N
    log p(U) = -d log 2 + sum_{i<=d} [log Gamma((n-i+1)/2) - (n-i+1)/2 log pi],     q = n d - d (d+1)/2
    log|A_z| = sum_{i<=d} sum_{i<j<=n} log[(1/l~_j - 1/l~_i) (l_i - l_j) N]
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.linear.checks import checked_covariance, latent_dimension, positive, spectrum


@dataclass(frozen=True)
class PPCA:
    """One model: decoder W (n, d), noise variance s2, mean (n,)."""

    W: Array
    s2: float
    mean: Array

    @property
    def covariance(self) -> Array:  # (n, n)
        """Cov(x) = W W' + s2 I."""
        return self.W @ self.W.T + self.s2 * np.eye(len(self.W))

    def posterior(self, x: Any) -> tuple[Array, Array]:  # (N, n) -> (N, d), (d, d)
        """Mean of z for each x, and the covariance they share.

        >>> model = PPCA(np.array([[1.0], [0.0]]), 1.0, np.zeros(2))
        >>> model.posterior([[2.0, 5.0]])
        (array([[1.]]), array([[0.5]]))
        """
        M = self.W.T @ self.W + self.s2 * np.eye(self.W.shape[1])
        return np.linalg.solve(M, self.W.T @ (np.asarray(x) - self.mean).T).T, self.s2 * np.linalg.inv(M)

    def log_likelihood(self, x: Any) -> Array:  # (N, n) -> (N,) nats
        """log N(x; mean, W W' + s2 I).

        >>> PPCA(np.array([[1.0], [0.0]]), 1.0, np.zeros(2)).log_likelihood([[0.0, 0.0]]).round(4)
        array([-2.1845])
        """
        C, centred = self.covariance, np.asarray(x) - self.mean
        square = (centred * np.linalg.solve(C, centred.T).T).sum(1)
        return -(len(C) * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + square) / 2

    def expected_log_likelihood(self, S: Any) -> float:
        """The mean of `log_likelihood` over data with this model's mean and covariance S.

        >>> round(PPCA(np.array([[1.0], [0.0]]), 1.0, np.zeros(2)).expected_log_likelihood(np.diag([2.0, 1.0])), 4)
        -3.1845
        """
        C, S = self.covariance, checked_covariance("S", S)
        return float(-(len(C) * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, S))) / 2)

    def sample(self, count: int, generator: np.random.Generator) -> tuple[Array, Array]:  # (N, n), (N, d)
        """Draws of x and of the z behind them.

        >>> x, z = PPCA(np.ones((3, 1)), 0.1, np.zeros(3)).sample(5, np.random.default_rng(0))
        >>> x.shape, z.shape
        ((5, 3), (5, 1))
        """
        n, d = self.W.shape
        z = generator.standard_normal((count, d))
        return self.mean + z @ self.W.T + self.s2**0.5 * generator.standard_normal((count, n)), z


def fit(x: Any, d: int | None = None, R: Any = None) -> PPCA:  # (N, n)
    """Maximum likelihood from data; without d, the dimension with the highest evidence (Minka 2000).

    >>> x, _ = PPCA(np.eye(5, 2) * 3, 0.1, np.ones(5)).sample(500, np.random.default_rng(0))
    >>> fit(x).W.shape
    (5, 2)
    """
    x = np.asarray(x, np.float64)
    if x.ndim != 2 or len(x) < 2 or not np.isfinite(x).all():
        raise BadInput(f"x has shape {x.shape}; give finite numbers, (N, n) with at least 2 rows")
    S = checked_covariance("the covariance of x", np.cov(x.T, bias=True))
    if d is None:
        d = best_dimension(np.linalg.eigvalsh(S)[::-1], len(x))
    model = closed_form(S, d, R)
    return PPCA(model.W, model.s2, x.mean(0))


def closed_form(S: Any, d: int, R: Any = None, s2: float | None = None) -> PPCA:  # (n, n)
    """Maximum likelihood from a covariance; a given s2 is kept, otherwise it is the mean discarded eigenvalue.

    Directions with an eigenvalue below a given s2 get a zero column: they have collapsed.

    >>> model = closed_form(np.diag([5.0, 3.0, 1.0]), d=2)
    >>> np.abs(model.W).round(3), model.s2
    (array([[2.   , 0.   ],
           [0.   , 1.414],
           [0.   , 0.   ]]), 1.0)
    """
    S = checked_covariance("S", S)
    d = latent_dimension(d, len(S))
    l, U = principal_axes(S)
    s2 = float(l[d:].mean() if s2 is None else positive("s2", s2))
    W = U[:, :d] * np.sqrt(np.maximum(l[:d] - s2, 0))
    return PPCA(W if R is None else W @ checked_rotation("R", R, d), s2, np.zeros(len(S)))


def em(S: Any, start: Any, s2: float = 1.0, steps: int = 1000, rtol: float = 1e-14) -> tuple[PPCA, Array]:
    """Expectation-maximisation from W = start (n, d): the model, and the expected log-likelihood of each step.

    W <- S W (s2 I + M^-1 W' S W)^-1,   s2 <- tr(S - S W_old M^-1 W') / n. The likelihood never falls.

    >>> model, trace = em(np.diag([5.0, 3.0, 1.0]), np.array([[1.0, 0.5], [0.2, 1.0], [0.1, 0.3]]))
    >>> round(model.s2, 6), bool(np.all(np.diff(trace) > -1e-12))
    (1.0, True)
    """
    S, W = checked_covariance("S", S), np.asarray(start, np.float64)
    if W.ndim != 2 or len(W) != len(S):
        raise BadInput(f"start has shape {W.shape}; with S {S.shape} it must be ({len(S)}, d)")
    d, s2 = latent_dimension(W.shape[1], len(S)), float(positive("s2", s2))
    model, trace = PPCA(W, s2, np.zeros(len(S))), []
    for _ in range(steps):
        trace.append(model.expected_log_likelihood(S))
        if len(trace) > 1 and trace[-1] - trace[-2] <= rtol * abs(trace[-1]):
            break
        model = _em_step(S, model, d)
    return model, np.array(trace)


def _em_step(S: Array, model: PPCA, d: int) -> PPCA:
    SW, M = S @ model.W, model.W.T @ model.W + model.s2 * np.eye(d)
    W = SW @ np.linalg.inv(model.s2 * np.eye(d) + np.linalg.solve(M, model.W.T @ SW))
    s2 = float(np.trace(S) - np.sum(SW @ np.linalg.inv(M) * W)) / len(S)
    return PPCA(W, s2, model.mean)


def principal_axes(S: Array) -> tuple[Array, Array]:  # (n, n) -> (n,), (n, n)
    """Eigenvalues, largest first, and eigenvectors as columns.

    >>> principal_axes(np.diag([1.0, 4.0]))[0]
    array([4., 1.])
    """
    l, U = np.linalg.eigh(S)
    return l[::-1], U[:, ::-1]


def axes_of_rows(x: Array) -> tuple[Array, Array]:  # (N, n) -> (n,), (n, min(N, n))
    """`principal_axes` of the rows' covariance C = X'X / N; of a wide table by X X' / N, whose eigenvalues are the same
    but for zeros: X X' v = N l v, u = X'v / sqrt(N l). Axes without variance are 0 there.

    >>> x = np.random.default_rng(0).normal(size=(4, 6))
    >>> l, U = axes_of_rows(x)
    >>> bool(np.allclose((U * l[:4]) @ U.T, np.cov(x.T, bias=True)))
    True
    """
    N, n = x.shape
    x = x - x.mean(0)
    if n <= N:
        return principal_axes(x.T @ x / N)
    l, V = principal_axes(x @ x.T / N)
    there = l > 1e-12 * max(float(l[0]), 1e-300)
    U = (x.T @ V) * np.where(there, 1 / np.sqrt(N * np.maximum(l, 1e-300)), 0.0)
    return np.concatenate([np.where(there, l, 0.0), np.zeros(n - N)]), U


def rotation_of(W: Any, S: Any, s2: float) -> Array:  # (n, d) -> (d, d)
    """R made explicit: the least-squares R in W = U (L - s2 I)^{1/2} R; orthogonal at a maximum of the likelihood.

    >>> S = np.diag([5.0, 3.0, 1.0])
    >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> R = rotation_of(closed_form(S, 2, R=turn).W, S, s2=1.0)
    >>> np.abs(R).round(6)
    array([[0.6, 0.8],
           [0.8, 0.6]])
    """
    W, S = np.asarray(W, np.float64), checked_covariance("S", S)
    l, U = principal_axes(S)
    d = W.shape[1]
    if l[d - 1] <= s2:
        raise BadInput(
            f"s2={s2:g} is not below the eigenvalue {l[d - 1]:.4g} of latent {d}: it collapsed, R is undefined"
        )
    return (U[:, :d].T @ W) / np.sqrt(l[:d] - s2)[:, None]


def checked_rotation(name: str, R: Any, d: int) -> Array:  # (d, d)
    """An orthogonal matrix, checked."""
    R = np.asarray(R, np.float64)
    if R.shape != (d, d) or not np.allclose(R @ R.T, np.eye(d), atol=1e-8):
        raise BadInput(f"{name} has shape {R.shape}; it must be orthogonal, ({d}, {d}) with R R' = I")
    return R


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
