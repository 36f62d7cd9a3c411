"""Model + data -> what the model says of the data: codes, posterior variances, and the truth where it is known."""

from __future__ import annotations

import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.models import Autoencoder
from unseam.rng import generator
from unseam.types import Representation

CHUNK = 512  # samples encoded at a time


def sample_rows(size: int, count: int, seed: int = 0) -> Tensor:
    """`count` distinct rows out of 0..size-1, the same for the same seed."""
    return torch.randperm(size, generator=generator(seed, "rows"))[:count]


@torch.inference_mode()
def represent(model: Autoencoder, data: Dataset, index: Tensor, seed: int = 0) -> Representation:
    """Codes (N, K) = means of q(z|x) at the given rows, with variances and, where known, factors (N, F).

    >>> from unseam.data import load_data
    >>> from unseam.models import Architecture
    >>> data = load_data("synth-linear", size=100)
    >>> model = Architecture(network="linear", latents=2, likelihood="gaussian").build(data.shape, seed=0)
    >>> represent(model, data, torch.arange(5)).codes.shape
    (5, 2)
    """
    means, variances = [], []
    for number, rows in enumerate(index.split(CHUNK)):
        x = data.batch(rows, generator(seed, "represent", number) if data.stochastic else None)
        posterior = model.encode(x)
        means.append(posterior.mean)
        variances.append(posterior.variance())
    factors = data.factors(index).numpy() if data.space is not None else None
    return Representation(torch.cat(means).numpy(), torch.cat(variances).numpy(), factors, data.space, index.numpy())
