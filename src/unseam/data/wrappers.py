"""Data sets made of a data set: other pixels (colour, noisy, background, noise, pad) or other rows (without, share,
correlate). Each is a frozen dataclass like any other set; `load_data` wraps in the order of WRAPPERS.

colour, noisy and background are the variants of Locatello et al. (2019), for any grey set. Correlated factors follow
Traeuble et al. (2021) and Roth et al. (2023).
"""

from __future__ import annotations

import dataclasses
import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam import rng
from unseam.data.base import Dataset, LikelihoodName
from unseam.data.checks import at_least, rows, within
from unseam.data.files import cached_array
from unseam.data.images import read_picture
from unseam.errors import BadInput, unknown
from unseam.types import FactorSpace

BLOCK = 1 << 17  # rows whose factors are looked at together
MADE = "made"  # the background that we draw ourselves


@dataclass(frozen=True)
class Wrapper(Dataset):
    """The data set `of`, as it is; a concrete wrapper changes one thing."""

    of: Dataset

    def __post_init__(self) -> None:
        if isinstance(self.of, Wrapper) and WRAPPERS.index(type(self.of)) >= WRAPPERS.index(type(self)):
            order = ", ".join(kind.__name__ for kind in WRAPPERS)
            raise BadInput(f"{type(self).__name__} cannot go round {type(self.of).__name__}; wrap in the order {order}")
        if getattr(self, "subset_seed", 0) != getattr(self.of, "subset_seed", getattr(self, "subset_seed", 0)):
            raise BadInput(
                f"subset_seed={self.subset_seed} differs inside and outside; share and correlate have one seed"
            )
        self.check()

    def check(self) -> None:
        """Refuse parameters that do not fit."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.of.name

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.of.shape

    @property
    def space(self) -> FactorSpace | None:  # type: ignore[override]
        return self.of.space

    @property
    def likelihood(self) -> LikelihoodName:  # type: ignore[override]
        return self.of.likelihood

    @property
    def renders(self) -> bool:  # type: ignore[override]
        return self.of.renders

    @property
    def stochastic(self) -> bool:  # type: ignore[override]
        return self.of.stochastic

    def __len__(self) -> int:
        return len(self.of)

    def factors(self, index: Tensor) -> Tensor:
        return self.of.factors(index)

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.of.batch(index, generator)

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.of.observe(factors, generator)


# Other pixels


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
def picture(path: str) -> Tensor:  # (3, H, W)
    pixels = cached_array("background-1.npy", (274, 350, 3), clouds) if path == MADE else read_picture(path)
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
            (_, h, w), (_, height, width) = picture(self.background).shape, self.of.shape
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
        windows = picture(self.background).unfold(1, height, 1).unfold(2, width, 1)  # (3, tops, lefts, H, W)
        top, left = (torch.randint(n, (B,), generator=draw) for n in windows.shape[1:3])
        tint = torch.rand(B, 3, 1, 1, generator=draw)
        return (windows[:, top, left].movedim(0, 1) + tint) / 2


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
    """Black borders, so that both sides are multiples of `pad`: 16 lets a convolutional network see any image."""

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


# Other rows


class Subset(Wrapper):
    """Some of the rows. `observe` still shows any combination, so that a model can be asked about those left out."""

    @abstractmethod
    def keep(self, space: FactorSpace) -> Tensor:
        """Which rows of `of` stay: (N,) bool."""

    def check(self) -> None:
        self.kept  # noqa: B018  a condition that cannot be read is refused now

    @cached_property
    def kept(self) -> Tensor:  # (M,)
        """The row numbers in `of`."""
        if self.of.space is None:
            raise BadInput(
                f"{type(self).__name__.lower()}: the data set {self.of.name!r} has no factors; pass factors=FILE"
            )
        kept = self.keep(self.of.space).nonzero().flatten()
        if not len(kept):
            raise BadInput(f"no row of {self.of.name!r} is left by {self}")
        return kept

    @property
    def left_out(self) -> Tensor:  # (N - M,)
        """The row numbers in `of` that are not among these rows."""
        gone = torch.ones(len(self.of), dtype=torch.bool)
        gone[self.kept] = False
        return gone.nonzero().flatten()

    def __len__(self) -> int:
        return len(self.kept)

    def factors(self, index: Tensor) -> Tensor:
        return self.of.factors(self.kept[rows(index, len(self))])

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.of.batch(self.kept[rows(index, len(self))], generator)


def everywhere(data: Dataset, ask: Callable[[Tensor], Tensor]) -> Tensor:  # ask: (B, F) -> (B, ...)
    """What `ask` says of the factors of all rows, some rows at a time."""
    starts = range(0, len(data), BLOCK)
    return torch.cat([ask(data.factors(torch.arange(start, min(start + BLOCK, len(data))))) for start in starts])


COMPARE: dict[str, Callable[[Tensor, float], Tensor]] = {
    "<=": torch.le, ">=": torch.ge, "!=": torch.ne, "=": torch.eq, "<": torch.lt, ">": torch.gt,
}  # fmt: skip
CONDITION = re.compile(r"\s*(?P<name>[^<>=!&|]+?)\s*(?P<sign><=|>=|!=|==?|<|>)\s*(?P<value>[-+.\deE]+)\s*")


def condition(text: str, space: FactorSpace) -> Callable[[Tensor], Tensor]:
    """`shape=2` -> a question to factors (B, F), answered by (B,) bool."""
    found = CONDITION.fullmatch(text)
    try:
        value = float(found["value"]) if found else None
    except ValueError:
        value = None
    if found is None or value is None:
        raise BadInput(f"without: {text!r} is no condition; write NAME=2, NAME>3 and so on, joined by & and |")
    if found["name"] not in space.names:
        raise unknown("without: factor", found["name"], space.names)
    column, compare = space.names.index(found["name"]), COMPARE[found["sign"].replace("==", "=")]
    return lambda factors: compare(factors[:, column], value)


@dataclass(frozen=True)
class Without(Subset):
    """The rows for which the condition is false: `shape=2&scale>3` leaves out large hearts; `|` joins several.

    >>> from unseam.data import load_data
    >>> len(load_data("ring", without="circle=0")), len(load_data("ring", without="circle=0&point>7"))
    (112, 120)
    """

    without: str | None = None  # discrete factors are compared by their codes 0..size-1

    def keep(self, space: FactorSpace) -> Tensor:
        either = [[condition(part, space) for part in both.split("&")] for both in (self.without or "").split("|")]

        def stays(factors: Tensor) -> Tensor:
            gone = [torch.stack([ask(factors) for ask in both]).all(0) for both in either]
            return ~torch.stack(gone).any(0)

        return everywhere(self.of, stays)


@dataclass(frozen=True)
class Shared(Subset):
    """A random share of the factor combinations, and all rows that have them: the rest tests generalisation.

    >>> from unseam.data import load_data
    >>> data = load_data("ring", share=0.25)
    >>> len(data), len(data.left_out)
    (32, 96)
    """

    share: float | None = None  # of the combinations that occur, in (0, 1]
    subset_seed: int = 0

    def keep(self, space: FactorSpace) -> Tensor:
        if self.share is None or not 0 < self.share <= 1:
            raise BadInput(f"share={self.share} must be above 0 and at most 1")
        combination = self.combinations(space)
        count = int(combination.max()) + 1
        chosen = torch.zeros(count, dtype=torch.bool)
        order = torch.randperm(count, generator=rng.generator(self.subset_seed, "share"))
        chosen[order[: max(1, round(self.share * count))]] = True
        return chosen[combination]

    def combinations(self, space: FactorSpace) -> Tensor:  # (N,): which combination each row has, 0, 1, ...
        if space.discrete and len(self.of) == space.count:
            return torch.arange(len(self.of))
        return torch.unique(everywhere(self.of, lambda factors: factors), dim=0, return_inverse=True)[1]


def pairs(text: str, space: FactorSpace) -> list[tuple[int, int, float]]:
    """`x,y=0.1;shape,*=0.4` -> which columns hang together, and how closely (sigma).

    >>> from unseam.types import Factor
    >>> pairs("a,*=0.2", FactorSpace((Factor("a", 2), Factor("b", 3), Factor("c", 4))))
    [(0, 1, 0.2), (0, 2, 0.2)]
    """
    out = []
    for part in text.split(";"):
        names, _, number = part.rpartition("=")
        one, comma, other = (word.strip() for word in names.partition(","))
        if not comma or not re.fullmatch(r"\s*[+.\deE-]+\s*", number):
            raise BadInput(
                f"correlate: {part!r} is no pair; write x,y=0.1 (or x,*=0.1 for x with all), several joined by ;"
            )
        at_least("correlate: sigma", float(number), 1e-3)
        for name in (one, other):
            if name not in (*space.names, "*"):
                raise unknown("correlate: factor", name, space.names)
        first = space.names.index(one) if one != "*" else -1
        others = [space.names.index(other)] if other != "*" else [i for i in range(len(space)) if i != first]
        if first < 0 or first in others:
            raise BadInput(f"correlate: {part!r} must name two different factors")
        out += [(first, second, float(number)) for second in others]
    return out


@dataclass(frozen=True)
class Correlated(Subset):
    """Rows kept with probability exp(-(a - b)^2 / 2 sigma^2) for each pair of factors a, b, both scaled to [0, 1].

    So no row is seen twice and p(a, b) is as asked (times how often a and b occur together in `of`). sigma 0.1 keeps
    22 % of a grid of 32 x 32 values, 0.4 keeps 67 %.

    >>> from unseam.data import load_data
    >>> data = load_data("sprites", size=16, correlate="x,y=0.1")
    >>> round(len(data) / len(data.of), 2)
    0.22
    """

    correlate: str | None = None  # x,y=0.1 with the sigma of the pair; several joined by ;
    subset_seed: int = 0

    def keep(self, space: FactorSpace) -> Tensor:
        asked = pairs(self.correlate or "", space)
        low, span = self.reach(space)
        u = torch.rand(len(self.of), generator=rng.generator(self.subset_seed, "correlate"), dtype=torch.float64)

        def weight(factors: Tensor) -> Tensor:
            c = (factors.double() - low) / span
            return torch.stack([((c[:, a] - c[:, b]) / sigma).square() for a, b, sigma in asked]).sum(0).div(-2).exp()

        return u < everywhere(self.of, weight)

    def reach(self, space: FactorSpace) -> tuple[Tensor, Tensor]:  # (F,), (F,)
        """Where each factor begins and how far it goes: codes by their size, continuous ones by what occurs."""
        if space.discrete:
            size = torch.tensor([float(factor.size or 1) for factor in space], dtype=torch.float64)
            return torch.zeros_like(size), (size - 1).clamp(min=1)
        values = everywhere(self.of, lambda factors: factors).double()
        return values.amin(0), (values.amax(0) - values.amin(0)).clamp(min=1e-30)


WRAPPERS: tuple[type[Wrapper], ...] = (Dressed, Noise, Padded, Without, Shared, Correlated)  # innermost first


def options(kind: type[Wrapper]) -> dict[str, dataclasses.Field[Any]]:
    """A wrapper's parameters."""
    return {field.name: field for field in dataclasses.fields(kind) if field.name != "of"}


def wrap(data: Dataset, asked: dict[str, Any]) -> Dataset:
    """The data set in those wrappers for which something other than the default is asked."""
    for kind in WRAPPERS:
        own = {name: asked[name] for name in options(kind) if name in asked}
        if any(value != options(kind)[name].default for name, value in own.items() if name != "subset_seed"):
            data = kind(data, **own)
    return data
