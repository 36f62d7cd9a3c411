"""The report's figures: no title (the page has captions), SVG for the page, any format for a paper."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unseam.geometry import Diagnosis
from unseam.show.diagnosis import law_scatter
from unseam.show.report.view import View
from unseam.show.style import ACCENT, CHOSEN, OTHER, frameless, new, plain, styled
from unseam.types import Array

FIRST = 0.1  # share of training that may lie outside the axes


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
    """A row a factor, a column a latent, the most informative first."""
    order = view.order()
    return heatmap(matrix[:, order], view.factors, [str(k) for k in order])


def cosine_matrix(view: View) -> Figure:
    """Root mean square cosines between the columns of A D, over active latents."""
    return by_pairs(view, np.asarray(view.diagnosis.arrays["cosines"]))


def pair_costs(view: View) -> Figure:
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
def sigma_law(d: Diagnosis) -> Figure:
    """Learned against predicted posterior variance: one dot a latent and point; the line is the law."""
    figure, axes = new(3.6, 3.0)
    law_scatter(axes, d, rasterized=True)
    axes.set_title("")
    figure.set_dpi(110)
    return figure


@styled
def over_training(
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
            later += values[steps >= FIRST * steps[-1]].tolist()
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
