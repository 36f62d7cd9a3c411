"""The same rows with other pixels (colour, noisy, background, grey, noise, pad) or another scale.

colour, noisy and background are the variants of Locatello et al. (2019), for any grey set.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from unseam import rng
from unseam.data.base import Wrapper, within
from unseam.data.cache import cached_array
from unseam.data.images import read_picture
from unseam.data.names import DRAWN, DataScale
from unseam.data.scaling import Scaling, scaling
from unseam.errors import BadInput, unknown


def fold(x: Tensor) -> Tensor:
    """Reflect at 0 and 1 what a small change pushed out of [0, 1].

    >>> fold(torch.tensor([-0.1, 0.5, 1.2]))
    tensor([0.1000, 0.5000, 0.8000])
    """
    return x - 2 * torch.relu(x - 1) + 2 * torch.relu(-x)


class Repainted(Wrapper):
    """Every image x becomes `paint(x)`; keys (B,) say which images these are, where the wrapper needs to know."""

    @abstractmethod
    def paint(self, x: Tensor, keys: Tensor, generator: torch.Generator | None) -> Tensor: ...

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        keys = torch.as_tensor(index)[:, None] if self.space is None else self.factors(index)
        return self.paint(self.of.batch(index, generator), keys, generator)

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.paint(self.of.observe(factors, generator), torch.as_tensor(factors), generator)


@lru_cache(maxsize=4)
def _picture(path: str) -> Tensor:  # (3, H, W)
    pixels = cached_array("background-1.npy", (274, 350, 3), clouds) if path == DRAWN else read_picture(path)
    return torch.from_numpy(pixels.astype(np.float32)).permute(2, 0, 1) / 255


def clouds() -> Any:  # (274, 350, 3) uint8
    """Our own picture: noise whose amplitude falls as 1 / frequency in each channel, stretched to 0..255."""
    draw = rng.numpy_generator(0, "background")
    height, width = 274, 350
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    frequency[0, 0] = np.inf
    noise = np.fft.fft2(draw.standard_normal((3, height, width)))
    smooth = np.fft.ifft2(noise / frequency**1.3).real
    low, high = smooth.min((1, 2), keepdims=True), smooth.max((1, 2), keepdims=True)
    return np.round(255 * (smooth - low) / (high - low)).astype(np.uint8).transpose(1, 2, 0)


@dataclass(frozen=True)
class Dressed(Repainted):
    """A grey image m as a mask: x = m front + (1 - m) behind.

    >>> from unseam.data import load_data
    >>> load_data("digits", colour=True).shape
    (3, 8, 8)
    """

    colour: bool = False  # front: a colour U(0.5, 1)^3 per observation
    noisy: bool = False  # behind: uniform noise per pixel and channel
    background: str | None = (
        None  # behind: random, randomly tinted crops of this picture ("made": ours); front its negative
    )

    def check(self) -> None:
        if self.noisy and self.background:
            raise BadInput(f"noisy=True and background={self.background!r} both fill the background; choose one")
        if len(self.of.shape) != 3 or self.of.shape[0] != 1:
            raise BadInput(
                f"colour, noisy and background need grey images (1, H, W), but {self.of.name!r} has {self.of.shape}"
            )
        if self.background:
            (_, h, w), (_, height, width) = _picture(self.background).shape, self.of.shape
            if h < height or w < width:
                raise BadInput(
                    f"background={self.background!r} is {h}x{w} pixels; it must be at least {height}x{width}"
                )

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (3, *self.of.shape[1:])

    @property
    def stochastic(self) -> bool:  # type: ignore[override]
        return True

    def paint(self, x: Tensor, keys: Tensor, generator: torch.Generator | None) -> Tensor:
        draw = generator or rng.generator(0, self.name)
        behind = self.behind(len(x), draw)
        if self.colour:
            front: Any = 0.5 + 0.5 * torch.rand(len(x), 3, 1, 1, generator=draw)
        else:
            front = 1 - behind if self.background else 1.0
        return x * front + (1 - x) * behind

    def behind(self, B: int, draw: torch.Generator) -> Tensor:  # (B, 3, H, W), or zero
        if self.noisy:
            return torch.rand(B, *self.shape, generator=draw)
        if not self.background:
            return torch.zeros(1)
        _, height, width = self.shape
        windows = _picture(self.background).unfold(1, height, 1).unfold(2, width, 1)  # (3, tops, lefts, H, W)
        top, left = (torch.randint(n, (B,), generator=draw) for n in windows.shape[1:3])
        tint = torch.rand(B, 3, 1, 1, generator=draw)
        return (windows[:, top, left].movedim(0, 1) + tint) / 2


@dataclass(frozen=True)
class Grey(Repainted):
    """Less contrast: [0, 1] becomes [grey, 1 - grey], so that a change of up to `grey` is not folded back.

    >>> from unseam.data import load_data
    >>> load_data("sprites", size=16, grey=0.1).batch(torch.arange(1)).aminmax()
    torch.return_types.aminmax(
    min=tensor(0.1000),
    max=tensor(0.9000))
    """

    grey: float = 0.0

    def check(self) -> None:
        within("grey", self.grey, 0, 0.45)
        if self.of.likelihood != "bernoulli":
            raise BadInput(f"grey={self.grey} needs values in [0, 1], but {self.of.name!r} does not lie there")

    def paint(self, x: Tensor, keys: Tensor, generator: torch.Generator | None) -> Tensor:
        return self.grey + (1 - 2 * self.grey) * x


@dataclass(frozen=True)
class Noise(Repainted):
    """x' = x + U(-noise, noise) in every pixel, folded back at 0 and 1: x' - 2 relu(x' - 1) + 2 relu(-x')."""

    noise: float = 0.0  # the largest change
    noise_fixed: bool = False  # the same noise whenever an image is seen (by its factors, or its row); else fresh

    def check(self) -> None:
        within("noise", self.noise, 1e-9, 1)
        if self.of.likelihood != "bernoulli":
            raise BadInput(f"noise={self.noise} is folded at 0 and 1, but {self.of.name!r} does not lie in [0, 1]")

    @property
    def stochastic(self) -> bool:  # type: ignore[override]
        return self.of.stochastic or not self.noise_fixed

    def paint(self, x: Tensor, keys: Tensor, generator: torch.Generator | None) -> Tensor:
        return fold(x + self.noise * (2 * self.uniform(x, keys, generator) - 1))

    def uniform(self, x: Tensor, keys: Tensor, generator: torch.Generator | None) -> Tensor:  # like x, in [0, 1)
        if not self.noise_fixed:
            return torch.rand(x.shape, generator=generator or rng.generator(0, "noise"))
        own = [torch.rand(x.shape[1:], generator=rng.generator(0, "noise", str(key))) for key in keys.tolist()]
        return torch.stack(own) if own else torch.zeros_like(x)


@dataclass(frozen=True)
class Padded(Repainted):
    """Black borders, so that both sides are multiples of `pad`: with 16, a convolutional network takes any image."""

    pad: int = 1

    def check(self) -> None:
        within("pad", self.pad, 1, 512)
        if len(self.of.shape) != 3:
            raise BadInput(f"pad={self.pad} needs images, but {self.of.name!r} has the shape {self.of.shape}")

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        channels, *sides = self.of.shape
        return (channels, *(-(-side // self.pad) * self.pad for side in sides))

    def paint(self, x: Tensor, keys: Tensor, generator: torch.Generator | None) -> Tensor:
        (down, across), (height, width) = self.shape[1:], self.of.shape[1:]
        top, left = (down - height) // 2, (across - width) // 2
        return torch.nn.functional.pad(x, (left, across - width - left, top, down - height - top))


@dataclass(frozen=True)
class Scaled(Wrapper):
    """Vectors whose columns are brought to one scale: mean 0 and standard deviation 1, or from 0 to 1.

    >>> from unseam.data import load_data
    >>> load_data(np.array([[0.0, 5.0], [4.0, 5.0]]), scale="unit").batch(torch.tensor([1]))
    tensor([[1., 0.]])
    """

    scale: DataScale = "none"  # standard or unit: bring the columns of a table to one scale

    def check(self) -> None:
        if self.scale not in get_args(DataScale):
            raise unknown("scale", self.scale, get_args(DataScale))
        if len(self.of.shape) != 1:
            raise BadInput(
                f"scale={self.scale!r} is for tables; {self.name!r} has observations of shape {self.of.shape}"
            )

    @cached_property
    def scaling(self) -> Scaling:
        return scaling(self.of, self.scale)

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.scaling.apply(self.of.batch(index, generator))

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.scaling.apply(self.of.observe(factors, generator))
