"""sigma-VAE: the decoder's variance is learned, so beta need not be chosen.

loss = -E_q log N(x; xhat, s2 I) + KL(q(z|x) || p(z))                      s2 one number for all pixels and samples

learned   s2 is a parameter of the likelihood (its optimum is the mean squared error)
optimal   s2 is the batch's mean squared error itself: -log p = n/2 log(2 pi e s2)   (Rybkin et al. 2021)

By Theorem 3 (Allen 2024) s2 plays the part of beta: sigma-VAE is a beta-VAE that finds its own. `optimal` also pulls
the likelihood's s2 after it (term `lag`); when training ends it is set (`settled`), so the model knows its variance.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.errors import BadInput
from unseam.models import Gaussian
from unseam.objectives.base import Context, Objective
from unseam.objectives.elbo import elbo_terms

LEAST_LOG_S2 = -12.0  # log sigma >= -6, as in the paper: a perfect reconstruction must not end in log 0


def optimal_log_s2(x: Tensor, theta: Tensor) -> Tensor:  # (B, ...) -> ()
    """log of the variance that maximises the batch's likelihood: the mean squared error.

    >>> optimal_log_s2(torch.zeros(2, 3), torch.full((2, 3), 2.0)).exp()
    tensor(4.)
    """
    return (x - theta).square().mean().clamp(min=math.exp(LEAST_LOG_S2)).log()


@dataclass(frozen=True)
class SigmaVAE(Objective):
    """The ELBO with the decoder's variance learned: it finds its own beta.

    Examples
    --------
    >>> SigmaVAE(variance="optimal").learned_s2
    True
    """

    variance: Literal["learned", "optimal"] = "learned"
    """learned: a parameter; optimal: the batch's mean squared error"""

    formula: ClassVar[str] = "-E_q log N(x; xhat, s2 I) + KL(q(z|x) || p(z)), s2 learned"
    paper: ClassVar[str] = "Rybkin et al. 2021, Simple and effective VAE training with calibrated decoders"
    beta_is: ClassVar[float] = 1.0
    learned_s2: ClassVar[bool] = True

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        likelihood = context.model.likelihood
        if not isinstance(likelihood, Gaussian):
            raise BadInput("sigma-vae learns the variance of a Gaussian likelihood; use likelihood='gaussian'")
        own = {"s2": likelihood.log_s2.exp()}
        if self.variance == "learned":
            return Terms(elbo_terms(pass_, context) | own, {"s2": 0.0})
        log_s2 = optimal_log_s2(pass_.x, pass_.theta)
        squares = (pass_.x - pass_.theta).square().flatten(1)
        nll = 0.5 * (squares.sum(1) * torch.exp(-log_s2) + squares.shape[1] * (log_s2 + math.log(2 * math.pi)))
        lag = (likelihood.log_s2 - log_s2.detach()).square()
        return Terms({"reconstruction": nll, "kl": pass_.posterior.kl(), "lag": lag} | own, {"s2": 0.0})

    def settled(self, pass_: Pass, context: Context) -> dict[str, Tensor]:
        """`optimal`: the parameter trails the variance that was trained with, so it is set to it in the end."""
        return {"likelihood.log_s2": optimal_log_s2(pass_.x, pass_.theta)} if self.variance == "optimal" else {}
