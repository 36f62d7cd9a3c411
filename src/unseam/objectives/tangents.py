"""Forward mode by hand, layer by layer: the numbers of `geometry.jacobian.push`, cheaper to train through.

torch's own forward mode convolves once more with a zero tangent of the weights, and keeps a zero gradient of every
ReLU's sign for the backward pass: a quarter of the whole step of det-VAE. Here a linear layer maps tangents as it maps
values, without its bias; an activation scales them by its slope; the rest only moves numbers.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.func import jvp
from torch.nn.functional import conv_transpose2d

from unseam.geometry.jacobian import push, slice_size
from unseam.models import Autoencoder
from unseam.models.networks import ACTIVATIONS, ChannelsLast, Dense

MOVES = (nn.Unflatten, nn.Flatten, ChannelsLast)


def through(layer: nn.Module, value: Tensor, tangent: Tensor) -> tuple[Tensor, Tensor]:
    """One layer: value (B, ...), and the K tangents of each sample (B K, ...)."""
    if isinstance(layer, Dense):
        return layer(value), tangent @ layer.weight
    if isinstance(layer, nn.ConvTranspose2d):
        geometry = (layer.stride, layer.padding, layer.output_padding, layer.groups, layer.dilation)
        return layer(value), conv_transpose2d(tangent, layer.weight, None, *geometry)  # type: ignore[arg-type]
    if isinstance(layer, MOVES):
        return layer(value), layer(tangent)
    after, slope = layer(value), _slope(layer, value)
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
    value, tangent = z, torch.eye(K, dtype=z.dtype).repeat(B, 1)  # (B K, K)
    for layer in decoder:
        value, tangent = through(layer, value, tangent)
    return value.flatten(1), tangent.flatten(1).unflatten(0, (B, K))


def slices(model: Autoencoder, z: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """(theta (b, n), columns of D (b, K, n)), a cache-sized slice of the points at a time; any decoder."""
    by_hand = known(model.decoder) and not model.bfloat16_networks
    for points in z.split(slice_size(model.decode, z)):
        if by_hand:
            yield columns(model.decoder, points)  # type: ignore[arg-type]
        else:
            theta, D = push(model.decode, points)
            yield theta.flatten(1), D.flatten(1, -2).mT
