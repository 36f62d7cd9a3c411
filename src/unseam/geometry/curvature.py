"""What the curvature of the likelihood asks of the posterior, and what a diagonal posterior pays for mixed axes.

    Sigma_x^-1 = I + M_x / beta;  a diagonal posterior takes 1 / Sigma_ii = 1 + (M_x)_ii / beta     (Allen 2024, eq. 7)
    gap(x) = beta/2 [ sum_i log(1 + M_ii/beta) - log det(I + M/beta) ] >= 0     the entanglement cost, in nats

The gap is what the det-ELBO loses with the best diagonal posterior against the best full one (from Allen, Theorem 5).
With C = I + M/beta scaled to unit diagonal, gap = -beta/2 log det(scaled C): exactly 0 for orthogonal columns, and
safe in single precision for small beta. Its limit gap/beta for beta -> 0 is the IMA contrast.
"""

import torch
from torch import Tensor

from unseam.geometry.orthogonality import cosines, log_contrast

Beta = float | Tensor
MIXED = 0.02  # nats of loss per beta above which latents are mixed: a cosine of 0.2 between two columns


def precision(M: Tensor, beta: Beta = 1.0) -> Tensor:  # (..., K, K) -> (..., K, K)
    """The optimal posterior precision I + M/beta."""
    return torch.eye(M.shape[-1], dtype=M.dtype, device=M.device) + M / beta


def sigma_law(M: Tensor, beta: Beta = 1.0, full: bool = False) -> Tensor:  # (..., K, K) -> (..., K)
    """The variances that the best diagonal posterior takes: 1 / (1 + M_ii / beta).

    `full` gives those of the best full posterior instead, the diagonal of (I + M / beta)^-1.

    >>> M = torch.tensor([[3.0, 1.0], [1.0, 0.0]])
    >>> sigma_law(M), sigma_law(M, full=True)
    (tensor([0.2500, 1.0000]), tensor([0.3333, 1.3333]))
    """
    C = precision(M, beta)
    return torch.linalg.inv(C).diagonal(dim1=-2, dim2=-1) if full else 1 / C.diagonal(dim1=-2, dim2=-1)


def entanglement_cost(M: Tensor, beta: Beta = 1.0) -> Tensor:  # (..., K, K) -> (...)
    """gap(x) in nats, per point; >= 0, and 0 iff the columns of A D are orthogonal.

    >>> round(entanglement_cost(torch.tensor([[3.0, 2.0], [2.0, 3.0]]), beta=1.0).item(), 4)  # 1/2 log(16 / 12)
    0.1438
    """
    return beta * log_contrast(precision(M, beta))


def pair_costs(M: Tensor, beta: Beta = 1.0) -> Tensor:  # (..., K, K) -> (..., K, K)
    """gap(x) shared out over pairs of latents: a symmetric matrix whose entries above the diagonal sum to the gap.

    Grow the off-diagonal part E of the scaled precision from 0 to 1 and credit each pair with its part of the rise
    (Aumann-Shapley): -d log det(I + tE) = -tr((I + tE)^-1 E) dt. With E = Q L Q^T the integral over t is closed:
    share_ij = -beta E_ij [Q (log(1 + L) / L) Q^T]_ij. A pair that undoes the mixing of others has a negative share.

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

    >>> hessian_axes(torch.diag(torch.tensor([-1.0, -4.0]))[None])[0]
    tensor([[-4., -1.]])
    """
    curvatures, axes = torch.linalg.eigh(H)
    return curvatures, axes
