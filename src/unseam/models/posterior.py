"""q(z|x): diagonal (VAE), full through a Cholesky factor (beta-VAE_Sigma), a point (AE), or a point on a grid (QLAE).

KL(q || N(0, I)) = 1/2 (|e|^2 + tr Sigma - log|Sigma| - K), summed over latents, per sample.
Noise is an argument: a posterior never draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

POSTERIORS = ("diagonal", "full", "point", "quantised")


@dataclass(frozen=True)
class Diagonal:
    """N(mean, diag(exp(log_var)))."""

    mean: Tensor  # (B, K)
    log_var: Tensor  # (B, K)

    def sample(self, noise: Tensor) -> Tensor:  # (B, K) -> (B, K)
        return self.mean + torch.exp(0.5 * self.log_var) * noise

    def variance(self) -> Tensor:  # (B, K)
        return self.log_var.exp()

    def log_variance(self) -> Tensor:  # (B, K), sums to log|Sigma|
        return self.log_var

    def kl_per_latent(self) -> Tensor:  # (B, K)
        return 0.5 * (self.mean.square() + self.log_var.exp() - self.log_var - 1)

    def kl(self) -> Tensor:  # (B,)
        return self.kl_per_latent().sum(1)


@dataclass(frozen=True)
class Full:
    """N(mean, L L^T), L lower triangular with diagonal exp(log_diagonal)."""

    mean: Tensor  # (B, K)
    log_diagonal: Tensor  # (B, K)
    lower: Tensor  # (B, K, K), strictly lower triangular

    def cholesky(self) -> Tensor:  # (B, K, K)
        return self.lower + torch.diag_embed(self.log_diagonal.exp())

    def sample(self, noise: Tensor) -> Tensor:
        return self.mean + (self.cholesky() @ noise.unsqueeze(-1)).squeeze(-1)

    def variance(self) -> Tensor:
        return self.cholesky().square().sum(-1)

    def log_variance(self) -> Tensor:
        """log|Sigma| split by the Cholesky diagonal: what latent j varies by when those before it are known."""
        return 2 * self.log_diagonal

    def kl_per_latent(self) -> Tensor:
        """Each latent's share; the shares sum to the KL."""
        return 0.5 * (self.mean.square() + self.variance() - self.log_variance() - 1)

    def kl(self) -> Tensor:
        return self.kl_per_latent().sum(1)


@dataclass(frozen=True)
class Point:
    """A point mass: z = mean. It has no density, so its KL counts as 0 and its variance is 0."""

    mean: Tensor  # (B, K)

    def sample(self, noise: Tensor) -> Tensor:
        return self.mean

    def variance(self) -> Tensor:
        return torch.zeros_like(self.mean)

    def log_variance(self) -> Tensor:
        return torch.full_like(self.mean, math.log(1e-30))  # minus infinity, as a number that can be stored

    def kl_per_latent(self) -> Tensor:
        return torch.zeros_like(self.mean)

    def kl(self) -> Tensor:
        return torch.zeros_like(self.mean[:, 0])


@dataclass(frozen=True)
class Quantised(Point):
    """A point on a grid. The gradient of `mean` goes straight to `continuous`, that of `nearest` to the grid."""

    continuous: Tensor  # (B, K) what the encoder said
    nearest: Tensor  # (B, K) the values it was rounded to; the same numbers as `mean`


def quantise(continuous: Tensor, values: Tensor) -> Quantised:  # (B, K), (K, L)
    """Round each latent to the nearest of its own L values (Hsu et al. 2023, section 3).

    >>> quantise(torch.tensor([[0.2, 0.9]]), torch.tensor([[0.0, 1.0], [0.5, 1.5]])).mean
    tensor([[0.0000, 0.5000]])
    """
    index = (continuous.unsqueeze(-1) - values).abs().argmin(-1)  # (B, K)
    nearest = values.gather(1, index.mT).mT
    straight_through = nearest.detach() + (continuous - continuous.detach())  # + exactly 0
    return Quantised(straight_through, continuous, nearest)


Posterior = Diagonal | Full | Point  # Quantised is a Point
