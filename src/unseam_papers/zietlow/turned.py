"""A decoder with two latents, turned: its ELBO and its likelihood as integrals; its reconstruction split (Z3).

All integrals of the turned decoder are sums over nodes: trapezoids for log p(x),
Gauss-Hermite for E_q. The nodes do not turn with the model, so that what stays the same does so because the integral
does.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseam.geometry import metrics
from unseam.models.likelihood import Gaussian
from unseam.rng import generator

_ROUNDS = 8  # of the fixed point for the diagonal Sigma


def plane_rotation(degrees: float) -> Tensor:  # (2, 2)
    """
    >>> (plane_rotation(90) @ torch.tensor([1.0, 0.0]).double()).round().abs()
    tensor([0., 1.], dtype=torch.float64)
    """
    t = torch.deg2rad(torch.tensor(float(degrees), dtype=torch.float64))
    return torch.stack([torch.stack([t.cos(), -t.sin()]), torch.stack([t.sin(), t.cos()])])


class TurnedDecoder:
    """The decoder z -> Dec(U^T z) and its integrals, at fixed nodes."""

    def __init__(
        self, decode: Callable[[Tensor], Tensor], likelihood: Gaussian, x: Tensor, nodes: int, mesh: float
    ) -> None:
        self.decode, self.likelihood, self.x = decode, likelihood, x
        places, weights = np.polynomial.hermite_e.hermegauss(nodes)
        weights = weights / weights.sum()
        self.nodes = torch.tensor(np.stack(np.meshgrid(places, places), -1).reshape(-1, 2))  # (Q, 2)
        self.weights = torch.tensor(np.outer(weights, weights).ravel())
        line = torch.arange(-6, 6 + mesh, mesh, dtype=torch.float64)
        self.mesh, self.step = torch.cartesian_prod(line, line), mesh

    def expected(self, U: Tensor, mean: Tensor, root: Tensor) -> Tensor:  # (N, 2), (N, 2, 2) -> (N,)
        """E log p(x|z) for z ~ N(mean, root root^T)."""
        z = mean.unsqueeze(1) + self.nodes @ root.mT  # (N, Q, 2)
        theta = self.decode(z.flatten(0, 1) @ U)
        log_p = self.likelihood.log_prob(self.x.repeat_interleave(len(self.nodes), 0), theta)
        return log_p.unflatten(0, (len(mean), -1)) @ self.weights

    def elbo(self, U: Tensor, mean: Tensor, Sigma: Tensor) -> float:
        kl = 0.5 * (mean.square().sum(1) + Sigma.diagonal(dim1=1, dim2=2).sum(1) - torch.logdet(Sigma) - mean.shape[1])
        return float((self.expected(U, mean, torch.linalg.cholesky(Sigma)) - kl).mean())

    def best_diagonal(self, U: Tensor, mean: Tensor, start: Tensor) -> float:
        """The ELBO with the best diagonal Sigma: d E_q log p / d log Sigma_ii = Sigma_ii E_q[H_ii] / 2."""
        variance = start
        for _ in range(_ROUNDS):
            log_variance = variance.log().requires_grad_()
            value = self.expected(U, mean, torch.diag_embed((log_variance / 2).exp())).sum()
            (slope,) = torch.autograd.grad(value, log_variance)
            variance = (1 - 2 * slope / variance).clamp(min=0.1).reciprocal()
        return self.elbo(U, mean, torch.diag_embed(variance))

    @torch.no_grad()
    def evidence(self, U: Tensor) -> float:
        """log p(x) = log of the integral of p(x|z) p(z) over a mesh of z."""
        parts = []
        for z in self.mesh.split(20_000):
            theta, prior = self.decode(z @ U), -0.5 * z.square().sum(1) - np.log(2 * np.pi)
            far = torch.cdist(self.x, theta).square()  # (N, Q)
            zero = self.likelihood.log_prob(theta[:1], theta[:1])  # at distance 0
            log_p = zero - 0.5 * far * torch.exp(-self.likelihood.log_s2)
            parts.append(torch.logsumexp(log_p + prior, 1))
        return float((torch.logsumexp(torch.stack(parts), 0) + 2 * np.log(self.step)).mean())


class Split(NamedTuple):
    """Parts of the squared error of a sampled code, each (N,)."""

    deterministic: Tensor  # |Dec(mu) - x|^2                                     (3.8)
    stochastic: Tensor  # E|Dec(mu) - Dec(z)|^2                                 (3.9)
    whole: Tensor  # E|Dec(z) - x|^2, their sum if E Dec(z) = Dec(mu)      (3.10), Proposition 4
    linear: Tensor  # E|J eps|^2 = sum_j |c_j|^2 sigma_j^2                    (3.13), (5.18)


@torch.no_grad()
def reconstruction_split(
    mean: Callable[[Tensor], Tensor],  # Dec: (B, K) -> (B, ...)
    x: Tensor,  # (N, ...)
    mu: Tensor,  # (N, K)
    variance: Tensor,  # (N, K)
    draws: int = 200,
) -> Split:
    """Zietlow 2022, Proposition 4 of a decoder, by antithetic draws of z = mu + eps: a linear one has no error.

    >>> x, mu = torch.ones(1, 2), torch.tensor([[1.0, 3.0]])
    >>> split = reconstruction_split(lambda z: 2 * z, x, mu, torch.full((1, 2), 0.5), draws=5000)
    >>> float(split.deterministic), float(split.linear), bool(split.whole > 29), bool(split.whole < 31)
    (26.0, 4.0, True, True)
    """
    half = variance.sqrt() * torch.randn(draws, *mu.shape, generator=generator(0, "split"), dtype=mu.dtype)
    z = mu + torch.cat([half, -half])  # (Q, N, K)
    sampled, centre, x = mean(z.flatten(0, 1)).reshape(*z.shape[:2], -1), mean(mu).flatten(1), x.flatten(1)
    return Split(
        (centre - x).square().sum(1),
        (sampled - centre).square().sum(2).mean(0),
        (sampled - x).square().sum(2).mean(0),
        (metrics(mean, mu, dtype=mu.dtype).gram.diagonal(dim1=1, dim2=2) * variance).sum(1),
    )
