"""A GAN on pairs that share one known factor: the generator must keep that factor in its own latent.

    real   x1, x2 agree in factor i and in no other;      fake   G(z1), G(z2) with z2_i = z1_i, fresh elsewhere
    D(x1, x2, i) = <h, w_i> + b . h,  h a network of both images; every layer divided by its largest singular value

critic   E softplus(-D(real)) + E softplus(D(fake))           generator   E softplus(-D(fake))
encoder  -E log q(z1 | G(z1)): learned on generated images, used on real ones

(Shu et al. 2020, "full sharing" of match pairing.) Factor i belongs to latent i; there must be as many latents as
factors that vary. The generator is the model's decoder, and its mean is the image.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, softplus

from unseam.axes import Pass, Terms
from unseam.data.pairs import Pairing
from unseam.errors import BadInput
from unseam.models import Autoencoder, Diagonal
from unseam.models.autoencoder import Dense
from unseam.objectives.base import Context, Objective, Optimiser, Player

_POWER = 4  # iterations for the largest singular value


def spectral(W: Tensor) -> Tensor:  # (inputs, outputs)
    """W over an estimate of its largest singular value, by power iteration from a fixed start.

    >>> round(float(torch.linalg.matrix_norm(spectral(torch.diag(torch.tensor([3.0, 1.0]))), 2)), 2)
    1.0
    """
    fixed = W.detach()  # u and v count as constants
    v = torch.ones_like(fixed[0]) / math.sqrt(W.shape[1])
    for _ in range(_POWER):
        u = fixed @ v
        u = u / (u.norm() + 1e-12)
        v = u @ fixed
        v = v / (v.norm() + 1e-12)
    return W / (u @ W @ v + 1e-12)


class PairCritic(nn.Module):
    """D: two images (B, *shape) and the shared factor, one-hot (B, K) -> (B,)."""

    def __init__(self, shape: tuple[int, ...], latents: int, width: int) -> None:
        super().__init__()
        n = math.prod(shape)
        self.image = nn.ModuleList([Dense(n, 2 * width), Dense(2 * width, width)])
        self.pair = nn.ModuleList([Dense(2 * width, width), Dense(width, width)])
        self.w, self.b = Dense(width, latents), Dense(width, 1)

    def forward(self, x1: Tensor, x2: Tensor, shared: Tensor) -> Tensor:
        both = self._through(self.image, torch.cat([x1, x2]).flatten(1))  # at once: a layer's norm is found once
        h = self._through(self.pair, torch.cat(both.chunk(2), 1))
        return (self._linear(self.w, h) * shared).sum(1) + self._linear(self.b, h)[:, 0]

    def _through(self, layers: nn.ModuleList, x: Tensor) -> Tensor:
        for layer in layers:
            x = leaky_relu(self._linear(layer, x), 0.2)
        return x

    @staticmethod
    def _linear(layer: nn.Module, x: Tensor) -> Tensor:
        return torch.addmm(layer.bias, x, spectral(layer.weight))  # type: ignore[arg-type]


@dataclass(frozen=True)
class WeakGAN(Objective):
    """A GAN on pairs that share one known factor; its encoder is learned on what it generates.

    Examples
    --------
    >>> WeakGAN()
    WeakGAN(width=128)
    """

    width: int = 128
    """units of the critic's layers"""

    formula: ClassVar[str] = "min_G max_D of pairs that share factor i, G's pairs sharing z_i; -E log q(z|G(z))"
    paper: ClassVar[str] = "Shu et al. 2020, Weakly supervised disentanglement with guarantees (full sharing)"
    has_beta: ClassVar[bool] = False
    reads_theta: ClassVar[bool] = False
    cannot: ClassVar[str] = (
        "weak-gan has no ELBO, so KL, costs in nats, the Sigma law and a beta say nothing of its training; cosines, "
        "DtO and scores are its own"
    )
    batches: ClassVar[int] = 2

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        z1, x1, x2, shared = self.fakes(context)
        q = context.model.encode(x1.detach())
        assert isinstance(q, Diagonal)
        surprise = 0.5 * ((z1 - q.mean).square() / q.variance() + q.log_var + math.log(2 * math.pi)).sum(1)
        return Terms({"generator": softplus(-context.modules["critic"](x1, x2, shared)), "encoder": surprise})

    def fakes(self, context: Context) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """z1, G(z1), G(z2) and which latent they share."""
        z1, fresh = context.noise["fake"], context.noise["fake2"]
        shared = self.shared(context.noise["changed"], z1.shape[1])
        z2 = shared * z1 + (1 - shared) * fresh
        mean = context.model.likelihood.mean
        return z1, mean(context.model.decode(z1)), mean(context.model.decode(z2)), shared

    @staticmethod
    def shared(changed: Tensor, latents: int) -> Tensor:  # (B, F) -> (B, K)
        """The factor that did not change, one-hot over the latents."""
        F = changed.shape[1]
        if latents < F:
            raise BadInput(f"latents={latents}: weak-gan gives each of the {F} factors that vary a latent of its own")
        padding = torch.ones_like(changed[:, :1]).expand(-1, latents - F)
        return 1 - torch.cat([changed, padding], 1)

    def critic_terms(self, pass_: Pass, context: Context) -> Terms:
        """The critic's terms."""
        assert context.second is not None
        with torch.no_grad():
            _, x1, x2, shared = self.fakes(context)
        pairs = torch.cat([pass_.x, x1]), torch.cat([context.second, x2]), torch.cat([shared, shared])
        true, false = context.modules["critic"](*pairs).chunk(2)
        return Terms({"critic": softplus(-true) + softplus(false)})

    def pairing(self) -> Pairing:
        return Pairing("share")

    def players(self, model: Autoencoder) -> dict[str, Player]:
        critic = PairCritic(model.shape, model.latents, self.width)
        return {"model": Player(model), "critic": Player(critic, Optimiser(lr=1e-3, b1=0.5))}

    def losses(self) -> dict[str, Callable[[Pass, Context], Terms]]:
        return {"model": self, "critic": self.critic_terms}

    def noise_shapes(self, batch: int, latents: int) -> dict[str, tuple[int, ...]]:
        return {"fake": (batch, latents), "fake2": (batch, latents)}
