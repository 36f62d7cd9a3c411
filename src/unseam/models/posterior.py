"""q(z|x): diagonal (VAE), full through a Cholesky factor (beta-VAE_Sigma), a point (AE), or a point on a grid (QLAE,
Tripod).

KL(q || N(0, I)) = 1/2 (|e|^2 + tr Sigma - log|Sigma| - K), summed over latents, per sample.
Noise is an argument: a posterior never draws. A family is its own plan: how many outputs of the encoder it takes, how
it is made from them, how it looks in other axes. A new one is a class here and a row of POSTERIORS.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor


class _Axes(Protocol):
    """Other axes of latent space (`geometry.align.Frame`)."""

    def new(self, old: Tensor) -> Tensor: ...  # (B, K) -> (B, K)

    def linear(self) -> Tensor: ...  # (K, K): a centred row vector times it is in new axes


@dataclass(frozen=True)
class Posterior(ABC):
    """What every family has: a mean, a spread, a KL and a plan.

    Parameters
    ----------
    mean : Tensor of shape (B, K)
        The mean of each row.

    Examples
    --------
    >>> issubclass(Diagonal, Posterior), Diagonal(torch.zeros(1, 2), torch.zeros(1, 2)).kl()
    (True, tensor([0.]))
    """

    mean: Tensor  # (B, K)

    has_prior: ClassVar[bool] = True  # False: a point, which has no density, so no KL and no variances
    full: ClassVar[bool] = False  # True: Sigma is a whole matrix, so the axes of latent space cost nothing

    @staticmethod
    @abstractmethod
    def outputs(K: int) -> int:
        """How many numbers the encoder must say of a sample."""

    @staticmethod
    def parameters(K: int, levels: int) -> dict[str, Tensor]:
        """Parameters of the family itself, by name; they are passed to `from_outputs`."""
        return {}

    @classmethod
    @abstractmethod
    def from_outputs(cls, t: Tensor, K: int, **own: Tensor) -> Posterior:
        """The encoder's outputs (B, outputs(K)) as a posterior."""

    @abstractmethod
    def sample(self, noise: Tensor) -> Tensor:  # (B, K) -> (B, K)
        """z from standard normal noise."""

    @abstractmethod
    def variance(self) -> Tensor:  # (B, K)
        """The diagonal of Sigma."""

    @abstractmethod
    def log_variance(self) -> Tensor:  # (B, K)
        """Shares of the latents in log|Sigma|."""

    def covariance(self) -> Tensor:  # (B, K, K)
        """Sigma of each row."""
        return torch.diag_embed(self.variance())

    def kl_per_latent(self) -> Tensor:  # (B, K)
        """Each latent's share; the shares sum to the KL."""
        return 0.5 * (self.mean.square() + self.variance() - self.log_variance() - 1)

    def kl(self) -> Tensor:  # (B,)
        """KL(q(z|x) || p(z)) of each row, in nats."""
        return self.kl_per_latent().sum(1)

    def rotate(self, frame: _Axes) -> Posterior:
        """N(m, S) -> N(R^T m, R^T S R), a full posterior."""
        A = frame.linear().to(self.mean)
        return Full.of(frame.new(self.mean), A.T @ self.covariance() @ A)


@dataclass(frozen=True)
class Diagonal(Posterior):
    """N(mean, diag(exp(log_var))).

    Parameters
    ----------
    mean : Tensor of shape (B, K)
        The mean of each row.
    log_var : Tensor of shape (B, K)
        The logarithm of each variance.

    Examples
    --------
    >>> Diagonal(torch.zeros(1, 2), torch.zeros(1, 2)).variance()
    tensor([[1., 1.]])
    """

    log_var: Tensor  # (B, K)

    @staticmethod
    def outputs(K: int) -> int:
        return 2 * K

    @classmethod
    def from_outputs(cls, t: Tensor, K: int, **own: Tensor) -> Diagonal:
        return cls(t[:, :K], t[:, K:])

    def sample(self, noise: Tensor) -> Tensor:
        return self.mean + torch.exp(0.5 * self.log_var) * noise

    def variance(self) -> Tensor:
        return self.log_var.exp()

    def log_variance(self) -> Tensor:
        return self.log_var


@dataclass(frozen=True)
class Full(Posterior):
    """N(mean, L L^T), L lower triangular with diagonal exp(log_diagonal).

    Parameters
    ----------
    mean : Tensor of shape (B, K)
        The mean of each row.
    log_diagonal : Tensor of shape (B, K)
        Logarithms of the diagonal of L.
    lower : Tensor of shape (B, K, K)
        The strictly lower triangle of L.

    Examples
    --------
    >>> Full(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2, 2)).covariance()
    tensor([[[1., 0.],
             [0., 1.]]])
    """

    log_diagonal: Tensor  # (B, K)
    lower: Tensor  # (B, K, K), strictly lower triangular

    full: ClassVar[bool] = True

    @staticmethod
    def outputs(K: int) -> int:
        return 2 * K + K * (K - 1) // 2

    @classmethod
    def from_outputs(cls, t: Tensor, K: int, **own: Tensor) -> Full:
        """Row i of L takes its entries j < i from the outputs' tail; every other entry the zero appended to it."""
        mean = t[:, :K]
        tail = torch.cat([t[:, 2 * K :], torch.zeros_like(mean[:, :1])], dim=1)
        return cls(mean, 0.5 * t[:, K : 2 * K], tail[:, lower_index(K, t.device)].unflatten(1, (K, K)))

    @classmethod
    def of(cls, mean: Tensor, covariance: Tensor) -> Full:  # (B, K), (B, K, K)
        """The one with this covariance.

        >>> Full.of(torch.zeros(1, 2), torch.tensor([[[4.0, 2.0], [2.0, 5.0]]])).cholesky()
        tensor([[[2., 0.],
                 [1., 2.]]])
        """
        L = torch.linalg.cholesky(covariance)
        return cls(mean, L.diagonal(dim1=1, dim2=2).log(), L.tril(-1))

    def cholesky(self) -> Tensor:  # (B, K, K)
        """L, lower triangular, of each row."""
        return self.lower + torch.diag_embed(self.log_diagonal.exp())

    def covariance(self) -> Tensor:
        """L L^T of each row."""
        L = self.cholesky()
        return L @ L.mT

    def sample(self, noise: Tensor) -> Tensor:
        return self.mean + (self.cholesky() @ noise.unsqueeze(-1)).squeeze(-1)

    def variance(self) -> Tensor:
        return self.cholesky().square().sum(-1)

    def log_variance(self) -> Tensor:
        """log|Sigma| split by the Cholesky diagonal: what latent j varies by when those before it are known."""
        return 2 * self.log_diagonal


@dataclass(frozen=True)
class Rotated(Posterior):
    """N(mean, matrix): another posterior in other axes, as an aligned model has it. No network gives it."""

    matrix: Tensor  # (B, K, K)

    full: ClassVar[bool] = True

    @staticmethod
    def outputs(K: int) -> int:
        return Full.outputs(K)

    @classmethod
    def from_outputs(cls, t: Tensor, K: int, **own: Tensor) -> Rotated:
        q = Full.from_outputs(t, K)
        return cls(q.mean, q.covariance())

    def covariance(self) -> Tensor:
        return self.matrix

    def variance(self) -> Tensor:
        return self.matrix.diagonal(dim1=1, dim2=2)

    def log_variance(self) -> Tensor:
        """As `Full` splits it: what latent j varies by when those before it are known.

        >>> Rotated(torch.zeros(1, 2), torch.tensor([[[4.0, 2.0], [2.0, 5.0]]])).log_variance().exp().round(decimals=3)
        tensor([[4., 4.]])
        """
        return 2 * torch.linalg.cholesky(self.matrix).diagonal(dim1=1, dim2=2).log()

    def sample(self, noise: Tensor) -> Tensor:
        return self.mean + (torch.linalg.cholesky(self.matrix) @ noise.unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True)
class Point(Posterior):
    """A point mass: z = mean. It has no density, so its KL counts as 0 and its variance is 0.

    Parameters
    ----------
    mean : Tensor of shape (B, K)
        The code of each row.

    Examples
    --------
    >>> Point(torch.ones(1, 2)).variance()
    tensor([[0., 0.]])
    """

    has_prior: ClassVar[bool] = False

    @staticmethod
    def outputs(K: int) -> int:
        return K

    @classmethod
    def from_outputs(cls, t: Tensor, K: int, **own: Tensor) -> Point:
        return cls(t)

    def sample(self, noise: Tensor) -> Tensor:
        return self.mean

    def variance(self) -> Tensor:
        return torch.zeros_like(self.mean)

    def log_variance(self) -> Tensor:
        return torch.full_like(self.mean, math.log(1e-30))  # minus infinity, as a number that can be stored

    def kl_per_latent(self) -> Tensor:
        return torch.zeros_like(self.mean)

    def rotate(self, frame: _Axes) -> Point:
        return Point(frame.new(self.mean))


@dataclass(frozen=True)
class Quantised(Point):
    """A point on a grid. The gradient of `mean` goes straight to `continuous`, that of `nearest` to the grid."""

    continuous: Tensor  # (B, K) the output of the encoder
    nearest: Tensor  # (B, K) the values it was rounded to; the same numbers as `mean`

    @staticmethod
    def parameters(K: int, levels: int) -> dict[str, Tensor]:
        """The grid: `levels` values of each latent (K, L)."""
        return {"values": torch.linspace(-0.5, 0.5, levels, device="cpu").repeat(K, 1)}

    @classmethod
    def from_outputs(cls, t: Tensor, K: int, **own: Tensor) -> Quantised:
        """Round each latent to the nearest of its own L values (Hsu et al. 2023, section 3).

        >>> grid = torch.tensor([[0.0, 1.0], [0.5, 1.5]])
        >>> Quantised.from_outputs(torch.tensor([[0.2, 0.9]]), 2, values=grid).mean
        tensor([[0.0000, 0.5000]])
        """
        values = own["values"]
        index = (t.unsqueeze(-1) - values).abs().argmin(-1)  # (B, K)
        nearest = values.gather(1, index.mT).mT
        straight_through = nearest.detach() + (t - t.detach())  # + exactly 0
        return cls(straight_through, t, nearest)


@dataclass(frozen=True)
class Rounded(Quantised):
    """tanh of what the encoder says, rounded to a grid on [-1, 1] that is not learned (Mentzer et al. 2024)."""

    @staticmethod
    def parameters(K: int, levels: int) -> dict[str, Tensor]:
        """The grid (K, L); it gets no gradient, so it stays."""
        return {"values": torch.linspace(-1, 1, levels, device="cpu").repeat(K, 1)}

    @classmethod
    def from_outputs(cls, t: Tensor, K: int, **own: Tensor) -> Rounded:
        """Each latent to the nearest of L even steps; the gradient goes through to tanh.

        >>> Rounded.from_outputs(torch.tensor([[0.1, 9.0]]), 2, values=Rounded.parameters(2, 3)["values"]).mean
        tensor([[0., 1.]])
        """
        found = Quantised.from_outputs(torch.tanh(t), K, values=own["values"].detach())
        return cls(found.mean, found.continuous, found.nearest)


def lower_index(k: int, device: torch.device | str = "cpu") -> Tensor:
    """The position of entry (i, j) of a strictly lower triangular matrix in a row-wise list; k(k-1)/2 means zero.

    >>> lower_index(3).view(3, 3).tolist()
    [[3, 3, 3], [0, 3, 3], [1, 2, 3]]
    """
    index = torch.full((k, k), k * (k - 1) // 2, device=device)
    rows, columns = torch.tril_indices(k, k, -1, device=device)
    index[rows, columns] = torch.arange(len(rows), device=device)
    return index.flatten()


POSTERIORS: dict[str, type[Posterior]] = {
    "diagonal": Diagonal,
    "full": Full,
    "point": Point,
    "quantised": Quantised,
    "rounded": Rounded,
}
