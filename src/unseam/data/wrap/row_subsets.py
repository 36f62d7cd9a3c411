"""Some of the rows of a data set: those a condition leaves, a share of the combinations, or correlated factors.

Correlated factors follow Traeuble et al. (2021) and Roth et al. (2023).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from torch import Tensor

from unseam import rng
from unseam.axes import FactorSpace
from unseam.data.base import Dataset, Wrapper, at_least, checked_rows
from unseam.errors import BadInput, unknown
from unseam.readers import is_number

_BLOCK = 1 << 17  # rows whose factors are read together


class Subset(Wrapper):
    """Some of the rows. `observe` still renders any combination, so models can be tested on those left out."""

    @abstractmethod
    def keep(self, space: FactorSpace) -> Tensor:
        """Which rows of `of` stay: (N,) bool."""

    def check(self) -> None:
        self.row_numbers  # noqa: B018  a condition that cannot be read is refused now

    @cached_property
    def row_numbers(self) -> Tensor:  # (M,)
        """The row numbers in `of`."""
        if self.of.space is None:
            raise BadInput(
                f"{type(self).__name__.lower()}: the data set {self.of.name!r} has no factors; pass factors=FILE"
            )
        row_numbers = self.keep(self.of.space).nonzero().flatten()
        if not len(row_numbers):
            raise BadInput(f"{self.condition_text()} leaves no row of the {len(self.of):,} of {self.of.name!r}")
        return row_numbers

    def condition_text(self) -> str:
        """What the user wrote: without='x>3'."""
        return ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)[1:2])

    @property
    def left_out(self) -> Tensor:  # (N - M,)
        """The row numbers in `of` that are not among these rows."""
        is_left_out = torch.ones(len(self.of), dtype=torch.bool)
        is_left_out[self.row_numbers] = False
        return is_left_out.nonzero().flatten()

    def __len__(self) -> int:
        return len(self.row_numbers)

    def factors(self, index: Tensor) -> Tensor:
        return self.of.factors(self.row_numbers[checked_rows(index, len(self))])

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.of.batch(self.row_numbers[checked_rows(index, len(self))], generator)


def everywhere(data: Dataset, ask: Callable[[Tensor], Tensor]) -> Tensor:  # ask: (B, F) -> (B, ...)
    """What `ask` says of the factors of all rows, some rows at a time."""
    starts = range(0, len(data), _BLOCK)
    return torch.cat([ask(data.factors(torch.arange(start, min(start + _BLOCK, len(data))))) for start in starts])


COMPARE: dict[str, Callable[[Tensor, float], Tensor]] = {
    "<=": torch.le, ">=": torch.ge, "!=": torch.ne, "=": torch.eq, "<": torch.lt, ">": torch.gt,
}  # fmt: skip
CONDITION = re.compile(r"\s*(?P<name>[^<>=!&|]+?)\s*(?P<sign><=|>=|!=|==?|<|>)\s*(?P<value>[-+.\deE]+)\s*")


def condition(text: str, space: FactorSpace) -> Callable[[Tensor], Tensor]:
    """`shape=2` -> a question to factors (B, F), answered by (B,) bool."""
    found = CONDITION.fullmatch(text)
    if found is None or not is_number(found["value"]):
        raise BadInput(f"without: {text!r} is not a condition; write NAME=2, NAME>3 and so on, joined by & and |")
    if found["name"] not in space.names:
        raise unknown("without: factor", found["name"], space.names)
    column, compare = space.names.index(found["name"]), COMPARE[found["sign"].replace("==", "=")]
    return lambda factors: compare(factors[:, column], float(found["value"]))


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
            meets = [torch.stack([ask(factors) for ask in both]).all(0) for both in either]
            return ~torch.stack(meets).any(0)

        mask = everywhere(self.of, stays)
        if mask.all():
            ranges = ", ".join(f"{f.name} 0..{f.size - 1}" if f.size else f.name for f in space)
            raise BadInput(f"{self.condition_text()} leaves nothing out; the factors and their codes: {ranges}")
        return mask


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


def _pairs(text: str, space: FactorSpace) -> list[tuple[int, int, float]]:
    """`x,y=0.1;shape,*=0.4` -> which columns hang together, and how closely (sigma).

    >>> from unseam.axes import Factor
    >>> _pairs("a,*=0.2", FactorSpace((Factor("a", 2), Factor("b", 3), Factor("c", 4))))
    [(0, 1, 0.2), (0, 2, 0.2)]
    """
    out = []
    for part in text.split(";"):
        names, _, sigma = part.rpartition("=")
        one, comma, other = (word.strip() for word in names.partition(","))
        if not comma or not is_number(sigma):
            raise BadInput(
                f"correlate: {part!r} is not a pair; write x,y=0.1 (or x,*=0.1 for x with all), several joined by ;"
            )
        at_least("correlate: sigma", float(sigma), 1e-3)
        for name in (one, other):
            if name not in (*space.names, "*"):
                raise unknown("correlate: factor", name, space.names)
        first = space.names.index(one) if one != "*" else -1
        others = [space.names.index(other)] if other != "*" else [i for i in range(len(space)) if i != first]
        if first < 0 or first in others:
            raise BadInput(f"correlate: {part!r} must name two different factors")
        out += [(first, second, float(sigma)) for second in others]
    return out


@dataclass(frozen=True)
class Correlated(Subset):
    """Rows kept with probability exp(-(a - b)^2 / 2 sigma^2) for each pair of factors a, b, both scaled to [0, 1].

    So no row occurs twice and p(a, b) is as requested (times how often a and b occur together in `of`). sigma 0.1 keeps
    22 % of a grid of 32 x 32 values, 0.4 keeps 67 %.

    >>> from unseam.data import load_data
    >>> data = load_data("sprites", size=16, correlate="x,y=0.1")
    >>> round(len(data) / len(data.of), 2)
    0.22
    """

    correlate: str | None = None  # x,y=0.1 with the sigma of the pair; several joined by ;
    subset_seed: int = 0

    def keep(self, space: FactorSpace) -> Tensor:
        pairs = _pairs(self.correlate or "", space)
        low, span = self.reach()
        u = torch.rand(len(self.of), generator=rng.generator(self.subset_seed, "correlate"), dtype=torch.float64)

        def weight(factors: Tensor) -> Tensor:
            c = (factors.double() - low) / span
            return torch.stack([((c[:, a] - c[:, b]) / sigma).square() for a, b, sigma in pairs]).sum(0).div(-2).exp()

        return u < everywhere(self.of, weight)

    def reach(self) -> tuple[Tensor, Tensor]:  # (F,), (F,)
        """Where each factor begins and how far it goes, by what occurs: a condition may have cut its ends."""
        values = everywhere(self.of, lambda factors: factors).double()
        return values.amin(0), (values.amax(0) - values.amin(0)).clamp(min=1e-30)


def whole_data(data: Dataset) -> tuple[Dataset, Tensor]:  # and (M,)
    """The data before any rows were left out, and the rows of it that were kept.

    >>> from unseam.data import load_data
    >>> full, row_numbers = whole_data(load_data("sprites", size=16, without="shape=2", share=0.5))
    >>> len(full), len(row_numbers)
    (737280, 245760)
    """
    row_numbers = torch.arange(len(data))
    while isinstance(data, Subset):
        row_numbers, data = data.row_numbers[row_numbers], data.of
    return data, row_numbers
