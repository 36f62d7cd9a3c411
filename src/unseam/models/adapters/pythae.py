"""pythae: `model.encoder(x)` gives `embedding` and `log_covariance`, `model.decoder(z)` gives `reconstruction`.

Its loss is 1/2 |x - xhat|^2 + KL (`reconstruction_loss="mse"`: a Gaussian of variance 1) or the cross entropy of the
probabilities that the decoder returns ("bce": a Bernoulli, whose natural parameter is their logit).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from unseam.models.adapters.base import AdaptedModel, read_decoder_output
from unseam.models.adapters.modules import adapt_functions
from unseam.models.likelihood import Bernoulli, Gaussian, Likelihood

_SURE = 1e-6  # probabilities nearer to 0 or 1 count as this far away
PLAIN = ("VAEConfig", "VAMPConfig", "IWAEConfig")  # losses in which the KL has weight 1


def matches(model: Any) -> bool:
    config = getattr(model, "model_config", None)
    networks = all(isinstance(getattr(model, name, None), nn.Module) for name in ("encoder", "decoder"))
    return networks and hasattr(config, "latent_dim")


def adapt(model: Any, x: Any) -> AdaptedModel:
    config = model.model_config
    loss = getattr(config, "reconstruction_loss", "mse")
    likelihood: Likelihood = Bernoulli() if loss == "bce" else Gaussian(1.0)
    decode: Callable[..., Any] = model.decoder
    if loss == "bce":

        def decode(z: Tensor) -> Tensor:
            p = read_decoder_output(model.decoder(z))
            return torch.logit(p.clamp(_SURE, 1 - _SURE))

    found = adapt_functions("pythae", model.encoder, decode, x, model, likelihood)
    return replace(found, beta=weight_of_kl(config), has_beta=found.variances is not None)


def weight_of_kl(config: Any) -> float | None:
    """`beta` of a beta-VAE, 1 of plain VAEs, None of losses in which the KL has no such weight."""
    name = getattr(config, "name", type(config).__name__)
    if name == "BetaVAEConfig":
        return float(config.beta)
    return 1.0 if name in PLAIN else None
