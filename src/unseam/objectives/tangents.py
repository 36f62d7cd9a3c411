"""Forward mode by hand, layer by layer: the numbers of `geometry.jacobian.push`, cheaper to train through.

torch's own forward mode convolves once more with a zero tangent of the weights, and keeps a zero gradient of every
ReLU's sign for the backward pass: a quarter of the whole step of det-VAE. Here a linear layer maps tangents as it maps
values, without its bias (`models.half`); an activation scales them by its slope; the rest only moves numbers.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.func import jvp

from unseam.geometry.jacobian import push, slice_size
from unseam.models import Autoencoder, half
from unseam.models.networks import ACTIVATIONS, ChannelsLast, Crop, Dense

MOVES = (nn.Unflatten, nn.Flatten, ChannelsLast, Crop)


def through(layer: nn.Module, value: Tensor, tangent: Tensor) -> tuple[Tensor, Tensor]:
    """One layer: value (B, ...), and the K tangents of each sample (B K, ...)."""
    after = half.through(layer, value)
    if not isinstance(layer, tuple(ACTIVATIONS.values())):
        return after, half.through(layer, tangent, bias=False)
    slope = _slope(layer, value)
    scaled = tangent.unflatten(0, (len(value), -1)) * slope.unsqueeze(1)
    return after, scaled.flatten(0, 1)


def _slope(activation: nn.Module, value: Tensor) -> Tensor:
    if isinstance(activation, nn.ReLU):
        return value > 0
    return jvp(activation, (value,), (torch.ones_like(value),))[1]


def known(decoder: nn.Module) -> bool:
    """Whether every layer is one that `through` knows."""
    layers = (Dense, nn.ConvTranspose2d, *MOVES, *ACTIVATIONS.values())
    return isinstance(decoder, nn.Sequential) and all(type(layer) in layers for layer in decoder)


def columns(decoder: nn.Sequential, z: Tensor) -> tuple[Tensor, Tensor]:  # (B, K) -> (B, n), (B, K, n)
    """theta and the columns of D = d theta / dz.

    >>> decoder = nn.Sequential(Dense(2, 3))
    >>> theta, D = columns(decoder, torch.zeros(1, 2))
    >>> torch.equal(D[0], decoder[0].weight)
    True
    """
    B, K = z.shape
    value, tangent = z, torch.eye(K, dtype=z.dtype, device=z.device).repeat(B, 1)  # (B K, K)
    for layer in decoder:
        value, tangent = through(layer, value, tangent)
    return value.flatten(1), tangent.flatten(1).unflatten(0, (B, K))


def slices(model: Autoencoder, z: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """(theta (b, n), columns of D (b, K, n)), a cache-sized slice of the points at a time; any decoder."""
    by_hand = known(model.decoder)
    here = z.bfloat16() if by_hand and model.bfloat16_networks else z
    for points in here.split(slice_size(model.decode, z)):
        if by_hand:
            theta, D = columns(model.decoder, points)  # type: ignore[arg-type]
            yield theta.to(z), D.to(z)
        else:
            theta, D = push(model.decode, points)
            yield theta.flatten(1), D.flatten(1, -2).mT
