"""The linear VAE, exactly: its loss, its optimum for any beta and s2, and where its latents collapse.

Data with mean 0 and covariance S (eigenvalues l_i, eigenvectors U); decoder x ~ N(W z, s2 I); posterior
q(z|x) = N(V x, Sigma). Every expectation is a trace:

    reconstruction = n/2 log(2 pi s2) + 1/(2 s2) [ tr((I - W V) S (I - W V)') + tr(W Sigma W') ]
    KL             = 1/2 [ tr(V S V') + tr Sigma - log|Sigma| - d ]
    loss           = reconstruction + beta KL

For a given W, with t = beta s2: V = (W'W + t I)^-1 W', Sigma^-1 = I + W'W / t; a diagonal posterior keeps the
diagonal of Sigma^-1 and pays the entanglement cost beta/2 [ sum_i log(1 + M_ii/beta) - log det(I + M/beta) ],
M = W'W / s2. Over W: W = U (L - t I)_+^{1/2} R. The cost vanishes iff W'W is diagonal, so a diagonal posterior
makes R a signed permutation while a full one leaves it free (Lucas et al. 2019, "Don't blame the ELBO!"; Allen
2024, eq. 4; thesis Prop. 3 and Theorem 2). Latent i is alive iff l_i > beta s2: it collapses at beta = l_i / s2.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput, unknown
from unseam.linear.checks import checked_covariance, latent_dimension, positive, spectrum
from unseam.linear.ppca import checked_rotation, principal_axes

_Posterior = Literal["diagonal", "full"]


@dataclass(frozen=True)
class LinearVAE:
    """Decoder W (n, d), encoder V (d, n), posterior covariance Sigma (d, d), the same for every x."""

    W: Array
    V: Array
    Sigma: Array
    s2: float
    beta: float = 1.0

    def terms(self, S: Any) -> dict[str, float]:  # (n, n)
        """Reconstruction and KL in nats a sample, exact expectations over the data and over q.

        >>> S = np.diag([2.0, 1.0])
        >>> {k: round(v, 4) for k, v in optimum(S, d=1, s2=1.0).terms(S).items()}
        {'reconstruction': 2.8379, 'kl': 0.3466}
        """
        S = checked_covariance("S", S)
        n, d = self.W.shape
        left = np.eye(n) - self.W @ self.V
        square = np.sum(left @ S * left) + np.sum(self.W @ self.Sigma * self.W)
        log_det = np.linalg.slogdet(self.Sigma)[1]
        kl = (np.sum(self.V @ S * self.V) + np.trace(self.Sigma) - log_det - d) / 2
        return {
            "reconstruction": float(n / 2 * np.log(2 * np.pi * self.s2) + square / (2 * self.s2)),
            "kl": float(kl),
        }

    def loss(self, S: Any) -> float:
        """reconstruction + beta KL; at beta = 1 the negative ELBO.

        >>> S = np.diag([2.0, 1.0])
        >>> round(optimum(S, d=1, s2=1.0).loss(S), 4)
        3.1845
        """
        terms = self.terms(S)
        return terms["reconstruction"] + self.beta * terms["kl"]

    def rotated(self, R: Any) -> "LinearVAE":
        """The same autoencoder in turned latent coordinates, z -> R z; Sigma turns too (and need not stay diagonal).

        >>> vae = optimum(np.diag([3.0, 2.0, 1.0]), d=2, s2=0.5)
        >>> turned = vae.rotated([[0.6, -0.8], [0.8, 0.6]])
        >>> bool(np.allclose(turned.W @ turned.V, vae.W @ vae.V))
        True
        """
        R = checked_rotation("R", R, self.W.shape[1])
        return LinearVAE(self.W @ R.T, R @ self.V, R @ self.Sigma @ R.T, self.s2, self.beta)


def best_encoder(W: Any, s2: float, beta: float = 1.0, posterior: _Posterior = "diagonal") -> LinearVAE:
    """The encoder and Sigma that minimise the loss for this decoder; they do not depend on the data.

    >>> vae = best_encoder([[1.0, 1.0], [0.0, 1.0]], s2=1.0)
    >>> vae.Sigma.round(4)
    array([[0.5   , 0.    ],
           [0.    , 0.3333]])
    """
    if posterior not in get_args(_Posterior):
        raise unknown("posterior", posterior, get_args(_Posterior))
    W = np.asarray(W, np.float64)
    t, d = float(positive("beta", beta) * positive("s2", s2)), W.shape[1]
    K = W.T @ W + t * np.eye(d)
    Sigma = t * np.linalg.inv(K) if posterior == "full" else np.diag(t / np.diag(K))
    return LinearVAE(W, np.linalg.solve(K, W.T), Sigma, float(s2), float(beta))


def optimum(
    S: Any,  # (n, n)
    d: int,
    s2: float | None = None,
    beta: float = 1.0,
    posterior: _Posterior = "diagonal",
    R: Any = None,  # (d, d)
) -> LinearVAE:
    """The global minimum of the loss; without s2, over s2 as well. R is free with a full posterior only.

    >>> vae = optimum(np.diag([5.0, 3.0, 1.0]), d=2, s2=0.5, beta=2.0)
    >>> np.abs(vae.W).round(3), vae.Sigma.round(3)
    (array([[2.   , 0.   ],
           [0.   , 1.414],
           [0.   , 0.   ]]), array([[0.2  , 0.   ],
           [0.   , 0.333]]))
    """
    S = checked_covariance("S", S)
    d = latent_dimension(d, len(S)) if s2 is None else _at_most(d, len(S))
    l, U = principal_axes(S)
    s2 = learned_variance(l, d, beta) if s2 is None else float(positive("s2", s2))
    W = U[:, :d] * np.sqrt(np.maximum(l[:d] - float(positive("beta", beta)) * s2, 0))
    if R is not None:
        R = checked_rotation("R", R, d)
        if posterior == "diagonal" and not np.allclose(np.sort(np.abs(R), 1)[:, :-1], 0, atol=1e-8):
            raise BadInput("R must be a signed permutation with posterior='diagonal'; use posterior='full' for others")
        W = W @ R
    return best_encoder(W, s2, beta, posterior)


def optimal_loss(eigenvalues: Any, d: int, s2: float, beta: float = 1.0) -> float:  # (n,)
    """The loss at the optimum, the same for diagonal and full posteriors.

    n/2 log(2 pi s2) + beta/2 [ sum_alive (1 + log(l_i/t)) + sum_others l_i/t ],  t = beta s2.

    >>> round(optimal_loss([2.0, 1.0], d=1, s2=1.0), 4)
    3.1845
    """
    l, t = spectrum("eigenvalues", eigenvalues), float(positive("beta", beta) * positive("s2", s2))
    d = _at_most(d, len(l))
    alive = (np.arange(len(l)) < d) & (l > t)
    return float(len(l) / 2 * np.log(2 * np.pi * s2) + beta / 2 * np.where(alive, 1 + np.log(l / t), l / t).sum())


def collapse_points(eigenvalues: Any, s2: float) -> Array:  # (n,) -> (n,)
    """beta_i = l_i / s2: the beta above which latent i is dead at the optimum (MATHS section 3; thesis Fig. 3.7).

    >>> collapse_points([5.0, 3.0, 1.0], s2=0.5)
    array([10.,  6.,  2.])
    """
    return spectrum("eigenvalues", eigenvalues) / positive("s2", s2)


def learned_variance(eigenvalues: Any, d: int, beta: float = 1.0) -> float:  # (n,)
    """The s2 that minimises the loss along with everything else.

    Between two collapse points k latents are alive and the loss is stationary at s2 = sum_{i>k} l_i / (n - beta k).
    It goes to infinity at both ends, so the best of these points is the minimum. beta = 1: PPCA's s2.

    >>> learned_variance([5.0, 3.0, 1.0], d=2), learned_variance([5.0, 3.0, 1.0], d=2, beta=0.5)
    (1.0, 0.5)
    """
    l, beta = spectrum("eigenvalues", eigenvalues), float(positive("beta", beta))
    d = latent_dimension(d, len(l))
    k = np.arange(d + 1)
    k = k[len(l) - beta * k > 0]
    candidates = np.array([l[i:].sum() for i in k]) / (len(l) - beta * k)
    return float(min(candidates, key=lambda s2: optimal_loss(l, d, s2, beta)))


def entanglement_cost(W: Any, s2: float, beta: float = 1.0) -> float:  # (n, d)
    """What a diagonal posterior loses against a full one with this decoder, in nats (Allen 2024, Theorem 5).

    >>> round(entanglement_cost([[1.0, 1.0], [0.0, 1.0]], s2=1.0), 4), entanglement_cost(np.eye(2), s2=1.0)
    (0.0912, 0.0)
    """
    W = np.asarray(W, np.float64)
    K = np.eye(W.shape[1]) + W.T @ W / float(positive("beta", beta) * positive("s2", s2))
    return float(beta / 2 * (np.log(np.diag(K)).sum() - np.linalg.slogdet(K)[1]))


def likelihood_loss(eigenvalues: Any, d: int, s2: float, beta: float = 1.0, alive: Any = None) -> float:
    """Log-likelihood, in nats a sample, that posterior collapse costs (Lucas et al. 2019, section 4).

    The model's variance along axis i is c_i = max(l_i - beta s2, 0) + s2 for a latent that is alive and s2 for one
    that is dead; the best any d latents can do is max(l_i, s2). `alive` (indices) names the latents that learned
    something, for example a saddle point where the first one is missing; by default all that can.

    >>> round(likelihood_loss([5.0, 3.0, 1.0], d=2, s2=1.0), 4)
    0.0
    >>> print(f"{likelihood_loss([5.0, 3.0, 1.0], d=2, s2=1.0, alive=[0]):.4f} = {(3 - 1 - np.log(3)) / 2:.4f}")
    0.4507 = 0.4507
    """
    l, s2 = spectrum("eigenvalues", eigenvalues), float(positive("s2", s2))
    d = _at_most(d, len(l))
    latents = list(range(d)) if alive is None else [int(i) for i in alive]
    if len(set(latents)) != len(latents) or len(latents) > d or any(not 0 <= i < len(l) for i in latents):
        raise BadInput(f"alive={latents} must name at most d={d} different eigenvalues among 0..{len(l) - 1}")
    c, best = np.full(len(l), s2), np.full(len(l), s2)
    c[latents] += np.maximum(l[latents] - float(positive("beta", beta)) * s2, 0)
    best[:d] = np.maximum(l[:d], s2)
    return float(np.sum(np.log(c) + l / c - np.log(best) - l / best) / 2)


def _at_most(d: int, n: int) -> int:
    if not 1 <= d <= n:
        raise BadInput(f"d={d} must be between 1 and n={n}: more latents than dimensions have nothing to describe")
    return int(d)
