"""Columns brought to one scale: x' = (x - shift) / factor, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from unseam.data.base import Dataset
    from unseam.data.names import DataScale

_BLOCK = 1 << 16  # rows in one block
_UNEVEN = 10.0  # ratio of standard deviations from which one column rules the loss


@dataclass(frozen=True)
class Scaling:
    """What a run was trained on instead of x; stored with it, and undone when it decodes."""

    shift: tuple[float, ...]
    factor: tuple[float, ...]

    def apply(self, x: Tensor) -> Tensor:  # (B, n) -> (B, n)
        """
        >>> import torch
        >>> Scaling((1.0, 0.0), (2.0, 1.0)).apply(torch.tensor([[5.0, 7.0]]))
        tensor([[2., 7.]])
        """
        return (x - x.new_tensor(self.shift)) / x.new_tensor(self.factor)

    def undo(self, x: Tensor) -> Tensor:  # (B, n) -> (B, n)
        """
        >>> import torch
        >>> Scaling((1.0, 0.0), (2.0, 1.0)).undo(torch.tensor([[2.0, 7.0]]))
        tensor([[5., 7.]])
        """
        return x * x.new_tensor(self.factor) + x.new_tensor(self.shift)


@dataclass(frozen=True)
class _Columns:
    """Mean, standard deviation and reach of every column, over all rows."""

    mean: Tensor  # (n,) float64, like the others
    std: Tensor
    low: Tensor
    high: Tensor


def _columns(data: Dataset) -> _Columns:
    """Two passes over the rows, some at a time: the mean, then what lies around it."""
    import torch

    parts = torch.arange(len(data)).split(_BLOCK)
    mean = torch.stack([data.batch(part).double().sum(0) for part in parts]).sum(0) / len(data)
    square, low, high = [], [], []
    for part in parts:
        x = data.batch(part).double()
        square.append((x - mean).square().sum(0))
        low.append(x.amin(0))
        high.append(x.amax(0))
    std = (torch.stack(square).sum(0) / len(data)).sqrt()
    return _Columns(mean, std, torch.stack(low).amin(0), torch.stack(high).amax(0))


def scaling(data: Dataset, scale: DataScale) -> Scaling:
    """Standard: mean 0 and standard deviation 1. Unit: from 0 to 1. A constant column is only shifted.

    >>> from unseam.data import load_data
    >>> import numpy as np
    >>> scaling(load_data(np.array([[0.0, 5.0], [4.0, 5.0]])), "standard")
    Scaling(shift=(2.0, 5.0), factor=(2.0, 1.0))
    """
    import torch

    found = _columns(data)
    shift, factor = (found.mean, found.std) if scale == "standard" else (found.low, found.high - found.low)
    return Scaling(tuple(shift.tolist()), tuple(torch.where(factor > 0, factor, 1.0).tolist()))


def bright(data: Dataset, most: float = 10.0) -> str:
    """A sentence where the values of images are so large that they rule the loss, else nothing."""
    import torch

    high = float(data.batch(torch.arange(min(len(data), 64))).abs().max())
    return "" if high <= most else f"images with values up to {high:.4g}: squared, they rule the loss; divide by 255"


def uneven(data: Dataset, names: tuple[str, ...] | None) -> str:
    """A sentence where one column of a table rules the loss, else nothing."""
    import torch

    std = _columns(data).std
    moving = std > 0
    if int(moving.sum()) < 2 or float(std.max()) <= _UNEVEN * float(std[moving].min()):
        return ""
    names = names or tuple(f"column {i}" for i in range(len(std)))
    large, small = int(std.argmax()), int(torch.where(moving, std, torch.inf).argmin())
    return (
        f"{names[large]!r} has a standard deviation of {float(std[large]):.3g} and {names[small]!r} of "
        f"{float(std[small]):.3g}: unscaled, {names[large]!r} rules the loss; scale='standard' (--scale standard) "
        "gives every column the same weight, scale='none' says that this is meant"
    )
