"""The ELBO and its nearest relatives.

loss = -E_q log p(x|z) + beta KL(q(z|x) || N(0, I))          per sample, in nats, summed over dimensions
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.objectives.base import Context, Objective


def elbo_terms(pass_: Pass, context: Context) -> dict[str, Tensor]:
    """reconstruction = -log p(x|z) (one sample of z) and kl = KL(q(z|x) || N(0, I)), each (B,)."""
    return {
        "reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta),
        "kl": pass_.posterior.kl(),
    }


@dataclass(frozen=True)
class AE(Objective):
    """The plain autoencoder: no noise, no prior.

    Examples
    --------
    >>> AE().kl_weight() is None
    True
    """

    formula: ClassVar[str] = "-log p(x|e(x))"
    paper: ClassVar[str] = "Hinton & Salakhutdinov 2006, Reducing the dimensionality of data with neural networks"
    has_beta: ClassVar[bool] = False
    posterior: ClassVar[str] = "point"

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        return Terms({"reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta)})


@dataclass(frozen=True)
class VAE(Objective):
    """The evidence lower bound: beta = 1.

    Examples
    --------
    >>> VAE().kl_weight()
    1.0
    """

    formula: ClassVar[str] = "-E_q log p(x|z) + KL(q(z|x) || p(z))"
    paper: ClassVar[str] = "Kingma & Welling 2014, Auto-encoding variational Bayes"
    beta_is: ClassVar[float] = 1.0

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        return Terms(elbo_terms(pass_, context))


@dataclass(frozen=True)
class BetaVAE(Objective):
    """beta weighs the KL; beta < 1 sharpens the decoder (Allen 2024, Theorem 3: the same as s2 -> beta s2).

    Examples
    --------
    >>> BetaVAE(beta=2.0).kl_weight()
    2.0
    """

    beta: float = 4.0
    """weight of the KL; Locatello 2019 sweeps 1, 2, 4, 6, 8, 16"""
    schedule: Literal["constant", "warm-up", "cyclical"] = "constant"
    """how the weight gets to beta: at once, in one rise, or in four (objectives/elbo.py)"""

    formula: ClassVar[str] = "-E_q log p(x|z) + beta KL(q(z|x) || p(z))"
    paper: ClassVar[str] = "Higgins et al. 2017, beta-VAE"
    beta_is: ClassVar[str] = "beta"
    grid: ClassVar[dict[str, tuple[float, ...]]] = {"beta": (1, 2, 4, 6, 8, 16)}

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        share = SCHEDULES[self.schedule](context.step / context.steps)
        return Terms(elbo_terms(pass_, context), {"kl": self.beta * share})


@dataclass(frozen=True)
class BetaVAESigma(Objective):
    """beta-VAE with a full-covariance posterior: rotation invariant, so no axis is preferred (the ablation).

    Examples
    --------
    >>> BetaVAESigma(beta=2.0).posterior
    'full'
    """

    beta: float = 4.0
    """weight of the KL"""

    formula: ClassVar[str] = "-E_q log p(x|z) + beta KL(N(e, L L^T) || p(z))"
    paper: ClassVar[str] = "Zietlow 2022 (thesis), section 3.3: beta-VAE_Sigma"
    posterior: ClassVar[str] = "full"
    beta_is: ClassVar[str] = "beta"

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        return Terms(elbo_terms(pass_, context), {"kl": self.beta})


# How a strength changes over a run: small functions of t = step / steps in [0, 1] that return a share in [0, 1].
#
# warm-up   min(1, t / ramp)                         Bowman et al. 2016; Sonderby et al. 2016
# cyclical  min(1, frac(t cycles) / ramp)            Fu et al. 2019: 4 cycles, ramp 1/2


Number = float | Tensor


def warm_up(t: Number, ramp: Number = 0.5) -> Tensor:
    """A straight line from 0 to 1 over the first `ramp` of the run, then 1.

    >>> [warm_up(t).item() for t in (0.0, 0.25, 0.5, 1.0)]
    [0.0, 0.5, 1.0, 1.0]
    """
    return torch.as_tensor(t / ramp).clamp(max=1.0)


def cyclical(t: Number, ramp: Number = 0.5, cycles: int = 4) -> Tensor:
    """`cycles` warm-ups, one after the other; `ramp` is the rising share of each.

    >>> [cyclical(t).item() for t in (0.0, 0.0625, 0.125, 0.2, 0.25, 1.0)]
    [0.0, 0.5, 1.0, 1.0, 0.0, 1.0]
    """
    t = torch.as_tensor(t)
    return warm_up(torch.where(t < 1, t * cycles % 1.0, 1.0), ramp)


def constant(t: Number, ramp: Number = 0.5) -> Tensor:
    """1, all the time."""
    return torch.ones_like(torch.as_tensor(t, dtype=torch.get_default_dtype()))


SCHEDULES = {"constant": constant, "warm-up": warm_up, "cyclical": cyclical}
