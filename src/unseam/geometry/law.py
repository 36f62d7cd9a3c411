"""Do learned posterior variances follow the Sigma law, and which beta would they follow it with?

Passive latents have learned ~ predicted ~ 1 whatever the decoder does, so the law is tested on active ones.
Turned round, 1/Sigma_ii = 1 + M_ii/beta gives the beta that a precision P_ii implies: beta = M_ii / (P_ii - 1).
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from unseam.errors import BadInput
from unseam.geometry.curvature import sigma_law
from unseam.models.posterior import Posterior
from unseam.types import Array


class LawFit(NamedTuple):
    """How well learned posterior variances follow the Sigma law."""

    r: float | None  # correlation of log variances over all points and latents; None where nothing varies
    per_latent: Array  # (K,) the same per latent, NaN where a latent's variances do not vary
    error: float  # median relative error of a variance


def law_fit(learned: ArrayLike, predicted: ArrayLike) -> LawFit:  # (N, K), (N, K)
    """Learned against predicted posterior variances, on a log scale.

    >>> law_fit([[0.1, 0.5], [0.2, 0.9]], [[0.1, 0.5], [0.2, 0.9]]).r
    1.0
    """
    a, b = np.asarray(learned, dtype=float), np.asarray(predicted, dtype=float)
    if a.shape != b.shape or not (np.isfinite(a).all() and (a > 0).all() and (b > 0).all()):
        raise BadInput(f"learned {a.shape} and predicted {b.shape} variances must be positive, finite and (N, K)")
    x, y = np.log(a), np.log(b)
    columns = np.array([correlation(x[:, k], y[:, k]) for k in range(x.shape[1])])
    r = correlation(x.ravel(), y.ravel())
    return LawFit(None if np.isnan(r) else round(r, 12), columns, float(np.median(np.abs(np.expm1(x - y)))))


def correlation(x: Array, y: Array) -> float:  # (N,), (N,)
    """Pearson's r; NaN where either side does not vary beyond rounding."""
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x**2).mean() * (y**2).mean()))
    return float((x * y).mean() / size) if min(np.abs(x).max(), np.abs(y).max()) > 1e-6 else float("nan")


def implied_beta(M: Tensor, q: Posterior, active: Array) -> float | None:  # (m, K, K), m rows, (K,)
    """The median beta over points and active latents, with which the posterior follows the law; None if there is none.

    >>> from unseam.models.posterior import Diagonal
    >>> M = torch.diag(torch.tensor([3.0, 8.0]))[None]
    >>> q = Diagonal(torch.zeros(1, 2), sigma_law(M.double(), beta=0.5).log())
    >>> round(implied_beta(M, q, np.array([True, True])), 9)
    0.5
    """
    P = torch.linalg.inv(q.covariance().double()).diagonal(dim1=1, dim2=2).numpy()[:, active]
    diagonal = M.diagonal(dim1=1, dim2=2).double().numpy()[:, active]
    betas = np.where(P > 1, diagonal / np.where(P > 1, P - 1, 1.0), np.inf)
    middle = float(np.median(betas)) if betas.size else 0.0
    return middle if 0 < middle < np.inf else None


class Law(NamedTuple):
    """The Sigma law beside what was learned."""

    predicted: Array  # (m, K)
    learned: Array | None = None  # (m, K); None without a posterior, and so all below
    per_latent: Array | None = None  # (K,)
    r: float | None = None  # active latents
    error: float | None = None
    passive_error: float | None = None
    factor: float | None = None  # implied beta / beta
    rescaled_r: float | None = None  # r and error with the implied beta
    rescaled_error: float | None = None


def compare(M: Tensor, beta: float, q: Posterior | None, active: Array, full: bool) -> Law:  # M (m, K, K), q m rows
    """The law at m points, tested on the active latents."""
    predicted = sigma_law(M, beta, full).numpy()
    if q is None:
        return Law(predicted)
    learned = q.variance().numpy()
    passive = law_fit(learned[:, ~active], predicted[:, ~active]).error if not active.all() else None
    found = Law(predicted, learned, law_fit(learned, predicted).per_latent, passive_error=passive)
    if not active.any():
        return found
    fit = law_fit(learned[:, active], predicted[:, active])
    found = found._replace(r=fit.r, error=fit.error)
    implied = implied_beta(M, q, active)
    if implied is None:
        return found
    again = law_fit(learned[:, active], sigma_law(M, implied, full).numpy()[:, active])
    return found._replace(factor=implied / beta, rescaled_r=again.r, rescaled_error=again.error)
