"""Model + data -> what the model says of the data: codes, posterior variances, and the truth where it is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.models import Autoencoder
from unseam.rng import generator
from unseam.types import FactorSpace, Representation

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


def without_constants(seen: Representation) -> Representation:
    """The same without factors that take one value only: a data set may fix some, and they say nothing.

    Where no factor varies, or none is known, the result has none.

    >>> from unseam.types import Factor
    >>> space = FactorSpace((Factor("shape", 1), Factor("x", 3)))
    >>> seen = Representation(np.zeros((3, 1)), factors=np.array([[0, 0], [0, 1], [0, 2]]), space=space)
    >>> without_constants(seen).space.names
    ('x',)
    """
    if seen.factors is None or seen.space is None:
        return seen
    kept = np.flatnonzero(np.ptp(seen.factors, axis=0) > 0)
    if not len(kept):
        return replace(seen, factors=None, space=None)
    return replace(seen, factors=seen.factors[:, kept], space=FactorSpace(tuple(seen.space[int(i)] for i in kept)))
