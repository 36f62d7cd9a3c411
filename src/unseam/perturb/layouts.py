"""The two layouts of the latent space that a perturbation plays against each other.

Encoders are frozen and see the original data, so only q(z|x) of every row is stored of each; decoders go on learning.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from unseam.axes import Array
from unseam.models import Autoencoder, Diagonal

_TURN = 45.0  # degrees: as far from the axes as two latents can be turned


class _Turned(nn.Module):
    """d(R^T z): a decoder whose latents were turned by R."""

    def __init__(self, decoder: nn.Module, R: Tensor) -> None:
        super().__init__()
        self.decoder, self.R = decoder, R

    def forward(self, z: Tensor) -> Tensor:  # (B, K)
        return self.decoder(z @ self.R)


class Precision(nn.Module):
    """v exp(10 t): how much noise each latent carries may be chosen anew; 10 lets it settle faster than weights do."""

    def __init__(self, K: int) -> None:
        super().__init__()
        self.t = nn.Parameter(torch.zeros(K))

    def forward(self, variance: Tensor) -> Tensor:  # (B, K)
        return variance * (10 * self.t).exp()


@dataclass(frozen=True)
class Teacher:
    """A layout: q(z|x) of every row, a decoder and precisions that may learn, and the likelihood."""

    mean: Tensor  # (N, K)
    variance: Tensor  # (N, K)
    decoder: nn.Module
    likelihood: nn.Module
    precision: Precision
    beta: float = 1.0  # what it was trained with
    label: str = ""
    pair: tuple[int, int] | None = None  # the latents that were turned, if any

    def sample(self, rows: Tensor, noise: Tensor) -> Tensor:  # (B,), (B, samples, K) -> (B, samples, K)
        return self.mean[rows, None] + self.precision(self.variance[rows])[:, None].sqrt() * noise

    def kl(self, rows: Tensor) -> Tensor:  # (B,) -> (B,)
        """KL(q || N(0, I)) = 1/2 sum_i (m_i^2 + v_i - 1 - log v_i)."""
        m, v = self.mean[rows], self.precision(self.variance[rows])
        return (m.square() + v - 1 - v.log()).sum(1) / 2

    def reconstruction(self, x: Tensor, z: Tensor) -> Tensor:  # (B, ...), (B, samples, K) -> (B,)
        """-log p(x|z), the mean over the samples, in nats."""
        B, samples = z.shape[:2]
        theta = self.decoder(z.flatten(0, 1))
        repeated = x.unsqueeze(1).expand(B, samples, *x.shape[1:]).flatten(0, 1)
        return -self.likelihood.log_prob(repeated, theta).unflatten(0, (B, samples)).mean(1)  # type: ignore[operator]


def teacher(model: Autoencoder, posterior: Diagonal, beta: float = 1.0, label: str = "") -> Teacher:
    """A trained model at the rows its posterior was computed on; its decoder is copied, it may learn."""
    mean, variance = posterior.mean.detach(), posterior.variance().detach()
    parts = copy.deepcopy(model.decoder), copy.deepcopy(model.likelihood), Precision(mean.shape[1])
    return Teacher(mean, variance, *parts, beta, label)


def strongest(layout: Teacher) -> tuple[int, int]:
    """The two latents with the smallest posterior variances."""
    first, second = layout.variance.mean(0).argsort()[:2].tolist()
    return first, second


def turned_layout(layout: Teacher, pair: tuple[int, int] | None = None, degrees: float = _TURN) -> Teacher:
    """The same model with two latents turned (its two most informative ones): the same information, other axes.

    The turned posterior is R diag(v) R^T; what a diagonal one keeps of it is its diagonal.

    >>> q = Diagonal(torch.eye(3), torch.tensor([[-4.0, -2.0, 0.0]]).expand(3, 3))
    >>> flat = Teacher(q.mean, q.variance(), nn.Identity(), nn.Identity(), Precision(3))
    >>> turned_layout(flat).mean[0].round(decimals=3)
    tensor([0.7070, 0.7070, 0.0000])
    """
    first, second = pair = pair or strongest(layout)
    t = torch.deg2rad(torch.tensor(degrees))
    R = torch.eye(layout.mean.shape[1])
    R[first, first] = R[second, second] = t.cos()
    R[second, first], R[first, second] = t.sin(), -t.sin()
    return replace(
        layout,
        mean=layout.mean @ R.T,
        variance=layout.variance @ R.square().T,
        decoder=_Turned(copy.deepcopy(layout.decoder), R),
        precision=copy.deepcopy(layout.precision),
        pair=pair,
        label=f"{layout.label} turned by {degrees:g} degrees in latents {first} and {second}",
    )


def standardised(codes: Array) -> Array:
    """Codes in place of factors: mean 0, standard deviation 1."""
    return (codes - codes.mean(0)) / (codes.std(0) + 1e-8)
