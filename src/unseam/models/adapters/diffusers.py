"""diffusers' autoencoders: `encode(x).latent_dist` and `decode(z).sample`, with latents (C, H, W).

Their reconstruction loss is not part of the model (often a perceptual and an adversarial one), so neither the
likelihood nor beta is known: beta is estimated from the posterior, for a Gaussian likelihood.
"""

from typing import Any

from torch import nn

from unseam.models.adapters.base import AdaptedModel
from unseam.models.adapters.modules import adapt_functions


def matches(model: Any) -> bool:
    """By its `config.latent_channels`, as AutoencoderKL and its relatives have it."""
    config: Any = getattr(model, "config", None)
    channels = config.get("latent_channels") if hasattr(config, "get") else getattr(config, "latent_channels", None)
    return isinstance(model, nn.Module) and channels is not None and hasattr(model, "decode")


def adapt(model: Any, x: Any) -> AdaptedModel:
    return adapt_functions("diffusers", model.encode, model.decode, x, model)
