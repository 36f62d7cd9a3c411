"""What the report shows of a whole cohort: every member as a point, a row and a curve; labels against geometry."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unseam.run import Run
from unseam.runs.diagnose import common, stored_scores
from unseam.runs.rank_members import criterion_agreement
from unseam.show.report import figures
from unseam.show.report.collect import View, rank_views, records
from unseam.show.report.member import thinned
from unseam.show.style import CHOSEN, INK, OTHER, new, plain, styled

CRITERIA = {
    "dto": "DtO over chance",
    "entanglement-cost": "entanglement cost",
    "rank": "the order of the choice",
    "udr": "agreement of seeds (UDR)",
    "centrality": "ModelCentrality",
}
LEFT_OUT = ("active", "throughput")  # logged, but no term of a loss


def sweep_axis(views: Sequence[View]) -> tuple[str, bool]:
    """What the members differ in: the first hyperparameter that all have and that varies (on a logarithmic axis where
    it is positive), else the run, else the seed."""
    for name in views[0].hyper:
        values = {view.hyper[name] for view in views if name in view.hyper}
        if len(values) > 1 and all(name in view.hyper for view in views):
            return name, min(values) > 0
    return "run" if len({view.run for view in views}) > 1 else "seed", False


def sweep_figures(views: Sequence[View], chosen: Collection[View]) -> dict[str, Figure]:
    """One panel a number: MIG (where there are factors), DtO over chance, cost, active latents, labels vs geometry."""
    x, log = sweep_axis(views)
    panels: dict[str, tuple[str, dict[View, float]]] = {
        "sweep-mig": ("MIG", {v: v.mig.value for v in views if v.mig is not None}),
        "sweep-dto": ("DtO / chance", {v: v.relative_dto for v in views if v.active > 1}),
        "sweep-cost": ("cost (nats of loss per β)", {v: v.cost for v in views}),
        "sweep-active": ("active latents", {v: v.active for v in views}),
    }
    drawn = {
        name: draw_members(views, chosen, x, values, label, log) for name, (label, values) in panels.items() if values
    }
    both = any(v.mig is not None and v.active > 1 for v in views)
    return {**drawn, "agreement": agreement_figure(views, chosen)} if both else drawn


class Judged(NamedTuple):
    """Members ordered without labels, and how far metrics agree with that order."""

    order: list[int]  # positions of the members, the best first
    scores: dict[str, list[float]]  # metric -> one per member, for the metrics that all of them have
    agreement: dict[str, dict[str, float | None]]  # criterion -> metric -> rank correlation


def judge(views: Sequence[View], scores: Sequence[Mapping[str, float]]) -> Judged:
    """Order by geometry and ask the metrics; fewer than three members say nothing of agreement."""
    ranking = rank_views(views)
    shared = common(scores) if len(views) > 2 else {}
    return Judged(ranking.order, shared, criterion_agreement(ranking, shared))


def scores_of(run: Run, views: Sequence[View]) -> list[dict[str, float]]:
    """Each member's MIG, and what `evaluate` has written of it."""
    stored = stored_scores(run)
    own = [{} if view.mig is None else {"mig": view.mig.value} for view in views]
    return [{**mig, **stored.get(view.member, {}), **mig} for view, mig in zip(views, own, strict=True)]


def loss_figures(run: Run, chosen: int) -> dict[str, Figure]:
    """Each logged term over training, every member a line."""
    rows = run.log().sort_values(["member", "name", "step"])
    drawn = {}
    for name in sorted(set(rows["name"]) - set(LEFT_OUT), key=in_order):
        some = rows[rows["name"] == name]
        curves = {
            str(m): thinned(part["step"].to_numpy(float), part["value"].to_numpy(float), 100)
            for m, part in some.groupby("member")
        }
        finite = {m: curve for m, curve in curves.items() if np.isfinite(curve[1]).all()}
        if finite:
            figure = figures.draw_over_training(finite, f"{name} (nats)", strong=str(chosen))
            drawn[f"training-{name.replace('/', '-')}"] = figure
    return drawn


def in_order(name: str) -> tuple[bool, int, str]:
    """What is measured on held-out rows first, the loss before its terms.

    >>> sorted(["kl", "held-out/kl", "held-out/loss", "loss", "tc"], key=in_order)
    ['held-out/loss', 'held-out/kl', 'loss', 'kl', 'tc']
    """
    place = {"loss": 0, "reconstruction": 1, "kl": 2}
    return not name.startswith("held-out/"), place.get(name.removeprefix("held-out/"), 3), name


def table_rows(run: Run, views: Sequence[View]) -> list[dict[str, Any]]:
    """One row per member: what the demo prints and the report tabulates. Members that did not finish have a note."""
    view_of = {view.member: view for view in views}
    rows = []
    for row in records(run):
        m = int(row["member"])
        view, basic = view_of.get(m), {"member": m, "seed": int(row["seed"]), **run.members[m].hyper}
        numbers = {} if view is None else member_numbers(view)
        rows.append({**basic, "status": row["status"], "note": row["note"], **numbers})
    return rows


def member_numbers(view: View) -> dict[str, Any]:
    d, axes = view.diagnosis, view.active > 1  # one latent alone has no axes to mix
    return {
        "active": d.active,
        "dto": d.dto if axes else None,
        "dto_haar": d.dto_haar if axes else None,
        "entanglement_cost": d.entanglement_cost,
        "cost_over_beta": view.cost,
        "mig": None if view.mig is None else view.mig.value,
        "reconstruction": view.row["reconstruction"],
        "kl": view.row["kl"],
        **view.seeds._asdict(),
    }


# Members as points that link to them: by a hyperparameter, by run, by what geometry and labels say.


RUNS = ("#0072b2", "#d55e00", "#00875f", "#8c5fb5", "#a06e00", "#bf4f86", "#5f6b7a", "#7a4b2a")  # white on each is read

_MANY = 24  # members from which on points are small
_FEW = 8  # values of a hyperparameter up to which each has its own position, evenly spaced, with space for its seeds


def run_colour(number: int) -> str:
    """The colour of a run on a page with several, from 1; after eight they come again (runs are numbered too)."""
    return RUNS[(number - 1) % len(RUNS)]


@styled
def draw_members(
    views: Sequence[View], chosen: Collection[View], x: str, y: Mapping[View, float], label: str, log: bool
) -> Figure:
    """A hyperparameter (or the seed, or the run) against a number of each member."""
    figure, axes = new()
    ticks = sorted({value(view, x) for view in views})
    even = x == "run" or (x != "seed" and len(ticks) <= _FEW)
    log = log and not even
    places = across(views, x, log, even)
    for view in views:
        if view in y:
            _point(axes, (places[view], y[view]), view, view in chosen, len(views) > _MANY)
    if log:
        axes.set_xscale("log")
        axes.margins(x=0.12)
    if even:  # members of a setting stand side by side: a band shows that they share its value
        for place in range(0, len(ticks), 2):
            axes.axvspan(place - 0.5, place + 0.5, color=OTHER, alpha=0.12, lw=0)
        axes.set_xlim(-0.5, len(ticks) - 0.5)
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
def agreement_figure(views: Sequence[View], chosen: Collection[View]) -> Figure:
    """What labels say (MIG) against what the decoder's geometry says without them (DtO over chance)."""
    figure, axes = new()
    for view in views:
        if view.mig is not None and view.active > 1:
            _point(axes, (view.relative_dto, view.mig.value), view, view in chosen, len(views) > _MANY)
    axes.set(xlabel="DtO / chance (no labels)", ylabel="MIG (labels)")
    axes.margins(0.1)
    axes.set_ylim(bottom=0)
    return figure


def _point(axes: Axes, at: tuple[float, float], view: View, best: bool, small: bool = False) -> None:
    """One member: its number, and orange for the chosen; on a page of several runs the run's number and colour."""
    colour = run_colour(view.run) if view.run else CHOSEN if best else OTHER
    edge = INK if best and view.run else "none"
    size, letters = (75, 5.5) if small else (130, 7)
    dot = axes.scatter(*at, s=size, color=colour, alpha=1 if best else 0.75, linewidths=1.6, edgecolors=edge)
    dot.set_zorder(4 if best else 3)
    dot.set_urls([f"#{view.anchor}"])
    text = str(view.run or view.member)
    axes.text(*at, text, ha="center", va="center_baseline", fontsize=letters, color="white", zorder=5)
