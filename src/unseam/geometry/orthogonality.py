"""How far the columns of a Jacobian are from orthogonal, three ways: DtO, cosines, IMA contrast.

The Jacobian is the one whose J^T J is passed in. The theory's is A D, whose product is M = D^T A^2 D
(`Grams.pullback`): it is what a posterior feels. For a Gaussian it is J = d xhat/dz up to a factor; for a Bernoulli it
is another matrix.

DtO (Zietlow 2022, eq. 3.25): the mean of |V - P(V)|_F, V the right singular vectors of J, P(V) the signed permutation
nearest to V in L1. |V - P|_1 = const + sum_i (1 - 2 |V_i,pi(i)|) when the signs are V's own, so the thesis' integer
program is a linear assignment that maximises sum_i |V_i,pi(i)|: exact, O(K^3).
IMA contrast (Gresele 2021): sum_i log|J_i| - 1/2 log det J^T J >= 0, and 0 iff the columns are orthogonal.
"""

from functools import lru_cache
from math import cos, pi, sin, sqrt

import numpy as np
import scipy
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.jacobian import singular
from unseam.rng import numpy_generator


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

    Parameters
    ----------
    gram : Tensor of shape (N, K, K)
        J^T J at each point.
    active : array of shape (K,), optional
        Which latents count; all by default.

    Returns
    -------
    float
        0 for orthogonal columns; `haar` gives the level of random axes.

    Examples
    --------
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

    Parameters
    ----------
    gram : Tensor of shape (..., K, K)
        J^T J at each point.

    Returns
    -------
    Tensor of shape (..., K, K)
        The cosine of every pair of columns.

    Examples
    --------
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
    """-1/2 log det(cosines): the IMA contrast without a check of the rank, for training.

    Parameters
    ----------
    gram : Tensor of shape (..., K, K)
        J^T J at each point.

    Returns
    -------
    Tensor of shape (...)
        Nats at each point.

    Examples
    --------
    >>> round(log_contrast(torch.tensor([[1.0, 0.6], [0.6, 1.0]])).item(), 4)
    0.2231
    """
    return -0.5 * torch.linalg.slogdet(cosines(gram)).logabsdet


def ima_contrast(gram: Tensor, tolerance: float | None = None) -> Tensor:  # (..., K, K) -> (...)
    """sum_i log|J_i| - 1/2 log det J^T J = -1/2 log det(cosines), per point, in nats; dead columns add nothing.

    Infinite where columns are linearly dependent: where an eigenvalue of the cosines is below `tolerance` (rounding).

    Parameters
    ----------
    gram : Tensor of shape (..., K, K)
        J^T J at each point.
    tolerance : float, optional
        The smallest eigenvalue of the cosines that is not rounding; chosen by the precision by default.

    Returns
    -------
    Tensor of shape (...)
        Nats at each point.

    Examples
    --------
    >>> round(ima_contrast(torch.tensor([[1.0, 0.6], [0.6, 1.0]])).item(), 4)  # -1/2 log(1 - 0.36)
    0.2231
    """
    limit = 4 * gram.shape[-1] * torch.finfo(gram.dtype).eps if tolerance is None else tolerance
    least = torch.linalg.eigvalsh(cosines(gram))[..., :1]  # (..., 1), or (..., 0) without columns
    return log_contrast(gram).masked_fill((least < limit).any(-1), torch.inf)


# What chance gives: the DtO of a uniformly random rotation, to print beside every DtO.
#
# K = 2 is closed: V is a turn by a, uniform on 0 .. pi/4 from the nearest signed permutation, and |V - P| = 2 sqrt 2
# sin(a/2). For K up to 64 the table below was drawn once by `sampled_haar`: 200,000 rotations up to K = 35, 20,000
# beyond, where the spread is small (standard errors of the means below 0.0006).


MORE_DRAWS = 2_000  # for K > 64, where the spread is below 0.03
AT_ONCE = 400_000  # numbers of one block of rotations


@lru_cache
def haar(K: int) -> tuple[float, float]:
    """Mean and standard deviation of DtO for a uniformly random V.

    Parameters
    ----------
    K : int
        How many columns.

    Returns
    -------
    (float, float)
        Mean and standard deviation.

    Examples
    --------
    >>> [round(haar(K)[0], 3) for K in (1, 2, 3, 10)]
    [0.0, 0.548, 0.98, 2.849]
    """
    if K < 2:
        return 0.0, 0.0
    if K == 2:
        mean = 16 * sqrt(2) / pi * (1 - cos(pi / 8))
        return mean, sqrt(16 / pi * (pi / 4 - sin(pi / 4)) - mean**2)
    return HAAR_TABLE[K] if K in HAAR_TABLE else sampled_haar(K, MORE_DRAWS)


def sampled_haar(K: int, draws: int, seed: int = 0) -> tuple[float, float]:
    """The same by drawing rotations."""
    rng, size = numpy_generator(seed, "haar", K), max(1, AT_ONCE // K**2)
    blocks = [min(size, draws - done) for done in range(0, draws, size)]
    d = np.concatenate([distances(rotations(rng, n, K)) for n in blocks])
    return float(d.mean()), float(d.std())


def rotations(rng: np.random.Generator, n: int, K: int) -> np.ndarray:  # (n, K, K)
    """Uniformly random orthogonal matrices."""
    Q, R = np.linalg.qr(rng.standard_normal((n, K, K)))
    return Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]  # without the signs QR is not uniform


_DRAWN = (  # mean and standard deviation for K = 3, 4, ...
    0.9801, 0.2635, 1.3290, 0.2200, 1.6345, 0.1916, 1.9116, 0.1705, 2.1689, 0.1537, 2.4085, 0.1407, 2.6350, 0.1298,
    2.8491, 0.1211, 3.0535, 0.1137, 3.2494, 0.1066, 3.4373, 0.1006, 3.6185, 0.0955, 3.7932, 0.0913, 3.9628, 0.0872,
    4.1271, 0.0834, 4.2872, 0.0804, 4.4428, 0.0772, 4.5945, 0.0745, 4.7425, 0.0724, 4.8875, 0.0702, 5.0291, 0.0680,
    5.1681, 0.0660, 5.3040, 0.0642, 5.4372, 0.0625, 5.5684, 0.0612, 5.6970, 0.0597, 5.8233, 0.0584, 5.9478, 0.0571,
    6.0702, 0.0559, 6.1905, 0.0546, 6.3090, 0.0535, 6.4263, 0.0525, 6.5417, 0.0517, 6.6551, 0.0508, 6.7670, 0.0501,
    6.8786, 0.0492, 6.9881, 0.0481, 7.0958, 0.0475, 7.2030, 0.0467, 7.3087, 0.0462, 7.4123, 0.0455, 7.5162, 0.0445,
    7.6184, 0.0444, 7.7189, 0.0432, 7.8194, 0.0427, 7.9180, 0.0424, 8.0160, 0.0419, 8.1125, 0.0413, 8.2089, 0.0404,
    8.3042, 0.0401, 8.3980, 0.0397, 8.4922, 0.0389, 8.5837, 0.0389, 8.6753, 0.0389, 8.7670, 0.0380, 8.8573, 0.0377,
    8.9462, 0.0371, 9.0355, 0.0365, 9.1232, 0.0367, 9.2108, 0.0360, 9.2974, 0.0357, 9.3827, 0.0355,
)  # fmt: skip
HAAR_TABLE = {k + 3: (_DRAWN[2 * k], _DRAWN[2 * k + 1]) for k in range(len(_DRAWN) // 2)}
