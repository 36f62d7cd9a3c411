"""Pairs of observations: the weak supervision of Zietlow 2022 (chapter 4), Locatello 2020, Klindt 2021 and Shu 2020.

k         exactly k factors take another value (k = -1: k uniform in 1..F-1)
laplace   every factor that has an order moves by a discrete Laplace draw around its value, at least one of them
share     one factor is kept, every other is drawn anew
time      row i with row i + 1 of the user's own data
FILE      the user's own pairs: two columns of row numbers, counted from 0 (.csv or .npy)

The second of a pair is a row of the same split as the first where rows can be found by their factors (held out means
held out), and a new observation where factors are continuous. All draws come from the generator that is passed in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Factor, FactorSpace
from unseam.data.base import Dataset, GridDataset
from unseam.data.sets.perturbed import Perturbed
from unseam.data.wrap import Subset, Wrapper
from unseam.errors import BadInput, unknown
from unseam.readers import existing, load_table

_How = Literal["k", "laplace", "share", "time"]
TRIES = 64  # draws of a partner that must lie among the given rows; a row that finds none is its own partner


@dataclass(frozen=True)
class Pairing:
    """How the second observation follows from the first."""

    how: str = "k"  # one of How, or a file with a table of pairs
    change: int = -1  # with "k": how many factors change
    rate: float = 1.0  # with "laplace": large rates move little
    resample: bool = False  # with "k": a drawn value may be the old one (Locatello 2020)

    @property
    def file(self) -> bool:
        """Whether the pairs are the user's own."""
        return self.how not in get_args(_How)

    def __post_init__(self) -> None:
        if self.file and not Path(self.how).suffix:
            raise unknown("pairs", self.how, (*get_args(_How), "FILE.csv", "FILE.npy"))
        if self.change != -1 and self.change < 1:
            raise BadInput(f"change={self.change} must be at least 1, or -1 for any number of factors")
        if not 0 < self.rate < math.inf:
            raise BadInput(f"rate={self.rate} must be positive and finite")


class Pairs(NamedTuple):
    """The second of each pair."""

    factors: Tensor | None  # (B, F), None for data with unknown factors
    rows: Tensor | None  # (B,), None where the second is not a row of the data
    changed: Tensor  # (B, F) bool; (B, 0) without factors


def varying(space: FactorSpace) -> Tensor:
    """Columns of the factors that take more than one value."""
    return torch.tensor([i for i, factor in enumerate(space) if factor.size != 1])


def _cells(data: Dataset) -> Tensor | None:  # (cells,)
    """The row of the data at each cell of its factors' grid, -1 where there is none; None for continuous factors.

    >>> from unseam.data import load_data
    >>> _cells(load_data("ring", circles=2, points=3, without="point=0"))
    tensor([-1,  0,  1, -1,  2,  3])
    """
    if data.space is None or not data.space.discrete:
        return None
    if isinstance(data, GridDataset):
        return torch.arange(len(data))
    inner = _cells(data.of) if isinstance(data, Wrapper) else _cells(data.base) if isinstance(data, Perturbed) else None
    if inner is None:  # rows in any order
        inner = torch.full((data.space.count,), -1)
        inner[torch.as_tensor(data.space.index_of(data.factors(torch.arange(len(data))).numpy()))] = torch.arange(
            len(data)
        )
    elif isinstance(data, Subset):
        place = torch.full((len(data.of) + 1,), -1)  # one more: what is -1 stays so
        place[data.row_numbers] = torch.arange(len(data))
        inner = place[inner]
    return inner


def partners(data: Dataset, rows: Tensor, pairing: Pairing, generator: torch.Generator, among: Tensor) -> Pairs:
    """The second of each pair for the rows (B,); where factors are discrete it is one of the rows `among`.

    >>> from unseam.data import load_data
    >>> data = load_data("sprites", size=16, shapes=1, orientations=1)
    >>> draw, every = torch.Generator().manual_seed(0), torch.arange(len(data))
    >>> found = partners(data, torch.arange(100), Pairing("k", change=1), draw, every)
    >>> found.changed.sum(1).unique()
    tensor([1])
    """
    if pairing.how == "time":
        return partner_rows(data, rows, following(rows, among))
    if pairing.file:
        return own_pairs(data, rows, pairing.how, generator, among)
    if data.space is None:
        raise BadInput(
            f"pairs={pairing.how!r} needs a data set with known factors; where the objective takes other pairs, use "
            "pairs='time' or pairs=FILE.csv, a table"
        )
    moves: Callable[..., Tensor] = {"k": change_k, "laplace": change_laplace, "share": change_all_but_one}[pairing.how]
    first = data.factors(rows)
    if (grid := _cells(data)) is None:
        second = moves(data, first, pairing, generator)
        return Pairs(second, None, second != first)
    allowed = torch.zeros(len(data) + 1, dtype=torch.bool)  # the last, -1: no such row
    allowed[among] = True
    chosen, second, waiting = rows.clone(), first.clone(), torch.arange(len(rows))
    for _ in range(TRIES):
        drawn = moves(data, first[waiting], pairing, generator)
        place = grid[torch.as_tensor(data.space.index_of(drawn.numpy()))]
        good = allowed[place]
        chosen[waiting[good]], second[waiting[good]] = place[good], drawn[good]
        waiting = waiting[~good]
        if not len(waiting):
            break
    return Pairs(second, chosen, second != first)


def read_pairs(path: str, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """A table of pairs as lists of partners: where those of each row begin (count,), how many, and all of them."""
    stat = existing(path, f"pairs={path!r}").stat()
    return _read_pairs(path, count, (stat.st_mtime_ns, stat.st_size))


@lru_cache(maxsize=4)
def _read_pairs(path: str, count: int, stamp: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Read once; again when the file has changed (`stamp`)."""
    read = load_table(path, f"pairs={path!r}").numbers(f"pairs={path!r}")
    if read.shape[1] != 2 or (read != np.floor(read)).any():
        raise BadInput(f"pairs={path!r}: two columns of row numbers are needed, got an array of shape {read.shape}")
    if not len(read) or read.min() < 0 or read.max() >= count:
        raise BadInput(f"pairs={path!r}: row numbers must lie between 0 and {count - 1}")
    both = np.concatenate([read, read[:, ::-1]]).astype(np.int64)  # a pair has no order
    first, second = torch.from_numpy(both).unbind(1)
    order = first.argsort(stable=True)
    many = torch.bincount(first, minlength=count)
    return many.cumsum(0) - many, many, second[order]


def own_pairs(data: Dataset, rows: Tensor, path: str, generator: torch.Generator, among: Tensor) -> Pairs:
    """One of the partners that the user's table gives a row; a row that has none among the given rows is its own."""
    begin, many, partner = read_pairs(path, len(data))
    allowed = torch.zeros(len(data), dtype=torch.bool)
    allowed[among] = True
    chosen, waiting = rows.clone(), torch.arange(len(rows))[many[rows] > 0]
    for _ in range(TRIES):
        drawn = (torch.rand(len(waiting), generator=generator) * many[rows[waiting]]).long()
        place = partner[begin[rows[waiting]] + drawn]
        chosen[waiting[allowed[place]]] = place[allowed[place]]
        waiting = waiting[~allowed[place]]
        if not len(waiting):
            break
    return partner_rows(data, rows, chosen)


def partner_rows(data: Dataset, rows: Tensor, chosen: Tensor) -> Pairs:
    """Rows and their partners, and what changed between them where factors are known."""
    if data.space is None:
        return Pairs(None, chosen, torch.zeros(len(rows), 0, dtype=torch.bool))
    second = data.factors(chosen)
    return Pairs(second, chosen, second != data.factors(rows))


def following(rows: Tensor, among: Tensor) -> Tensor:  # (B,) -> (B,)
    """Row i with the next row that is among the given ones; the last with the one before it."""
    if len(among) < 2:
        raise BadInput(f"pairs='time' needs at least 2 rows, got {len(among)}")
    ordered = among.sort().values
    place = torch.searchsorted(ordered, rows)
    after = torch.where(place + 1 < len(ordered), place + 1, place - 1)
    return ordered[after]


def _fresh(data: Dataset, first: Tensor, generator: torch.Generator, other: bool) -> Tensor:  # (B, F) -> (B, F)
    """A new value for every factor: uniform over its values (all but the old one if `other`), or another row's."""
    assert data.space is not None
    columns = []
    borrowed = (
        None if data.space.discrete else data.factors(torch.randint(len(data), first.shape[:1], generator=generator))
    )
    for i, factor in enumerate(data.space):
        if factor.size is None:
            assert borrowed is not None
            columns.append(borrowed[:, i])
            continue
        leave = int(other and factor.size > 1)
        step = torch.randint(leave, max(factor.size, leave + 1), first.shape[:1], generator=generator)
        columns.append((first[:, i] + step.to(first.dtype)) % factor.size)
    return torch.stack(columns, 1)


def change_k(data: Dataset, first: Tensor, pairing: Pairing, generator: torch.Generator) -> Tensor:
    """Exactly k of the factors that vary get another value."""
    assert data.space is not None
    free = varying(data.space)
    F = len(free)
    if pairing.change > F:
        raise BadInput(f"change={pairing.change} factors, but only {F} of this data vary")
    B = len(first)
    k = (
        torch.randint(1, max(F, 2), (B,), generator=generator)
        if pairing.change == -1
        else torch.full((B,), pairing.change)
    )
    rank = torch.rand(B, F, generator=generator).argsort(1).argsort(1)  # a random order of the factors of each row
    change = torch.zeros(first.shape, dtype=torch.bool)
    change[:, free] = rank < k[:, None]
    return torch.where(change, _fresh(data, first, generator, other=not pairing.resample), first)


def change_all_but_one(data: Dataset, first: Tensor, pairing: Pairing, generator: torch.Generator) -> Tensor:
    """One factor that varies keeps its value, all others get another one, so that the shared factor can be
    identified."""
    assert data.space is not None
    free = varying(data.space)
    fixed = free[torch.randint(len(free), (len(first),), generator=generator)]
    second = _fresh(data, first, generator, other=True)
    return second.scatter(1, fixed[:, None], first.gather(1, fixed[:, None]))


def change_laplace(data: Dataset, first: Tensor, pairing: Pairing, generator: torch.Generator) -> Tensor:
    """p(v2 | v1) ~ exp(-rate |v2 - v1| / log(size)) over a factor's values; categorical ones stay (Klindt 2021).

    A continuous factor moves by a Laplace draw whose scale is a tenth of its range here over the rate, and stays in it.
    At least one factor moves: rows in which none did are drawn again.
    """
    assert data.space is not None
    second, still, ends = first.clone(), torch.arange(len(first)), list(zip(first.amin(0), first.amax(0), strict=True))
    for _ in range(TRIES):
        second[still] = torch.stack(
            [laplace_step(f, first[still, i], ends[i], pairing.rate, generator) for i, f in enumerate(data.space)], 1
        )
        still = still[(second[still] == first[still]).all(1)]
        if not len(still):
            break
    return second


def laplace_step(
    factor: Factor, old: Tensor, ends: tuple[Tensor, Tensor], rate: float, generator: torch.Generator
) -> Tensor:  # (B,) -> (B,)
    size, kind, (low, high) = factor.size, factor.kind, ends
    if kind == "categorical" or size == 1:
        return old
    if size is None:
        u = torch.rand(old.shape, generator=generator) - 0.5
        step = 0.1 * (high - low) / rate * u.sign() * torch.log1p(-2 * u.abs().clamp(max=0.499999))
        return (old - step).clamp(low, high).to(old.dtype)
    values = torch.arange(size)
    distance = (values - old[:, None]).abs().double()
    weights = torch.exp(-rate * distance / math.log(size))
    return torch.multinomial(weights, 1, generator=generator)[:, 0].to(old.dtype)
