"""How far the columns of a Jacobian are from orthogonal, three ways: DtO, cosines, IMA contrast.

The Jacobian is whoever's J^T J is given. The theory's is A D, whose product is M = D^T A^2 D (`Grams.pullback`): it is
what a posterior feels. For a Gaussian it is J = d xhat/dz up to a factor; for a Bernoulli it is another matrix.

DtO (Zietlow 2022, eq. 3.25): the mean of |V - P(V)|_F, V the right singular vectors of J, P(V) the signed permutation
nearest to V in L1. |V - P|_1 = const + sum_i (1 - 2 |V_i,pi(i)|) when the signs are V's own, so the thesis' integer
program is a linear assignment that maximises sum_i |V_i,pi(i)|: exact, O(K^3).
IMA contrast (Gresele 2021): sum_i log|J_i| - 1/2 log det J^T J >= 0, and 0 iff the columns are orthogonal.
"""

import numpy as np
import scipy
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from unseam.errors import BadInput
from unseam.geometry.jacobian import singular
from unseam.types import Array


def nearest_permutation(V: ArrayLike) -> Array:  # (N, K, K) -> (N, K)
    """pi: the column that the signed permutation nearest to each V (in L1) picks in row i.

    >>> nearest_permutation([[[0.1, -0.9], [0.8, 0.2]]])
    array([[1, 0]])
    """
    size = np.abs(np.asarray(V, dtype=float))
    if size.ndim != 3 or size.shape[1] != size.shape[2]:
        raise BadInput(f"V has shape {size.shape}; it must be (N, K, K), one square matrix per point")
    if not np.isfinite(size).all():
        raise BadInput("V holds NaN or infinite entries; check the decoder's Jacobian at these points")
    pi = size.argmax(2)  # the best of each row; where these are K different columns nothing can be better
    clash = np.flatnonzero((np.sort(pi, axis=1) != np.arange(pi.shape[1])).any(1))
    for index in clash:
        pi[index] = scipy.optimize.linear_sum_assignment(size[index], maximize=True)[1]
    return pi


def distances(V: ArrayLike) -> Array:  # (N, K, K) -> (N,)
    """|V - P(V)|_F per point.

    >>> distances(np.eye(3)[None]), distances(np.array([[[0.6, -0.8], [0.8, 0.6]]])).round(4)
    (array([0.]), array([0.8944]))
    """
    rest = np.array(V, dtype=float)
    pi = nearest_permutation(rest)[..., None]
    picked = np.take_along_axis(rest, pi, axis=2)
    np.put_along_axis(rest, pi, picked - np.where(picked < 0, -1, 1), axis=2)
    return np.sqrt(np.square(rest).sum((1, 2)))


def dto(gram: Tensor, active: Array | None = None) -> float:  # (N, K, K), (K,)
    """Distance to orthogonality, the mean over points, from J^T J; on the active latents only when they are given.

    >>> W = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> dto((W.T @ W)[None])
    0.0
    """
    if active is not None:
        gram = select(gram, active)
    return float(distances(singular(gram)[1].numpy()).mean()) if gram.shape[-1] else 0.0


def select(gram: Tensor, active: Array) -> Tensor:  # (N, K, K) -> (N, k, k)
    """The rows and columns of the active latents."""
    keep = torch.as_tensor(np.flatnonzero(active))
    return gram[..., keep, :][..., keep]


def cosines(gram: Tensor) -> Tensor:  # (..., K, K) -> (..., K, K)
    """Cosines between the columns of J; a dead column has cosine 0 with every other and 1 with itself.

    >>> cosines(torch.tensor([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    tensor([[1.0000, 0.5000, 0.0000],
            [0.5000, 1.0000, 0.0000],
            [0.0000, 0.0000, 1.0000]])
    """
    length = gram.diagonal(dim1=-2, dim2=-1).clamp(min=torch.finfo(gram.dtype).tiny).sqrt()
    cosine = gram / length.unsqueeze(-1) / length.unsqueeze(-2)
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return cosine * (1 - eye) + eye


def log_contrast(gram: Tensor) -> Tensor:  # (..., K, K) -> (...)
    """-1/2 log det(cosines): the IMA contrast without a look at the rank, to train with."""
    return -0.5 * torch.linalg.slogdet(cosines(gram)).logabsdet


def ima_contrast(gram: Tensor, tolerance: float | None = None) -> Tensor:  # (..., K, K) -> (...)
    """sum_i log|J_i| - 1/2 log det J^T J = -1/2 log det(cosines), per point, in nats; dead columns add nothing.

    Infinite where columns are linearly dependent: where an eigenvalue of the cosines is below `tolerance` (rounding).

    >>> round(ima_contrast(torch.tensor([[1.0, 0.6], [0.6, 1.0]])).item(), 4)  # -1/2 log(1 - 0.36)
    0.2231
    """
    limit = 4 * gram.shape[-1] * torch.finfo(gram.dtype).eps if tolerance is None else tolerance
    least = torch.linalg.eigvalsh(cosines(gram))[..., :1]  # (..., 1), or (..., 0) without columns
    return log_contrast(gram).masked_fill((least < limit).any(-1), torch.inf)
