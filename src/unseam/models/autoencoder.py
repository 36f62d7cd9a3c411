"""The model of one member: x -> q(z|x) -> z -> theta -> log p(x|z)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unseam.errors import BadInput, unknown
from unseam.models import bfloat16
from unseam.models.architecture import Architecture
from unseam.models.likelihood import LIKELIHOODS, Gaussian, Likelihood
from unseam.models.mixed_likelihood import Mixed
from unseam.models.networks import conv_decoder, conv_encoder, mlp_decoder, mlp_encoder
from unseam.models.own_networks import NetworkPair, wrapped
from unseam.models.posterior import POSTERIORS, Point, Posterior, Rotated


def _likelihood_of(a: Architecture) -> Likelihood:
    if a.likelihood == "mixed":
        return Mixed(a.columns, a.s2)
    gaussian = a.likelihood in ("auto", "gaussian")
    return Gaussian(a.s2, a.learned_s2) if gaussian else LIKELIHOODS[a.likelihood]()


class Autoencoder(nn.Module):
    """One model: encoder, decoder and likelihood.

    Parameters
    ----------
    architecture : Architecture
        Its networks, latents, posterior and likelihood.
    shape : tuple of int
        The shape of one observation.
    networks : (encoder, decoder), optional
        The user's own modules in place of ours.

    Examples
    --------
    >>> model = Autoencoder(Architecture("mlp", 2, likelihood="gaussian"), (5,))
    >>> model.encode(torch.zeros(3, 5)).mean.shape, model.decode(torch.zeros(3, 2)).shape
    (torch.Size([3, 2]), torch.Size([3, 5]))
    """

    def __init__(self, architecture: Architecture, shape: tuple[int, ...], networks: NetworkPair | None = None) -> None:
        super().__init__()
        a, k = architecture, architecture.latents
        self.architecture, self.shape, self.latents = a, shape, k
        if a.posterior not in POSTERIORS:
            raise unknown("posterior", a.posterior, POSTERIORS)
        self.family = POSTERIORS[a.posterior]
        outputs = self.family.outputs(k)
        if networks is not None:
            self.encoder, self.decoder = wrapped(networks, outputs, k, shape)
        elif a.network == "conv":
            self.encoder, self.decoder = conv_encoder(shape, outputs, a.small_kernels), conv_decoder(shape, k)
        else:
            hidden = ((), ()) if a.network == "linear" else (a.encoder, a.decoder)
            self.encoder = mlp_encoder(shape, hidden[0], outputs, a.encoder_activation)
            self.decoder = mlp_decoder(shape, hidden[1], k, a.decoder_activation)
        own = self.family.parameters(k, a.levels)
        self.own = tuple(own)
        for name, value in own.items():
            self.register_parameter(name, nn.Parameter(value))
        if a.aligned:  # z' = (z - shift) axes; the decoder's first layer takes z' already
            self.register_buffer("aligned_axes", torch.eye(k, dtype=torch.float64, device="cpu"))
            self.register_buffer("aligned_shift", torch.zeros(k, dtype=torch.float64, device="cpu"))
        self.bfloat16_networks = False  # run the networks, not the likelihood, in bfloat16
        self.likelihood: Likelihood = _likelihood_of(a)

    def encode(self, x: Tensor) -> Posterior:  # (B, *shape) -> q(z|x)
        """The posterior q(z|x) of each row."""

        if not isinstance(x, Tensor):
            raise BadInput(
                f"x is a {type(x).__name__}; a model takes torch tensors, `run.encode` also NumPy and pandas"
            )
        own = {name: getattr(self, name) for name in self.own}
        q = self.family.from_outputs(self.run(self.encoder, self.likelihood.inputs(x)), self.latents, **own)
        return q if not self.architecture.aligned else self._in_new_axes(q)

    def _in_new_axes(self, q: Posterior) -> Posterior:
        """N(m, S) -> N((m - shift) A, A^T S A)."""
        A, shift = self.get_buffer("aligned_axes").to(q.mean), self.get_buffer("aligned_shift").to(q.mean)
        mean = (q.mean - shift) @ A
        return Rotated(mean, A.T @ q.covariance() @ A) if q.has_prior else Point(mean)

    def decode(self, z: Tensor) -> Tensor:  # (B, K) -> theta (B, *shape)
        """The parameters theta of the likelihood, of the shape of the data."""

        if self.architecture.aligned and self.architecture.network == "own":  # ours have it in their first layer
            axes, shift = (self.get_buffer(name) for name in ("aligned_axes", "aligned_shift"))
            z = z @ torch.linalg.inv(axes).to(z) + shift.to(z)
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
        """q(z|x), z and theta, with this noise; without noise, z is the mean."""
        posterior = self.encode(x)
        z = posterior.mean if noise is None else posterior.sample(noise)
        return posterior, z, self.decode(z)
