"""HFS: the latents may be correlated, but every combination of their values must occur: a factorised support.

loss = -E_q log p(x|z) + beta KL(q(z|x) || N(0, I)) + gamma HFS + delta sum_k max(0, 1 - std e_k)

HFS = sum over pairs (a, b) of latents of   max_{(s, t)} min_i [ (s - e_ia)^2 + (t - e_ib)^2 ]

with e the means of the batch, and (s, t) = (e_ja, e_lb) points of the product of the two supports, j and l drawn at
random: how far the farthest combination lies from one that occurs (a Hausdorff distance, squared). (Roth et al. 2023.)

As the authors have it, at most 25 pairs and 100 points a step, and gradients through s and t. beta = 0 is meaningful:
without the KL nothing asks for independence. Nor does anything then keep codes from shrinking, which makes HFS small
for nothing; delta, their second scale term, with the standard deviation of each latent over the batch, keeps it at 1.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.objectives.base import Context, Objective
from unseam.objectives.elbo import elbo_terms

_PAIRS = 25  # of latents, at most
_POINTS = 100  # of the product of two supports
_SMALLEST = 1e-12


def integers_from_noise(noise: Tensor, count: int) -> Tensor:
    """Whole numbers 0..count-1 from standard normal noise, all as likely.

    >>> integers_from_noise(torch.tensor([-9.0, -0.1, 0.1, 9.0]), 4)
    tensor([0, 1, 2, 3])
    """
    return (torch.special.ndtr(noise) * count).long().clamp(max=count - 1)


def support_gap(a: Tensor, b: Tensor, s: Tensor, t: Tensor) -> Tensor:  # (B, P), (B, P), (M, P), (M, P) -> (P,)
    """max over points (s, t) of min over samples of the squared distance to (a, b), of each pair.

    >>> line = torch.linspace(0, 1, 101)[:, None]
    >>> support_gap(line, line, torch.tensor([[0.0]]), torch.tensor([[1.0]]))  # from a corner to the diagonal
    tensor([0.5000])
    """
    distances = (s.unsqueeze(1) - a).square() + (t.unsqueeze(1) - b).square()  # (M, B, P)
    return distances.amin(1).amax(0)


@dataclass(frozen=True)
class HFS(Objective):
    """A VAE whose latents may be correlated as long as all combinations of their values occur.

    Examples
    --------
    >>> HFS()
    HFS(gamma=100.0, beta=1.0, delta=0.0)
    """

    gamma: float = 100.0
    """weight of the support's gaps (Roth et al. search 0.1 to 10,000)"""
    beta: float = 1.0
    """weight of the KL; 0 leaves the prior out"""
    delta: float = 0.0
    """weight of the scale, to be used with beta 0"""

    formula: ClassVar[str] = "-E_q log p(x|z) + beta KL + gamma sum_ab max_(s,t) min_i |(s,t) - e_i,ab|^2 + delta scale"
    paper: ClassVar[str] = "Roth et al. 2023, Disentanglement of correlated factors via Hausdorff factorized support"
    beta_is: ClassVar[str] = "beta"
    smallest_batch: ClassVar[int] = 2
    may_be_zero: ClassVar[tuple[str, ...]] = ("beta", "delta")

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        e, noise = pass_.posterior.mean, context.noise
        B, K = e.shape
        first, second = torch.triu_indices(K, K, 1, device=e.device)[
            :, noise["pairs"].argsort()[: noise["points"].shape[2]]
        ]
        j, l = integers_from_noise(noise["points"], B)
        a, b = (e.index_select(1, latent) for latent in (first, second))
        gaps = support_gap(a, b, a.gather(0, j), b.gather(0, l))
        std = (e.var(0, correction=0) + _SMALLEST).sqrt()
        terms = elbo_terms(pass_, context) | {"support": gaps.sum(), "scale": (1 - std).clamp(min=0).sum()}
        return Terms(terms, {"kl": self.beta, "support": self.gamma, "scale": self.delta})

    def kl_weight(self) -> float | None:
        return self.beta or None

    def noise_shapes(self, batch: int, latents: int) -> dict[str, tuple[int, ...]]:
        pairs = latents * (latents - 1) // 2
        return {"pairs": (pairs,), "points": (2, _POINTS, min(pairs, _PAIRS))}
