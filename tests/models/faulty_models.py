"""Models of every kind that an adapter reads, with one fault in the encoder or the decoder."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Normal

from unseam.models import Architecture
from unseam.models.autoencoder import Autoencoder

W = torch.tensor([[3.0, 1.0], [0.0, 1.0], [1.0, -1.0], [0.0, 0.5]])  # (n, K)
X = torch.randn(64, 2, generator=torch.Generator().manual_seed(0)) @ W.T
LOG_VARIANCE = -1.5
Change = Callable[[Any], Any]


def same(value: Any) -> Any:
    return value


class Encoder(nn.Module):
    """(mean, log-variance) of codes pinv(W) x, changed."""

    def __init__(self, change: Change = same) -> None:
        super().__init__()
        self.inverse, self.change = nn.Parameter(torch.linalg.pinv(W)), change

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean = self.change(x.flatten(1) @ self.inverse.T)
        return mean, torch.full_like(mean, LOG_VARIANCE)


class Decoder(nn.Module):
    """W z through a layer, changed."""

    def __init__(self, change: Change = same, layer: nn.Module | None = None) -> None:
        super().__init__()
        self.weight, self.change, self.layer = nn.Parameter(W.clone()), change, layer

    def forward(self, z: Tensor) -> Any:
        out = z.flatten(1) @ self.weight.T
        return self.change(out if self.layer is None else self.layer(out))


class _Methods(nn.Module):
    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.inwards, self.outwards = encoder, decoder

    def encode(self, x: Tensor) -> Any:
        return self.inwards(x)

    def decode(self, z: Tensor) -> Any:
        return self.outwards(z)


def module(encoder: Encoder, decoder: Decoder) -> Any:
    return _Methods(encoder, decoder)


def pair(encoder: Encoder, decoder: Decoder) -> Any:
    return encoder, decoder


def own(encoder: Encoder, decoder: Decoder) -> Any:
    """One of our models, with these two for its networks."""
    model = Autoencoder(Architecture("mlp", 2, likelihood="gaussian", encoder=(4,), decoder=(4,)), (4,))
    model.encoder, model.decoder = _Joined(encoder), decoder
    return model


class _Joined(nn.Module):
    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(self.encoder(x), 1)


class _PythaeEncoder(nn.Module):
    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.inner = encoder

    def forward(self, x: Tensor) -> Any:
        mean, log_variance = self.inner(x)
        return {"embedding": mean, "log_covariance": log_variance}


class _PythaeDecoder(nn.Module):
    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.inner = decoder

    def forward(self, z: Tensor) -> Any:
        out = self.inner(z)
        return SimpleNamespace(reconstruction=out) if isinstance(out, Tensor) else out


def pythae(encoder: Encoder, decoder: Decoder) -> Any:
    model = nn.Module()
    model.encoder, model.decoder = _PythaeEncoder(encoder), _PythaeDecoder(decoder)
    model.model_config = SimpleNamespace(latent_dim=2, reconstruction_loss="mse", name="VAEConfig")
    return model


class _Diffusers(_Methods):
    """Latents (2, 1, 1)."""

    config = SimpleNamespace(latent_channels=2)

    def encode(self, x: Tensor) -> Any:
        mean, log_variance = (part[..., None, None] for part in self.inwards(x))
        return SimpleNamespace(latent_dist=SimpleNamespace(mean=mean, var=log_variance.exp()))

    def decode(self, z: Tensor) -> Any:
        out = self.outwards(z)
        return SimpleNamespace(sample=out) if isinstance(out, Tensor) else out


def diffusers(encoder: Encoder, decoder: Decoder) -> Any:
    return _Diffusers(encoder, decoder)


class _ScviModule(_Methods):
    def inference(self, x: Tensor) -> Any:
        mean, log_variance = self.inwards(x)
        return {"qz": Normal(mean, (log_variance / 2).exp()), "z": mean, "library": x[:, :1]}

    def _get_inference_input(self, tensors: Any) -> Any:
        return {"x": tensors["X"]}

    def _get_generative_input(self, tensors: Any, inference: Any) -> Any:
        return {"z": inference["z"], "library": inference["library"]}

    def generative(self, z: Tensor, library: Tensor) -> Any:
        out = self.outwards(0.1 * z)
        if isinstance(out, Tensor) and len(out) == len(library):
            out = torch.exp(out + library / 4)
        return {"px": type("Poisson", (), {"rate": out})()}


class _Scvi:
    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        self.module = _ScviModule(encoder, decoder)

    def _validate_anndata(self, x: Any) -> Any:
        return x

    def _make_data_loader(self, adata: Tensor, batch_size: int, shuffle: bool) -> Any:
        return [{"X": part} for part in adata.split(batch_size)]


def scvi_tools(encoder: Encoder, decoder: Decoder) -> Any:
    return _Scvi(encoder, decoder)


class _Transformer:
    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        self.encoder, self.decoder = encoder, decoder

    def transform(self, x: Any) -> Any:
        mean = self.encoder(torch.as_tensor(np.asarray(x), dtype=torch.float32))[0]
        return mean.detach().double().numpy()

    def inverse_transform(self, z: Any) -> Any:
        out = self.decoder(torch.as_tensor(z, dtype=torch.float32))
        return out.detach().double().numpy() if isinstance(out, Tensor) else out


def scikit_learn(encoder: Encoder, decoder: Decoder) -> Any:
    return _Transformer(encoder, decoder)


MAKERS: dict[str, Callable[[Encoder, Decoder], Any]] = {
    "unseam": own,
    "pythae": pythae,
    "scvi-tools": scvi_tools,
    "diffusers": diffusers,
    "module": module,
    "pair": pair,
    "scikit-learn": scikit_learn,
}
