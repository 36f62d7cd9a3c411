"""What the curvature of the likelihood asks of the posterior, and what a diagonal posterior pays for mixed axes.

    Sigma_x^-1 = I + M_x / beta;  a diagonal posterior takes 1 / Sigma_ii = 1 + (M_x)_ii / beta     (Allen 2024, eq. 7)
    gap(x) = beta/2 [ sum_i log(1 + M_ii/beta) - log det(I + M/beta) ] >= 0     the entanglement cost, in nats

The gap is what the det-ELBO loses with the best diagonal posterior against the best full one (from Allen, Theorem 5).
With C = I + M/beta scaled to unit diagonal, gap = -beta/2 log det(scaled C): exactly 0 for orthogonal columns, and
safe in single precision for small beta. Its limit gap/beta for beta -> 0 is the IMA contrast.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.orthogonality import cosines, log_contrast
from unseam.models.posterior import Posterior

_Beta = float | Tensor
MIXED_NATS = 0.02  # nats of loss per beta above which latents are mixed: a cosine of 0.2 between two columns


def precision(M: Tensor, beta: _Beta = 1.0) -> Tensor:  # (..., K, K) -> (..., K, K)
    """The optimal posterior precision I + M/beta."""
    return torch.eye(M.shape[-1], dtype=M.dtype, device=M.device) + M / beta


def sigma_law(M: Tensor, beta: _Beta = 1.0, full: bool = False) -> Tensor:  # (..., K, K) -> (..., K)
    """The variances that the best diagonal posterior takes: 1 / (1 + M_ii / beta).

    `full` gives those of the best full posterior instead, the diagonal of (I + M / beta)^-1.

    Parameters
    ----------
    M : Tensor of shape (..., K, K)
        D^T A^2 D at each point, as `pullback` gives it.
    beta : float or Tensor, default=1.0
        The weight of the KL in the loss.
    full : bool, default=False
        The variances of a full posterior instead of a diagonal one.

    Returns
    -------
    Tensor of shape (..., K)
        The variance of each latent.

    Examples
    --------
    >>> M = torch.tensor([[3.0, 1.0], [1.0, 0.0]])
    >>> sigma_law(M), sigma_law(M, full=True)
    (tensor([0.2500, 1.0000]), tensor([0.3333, 1.3333]))
    """
    C = precision(M, beta)
    return torch.linalg.inv(C).diagonal(dim1=-2, dim2=-1) if full else 1 / C.diagonal(dim1=-2, dim2=-1)


def entanglement_cost(M: Tensor, beta: _Beta = 1.0) -> Tensor:  # (..., K, K) -> (...)
    """gap(x) in nats, per point; >= 0, and 0 iff the columns of A D are orthogonal.

    Parameters
    ----------
    M : Tensor of shape (..., K, K)
        D^T A^2 D at each point, as `pullback` gives it.
    beta : float or Tensor, default=1.0
        The weight of the KL in the loss.

    Returns
    -------
    Tensor of shape (...)
        Nats of loss at each point.

    Examples
    --------
    >>> round(entanglement_cost(torch.tensor([[3.0, 2.0], [2.0, 3.0]]), beta=1.0).item(), 4)  # 1/2 log(16 / 12)
    0.1438
    """
    return beta * log_contrast(precision(M, beta))


def pair_costs(M: Tensor, beta: _Beta = 1.0) -> Tensor:  # (..., K, K) -> (..., K, K)
    """gap(x) shared out over pairs of latents: a symmetric matrix whose entries above the diagonal sum to the gap.

    Grow the off-diagonal part E of the scaled precision from 0 to 1 and credit each pair with its part of the rise
    (Aumann-Shapley): -d log det(I + tE) = -tr((I + tE)^-1 E) dt. With E = Q L Q^T the integral over t is closed:
    share_ij = -beta E_ij [Q (log(1 + L) / L) Q^T]_ij. A pair that undoes the mixing of others has a negative share.

    Parameters
    ----------
    M : Tensor of shape (..., K, K)
        D^T A^2 D at each point, as `pullback` gives it.
    beta : float or Tensor, default=1.0
        The weight of the KL in the loss.

    Returns
    -------
    Tensor of shape (..., K, K)
        Nats of loss of each pair.

    Examples
    --------
    >>> M = torch.tensor([[3.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 5.0]])
    >>> pair_costs(M)[0, 1].item() - entanglement_cost(M).item() < 1e-6
    True
    """
    C = cosines(precision(M, beta))
    E = C - torch.diag_embed(C.diagonal(dim1=-2, dim2=-1))
    L, Q = torch.linalg.eigh(E)
    small = L.abs() < 1e-6  # log(1 + L) / L -> 1 - L/2
    ratio = torch.where(small, 1 - L / 2, torch.log1p(L) / torch.where(small, torch.ones_like(L), L))
    return -beta * E * ((Q * ratio.unsqueeze(-2)) @ Q.mT)


def hessian_axes(H: Tensor) -> tuple[Tensor, Tensor]:  # (N, K, K) -> (N, K), (N, K, K)
    """Curvatures and axes of log p(x|z) at each point, the sharpest first; axis-aligned iff H is diagonal.

    Parameters
    ----------
    H : Tensor of shape (N, K, K)
        Second derivatives of log p(x|z), as `hessian` gives them.

    Returns
    -------
    Tensor of shape (N, K), Tensor of shape (N, K, K)
        Curvatures, and their axes as columns.

    Examples
    --------
    >>> hessian_axes(torch.diag(torch.tensor([-1.0, -4.0]))[None])[0]
    tensor([[-4., -1.]])
    """
    curvatures, axes = torch.linalg.eigh(H)
    return curvatures, axes


# Do learned posterior variances follow the Sigma law, and which beta would they follow it with?
#
# Passive latents have learned ~ predicted ~ 1 whatever the decoder does, so the law is tested on active ones.
# Turned round, 1/Sigma_ii = 1 + M_ii/beta gives the beta that a precision P_ii implies: beta = M_ii / (P_ii - 1).


class LawFit(NamedTuple):
    """How well learned posterior variances follow the Sigma law."""

    r: float | None  # correlation of log variances over all points and latents; None where nothing varies
    per_latent: Array  # (K,) the same per latent, NaN where a latent's variances do not vary
    error: float  # median relative error of a variance


def law_fit(learned: ArrayLike, predicted: ArrayLike) -> LawFit:  # (N, K), (N, K)
    """Learned against predicted posterior variances, on a log scale.

    Parameters
    ----------
    learned : array of shape (N, K)
        Posterior variances of the model.
    predicted : array of shape (N, K)
        Those of the Sigma law.

    Returns
    -------
    LawFit
        Correlation and relative error of the log variances.

    Examples
    --------
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


def compare_with_law(
    M: Tensor, beta: float, q: Posterior | None, active: Array, full: bool
) -> Law:  # M (m, K, K), q m rows
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
