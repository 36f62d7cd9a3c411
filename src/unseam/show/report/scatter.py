"""Members as points that link to them: by a hyperparameter, by run, by what geometry and labels say."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unseam.show.report.view import View
from unseam.show.style import CHOSEN, INK, OTHER, new, plain, styled

RUNS = ("#0072b2", "#d55e00", "#00875f", "#8c5fb5", "#a06e00", "#bf4f86", "#5f6b7a", "#7a4b2a")  # white on each is read

MANY = 24  # members from which on points are small
FEW = 8  # values of a hyperparameter up to which each has a place of its own, evenly spaced: room for its seeds


def run_colour(number: int) -> str:
    """The colour of a run on a page with several, from 1; after eight they come again (runs are numbered too)."""
    return RUNS[(number - 1) % len(RUNS)]


@styled
def members(
    views: Sequence[View], chosen: Collection[View], x: str, y: Mapping[View, float], label: str, log: bool
) -> Figure:
    """A hyperparameter (or the seed, or the run) against a number of each member."""
    figure, axes = new()
    ticks = sorted({value(view, x) for view in views})
    even = x == "run" or (x != "seed" and len(ticks) <= FEW)
    log = log and not even
    places = across(views, x, log, even)
    for view in views:
        if view in y:
            point(axes, (places[view], y[view]), view, view in chosen, len(views) > MANY)
    if log:
        axes.set_xscale("log")
        axes.margins(x=0.12)
    if log or even:
        axes.set_xticks(range(len(ticks)) if even else ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    elif x == "seed":
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set(xlabel=plain(x), ylabel=label)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=all(float(v).is_integer() for v in y.values())))
    low, high = min(0.0, *y.values()), max(y.values())
    axes.set_ylim(low, high + 0.12 * (high - low or 1.0))
    return figure


def value(view: View, x: str) -> float:
    return float({"seed": view.seed, "run": view.run}.get(x, view.hyper.get(x, np.nan)))


def across(views: Sequence[View], x: str, log: bool, even: bool) -> dict[View, float]:
    """Where members stand on the x axis: at their value, or one value after another (`even`); side by side where they
    share it, clear of the next."""
    shared: dict[float, list[View]] = {}
    for view in views:
        shared.setdefault(value(view, x), []).append(view)
    ticks = np.array(sorted(shared))
    spots = {tick: float(place) if even else tick for place, tick in enumerate(ticks)}
    gaps = np.diff(np.log(ticks) if log else ticks)
    gap = float(gaps.min()) if len(gaps) and not even else 1.0
    step = 0.8 * (min(gap, 0.9) if log else gap) / max(len(ticks), *map(len, shared.values()))
    places = {}
    for tick, beside in shared.items():
        for place, view in enumerate(beside):
            aside = step * (place - (len(beside) - 1) / 2)
            places[view] = spots[tick] * float(np.exp(aside)) if log else spots[tick] + aside
    return places


@styled
def agreement(views: Sequence[View], chosen: Collection[View]) -> Figure:
    """What labels say (MIG) against what the decoder's geometry says without them (DtO over chance)."""
    figure, axes = new()
    for view in views:
        if view.mig is not None and view.active > 1:
            point(axes, (view.relative_dto, view.mig.value), view, view in chosen, len(views) > MANY)
    axes.set(xlabel="DtO / chance (no labels)", ylabel="MIG (labels)")
    axes.margins(0.1)
    axes.set_ylim(bottom=0)
    return figure


def point(axes: Axes, at: tuple[float, float], view: View, best: bool, small: bool = False) -> None:
    """One member: its number, and orange for the chosen; on a page of several runs the run's number and colour."""
    colour = run_colour(view.run) if view.run else CHOSEN if best else OTHER
    edge = INK if best and view.run else "none"
    size, letters = (75, 5.5) if small else (130, 7)
    dot = axes.scatter(*at, s=size, color=colour, alpha=1 if best else 0.75, linewidths=1.6, edgecolors=edge)
    dot.set_zorder(4 if best else 3)
    dot.set_urls([f"#{view.anchor}"])
    text = str(view.run or view.member)
    axes.text(*at, text, ha="center", va="center_baseline", fontsize=letters, color="white", zorder=5)
