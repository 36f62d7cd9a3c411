"""FactorVAE: the total correlation, by a critic that tells codes from codes with shuffled columns.

model   -E_q log p(x|z) + KL(q(z|x) || p(z)) + gamma TC,   TC = E_q(z) [log D(z) - log(1 - D(z))]
critic  -1/2 [ E_q(z) log D(z) + E_qbar(z) log(1 - D(z)) ],   qbar(z) = prod_k q(z_k): `permute_dims`, second batch

(Kim & Mnih 2018, algorithms 1 and 2.) The critic returns the one logit log D - log(1 - D), which is the
log density ratio log q(z)/qbar(z) when it is optimal; the paper's two softmax outputs have the same difference.

What it costs beside beta-VAE's 61 ms (64x64 conv, batch 64, float32, one thread): 68 ms, of which 51 are products with
the critic's 1000 x 1000 weights. Both players evaluate it at z; if they shared that, 37 ms of products would be left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from unseam.axes import Pass, Terms
from unseam.models import Autoencoder
from unseam.models.autoencoder import Dense
from unseam.objectives.base import Context, Objective, Optimiser, Player
from unseam.objectives.elbo import elbo_terms


def permute_dims(z: Tensor, noise: Tensor) -> Tensor:  # (B, K), (B, K) -> (B, K)
    """Each column in a random order of its own: the ranks of standard normal noise are a uniform permutation.

    >>> permute_dims(torch.tensor([[1.0, 4.0], [2.0, 5.0]]), torch.tensor([[0.3, -1.0], [-0.2, 0.0]]))
    tensor([[2., 4.],
            [1., 5.]])
    """
    return z.gather(0, noise.argsort(0))


def critic(latents: int, width: int, depth: int) -> nn.Module:
    """An MLP (B, K) -> (B,): `depth` hidden layers of `width` leaky ReLUs."""
    layers: list[nn.Module] = []
    for inputs in (latents, *[width] * (depth - 1)):
        layers += [Dense(inputs, width), nn.LeakyReLU(0.2, inplace=True)]
    return nn.Sequential(*layers, Dense(width, 1), nn.Flatten(0))


@dataclass(frozen=True)
class FactorVAE(Objective):
    """The total correlation is estimated by a second player that tells z from z with shuffled columns.

    Examples
    --------
    >>> FactorVAE(gamma=10.0)
    FactorVAE(gamma=10.0, width=1000, depth=6)
    """

    gamma: float = 35.0
    """weight of the total correlation (Kim & Mnih: 35 for dSprites, 7 for Shapes3D; Locatello 2019 sweeps 10 to 100)"""
    width: int = 1000
    """units in a hidden layer of the critic"""
    depth: int = 6
    """hidden layers of the critic"""

    formula: ClassVar[str] = "-E_q log p(x|z) + KL(q(z|x) || p(z)) + gamma E_q(z) log D(z)/(1 - D(z))"
    paper: ClassVar[str] = "Kim & Mnih 2018, Disentangling by factorising"
    beta_is: ClassVar[float] = 1.0
    batches: ClassVar[int] = 2
    smallest_batch: ClassVar[int] = 2
    grid: ClassVar[dict[str, tuple[float, ...]]] = {"gamma": (10, 20, 30, 40, 50, 100)}

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        tc = context.model.run(context.modules["critic"], pass_.z)
        return Terms(elbo_terms(pass_, context) | {"tc": tc}, {"tc": self.gamma})

    def critic_terms(self, pass_: Pass, context: Context) -> Terms:
        """The cross-entropy of the two classes, log 2 for a critic that knows nothing."""
        assert context.second is not None
        with torch.no_grad():
            second = context.model.encode(context.second).sample(context.noise["second"])
            shuffled = permute_dims(second, context.noise["shuffle"])
        both = context.model.run(context.modules["critic"], torch.cat([pass_.z.detach(), shuffled]))
        true, false = both.chunk(2)
        return Terms({"critic": 0.5 * (softplus(-true) + softplus(false))})

    def players(self, model: Autoencoder) -> dict[str, Player]:
        optimiser = Optimiser(lr=1e-4, b1=0.5, b2=0.9)
        return {"model": Player(model), "critic": Player(critic(model.latents, self.width, self.depth), optimiser)}

    def losses(self) -> dict[str, Callable[[Pass, Context], Terms]]:
        return {"model": self, "critic": self.critic_terms}

    def noise_shapes(self, batch: int, latents: int) -> dict[str, tuple[int, ...]]:
        return {"second": (batch, latents), "shuffle": (batch, latents)}
