"""What every data set checks at its door: row numbers, factor values, parameters. One line each, with a remedy."""

from __future__ import annotations

import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.errors import BadInput
from unseam.types import FactorSpace


def at_least(name: str, value: float, low: float) -> None:
    """Refuse a parameter below its limit.

    >>> at_least("size", 0, 1)
    Traceback (most recent call last):
    unseam.errors.BadInput: size=0 must be at least 1
    """
    if not low <= value < float("inf"):
        raise BadInput(f"{name}={value} must be at least {low}")


def within(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside [low, high].

    >>> within("shapes", 4, 1, 3)
    Traceback (most recent call last):
    unseam.errors.BadInput: shapes=4 must be between 1 and 3
    """
    if not low <= value <= high:
        raise BadInput(f"{name}={value} must be between {low} and {high}")


def rows(index: Tensor, count: int) -> Tensor:  # (B,) -> (B,)
    """Row numbers, checked: integers in 0..count-1.

    >>> rows(torch.tensor([0, 9]), 10)
    tensor([0, 9])
    >>> rows(torch.tensor([10]), 10)
    Traceback (most recent call last):
    unseam.errors.BadInput: index holds 10, but the data set has the rows 0..9
    """
    index = torch.as_tensor(index)
    if index.dim() != 1 or index.is_floating_point() or index.dtype is torch.bool:
        raise BadInput(f"index has dtype {index.dtype} and shape {tuple(index.shape)}; it must be integers (B,)")
    if index.numel():
        low, high = (int(end) for end in torch.aminmax(index))
        if low < 0 or high >= count:
            raise BadInput(f"index holds {low if low < 0 else high}, but the data set has the rows 0..{count - 1}")
    return index.long()


def factor_rows(factors: Tensor, space: FactorSpace) -> Tensor:  # (B, F) -> (B, F)
    """Factor values, checked against their space; integers if every factor is discrete.

    >>> from unseam.types import Factor
    >>> factor_rows(torch.tensor([[3]]), FactorSpace((Factor("shape", 3),)))
    Traceback (most recent call last):
    unseam.errors.BadInput: factor 'shape' holds 3, but its values are 0..2
    """
    factors = torch.as_tensor(factors)
    if factors.dim() != 2 or factors.shape[1] != len(space):
        names = ", ".join(space.names)
        raise BadInput(f"factors has shape {tuple(factors.shape)}; it must be (B, {len(space)}): {names}")
    if not torch.isfinite(factors).all():
        raise BadInput("factors holds NaN or infinity; every factor value must be finite")
    if factors.shape[0]:
        _check_ranges(factors, space)
    return factors.long() if space.discrete else factors.float()


def _check_ranges(factors: Tensor, space: FactorSpace) -> None:
    lows, highs = torch.aminmax(factors, dim=0)
    whole = (factors == factors.round()).all(0)
    for factor, low, high, is_whole in zip(space, lows.tolist(), highs.tolist(), whole.tolist(), strict=True):
        if factor.size is None:
            continue
        bad = low if low < 0 else high
        if low < 0 or high >= factor.size:
            raise BadInput(f"factor {factor.name!r} holds {bad:g}, but its values are 0..{factor.size - 1}")
        if not is_whole:
            raise BadInput(f"factor {factor.name!r} holds a fraction, but its values are whole numbers")


def unit_range(data: Dataset, block: int = 4096) -> None:
    """Refuse data that a Bernoulli likelihood cannot model: every value must lie in [0, 1].

    >>> from unseam.data import load_data
    >>> unit_range(load_data("ring"))
    Traceback (most recent call last):
    unseam.errors.BadInput: likelihood='bernoulli' needs values in [0, 1], but 'ring' has -13 in rows 0..127; use ...
    """
    if data.likelihood == "bernoulli":
        return
    for start in range(0, len(data), block):
        end = min(start + block, len(data))
        low, high = (float(v) for v in torch.aminmax(data.batch(torch.arange(start, end))))
        if low < 0 or high > 1:
            raise BadInput(
                f"likelihood='bernoulli' needs values in [0, 1], but {data.name!r} has {low if low < 0 else high:g} "
                f"in rows {start}..{end - 1}; use likelihood='gaussian' or rescale the data"
            )


def whole_numbers(data: Dataset, likelihood: str, block: int = 4096) -> None:
    """Refuse data that a likelihood of counts cannot model: every value must be a whole number from 0.

    >>> from unseam.data import load_data
    >>> whole_numbers(load_data("ring"), "poisson")
    Traceback (most recent call last):
    unseam.errors.BadInput: likelihood='poisson' needs whole numbers from 0, but 'ring' has 12.7716 in rows ...
    """
    for start in range(0, len(data), block):
        x = data.batch(torch.arange(start, min(start + block, len(data))))
        bad = x[(x < 0) | (x != x.round())]
        if len(bad):
            raise BadInput(
                f"likelihood={likelihood!r} needs whole numbers from 0, but {data.name!r} has {float(bad[0]):g} in "
                f"rows {start}..{start + len(x) - 1}; use likelihood='gaussian'"
            )
