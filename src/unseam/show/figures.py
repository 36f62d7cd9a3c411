"""The report's figures, by matplotlib: one small style, no title (the page has captions), SVG for the page.

Ink is the page's own text colour (`currentColor`), fills are translucent: the same SVG suits light and dark. `save`
writes any figure as SVG, PDF or PNG for a paper.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unseam.files import write_atomic
from unseam.geometry import Diagnosis
from unseam.show.view import View
from unseam.types import Array

P = ParamSpec("P")
INK = "#010203"  # stands for the page's text colour
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
ANCHOR = r"(?:run-\d+-)?member-\d+"  # `View.anchor`
CHOSEN, OTHER, ACCENT = "#d55e00", "#7f8a99", "#0072b2"
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": "#8888884d",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the report's style, whatever the caller's matplotlib settings are."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def new(width: float = 3.6, height: float = 2.7) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def plain(text: str) -> str:
    """A name as it is: matplotlib would read dollars as mathematics."""
    return text.replace("$", r"\$")


def svg(figure: Figure, name: str) -> str:
    """Inline SVG: scales with the page, its ids are its own, its ink is the page's."""
    buffer = io.StringIO()
    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(rf'<a xlink:href="#({ANCHOR})"[^>]*>', _link, text)
    text = re.sub(rf'(id="|href="#|url\(#)(?!{ANCHOR}")', rf"\g<1>{name}-", text)
    width, height = figure.get_size_inches() * 72
    return re.sub(r"<svg [^>]*>", _opening(width, height), text, count=1)


def _link(found: re.Match[str]) -> str:
    """A point's link, named as it is said: run-2-member-3 -> run 2, member 3."""
    said = found[1].replace("-member", ", member").replace("-", " ")
    return f'<a href="#{found[1]}" aria-label="{said}">'


def _opening(width: float, height: float) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" style="max-width:{width * 1.6:.0f}px">'


def save(figure: Figure, path: Path) -> Path:
    """Write a figure by its suffix (.svg, .pdf, .png), whole or not at all."""
    buffer = io.BytesIO()
    with rc_context({**STYLE, "savefig.facecolor": "white" if path.suffix == ".png" else "none"}):
        figure.savefig(buffer, format=path.suffix[1:], dpi=200)
    write_atomic(path, buffer.getvalue())
    return path


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
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return figure


def information(view: View) -> Figure:
    """Mutual information of each factor with each latent, as a share of the factor's entropy."""
    assert view.share is not None
    order = view.order()
    return heatmap(view.share[:, order], view.factors, [str(k) for k in order])


def importance(view: View, matrix: Array) -> Figure:  # (F, K)
    """How much boosted trees rely on each latent to tell each factor, as shares of each factor's total."""
    order = view.order()
    shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1e-12)
    return heatmap(shares[:, order], view.factors, [str(k) for k in order])


def cosine_matrix(view: View) -> Figure:
    """Root mean square cosines between the columns of J, over active latents."""
    order = used(view)
    matrix = np.asarray(view.diagnosis.arrays["cosines"])[np.ix_(order, order)]
    names = [str(k) for k in order]
    return heatmap(matrix, names, names, down="latent")


def pair_costs(view: View) -> Figure:
    """Who pays for the entanglement: nats of KL by pair of active latents."""
    order = used(view)
    matrix = np.array(view.diagnosis.arrays["pair_costs"])[np.ix_(order, order)] / view.diagnosis.beta
    np.fill_diagonal(matrix, 0.0)
    names = [str(k) for k in order]
    return heatmap(matrix, names, names, most=max(0.1, float(np.abs(matrix).max())), down="latent")


def used(view: View) -> list[int]:
    """The active latents, the most informative first; all of them when fewer than two are active."""
    active = [k for k in view.order() if view.diagnosis.latents[k].active]
    return active if len(active) > 1 else view.order()


@styled
def sigma_law(d: Diagnosis) -> Figure:
    """Learned against predicted posterior variance: one dot a latent and point; the line is the law."""
    from unseam.show.geometry_figures import law_scatter

    figure, axes = new(3.6, 3.0)
    law_scatter(axes, d)
    for line in axes.lines[:-1]:
        line.set_rasterized(True)
    axes.lines[-1].set_color(INK)
    axes.set_title("")
    figure.set_dpi(110)
    return figure


@styled
def over_training(curves: Mapping[str, tuple[Array, Array]], label: str, strong: str = "", log: bool = False) -> Figure:
    """Lines over steps, named at their ends; with `strong`, that one stands out and the others step back."""
    figure, axes = new()
    for place, (name, (steps, values)) in enumerate(curves.items()):
        if strong:
            how: Any = {"color": CHOSEN, "zorder": 3} if name == strong else {"color": OTHER, "lw": 0.8, "alpha": 0.6}
            axes.plot(steps, values, **how)
        else:
            colour = PALETTE[place % len(PALETTE)]
            axes.plot(steps, values, color=colour)
            axes.text(steps[-1], values[-1], f" {plain(name)}", fontsize=8, va="center", color=colour)
    axes.set(xlabel="step", ylabel=label)
    if log:
        axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    return figure
