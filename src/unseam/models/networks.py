"""Encoders and decoders for one member: MLP, the 4-layer convolution every paper uses, and linear maps.

All map (B, *shape) -> (B, outputs) or (B, K) -> (B, *shape). A decoder returns the natural parameter theta.
"""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn

from unseam.errors import BadInput, lookup

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "elu": nn.ELU,
    "softplus": nn.Softplus,
}


class Dense(nn.Module):
    """x W + b with torch's default initialisation. W is (inputs, outputs), so that a stack of them is one baddbmm."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:  # (B, inputs) -> (B, outputs)
        return torch.addmm(self.bias, x, self.weight)


def dense_layers(sizes: tuple[int, ...], activation: str) -> list[nn.Module]:
    """Dense layers with the activation between them, none after the last."""
    act = lookup(ACTIVATIONS, activation, "activation")
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [Dense(inputs, outputs), act()]
    return layers[:-1]


def mlp_encoder(shape: tuple[int, ...], hidden: tuple[int, ...], outputs: int, activation: str) -> nn.Module:
    return nn.Sequential(nn.Flatten(), *dense_layers((math.prod(shape), *hidden, outputs), activation))


def mlp_decoder(shape: tuple[int, ...], hidden: tuple[int, ...], latents: int, activation: str) -> nn.Module:
    layers = dense_layers((latents, *hidden, math.prod(shape)), activation)
    return nn.Sequential(*layers, nn.Unflatten(1, shape))


class ChannelsLast(nn.Module):
    """The memory layout in which CPU convolutions are fastest; the values are the same."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)  # vmap knows permute, not memory formats


def conv_encoder(shape: tuple[int, ...], outputs: int, small: bool = False) -> nn.Module:
    """4x4 stride-2 convolutions 32-32-64-64, FC 256 (Burgess 2018); small: 2x2 in the last two (Locatello 2019)."""
    channels, rows, columns = conv_grid(shape)
    right, below = 16 * columns - shape[2], 16 * rows - shape[1]
    layers: list[nn.Module] = [*([nn.ZeroPad2d((0, right, 0, below))] if right or below else []), ChannelsLast()]
    sizes = (4, 4, 2, 2) if small else (4, 4, 4, 4)
    for inputs, width, k in zip((channels, 32, 32, 64), (32, 32, 64, 64), sizes, strict=True):
        layers += [nn.Conv2d(inputs, width, k, 2, k // 2 - 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), *dense_layers((64 * rows * columns, 256, outputs), "relu"))


def conv_decoder(shape: tuple[int, ...], latents: int) -> nn.Module:
    """FC 256, then 4x4 stride-2 transposed convolutions 64-32-32-C: the encoder's mirror image."""
    channels, rows, columns = conv_grid(shape)
    layers = [*dense_layers((latents, 256, 64 * rows * columns), "relu"), nn.ReLU()]
    layers += [nn.Unflatten(1, (64, rows, columns)), ChannelsLast()]
    for inputs, width in zip((64, 64, 32, 32), (64, 32, 32, channels), strict=True):
        layers += [nn.ConvTranspose2d(inputs, width, 4, 2, 1), nn.ReLU()]
    whole = (16 * rows, 16 * columns) == shape[1:]
    return nn.Sequential(*layers[:-1], *([] if whole else [Crop(shape[1], shape[2])]))


class Crop(nn.Module):
    """The first rows and columns: what lies beyond them was padding."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.rows, self.columns = rows, columns

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H', W') -> (B, C, H, W)
        return x[..., : self.rows, : self.columns]


def conv_grid(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(C, H/16, W/16), rounded up (the network pads below and to the right); an error where these are not images.

    >>> conv_grid((1, 28, 28))
    (1, 2, 2)
    """
    if len(shape) != 3 or 0 in shape:
        raise BadInput(f"network='conv' needs images (C, H, W), the data has shape {shape}; use --network mlp")
    return shape[0], -(-shape[1] // 16), -(-shape[2] // 16)
