"""A contact sheet: what a data set looks like, one row per factor (others held still), on one PNG."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from unseam.axes import Array, FactorSpace
from unseam.data.base import Dataset
from unseam.data.sets.perturbed import Perturbed
from unseam.errors import BadInput
from unseam.rng import generator
from unseam.show.pictures import principal_plane, strip
from unseam.show.style import plain, save, styled

_COLUMNS = 12
_POINTS = 4000  # in a scatter plot
_PANELS = 4  # scatter plots side by side
GAP = 2  # pixels between images
_PIXELS = 256  # a side of an image: larger ones are averaged down


class _Row(NamedTuple):
    """A line of the sheet."""

    label: str
    images: Tensor  # (n, C, H, W)


def evenly(size: int, count: int) -> Tensor:
    """At most `count` of the values 0..size-1, both ends among them.

    >>> evenly(40, 4)
    tensor([ 0, 13, 26, 39])
    """
    return torch.linspace(0, size - 1, min(size, count)).round().long()


def samples(data: Dataset, count: int = _COLUMNS, seed: int = 0) -> Tensor:  # (count, *shape)
    """Some rows at random."""
    draw = generator(seed, "contact")
    return data.batch(torch.randint(len(data), (count,), generator=draw), draw)


def factor_sweep(data: Dataset, space: FactorSpace, i: int, columns: int = _COLUMNS) -> _Row:
    """Factor i through its values; rendered sets hold the others still, given rows are picked by value."""
    factor, draw = space[i], generator(0, "contact", i)
    if factor.size is None or not data.renders:
        index = (
            torch.arange(len(data)) if len(data) <= 100_000 else torch.randint(len(data), (100_000,), generator=draw)
        )
        order = torch.sort(data.factors(index)[:, i], stable=True)
        picked = _per_value(order.values, columns) if factor.discrete else evenly(len(index), columns)
        return _Row(factor.name, data.batch(index[order.indices[picked]], draw))
    values = evenly(factor.size, columns)
    factors = still(space).repeat(len(values), 1)
    factors[:, i] = values
    return _Row(factor.name, data.observe(factors, draw))


def still(space: FactorSpace) -> Tensor:  # (F,)
    """Ordered factors in the middle, others at different places, so that three hues are not one hue."""
    F = len(space)
    places = [1 / 2 if f.kind == "ordinal" else (2 * (F - i) - 1) / (2 * F) for i, f in enumerate(space)]
    return torch.tensor([int((f.size or 1) * place) for f, place in zip(space, places, strict=True)])


def _per_value(values: Tensor, columns: int) -> Tensor:  # sorted (N,) -> positions of the first of each value
    first = torch.cat([torch.tensor([0]), 1 + (values[1:] != values[:-1]).nonzero().flatten()])
    return first[evenly(len(first), columns)]


def sheet_lines(data: Dataset, columns: int = _COLUMNS) -> list[_Row]:
    """The lines of an image set's sheet: samples, then one per factor.

    >>> from unseam.data import load_data
    >>> [(row.label, len(row.images)) for row in sheet_lines(load_data("sprites", size=16), columns=8)]
    [('samples', 8), ('shape', 3), ('scale', 6), ('orientation', 8), ('x', 8), ('y', 8)]
    """
    first = changes(data, columns) if isinstance(data, Perturbed) else [_Row("samples", samples(data, columns))]
    if data.space is None:
        return [*first, *(_Row("", samples(data, columns, seed)) for seed in (1, 2, 3))]
    return [*first, *(factor_sweep(data, data.space, i, columns) for i in range(len(data.space)))]


def changes(data: Perturbed, columns: int) -> list[_Row]:
    """Some rows before and after, and the difference: grey where nothing changed, black and white at -eps and eps."""
    before, after = samples(data.base, columns), samples(data, columns)
    difference = 0.5 + (after - before) / (2 * data.eps)
    return [_Row("original", before), _Row("perturbed", after), _Row("difference", difference)]


def write_contact_sheet(data: Dataset, path: Path, columns: int = _COLUMNS) -> Path:
    """Draw the sheet and write it, whole or not at all. Vectors become scatter plots, coloured by each factor."""
    if path.suffix.lower() != ".png":
        raise BadInput(f"out={str(path)!r} must end in .png")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput(f"out={str(path)!r}: it must be a file in a folder that exists")
    return save(_sheet(data, columns), path, dpi=150, bbox_inches="tight")


@styled
def _sheet(data: Dataset, columns: int) -> Figure:
    figure = Figure(layout="constrained")
    _draw_images(figure, data, columns) if len(data.shape) == 3 else _draw_points(figure, data)
    return figure


def _draw_images(figure: Any, data: Dataset, columns: int) -> None:
    lines = sheet_lines(data, columns)
    figure.set_size_inches(columns * 0.62 + 1.2, len(lines) * 0.66 + 0.1)
    for axes, line in zip(figure.subplots(len(lines), 1, squeeze=False)[:, 0], lines, strict=True):
        axes.imshow(strip(line.images, columns, GAP, _PIXELS), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set_ylabel(plain(line.label), rotation=0, ha="right", va="center")
        axes.set(xticks=[], yticks=[], frame_on=False)


def plane_points(x: Tensor) -> tuple[Array, str]:  # (N, n) -> (N, 2)
    """The two directions that vary most (principal components), or the data itself if it has at most two axes."""
    if x.shape[1] <= 2:
        return np.pad(x.numpy(), ((0, 0), (0, 2 - x.shape[1]))), "x"
    middle, axes = principal_plane(x)
    return (x.double().numpy() - middle) @ axes, "principal component "


def _draw_points(figure: Any, data: Dataset) -> None:
    draw = generator(0, "contact")
    index = torch.arange(len(data)) if len(data) <= _POINTS else torch.randint(len(data), (_POINTS,), generator=draw)
    points, name = plane_points(data.batch(index, draw))
    colours = [("", None)] if data.space is None else list(zip(data.space.names, data.factors(index).T, strict=True))
    across = min(len(colours), _PANELS)
    down = -(-len(colours) // across)
    figure.set_size_inches(4 * across + 0.3, 3.8 * down)
    for place, (label, colour) in enumerate(colours, 1):
        _scatter(figure.add_subplot(down, across, place), points, label, colour, name)


def _scatter(axes: Axes, points: Array, label: str, colour: Any, name: str) -> None:
    marks = axes.scatter(points[:, 0], points[:, 1], c=colour, s=6, linewidths=0)
    axes.set(title=plain(label), xlabel=f"{name}1", ylabel=f"{name}2", aspect="equal")
    if colour is not None:
        axes.figure.colorbar(marks, ax=axes, shrink=0.8)
