"""SlowVAE: from one image of a pair to the next most latents stand still and a few move far.

loss = rec1 + rec2 + beta/2 [KL(q1 || N(0, I)) + KL(q2 || N(0, I))] + gamma [CE(q1; mu2) + CE(q2; mu1) - H]

CE is the cross-entropy of N(m, s^2) under a Laplace density of rate l, m the difference of the two means:

    CE = -log(l/2) + l s sqrt(2/pi) exp(-m^2 / 2 s^2) + l m (2 Phi(m/s) - 1)

(Klindt et al. 2021, eq. 9 and appendix.) H is the mean entropy of q1 and q2: the authors' code takes it off once for
the two directions, where two Kullback-Leibler divergences would take it off twice; ours does as the code does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.data.pairs import Pairing
from unseam.models import Diagonal
from unseam.objectives.base import Context, Objective


def laplace_cross_entropy(m: Tensor, log_var: Tensor, rate: Tensor | float) -> Tensor:  # (B, K) -> (B, K)
    """-E log Laplace(z; 0, rate), z ~ N(m, exp(log_var)).

    >>> laplace_cross_entropy(torch.tensor(3.0), torch.tensor(-20.0), 2.0)  # -log(2/2) + 2 * 3
    tensor(6.)
    """
    s = torch.exp(0.5 * log_var)
    spread = rate * s * math.sqrt(2 / math.pi) * torch.exp(-0.5 * (m / s).square())
    return spread + rate * m * torch.erf(m / (s * math.sqrt(2))) - torch.log(torch.as_tensor(rate) / 2)


def gaussian_entropy(q: Diagonal) -> Tensor:  # (B,)
    """H(q) = 1/2 sum_k log(2 pi e sigma_k^2)."""
    return 0.5 * (q.log_var + math.log(2 * math.pi * math.e)).sum(1)


@dataclass(frozen=True)
class SlowVAE(Objective):
    """A VAE on pairs in time: a Laplace prior on the step from one code to the next makes steps sparse.

    Examples
    --------
    >>> SlowVAE()
    SlowVAE(beta=1.0, gamma=10.0, rate=6.0, pairs='laplace', change=-1)
    """

    beta: float = 1.0
    """weight of the KL to N(0, I)"""
    gamma: float = 10.0
    """weight of the transition prior"""
    rate: float = 6.0
    """rate of the Laplace density: large for small steps"""
    pairs: str = "laplace"
    """how the second image of a pair follows from the first: k, laplace, share, time, or a file of pairs"""
    change: int = -1
    """with pairs k: how many factors change; -1 for any number"""

    formula: ClassVar[str] = "rec1 + rec2 + beta KL(q || N(0, I)) + gamma [CE(q1; mu2) + CE(q2; mu1) - H(q)]"
    paper: ClassVar[str] = "Klindt et al. 2021, Towards nonlinear disentanglement with temporal sparse coding"
    batches: ClassVar[int] = 2  # no `beta_is`: the transition prior prices variances too

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        assert context.second is not None
        one, two = pass_.posterior, context.model.encode(context.second)
        assert isinstance(one, Diagonal)
        assert isinstance(two, Diagonal)
        theta = context.model.decode(two.sample(context.noise["second"]))
        log_prob = context.model.likelihood.log_prob
        step = one.mean - two.mean
        forth, back = (laplace_cross_entropy(step, q.log_var, self.rate).sum(1) for q in (one, two))
        terms = {
            "reconstruction": -0.5 * (log_prob(pass_.x, pass_.theta) + log_prob(context.second, theta)),
            "kl": 0.5 * (one.kl() + two.kl()),
            "transition": forth + back - 0.5 * (gaussian_entropy(one) + gaussian_entropy(two)),
        }
        return Terms(terms, {"reconstruction": 2.0, "kl": self.beta, "transition": self.gamma})

    def pairing(self) -> Pairing:
        return Pairing(self.pairs, self.change)

    def noise_shapes(self, batch: int, latents: int) -> dict[str, tuple[int, ...]]:
        return {"second": (batch, latents)}
