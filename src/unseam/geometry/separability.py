"""Is a decoder's image a product of curves? The premises of the identifiability theorems, each as a number.

C1   the columns of A D are orthogonal                                                  (Allen 2024, A#3; v7: C1)
C2   d log s_i / d z_j = 0 for i != j, s_i = |column i|: no latent changes the speed along another   (Allen v7: C2)

C1 alone makes the push-forward density sum_i [log p(z_i) - log s_i(z)], but each s_i may depend on all of z. With C2
each term is a function of z_i alone, so the density is a product of one-dimensional ones, and the image is flat: the
metric is diag(s_i(z_i)^2), a product of curves. Polar coordinates satisfy C1 and not C2 (|J_angle| = radius).

Where C1 holds and C2 does not, the density on the manifold differs from the product with the speeds E(log s_i | z_i) by

    KL = log E exp(delta),   delta = sum_i [ log s_i(z) - E(log s_i | z_i) ]   nats: the cost of C2

C2 is measured as the change of log s_i while z_j goes through one standard deviation of its codes, centred at the
point. A derivative would be 0 almost everywhere for piece-wise linear decoders (ReLU), whose speeds change at kinks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp, vmap

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.jacobian import Decoder, as_likelihood, gather, push, slice_size
from unseam.models.likelihood import Likelihood
from unseam.rng import numpy_generator

_FLOOR = 1e-12  # of the longest column: shorter ones have no direction and no logarithm


def log_lengths(decode: Decoder, z: Tensor, likelihood: Likelihood) -> Tensor:  # (B, K) -> (B, K)
    """log s_i, s_i = |column i of A D|."""
    theta, D = push(decode, z)
    theta, D = theta.flatten(1), D.flatten(1, -2)
    squares = (likelihood.curvature(theta).unsqueeze(-1) * D.square()).sum(1)
    return 0.5 * squares.clamp(min=_FLOOR * float(torch.finfo(squares.dtype).tiny)).log()


@torch.no_grad()
def length_slopes(
    decode: Decoder,
    z: Tensor,  # (N, K)
    likelihood: Likelihood | str | None = None,
    s2: float = 0.5,
    chunk: int = 64,
) -> Tensor:  # (N, K, K)
    """d log s_i / d z_j at every point, entry (i, j): forward mode over forward mode.

    >>> polar = lambda z: torch.stack([z[:, 0] * z[:, 1].cos(), z[:, 0] * z[:, 1].sin()], 1)
    >>> length_slopes(polar, torch.tensor([[2.0, 0.3]])).round(decimals=4).abs()  # s = (1, r): d log s_2 / d r = 1/r
    tensor([[[0.0000, 0.0000],
             [0.5000, 0.0000]]])
    """
    p = as_likelihood(likelihood, s2)

    def slopes(points: Tensor) -> Tensor:
        eye = torch.eye(points.shape[1], dtype=points.dtype, device=points.device)
        columns = vmap(lambda e: jvp(lambda at: log_lengths(decode, at, p), (points,), (e.expand_as(points),))[1])(eye)
        return columns.movedim(0, -1)  # (B, i, j)

    return gather(((slopes(part),) for part in z.split(chunk)), len(z))[0]


class CrossSlopes(NamedTuple):
    """C2: how much a latent changes the speed along another while it goes through one standard deviation."""

    value: float  # root mean square of the change of log s_i with z_j, i != j
    error: float  # its standard error over points
    chance: float  # the same after a random rotation of latent space
    pairs: Array  # (K, K) root mean square of the change of log s_i (row) with z_j (column)
    cost: float  # nats: the divergence of the density from a product, given C1


@torch.no_grad()
def cross_slopes(
    decode: Decoder,
    z: Tensor,  # (N, K)
    likelihood: Likelihood | str | None = None,
    s2: float = 0.5,
    seed: int = 0,
    rotations: int = 2,
) -> CrossSlopes:
    """C2 at the points z, with its standard error and the level of random axes.

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to (B, ...), row by row.
    z : Tensor of shape (N, K)
        Points, for instance codes.
    likelihood : Likelihood or str, optional
        A Gaussian of variance `s2` by default.
    s2 : float, default=0.5
        Variance of the Gaussian, where no likelihood is given.
    seed, rotations : int
        Of the random axes that give the chance level.

    Returns
    -------
    CrossSlopes
        0 for a product of curves; 0.24 for polar coordinates with radii spread evenly from 1 to 3.

    Examples
    --------
    >>> z = torch.rand(100, 2, generator=torch.Generator().manual_seed(0)) + 1
    >>> curves = lambda z: torch.stack([z[:, 0] ** 2, z[:, 1].exp()], 1)
    >>> cross_slopes(curves, z).value < 1e-4
    True
    """
    if z.ndim != 2 or z.shape[1] < 2 or len(z) < 4:
        raise BadInput(f"z has shape {tuple(z.shape)}; C2 needs at least 4 points of at least 2 latents")
    p = as_likelihood(likelihood, s2)
    here = length_changes(decode, z, p)
    squares = _off_diagonal(here).square()
    rng, K = numpy_generator(seed, "cross slopes"), z.shape[1]
    mean, sd = z.mean(0), z.std(0).clamp(min=1e-12)

    def by_chance() -> float:
        Q = torch.as_tensor(np.linalg.qr(rng.normal(size=(K, K)))[0]).to(z)
        changes = length_changes(lambda w: decode(mean + sd * (w @ Q.T)), ((z - mean) / sd) @ Q, p)
        return float(_off_diagonal(changes).square().mean().sqrt())

    value, chance = float(squares.mean().sqrt()), float(np.mean([by_chance() for _ in range(rotations)]))
    error = float(squares.mean(1).std()) / len(z) ** 0.5 / max(2 * value, 1e-12)  # of a root: half the relative one
    pairs = here.square().mean(0).sqrt().double().cpu().numpy()
    np.fill_diagonal(pairs, 0.0)
    return CrossSlopes(value, error, chance, pairs, product_cost(decode, z, p))


def length_changes(decode: Decoder, z: Tensor, likelihood: Likelihood) -> Tensor:  # (N, K) -> (N, K, K)
    """log s_i(z + sd_j/2 e_j) - log s_i(z - sd_j/2 e_j), entry (i, j)."""
    sd = z.std(0)
    columns = []
    for j in range(z.shape[1]):
        step = torch.zeros_like(z)
        step[:, j] = sd[j] / 2
        ends = [_all_log_lengths(decode, z + side * step, likelihood) for side in (1, -1)]
        columns.append(ends[0] - ends[1])
    return torch.stack(columns, 2)


def _all_log_lengths(decode: Decoder, z: Tensor, likelihood: Likelihood) -> Tensor:  # (N, K) -> (N, K)
    parts = z.split(slice_size(decode, z))
    return gather(((log_lengths(decode, part, likelihood),) for part in parts), len(z))[0]


def _off_diagonal(t: Tensor) -> Tensor:  # (N, K, K) -> (N, K (K - 1))
    K = t.shape[1]
    return t[:, ~torch.eye(K, dtype=torch.bool, device=t.device)]


@torch.no_grad()
def product_cost(decode: Decoder, z: Tensor, likelihood: Likelihood, bins: int = 10) -> float:
    """log E exp(delta), E(log s_i | z_i) by straight lines within bins of equal counts.

    >>> from unseam.models.likelihood import Gaussian
    >>> z = torch.rand(400, 2, generator=torch.Generator().manual_seed(0)).double() * 2 + 1
    >>> polar = lambda z: torch.stack([z[:, 0] * z[:, 1].cos(), z[:, 0] * z[:, 1].sin()], 1)
    >>> radius = z[:, 0]
    >>> abs(product_cost(polar, z, Gaussian(1.0)) - float(radius.mean().log() - radius.log().mean())) < 0.005
    True
    """
    logs = _all_log_lengths(decode, z, likelihood).double().cpu().numpy()
    x, delta = z.double().cpu().numpy(), np.zeros(len(z))
    count = max(1, min(bins, len(z) // 20))
    for i in range(z.shape[1]):
        for part in np.array_split(np.argsort(x[:, i], kind="stable"), count):
            t, y = x[part, i] - x[part, i].mean(), logs[part, i]
            slope = (t @ (y - y.mean())) / max(float(t @ t), 1e-300)
            freedom = (len(part) / max(len(part) - 2, 1)) ** 0.5  # a line takes two degrees of it
            delta[part] += freedom * (y - y.mean() - slope * t)
    return float(np.log(np.mean(np.exp(delta - delta.max()))) + delta.max() - delta.mean())


def effective_columns(J: Tensor) -> Tensor:  # (N, n, K) -> (N,)
    """How many latents an output depends on, weighted by how much it moves: 1 for disjoint parts, up to K.

    The mean over outputs of (sum_i |J_oi|)^2 / sum_i J_oi^2, each output weighted by |J_o|^2.

    >>> effective_columns(torch.tensor([[[2.0, 0.0], [0.0, 3.0]]])), effective_columns(torch.ones(1, 4, 2))
    (tensor([1.]), tensor([2.]))
    """
    squares = J.square().sum(2)
    number = J.abs().sum(2).square() / squares.clamp(min=torch.finfo(J.dtype).tiny)
    return (number * squares).sum(1) / squares.sum(1).clamp(min=torch.finfo(J.dtype).tiny)


class ProductSupport(NamedTuple):
    """Whether codes fill a box: the share of cells of a grid of quantiles that no code lies in."""

    empty: float  # mean over pairs of latents
    error: float  # of that share, by chance alone
    chance: float  # of codes whose latents are shuffled: independent, so of product support
    worst: tuple[int, int]  # the pair with the most empty cells


def product_support(codes: Array, bins: int | None = None, seed: int = 0, draws: int = 20) -> ProductSupport:
    """Compare the empty cells of every pair of latents with those of shuffled codes.

    Parameters
    ----------
    codes : array of shape (N, K)
        Codes.
    bins : int, optional
        Cells along each latent; chosen by the number of rows by default.
    seed : int, default=0
        Of the random draws.
    draws : int, default=20
        Shuffles behind the level of chance.

    Returns
    -------
    ProductSupport
        The share of empty cells beside that of shuffled codes.

    Examples
    --------
    >>> t = np.linspace(0, 1, 400)
    >>> product_support(np.stack([t, t], 1)).empty > 0.8
    True
    """
    codes = np.asarray(codes, dtype=float)
    N, K = codes.shape
    if K < 2 or N < 16:
        raise BadInput(f"codes have shape {codes.shape}; the support of a product needs 16 rows of 2 latents")
    bins = bins or max(3, min(12, int((N / 5) ** 0.5)))
    ranks = (np.argsort(np.argsort(codes, axis=0, kind="stable"), axis=0, kind="stable") * bins) // N  # (N, K)
    pairs = [(i, j) for i in range(K) for j in range(i + 1, K)]

    def empty(table: Array) -> Array:
        return np.array([1 - len(np.unique(table[:, i] * bins + table[:, j])) / bins**2 for i, j in pairs])

    rng = numpy_generator(seed, "product support")
    shuffled = np.array([empty(np.stack([rng.permutation(ranks[:, k]) for k in range(K)], 1)).mean()
                         for _ in range(draws)])  # fmt: skip
    found = empty(ranks)
    return ProductSupport(float(found.mean()), float(shuffled.std(ddof=1)), float(shuffled.mean()),
                          pairs[int(found.argmax())])  # fmt: skip
