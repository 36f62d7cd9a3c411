"""The entanglement cost of thousands of latents, from random ones of them, with its standard error.

    gap = beta/2 [ sum_i log C_ii - log det C ] = beta/2 sum_i { log C_ii - (log C)_ii },     C = I + M/beta

No term of the sum is negative (Jensen), and each belongs to one latent: it is that latent's share. So the mean over
random points and latents, times the number of latents, estimates the cost without bias, and its spread gives the
standard error. (log C)_ii is a Gauss quadrature from Lanczos' algorithm, started at the unit vector e_i; it needs only
products C v, that is D v and D^T u, so no matrix with K rows is ever made. The quadrature approaches (log C)_ii from
above, so what truncation leaves makes the cost smaller, never larger.
(Golub & Meurant 2010, Matrices, Moments and Quadrature.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.groups import products_of
from unseam.geometry.jacobian import Decoder, as_likelihood
from unseam.models.likelihood import Likelihood
from unseam.rng import numpy_generator

SAMPLES = 256  # pairs of a point and a latent
STEPS = 24  # of Lanczos' algorithm
_NUMBERS = 2**23  # of one block of vectors


class SampledCost(NamedTuple):
    """The entanglement cost of all latents, estimated."""

    cost: float  # nats of loss, mean over points
    error: float  # its standard error
    latents: Array  # (m,) which latents were drawn
    shares: Array  # (m,) nats of loss, the share of each
    truncation: float  # nats by which the last step of the quadrature still changed the cost


@torch.no_grad()
def sampled_cost(
    decode: Decoder,
    z: Tensor,  # (N, D) points; the first `latents` columns are latents
    likelihood: Likelihood | str | None = None,
    s2: float = 0.5,
    beta: float = 1.0,
    samples: int = SAMPLES,
    steps: int = STEPS,
    seed: int = 0,
    latents: int | None = None,
) -> SampledCost:
    """Estimate the entanglement cost from random latents at random points.

    Parameters
    ----------
    decode : callable
        Maps points (B, D) to the natural parameter (B, ...), row by row.
    z : Tensor of shape (N, D)
        Points at which it is measured.
    likelihood : Likelihood or str, optional
        A Gaussian of variance `s2` by default.
    s2 : float, default=0.5
        Variance of the Gaussian, where no likelihood is given.
    beta : float, default=1.0
        The weight of the KL in the loss.
    samples : int, default=256
        Pairs of a point and a latent; the standard error falls with their square root.
    steps : int, default=24
        Steps of Lanczos' algorithm.
    seed : int, default=0
        Which pairs.
    latents : int, optional
        How many of the D columns are latents, from the first; all by default.

    Returns
    -------
    SampledCost
        The cost in nats of loss with its standard error, and each sampled latent's share.

    Examples
    --------
    >>> W = torch.tensor([[3.0, 2.0], [0.0, 1.0]])
    >>> found = sampled_cost(lambda z: z @ W.T, torch.zeros(8, 2), s2=1.0, samples=16)
    >>> from unseam.geometry.curvature import entanglement_cost
    >>> abs(found.cost - entanglement_cost(W.T @ W).item()) < 4 * found.error + 1e-6
    True
    """
    if samples < 2:
        raise BadInput(f"samples={samples} must be at least 2: a standard error needs two")
    p, K = as_likelihood(likelihood, s2), z.shape[1] if latents is None else latents
    rng = numpy_generator(seed, "sampled cost")
    points = np.resize(rng.permutation(len(z)), samples)
    drawn = np.concatenate([rng.permutation(K) for _ in range(-(-samples // K))])[:samples]
    size = max(1, _NUMBERS // ((steps + 1) * z.shape[1]))
    values, before = [], []
    for rows, chosen in zip(np.array_split(points, -(-samples // size)), np.array_split(drawn, -(-samples // size)),
                            strict=True):  # fmt: skip
        T = tridiagonal(decode, z[torch.from_numpy(rows)], torch.from_numpy(chosen), p, beta, min(steps, K), K)
        values.append(_share(T))
        before.append(_share(T[:, :-1, :-1]) if T.shape[1] > 1 else values[-1])
    shares = beta / 2 * torch.cat(values).numpy()
    change = float(np.abs(shares - beta / 2 * torch.cat(before).numpy()).mean() * K)
    error = K * float(shares.std(ddof=1)) / samples**0.5
    return SampledCost(K * float(shares.mean()), error, drawn, shares, change)


def tridiagonal(
    decode: Decoder, z: Tensor, chosen: Tensor, p: Likelihood, beta: float, steps: int, K: int
) -> Tensor:  # (B, D), (B,) -> (B, steps, steps)
    """Lanczos' matrix of C = I + M/beta, started at e_i, with full re-orthogonalisation."""
    products = products_of(decode, z)
    weight = p.curvature(products.theta)
    B = len(z)
    T = torch.zeros(B, steps, steps, dtype=torch.float64, device="cpu")
    Q = torch.zeros(B, steps + 1, z.shape[1], dtype=torch.float64, device="cpu")
    Q[torch.arange(B, device="cpu"), 0, chosen.cpu()] = 1
    for j in range(steps):
        q = Q[:, j]
        w = products.pull(weight * products.push(q.to(z))).double().cpu() / beta
        w[:, K:] = 0  # context is held
        w = w + q
        alive = q.square().sum(1) > 0.5
        T[:, j, j] = torch.where(alive, (q * w).sum(1), 1.0)
        for _ in range(2):
            w = w - torch.einsum("bj,bjd->bd", torch.einsum("bjd,bd->bj", Q[:, : j + 1], w), Q[:, : j + 1])
        length = w.norm(dim=1)
        on = alive & (length > 1e-6 * T[:, j, j])  # else the Krylov space is complete
        if j + 1 < steps:
            T[:, j, j + 1] = T[:, j + 1, j] = torch.where(on, length, 0.0)
        Q[:, j + 1] = torch.where(on[:, None], w / length.clamp(min=1e-300)[:, None], 0.0)
    return T


def _share(T: Tensor) -> Tensor:  # (B, k, k) -> (B,)
    """log C_ii - (log C)_ii from Lanczos' matrix, whose first entry is C_ii."""
    values, vectors = torch.linalg.eigh(T)
    quadrature = (vectors[:, 0].square() * values.clamp(min=1.0).log()).sum(1)  # C >= I
    return (T[:, 0, 0].log() - quadrature).clamp(min=0)
