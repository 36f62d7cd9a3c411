"""What the report shows of a whole cohort: every member as a point, a row and a curve; labels against geometry."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from unseam.runs.choose import agreement
from unseam.runs.diagnose import common, stored_scores
from unseam.show.report import figures, scatter
from unseam.show.report.member import thinned
from unseam.show.report.view import View, ranked, records
from unseam.train import Run

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
        name: scatter.members(views, chosen, x, values, label, log)
        for name, (label, values) in panels.items()
        if values
    }
    both = any(v.mig is not None and v.active > 1 for v in views)
    return {**drawn, "agreement": scatter.agreement(views, chosen)} if both else drawn


class Judged(NamedTuple):
    """Members ordered without labels, and how far metrics agree with that order."""

    order: list[int]  # positions of the members, the best first
    scores: dict[str, list[float]]  # metric -> one a member, for the metrics that all of them have
    agreement: dict[str, dict[str, float | None]]  # criterion -> metric -> rank correlation


def judge(views: Sequence[View], scores: Sequence[Mapping[str, float]]) -> Judged:
    """Order by geometry and ask the metrics; fewer than three members say nothing of agreement."""
    ranking = ranked(views)
    shared = common(scores) if len(views) > 2 else {}
    return Judged(ranking.order, shared, agreement(ranking, shared))


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
            figure = figures.over_training(finite, f"{name} (nats)", strong=str(chosen))
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
    """One row a member: what the demo prints and the report tabulates. Members that did not finish have a note."""
    seen = {view.member: view for view in views}
    rows = []
    for row in records(run):
        m = int(row["member"])
        view, basic = seen.get(m), {"member": m, "seed": int(row["seed"]), **run.members[m].hyper}
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
