"""The report's figures: no title (the page has captions), SVG for the page, any format for a paper."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from unseam.axes import Array
from unseam.geometry import Diagnosis
from unseam.show.diagnosis_figure import law_scatter
from unseam.show.pictures import principal_plane
from unseam.show.report.collect import View
from unseam.show.style import ACCENT, CHOSEN, OTHER, frameless, latent_colour, new, plain, styled

_FIRST = 0.1  # share of training that may lie outside the axes


@styled
def heatmap(matrix: Array, rows: Sequence[str], columns: Sequence[str], most: float = 1.0, down: str = "") -> Figure:
    """Numbers in cells, the stronger the fuller; (R, C)."""
    R, C = matrix.shape
    figure, axes = new(1.1 + 0.42 * C, 0.75 + 0.3 * R)
    strength = np.clip(np.abs(matrix) / max(most, 1e-12), 0, 1)
    colours = np.empty((R, C, 4))
    colours[..., :3] = np.where((matrix < 0)[..., None], to_rgb(ACCENT), to_rgb(CHOSEN))
    colours[..., 3] = 0.85 * strength
    cells = axes.pcolormesh(np.zeros((R, C)), edgecolors="#88888866", linewidth=0.5)
    cells.set_array(None)
    cells.set_facecolor([tuple(colour) for colour in colours.reshape(-1, 4)])
    for r, c in np.ndindex(R, C):
        axes.text(c + 0.5, r + 0.5, f"{matrix[r, c]:.2f}", ha="center", va="center", fontsize=7.5)
    axes.set_xticks(np.arange(C) + 0.5, [plain(name) for name in columns])
    axes.set_yticks(np.arange(R) + 0.5, [plain(name) for name in rows])
    axes.set(xlabel="latent", ylabel=down)
    axes.invert_yaxis()
    frameless(axes)
    return figure


def information(view: View) -> Figure:
    """Mutual information of each factor with each latent, as a share of the factor's entropy."""
    assert view.share is not None
    return by_factors(view, view.share)


def importance(view: View, matrix: Array) -> Figure:  # (F, K)
    """How much boosted trees rely on each latent to tell each factor, as shares of each factor's total."""
    return by_factors(view, matrix / np.maximum(matrix.sum(1, keepdims=True), 1e-12))


def by_factors(view: View, matrix: Array) -> Figure:  # (F, K)
    """A row per factor, a column per latent, the most informative first."""
    order = view.order()
    return heatmap(matrix[:, order], view.factors, [str(k) for k in order])


def cosine_matrix(view: View) -> Figure:
    """Root mean square cosines between the columns of A D, over active latents."""
    return by_pairs(view, np.asarray(view.diagnosis.arrays["cosines"]))


def draw_pair_costs(view: View) -> Figure:
    """Who pays for the entanglement: nats of loss per beta, by pair of active latents."""
    matrix = np.array(view.diagnosis.arrays["pair_costs"]) / view.diagnosis.beta
    np.fill_diagonal(matrix, 0.0)
    return by_pairs(view, matrix, least=0.1)


def by_pairs(view: View, matrix: Array, least: float = 1.0) -> Figure:  # (K, K)
    """The active latents, the most informative first; all of them when fewer than two are active."""
    active = [k for k in view.order() if view.diagnosis.latents[k].active]
    order = active if len(active) > 1 else view.order()
    shown, names = matrix[np.ix_(order, order)], [str(k) for k in order]
    return heatmap(shown, names, names, most=max(least, float(np.abs(shown).max())), down="latent")


@styled
def draw_sigma_law(d: Diagnosis) -> Figure:
    """Learned against predicted posterior variance: one dot per latent and point; the line is the law."""
    figure, axes = new(3.6, 3.0)
    law_scatter(axes, d, rasterized=True)
    axes.set_title("")
    figure.set_dpi(110)
    return figure


@styled
def draw_over_training(
    curves: Mapping[str, tuple[Array, Array]],
    label: str,
    strong: str = "",
    log: bool = False,
    colours: Mapping[str, str] | None = None,
) -> Figure:
    """Lines over steps, named at their ends, in their own colours; with `strong`, that one stands out from the others
    and the axis is that of what comes after the first steps, which would flatten the rest."""
    figure, axes = new()
    later: list[float] = []
    for name, (steps, values) in curves.items():
        if strong:
            how: Any = {"color": CHOSEN, "zorder": 3} if name == strong else {"color": OTHER, "lw": 0.8, "alpha": 0.6}
            axes.plot(steps, values, **how)
            later += values[steps >= _FIRST * steps[-1]].tolist()
        else:
            colour = (colours or {}).get(name, ACCENT)
            axes.plot(steps, values, color=colour)
            axes.text(steps[-1], values[-1], f" {plain(name)}", fontsize=8, va="center", color=colour)
    axes.set(xlabel="step", ylabel=label)
    if log:
        axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    if later:
        room = 0.06 * (max(later) - min(later) or 1.0)
        axes.set_ylim(min(later) - room, max(later) + room)
    return figure


# Views of data that are not pictures: a latent's path through the data, and which columns it moves, by name.


_WIDTH, _HEIGHT, _MARGIN = 240.0, 150.0, 8.0  # of a drawing, in its own units
BARS = 64  # at most; longer columns are averaged
CLOUD = 300  # dots of the data behind a path
MOVES_SHOWN = 8  # columns of the data that a latent moves most
_FAINT = 0.02  # of the longest move on the page: less is not named


class Plane(NamedTuple):
    """The two directions in which the data varies most, scaled to the drawing."""

    middle: Array  # (n,)
    axes: Array  # (n, 2)
    low: Array  # (2,)
    high: Array  # (2,)

    def place(self, points: Array) -> Array:  # (N, n) -> (N, 2), in the drawing's units
        flat = (points - self.middle) @ self.axes
        share = (flat - self.low) / np.maximum(self.high - self.low, 1e-12)
        room = np.array([_WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN])
        return _MARGIN + np.stack([share[:, 0], 1 - share[:, 1]], axis=1) * room


def drawing_plane(x: Tensor) -> Plane:  # (N, n)
    """The plane of the first two principal components (of one axis, when the data has only one).

    >>> import torch
    >>> plane = drawing_plane(torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 1.0], [4.0, 1.0]]))
    >>> sorted(set(plane.place(np.array([[0.0, 0.5], [4.0, 0.5]])).ravel().tolist()))
    [8.0, 75.0, 232.0]
    """
    middle, axes = principal_plane(x)
    flat = (x.flatten(1).double().numpy() - middle) @ axes
    return Plane(middle, axes, flat.min(0), flat.max(0))


def loads(plane: Plane, names: Sequence[str], most: int = 3) -> tuple[str, str]:
    """What the drawing's two axes are made of: the columns with the largest weights.

    >>> axes = np.array([[0.9, 0.0], [-0.4, 0.1], [0.1, 1.0]])
    >>> loads(Plane(np.zeros(3), axes, np.zeros(2), np.ones(2)), ["a", "b", "c"], most=2)
    ('+a −b', '+c +b')
    """

    def named(weights: Array) -> str:
        large = np.argsort(-np.abs(weights), kind="stable")[:most]
        return " ".join(f"{'+' if weights[k] > 0 else '−'}{names[k]}" for k in large)

    return named(plane.axes[:, 0]), named(plane.axes[:, 1])


class ColumnMove(NamedTuple):
    """How far a latent moves one column of the data, by unit of the latent, and as a share of the longest move."""

    name: str
    value: float
    share: float


def largest_moves(column: Tensor, largest: float, names: Sequence[str]) -> list[ColumnMove]:  # (n,)
    """The columns that a latent moves most, the largest first.

    >>> import torch
    >>> largest_moves = largest_moves(torch.tensor([0.5, 0.001, -1.0]), 1.0, ["ash", "hue", "proline"])
    >>> [(move.name, move.share) for move in largest_moves]
    [('proline', -1.0), ('ash', 0.5)]
    """
    values = column.double().numpy() / max(largest, 1e-12)
    order = np.argsort(-np.abs(values), kind="stable")[:MOVES_SHOWN]
    return [ColumnMove(names[k], float(column[k]), float(values[k])) for k in order if abs(values[k]) >= _FAINT]


def path(plane: Plane, cloud: Array, curve: Array, colour: str) -> str:  # (N, n), (T, n)
    """SVG: the data as dots, the latent's path as a line, one ring a frame (the page shows the slider's)."""
    places = plane.place(curve)
    rings = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>' for x, y in places)
    return drawing(plane, cloud, f'{_line(places, colour, 2)}<g class="rings" fill="{colour}">{rings}</g>')


def mesh(plane: Plane, cloud: Array, net: Array, i: int, j: int) -> str:  # (N, n), (T, T, n)
    """SVG: the data as dots and a net over two latents, each changing along the lines of its colour."""
    places = plane.place(net.reshape(-1, net.shape[-1])).reshape(*net.shape[:2], 2)
    along_i = "".join(_line(row, latent_colour(i), 1.2) for row in places)
    along_j = "".join(_line(column, latent_colour(j), 1.2) for column in places.swapaxes(0, 1))
    return drawing(plane, cloud, along_i + along_j)


def drawing(plane: Plane, cloud: Array, content: str) -> str:
    """Something drawn over the data's dots."""
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.3"/>' for x, y in plane.place(cloud[:CLOUD]))
    return (
        f'<svg class="path" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" style="overflow:hidden">'
        f'<g fill="{OTHER}" opacity="0.5">{dots}</g>{content}</svg>'
    )


def _line(places: Array, colour: str, width: float) -> str:  # (T, 2)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def bars(column: Tensor, largest: float) -> str:  # (n,)
    """SVG: a bar for each observed dimension, up for growing and down for shrinking."""
    values = column.double().numpy()
    if len(values) > BARS:
        values = np.array([part.mean() for part in np.array_split(values, BARS)])
    width, scale = _WIDTH / len(values), 38 / max(largest, 1e-12)
    heights = np.clip(values * scale, -38, 38)
    parts = [
        f'<rect x="{k * width + 0.15 * width:.2f}" y="{40 - max(h, 0):.2f}" width="{0.7 * width:.2f}" '
        f'height="{abs(h):.2f}" fill="{CHOSEN if h > 0 else ACCENT}"/>'
        for k, h in enumerate(heights)
    ]
    axis = f'<line x1="0" x2="{_WIDTH:g}" y1="40" y2="40" stroke="currentColor" stroke-width="0.6"/>'
    return f'<svg class="bars" viewBox="0 0 {_WIDTH:g} 80">{"".join(parts)}{axis}</svg>'


@styled
def reconstructions(x: Tensor, xhat: Tensor) -> Figure:  # (N, n), (N, n)
    """Reconstructed against observed values; on the line, nothing is lost."""
    figure, axes = new(3.6, 3.0)
    a, b = x.flatten(1).numpy().ravel(), xhat.flatten(1).numpy().ravel()
    step = -(-len(a) // 4000)
    axes.plot(a[::step], b[::step], ".", ms=2.5, color=ACCENT, alpha=0.4, rasterized=True)
    ends = [float(a.min()), float(a.max())]
    axes.plot(ends, ends, lw=0.8, color=CHOSEN)
    axes.set(xlabel="observed", ylabel="reconstructed")
    return figure
