"""Ada-GVAE and Ada-ML-VAE: two images that share some factors should share the posteriors of some latents.

    delta_k = KL(q(z_k|x1) || q(z_k|x2)),   shared: delta_k < (min_k delta + max_k delta) / 2

A shared latent gets one posterior for both images, the mean of the two (G) or their product (ML):

    G    m = (m1 + m2) / 2,                   v = (v1 + v2) / 2
    ML   m = (m1/v1 + m2/v2) v / 2,           v = 2 v1 v2 / (v1 + v2)

loss = mean over both images of -E_q log p(x|z) + beta KL(q(z|x) || p(z))        (Locatello et al. 2020, section 3)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.data.pairs import Pairing
from unseam.models import Diagonal
from unseam.objectives.base import Context, Objective


def divergence(a: Diagonal, b: Diagonal) -> Tensor:  # (B, K)
    """KL(a_k || b_k) of each latent, in nats."""
    difference = (a.mean - b.mean).square() * torch.exp(-b.log_var)
    return 0.5 * (torch.exp(a.log_var - b.log_var) + difference - 1 + b.log_var - a.log_var)


def shared_latents(a: Diagonal, b: Diagonal) -> Tensor:  # (B, K) bool
    """Which latents a pair is taken to share.

    >>> one = Diagonal(torch.tensor([[0.0, 1.0]]), torch.zeros(1, 2))
    >>> two = Diagonal(torch.tensor([[0.1, -1.0]]), torch.zeros(1, 2))
    >>> shared_latents(one, two)
    tensor([[ True, False]])
    """
    delta = divergence(a, b)
    middle = 0.5 * (delta.amin(1, keepdim=True) + delta.amax(1, keepdim=True))
    return delta < middle


def average_posteriors(a: Diagonal, b: Diagonal) -> Diagonal:
    """The mean of the two means and of the two variances."""
    return Diagonal(0.5 * (a.mean + b.mean), torch.logaddexp(a.log_var, b.log_var) - math.log(2))


def multiplied(a: Diagonal, b: Diagonal) -> Diagonal:
    """The normalised product of the two densities, its variance doubled: that of one image, not of two."""
    precision = torch.exp(-a.log_var), torch.exp(-b.log_var)
    total = precision[0] + precision[1]
    mean = (a.mean * precision[0] + b.mean * precision[1]) / total
    return Diagonal(mean, math.log(2) - torch.log(total))


def tied(a: Diagonal, b: Diagonal, join: Callable[[Diagonal, Diagonal], Diagonal]) -> tuple[Diagonal, Diagonal]:
    """Both posteriors, with the shared latents joined."""
    same, both = shared_latents(a, b), join(a, b)
    first, second = (
        Diagonal(torch.where(same, both.mean, q.mean), torch.where(same, both.log_var, q.log_var)) for q in (a, b)
    )
    return first, second


@dataclass(frozen=True)
class Adaptive(Objective):
    """What the two have in common."""

    beta: float = 1.0
    """weight of the KL (Locatello 2020 sweeps 1 to 16)"""
    pairs: str = "k"
    """how the second image of a pair follows from the first: k, laplace, share, time, or a file of pairs"""
    change: int = -1
    """with pairs k: how many factors change; -1 for any number"""

    beta_is: ClassVar[str] = "beta"
    reads_theta: ClassVar[bool] = False
    batches: ClassVar[int] = 2
    join: ClassVar[Any]  # two posteriors -> one

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        assert context.second is not None
        one, two = pass_.posterior, context.model.encode(context.second)
        assert isinstance(one, Diagonal)
        assert isinstance(two, Diagonal)
        posteriors = tied(one, two, type(self).join)
        images, draws = (pass_.x, context.second), (context.noise["z"], context.noise["second"])
        thetas = [context.model.decode(q.sample(noise)) for q, noise in zip(posteriors, draws, strict=True)]
        reconstruction = [-context.model.likelihood.log_prob(x, t) for x, t in zip(images, thetas, strict=True)]
        terms = {
            "reconstruction": 0.5 * (reconstruction[0] + reconstruction[1]),
            "kl": 0.5 * (posteriors[0].kl() + posteriors[1].kl()),
            "shared": shared_latents(one, two).float().sum(1),
        }
        return Terms(terms, {"kl": self.beta, "shared": 0.0})

    def pairing(self) -> Pairing:
        return Pairing(self.pairs, self.change)

    def noise_shapes(self, batch: int, latents: int) -> dict[str, tuple[int, ...]]:
        return {"second": (batch, latents)}


@dataclass(frozen=True)
class AdaGVAE(Adaptive):
    """A beta-VAE on pairs: latents that hardly differ within a pair get the mean of both posteriors.

    Examples
    --------
    >>> AdaGVAE(beta=2.0).batches
    2
    """

    formula: ClassVar[str] = "-E_q log p(x|z) + beta KL, on pairs; shared latents: the mean of both posteriors"
    paper: ClassVar[str] = "Locatello et al. 2020, Weakly-supervised disentanglement without compromises"
    join = staticmethod(average_posteriors)


@dataclass(frozen=True)
class AdaMLVAE(Adaptive):
    """A beta-VAE on pairs: latents that hardly differ within a pair get the product of both posteriors.

    Examples
    --------
    >>> AdaMLVAE(beta=2.0).batches
    2
    """

    formula: ClassVar[str] = "-E_q log p(x|z) + beta KL, on pairs; shared latents: the product of both posteriors"
    paper: ClassVar[str] = "Locatello et al. 2020, after Bouchacourt et al. 2018 (ML-VAE)"
    join = staticmethod(multiplied)
