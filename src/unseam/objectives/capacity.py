"""AnnealedVAE: the KL is held at a capacity that grows, so that latents become active one after the other.

loss = -E_q log p(x|z) + gamma | KL(q(z|x) || N(0, I)) - C_t |,   C_t = c_max min(1, t / ramp),   t = step / steps

(Burgess et al. 2018.) The absolute value is taken of the batch's mean KL, as Locatello 2019 computes it: the
data as a whole has capacity C_t, a single sample may use more or less.
"""

from dataclasses import dataclass
from typing import ClassVar

from unseam.axes import Pass, Terms
from unseam.objectives.base import Context, Objective
from unseam.objectives.elbo import elbo_terms, warm_up


@dataclass(frozen=True)
class AnnealedVAE(Objective):
    """The KL follows a capacity C_t that rises from 0 to c_max nats.

    Examples
    --------
    >>> AnnealedVAE(c_max=10.0, ramp=0.5)
    AnnealedVAE(c_max=10.0, gamma=1000.0, ramp=0.5)
    """

    c_max: float = 25.0
    """last capacity in nats (Burgess: 25 for dSprites; Locatello 2019 sweeps 5 to 100)"""
    gamma: float = 1000.0
    """price of a nat beside the capacity"""
    ramp: float = 1 / 3
    """share of the run over which C_t rises (Locatello 2019: 100k of 300k steps)"""

    formula: ClassVar[str] = "-E_q log p(x|z) + gamma |KL(q(z|x) || p(z)) - C_t|"
    paper: ClassVar[str] = "Burgess et al. 2018, Understanding disentangling in beta-VAE"
    grid: ClassVar[dict[str, tuple[float, ...]]] = {"c_max": (5, 10, 25, 50, 75, 100)}

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        terms = elbo_terms(pass_, context)
        capacity = self.c_max * warm_up(context.step / context.steps, self.ramp)
        gap = (terms["kl"].mean() - capacity).abs()
        return Terms(terms | {"capacity": capacity, "gap": gap}, {"kl": 0.0, "capacity": 0.0, "gap": self.gamma})
