"""Jacobians of a decoder by forward mode, and what is built on them: J = d xhat/dz, D = d theta/dz, M_x, SVD, Hessian.

    M_x = D^T A^2 D                          the pull-back metric (Allen 2024, section 3; Kumar & Poole 2020)
    H   = -M_x + sum_k (x - xhat)_k d^2 theta_k / dz^2        the Hessian of log p(x|z) in z

A decoder is any callable that maps points (B, K) to (B, ...), row by row. All K tangents of a slice of points go
through the decoder as one batch while its values are computed once; the slices are small enough to stay in the
cache, which makes K columns cost about K forward passes. Nothing here branches on data, so every function can be
differentiated and lifted with `torch.func.vmap` over the members of a cohort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import grad, jvp, vmap

from unseam.errors import lookup
from unseam.models.likelihood import LIKELIHOODS, Gaussian, Likelihood
from unseam.rng import generator

Decoder = Callable[[Tensor], Tensor]  # (B, K) -> (B, ...)
NUMBERS_AT_ONCE = 2**19  # points x n x K of one slice: about what a core's cache holds


class Grams(NamedTuple):
    """The two K x K matrices per point that everything else needs; the Jacobians themselves are not stored."""

    gram: Tensor  # (N, K, K)  J^T J
    pullback: Tensor  # (N, K, K)  M = D^T A^2 D


def as_likelihood(likelihood: Likelihood | str | None = None, s2: float = 0.5) -> Likelihood:
    """A likelihood, its name, or None for a decoder that returns the mean of a Gaussian with variance s2.

    >>> as_likelihood("bernoulli")
    Bernoulli()
    """
    if likelihood is not None and not isinstance(likelihood, str):
        return likelihood
    kind = lookup(LIKELIHOODS, likelihood or "gaussian", "likelihood")
    return Gaussian(s2) if kind is Gaussian else kind()


def slice_size(decode: Decoder, z: Tensor, chunk: int | None = None) -> int:
    """How many points to take at once, so that memory stays bounded: `chunk`, or what the cache holds."""
    if chunk is not None:
        return max(1, chunk)
    with torch.no_grad():
        n = decode(z[:1]).numel()
    return max(1, NUMBERS_AT_ONCE // max(1, n * z.shape[1]))


def push(decode: Decoder, z: Tensor) -> tuple[Tensor, Tensor]:  # (B, K) -> (B, ...), (B, ..., K)
    """theta = d(z) and all its columns d theta / dz_k: one jvp per tangent e_k, the K of them as one batch."""
    eye = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)

    def column(e: Tensor) -> tuple[Tensor, Tensor]:
        value, tangent = jvp(decode, (z,), (e.expand_as(z),))[:2]
        return value, tangent

    values, columns = vmap(column)(eye)
    return values[0], columns.movedim(0, -1)  # the same value for every tangent, computed once


def reverse_jacobian(decode: Decoder, z: Tensor) -> tuple[Tensor, Tensor]:  # (B, K) -> (B, ...), (B, ..., K)
    """The same by reverse mode, one pass per output: slow, but every operation that can be trained has it."""
    with torch.enable_grad():
        z = z.detach().clone().requires_grad_()
        theta = decode(z)
        rows = [torch.autograd.grad(one, z, retain_graph=True)[0] for one in theta.flatten(1).sum(0)]
    return theta.detach(), torch.stack(rows, 1).unflatten(1, theta.shape[1:])


MODES = {"forward": push, "reverse": reverse_jacobian}


def jacobian_slices(
    decode: Decoder, z: Tensor, chunk: int | None = None, mode: str = "forward"
) -> Iterator[tuple[Tensor, Tensor]]:
    """(theta (b, n), D (b, n, K)) for one small slice of points after another."""
    differentiate = lookup(MODES, mode, "mode")
    for points in z.split(slice_size(decode, z, chunk)):
        theta, D = differentiate(decode, points)
        yield theta.flatten(1), D.flatten(1, -2)


def gather(parts: Iterable[tuple[Tensor, ...]], N: int) -> list[Tensor]:
    """Slices (b, ...) -> whole tensors (N, ...), written in place as they come.

    A list of small results, kept between the large scratch tensors of one slice and the next, would tear the heap into
    holes (up to 1 GB where 0.4 are enough). One slice that is the whole is passed on as it is.

    >>> gather([(torch.zeros(1, 2),), (torch.ones(2, 2),)], 3)[0][:, 0]
    tensor([0., 1., 1.])
    """
    whole: list[Tensor] = []
    done = 0
    for part in parts:
        if len(part[0]) == N:
            return list(part)
        whole = whole or [one.new_empty((N, *one.shape[1:])) for one in part]
        for out, one in zip(whole, part, strict=True):
            out[done : done + len(one)] = one
        done += len(part[0])
    return whole


def jacobian(
    decode: Decoder, z: Tensor, chunk: int | None = None, mode: str = "forward"
) -> Tensor:  # (N, K) -> (N, n, K)
    """D = d theta / dz at every point, outputs flattened to n. `chunk` bounds the points in flight.

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to outputs (B, ...), row by row.
    z : Tensor of shape (N, K)
        Points.
    chunk : int, optional
        Points at a time, to bound memory; chosen by their size by default.
    mode : {"forward", "reverse"}, default="forward"
        How Jacobians are computed; forward costs K passes, reverse n.

    Returns
    -------
    Tensor of shape (N, n, K)
        The derivative at each point.

    Examples
    --------
    >>> W = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> jacobian(lambda z: z @ W.T, torch.zeros(4, 2)).shape
    torch.Size([4, 3, 2])
    >>> torch.equal(jacobian(lambda z: z @ W.T, torch.zeros(1, 2))[0], W)
    True
    """
    return gather(((D,) for _, D in jacobian_slices(decode, z, chunk, mode)), len(z))[0]


def mean_and_weight(likelihood: Likelihood, theta: Tensor, D: Tensor) -> tuple[Tensor, Tensor]:
    """J = d mean(theta)/dz = mean'(theta) D, (b, n, K), and A^2 (b, n)."""
    slope = jvp(likelihood.mean, (theta,), (torch.ones_like(theta),))[1]
    return slope.unsqueeze(-1) * D, likelihood.curvature(theta)


def pullbacks(
    decode: Decoder,
    z: Tensor,  # (N, K)
    likelihood: Likelihood | str | None = None,
    s2: float = 0.5,
    chunk: int | None = None,
    dtype: torch.dtype | None = None,
    mode: str = "forward",
) -> Grams:
    """J^T J and M = D^T A^2 D at every point, slice by slice: memory grows with N K^2, not with N n K.

    `dtype=torch.float64` sums the products in double precision, also for a decoder in single precision.

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to outputs (B, ...), row by row.
    z : Tensor of shape (N, K)
        Points.
    likelihood : Likelihood or str, optional
        A Gaussian of variance `s2` by default.
    s2 : float, default=0.5
        Variance of the Gaussian, where no likelihood is given.
    chunk : int, optional
        Points at a time, to bound memory; chosen by their size by default.
    dtype : torch.dtype, optional
        Precision of the products; that of the decoder by default.
    mode : {"forward", "reverse"}, default="forward"
        How Jacobians are computed; forward costs K passes, reverse n.

    Returns
    -------
    Grams
        `gram`, J^T J, and `pullback`, D^T A^2 D; each (N, K, K).

    Examples
    --------
    >>> W = torch.tensor([[3.0, 0.0], [4.0, 2.0]])
    >>> pullbacks(lambda z: z @ W.T, torch.zeros(1, 2), s2=0.5).gram
    tensor([[[25.,  8.],
             [ 8.,  4.]]])
    """
    p = as_likelihood(likelihood, s2)

    def products(theta: Tensor, D: Tensor) -> tuple[Tensor, Tensor]:
        J, A2 = mean_and_weight(p, theta, D)
        J, D, A2 = (t.to(dtype or t.dtype) for t in (J, D, A2))
        return J.mT @ J, D.mT @ (A2.unsqueeze(-1) * D)

    return Grams(*gather((products(theta, D) for theta, D in jacobian_slices(decode, z, chunk, mode)), len(z)))


Metrics, metrics = Grams, pullbacks  # their names until 0.3


def pullback(decode: Decoder, z: Tensor, likelihood: Likelihood | str | None = None, s2: float = 0.5) -> Tensor:
    """M_x = D^T A^2 D, (N, K) -> (N, K, K). Gaussian: J^T J / s2.

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to outputs (B, ...), row by row.
    z : Tensor of shape (N, K)
        Points.
    likelihood : Likelihood or str, optional
        A Gaussian of variance `s2` by default.
    s2 : float, default=0.5
        Variance of the Gaussian, where no likelihood is given.

    Returns
    -------
    Tensor of shape (N, K, K)
        The metric at each point.

    Examples
    --------
    >>> pullback(lambda z: 3 * z, torch.zeros(1, 1), s2=0.5)
    tensor([[[18.]]])
    """
    return pullbacks(decode, z, likelihood, s2).pullback


def singular(gram: Tensor) -> tuple[Tensor, Tensor]:  # (N, K, K) -> (N, K), (N, K, K)
    """Singular values s (largest first) and right singular vectors V of J = U S V^T, from J^T J = V S^2 V^T.

    Parameters
    ----------
    gram : Tensor of shape (N, K, K)
        J^T J at each point.

    Returns
    -------
    Tensor of shape (N, K), Tensor of shape (N, K, K)
        Singular values, and right singular vectors as columns.

    Examples
    --------
    >>> s, V = singular(torch.diag(torch.tensor([4.0, 9.0])))
    >>> s, V.abs()
    (tensor([3., 2.]), tensor([[0., 1.], [1., 0.]]))
    """
    squares, V = torch.linalg.eigh(gram)
    return squares.clamp(min=0).sqrt().flip(-1), V.flip(-1)


def hessian(
    decode: Decoder,
    z: Tensor,  # (N, K)
    x: Tensor,  # (N, ...)
    likelihood: Likelihood | str | None = None,
    s2: float = 0.5,
    chunk: int | None = None,
) -> Tensor:  # (N, K, K)
    """The exact H = d^2 log p(x|z) / dz^2, forward over reverse. H + M_x is the term that linear theory drops.

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to outputs (B, ...), row by row.
    z : Tensor of shape (N, K)
        Points.
    x : Tensor of shape (N, ...)
        The observation of each point.
    likelihood : Likelihood or str, optional
        A Gaussian of variance `s2` by default.
    s2 : float, default=0.5
        Variance of the Gaussian, where no likelihood is given.
    chunk : int, optional
        Points at a time, to bound memory; chosen by their size by default.

    Returns
    -------
    Tensor of shape (N, K, K)
        The second derivatives at each point.

    Examples
    --------
    >>> hessian(lambda z: z**2, torch.ones(1, 1), torch.zeros(1, 1), s2=1.0)  # -(z^2)^2/2 at z = 1
    tensor([[[-6.]]])
    """
    p = as_likelihood(likelihood, s2)
    size = slice_size(decode, z, chunk)

    def one(points: Tensor, data: Tensor) -> Tensor:
        score = grad(lambda at: p.log_prob(data, decode(at)).sum())  # rows are independent, so the sum is enough
        return push(score, points)[1]

    return gather(((one(a, b),) for a, b in zip(z.split(size), x.split(size), strict=True)), len(z))[0]


# A decoder's derivative is compared with finite differences when it is passed in:
#
#     D v   against   (d(z + h v) - d(z - h v)) / 2h        at a few codes z, in random directions v
#
# A part that is cut from the graph (detach, a straight-through estimator, a formula of its own in the backward pass)
# gives a Jacobian that is not the decoder's, and nothing else would show it.


_POINTS = 8
_STEPS = (1e-3, 1e-2)  # h, in standard deviations of the codes; a kink or rounding spoils one of them, not both
_APART = 0.1  # relative difference from which there is a warning
_Columns = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # z (B, K), index (B, k) -> theta (B, ...), D (B, ..., k)


@torch.no_grad()
def derivative_warnings(
    decode: Callable[[Tensor], Tensor], columns: _Columns, z: Tensor, index: Tensor | None = None
) -> tuple[str, ...]:
    """One warning, or none. `index` says along which latents each row of z is moved; all of them when not given.

    >>> z = torch.randn(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> derivative_warnings(torch.sin, lambda p, _: push(torch.sin, p), z)
    ()
    >>> cut = lambda z: torch.sin(z) + 3 * z.detach()
    >>> derivative_warnings(cut, lambda p, _: push(cut, p), z)[0][:34]
    "the decoder's derivative is off by"
    """
    few = slice(None, None, max(1, len(z) // _POINTS))
    at = z[few][:_POINTS]
    k = torch.arange(z.shape[1], device=z.device).expand_as(at) if index is None else index[few][:_POINTS].to(z.device)
    random = torch.randn(k.shape, generator=generator(0, "derivative"), dtype=torch.float64, device="cpu").to(at)
    size = random * z.std(0)[k]  # (B, k)
    v = torch.zeros_like(at).scatter(1, k, size)
    D = columns(at, k)[1]
    found = (D * size.reshape(len(at), *[1] * (D.ndim - 2), -1)).sum(-1)
    slopes = [(decode(at + h * v) - decode(at - h * v)) / (2 * h) for h in _STEPS]
    apart = min(float((found - slope).norm() / slope.norm().clamp_min(1e-30)) for slope in slopes)
    if not apart > _APART:
        return ()
    return (
        f"the decoder's derivative is off by {apart:.0%} of what it is by finite differences: a part of it is cut from "
        "the graph (detach, rounding) or has a backward pass of its own, and the numbers here are of the rest",
    )
