"""The model of one member: x -> q(z|x) -> z -> theta -> log p(x|z)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from unseam.errors import BadInput, check_literals, lookup
from unseam.models import bfloat16
from unseam.models.likelihood import LIKELIHOODS, Gaussian, Likelihood
from unseam.models.mixed_likelihood import Mixed, parts_of
from unseam.models.networks import conv_decoder, conv_encoder, conv_grid, mlp_decoder, mlp_encoder
from unseam.models.posterior import POSTERIORS, Posterior
from unseam.rng import derive


@dataclass(frozen=True)
class Architecture:
    """Everything that fixes a model but its weights. "auto" fields follow the data (`for_data`)."""

    network: Literal["auto", "mlp", "conv", "linear"] = "auto"
    """auto: conv for images whose sides are multiples of 16, mlp for the rest; conv takes images of any size"""
    latents: int = 10
    """K, the size of the latent space"""
    small_kernels: bool = False
    """conv: 2x2 kernels in the encoder's last two layers, as in the code of Locatello 2019"""
    encoder: tuple[int, ...] = (256, 256)
    """hidden widths of an mlp encoder"""
    decoder: tuple[int, ...] = (256, 256)
    """hidden widths of an mlp decoder"""
    encoder_activation: str = "relu"
    """relu, tanh, elu or softplus"""
    decoder_activation: str = "relu"
    """tanh makes the decoder smooth, as the theory wants it"""
    likelihood: Literal["auto", "bernoulli", "gaussian", "poisson", "negative-binomial", "categorical", "mixed"] = (
        "auto"
    )
    """what the data is modelled with; the data's own choice by default (categorical: classes, or shares of a sum)"""
    columns: tuple[str, ...] = ()
    """of a mixed likelihood, from left to right: gaussian:5 bernoulli:2 (models/mixed.py)"""
    s2: float = 0.5
    """variance of a Gaussian likelihood (1/2: the squared error itself, as in Zietlow 2022)"""
    learned_s2: bool = False
    """make s2 a parameter"""
    posterior: str = "diagonal"
    """the family of q(z|x), a name of POSTERIORS; set by the objective"""
    levels: int = 10
    """values a latent can take when the posterior is quantised (Hsu 2023)"""

    def __post_init__(self) -> None:
        check_literals(self)
        lookup(POSTERIORS, self.posterior, "posterior")
        if self.latents < 1:
            raise BadInput(f"latents={self.latents} must be at least 1")
        if self.levels < 2:
            raise BadInput(f"levels={self.levels} must be at least 2: a latent with one value says nothing")
        if not self.s2 > 0:
            raise BadInput(f"s2={self.s2} must be positive: it is the variance of the Gaussian likelihood")
        if any(width < 1 for width in (*self.encoder, *self.decoder)):
            raise BadInput(f"hidden widths must be at least 1, got encoder={self.encoder}, decoder={self.decoder}")

    def for_data(self, shape: tuple[int, ...], likelihood: Literal["bernoulli", "gaussian"]) -> Architecture:
        """Resolve "auto" for data of this shape.

        >>> Architecture().for_data((1, 64, 64), "bernoulli").network
        'conv'
        """
        image = len(shape) == 3 and shape[1] % 16 == 0 and shape[2] % 16 == 0
        network = ("conv" if image else "mlp") if self.network == "auto" else self.network
        if self.likelihood == "mixed":
            parts_of(self.columns, shape[0] if len(shape) == 1 else -1)
        if network == "conv":
            conv_grid(shape)
        return replace(self, network=network, likelihood=likelihood if self.likelihood == "auto" else self.likelihood)

    def build(self, shape: tuple[int, ...], seed: int) -> Autoencoder:
        """The model with the initial weights of this seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(seed, "weights"))
            return Autoencoder(self, shape)


def likelihood_of(a: Architecture) -> Likelihood:
    if a.likelihood == "mixed":
        return Mixed(a.columns, a.s2)
    gaussian = a.likelihood in ("auto", "gaussian")
    return Gaussian(a.s2, a.learned_s2) if gaussian else LIKELIHOODS[a.likelihood]()


class Autoencoder(nn.Module):
    """encode, decode and the likelihood; `posterior` says which family the encoder's outputs parametrise."""

    def __init__(self, architecture: Architecture, shape: tuple[int, ...]) -> None:
        super().__init__()
        a, k = architecture, architecture.latents
        self.architecture, self.shape, self.latents = a, shape, k
        self.family = POSTERIORS[a.posterior]
        outputs = self.family.outputs(k)
        if a.network == "conv":
            self.encoder, self.decoder = conv_encoder(shape, outputs, a.small_kernels), conv_decoder(shape, k)
        else:
            hidden = ((), ()) if a.network == "linear" else (a.encoder, a.decoder)
            self.encoder = mlp_encoder(shape, hidden[0], outputs, a.encoder_activation)
            self.decoder = mlp_decoder(shape, hidden[1], k, a.decoder_activation)
        own = self.family.parameters(k, a.levels)
        self.own = tuple(own)
        for name, value in own.items():
            self.register_parameter(name, nn.Parameter(value))
        self.bfloat16_networks = False  # run the networks, not the likelihood, in bfloat16
        self.likelihood: Likelihood = likelihood_of(a)

    def encode(self, x: Tensor) -> Posterior:  # (B, *shape) -> q(z|x)
        if not isinstance(x, Tensor):
            raise BadInput(
                f"x is a {type(x).__name__}; a model takes torch tensors, `run.encode` also NumPy and pandas"
            )
        own = {name: getattr(self, name) for name in self.own}
        return self.family.from_outputs(self.run(self.encoder, self.likelihood.inputs(x)), self.latents, **own)

    def decode(self, z: Tensor) -> Tensor:  # (B, K) -> theta (B, *shape)
        return self.run(self.decoder, z)

    def run(self, network: nn.Module, inputs: Tensor) -> Tensor:
        """A network of this member (its own, a critic) in the precision of its networks."""
        if not self.bfloat16_networks:
            outputs: Tensor = network(inputs)
            return outputs
        if inputs.device.type == "cpu" and isinstance(network, nn.Sequential):
            return bfloat16.run(network, inputs)
        with torch.autocast(inputs.device.type, torch.bfloat16):
            outputs = network(inputs)
        return outputs.float()

    def mean(self, z: Tensor) -> Tensor:
        """xhat = E[x|z] (B, *shape)."""
        return self.likelihood.mean(self.decode(z))

    def forward(self, x: Tensor, noise: Tensor | None = None) -> tuple[Posterior, Tensor, Tensor]:
        """q(z|x), z and theta, with the noise handed over; without any, z is the mean."""
        posterior = self.encode(x)
        z = posterior.mean if noise is None else posterior.sample(noise)
        return posterior, z, self.decode(z)
