"""The numbers at the top of a report, each with its interval or what chance gives, and how to read it."""

import json
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from unseam.axes import Array
from unseam.geometry.verdict import near_chance
from unseam.run import Run
from unseam.show.report.collect import View, detail


@dataclass(frozen=True)
class Tile:
    """One number: what it is called, its value, an interval or a comparison, and how to read it."""

    name: str
    value: str
    beside: str
    read: str
    first: str = ""  # why this one comes first


def tiles(run: Run, view: View) -> list[Tile]:
    """A member's numbers, the most important first; those that mean nothing here (axes of one latent, DCI of
    one factor) are left out."""
    every = [*label_tiles(run, view), *geometry_tiles(view), loss_tile(run, view), *scores_on_file(run, view)]
    name, why = look_first(view)
    return sorted((replace(t, first=why) if t.name == name else t for t in every), key=lambda t: not t.first)


def look_first(view: View) -> tuple[str, str]:
    """Which number decides what the others are worth, and why: in use, then trained well, then axes, then labels."""
    d = view.diagnosis
    if not d.active:
        return "active latents", "nothing is encoded, so no other number says anything of axes"
    if any(text.startswith("overfitting") for text in d.warnings):
        return "loss", "held-out rows fare worse than trained ones: the axes may be those of the training rows"
    if d.active > 1 and near_chance(d):
        return "DtO", "these axes are about as orthogonal as random ones"
    if view.mig is not None and d.active == 1:
        return "MIG", "one latent is in use, so there are no axes to compare; labels say what it holds"
    if view.mig is not None:
        return "MIG", "the axes are better than random; labels say whether they are the factors"
    return ("DtO", "the axes are better than random ones") if d.active > 1 else ("active latents", "one is in use")


def label_tiles(run: Run, view: View) -> list[Tile]:
    """MIG with its interval and chance level, and DCI."""
    found = detail(run, view)
    if found is None or view.mig is None:
        return []
    beside = f"chance {found.chance:.3f}"
    if found.ci is not None:
        beside = f"95 % [{found.ci[0]:.3f}, {found.ci[1]:.3f}], {beside}"
    if view.active_mig is not None and abs(view.active_mig - view.mig.value) > 0.01:
        beside += f"; {view.active_mig:.3f} with active latents only"
    out = [Tile("MIG", f"{view.mig.value:.3f}", beside, "each factor in one latent; 1 is best")]
    if found.dci and len(view.factors) > 1:  # with one factor every latent is for one factor
        others = ", ".join(f"{name} {found.dci[name]:.2f}" for name in ("completeness", "informativeness"))
        value = f"{found.dci['disentanglement']:.3f}"
        out.append(Tile("DCI", value, others, "disentanglement: each latent for one factor; 1 is best"))
    return out


def geometry_tiles(view: View) -> list[Tile]:
    """What needs no labels."""
    d, out = view.diagnosis, []
    if d.active > 1 and d.dto is not None and d.dto_haar:
        beside = f"{_within(d.arrays.get('distances'))}chance {d.dto_haar:.3f}"
        out.append(Tile("DtO", f"{d.dto:.3f}", beside, "distance of the decoder's axes from orthogonal; 0 is best"))
    costs = np.asarray(d.arrays["costs"]) / d.beta
    beside = f"{_within(costs)}nats of loss per β; in the loss {d.entanglement_cost:.3f}"
    out.append(Tile("entanglement cost", f"{view.cost:.3f}", beside, "what mixed latents cost; 0 is best"))
    out.append(Tile("active latents", f"{d.active}", f"of {len(d.latents)}", "latents that carry information"))
    if d.active and d.sigma_law_r is not None:
        read = "posterior noise as the theory predicts it; 1 is best"
        out.append(Tile("Σ law r", f"{d.sigma_law_r:.2f}", f"median error {d.sigma_law_error:.0%}", read))
    return out


def loss_tile(run: Run, view: View) -> Tile:
    reconstruction = view.row["reconstruction"]
    terms = f"nats: reconstruction {reconstruction:.2f}, " if isfinite(reconstruction) else "nats: no reconstruction, "
    terms += f"KL {view.row['kl']:.2f}"
    held = len(run.split("held-out"))
    where = "on data never trained on" if held else "on the training data: none was held out"
    where = "on the rows that were given" if run.config.adapted else where
    return Tile("loss", f"{view.row['loss']:.2f}", terms, where)


def _within(values: Array | None) -> str:
    """The interval of a mean over points as text; empty where the points are not known."""
    return "" if values is None or not len(values) else "95 % [{:.3f}, {:.3f}], ".format(*_interval(values))


def _interval(values: Array) -> tuple[float, float]:
    """95 % of a mean, from the spread over points.

    >>> low, high = _interval(np.array([1.0, 3.0]))
    >>> round(low, 2), round(high, 2)
    (0.04, 3.96)
    """
    middle, error = float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return middle - 1.96 * error, middle + 1.96 * error


def scores_on_file(run: Run, view: View) -> list[Tile]:
    """What `unseam evaluate` has written into the run's rows, except MIG and DCI, which are shown above."""
    rows = run.rows.read("scores")
    rows = rows[(rows["member"] == view.member) & ~rows["name"].str.fullmatch("mig|dci-.*")]
    read = "written by unseam evaluate"
    return [Tile(r["name"], f"{r['value']:.3f}", rows_text(r["detail"]), read) for r in rows.to_dict("records")]


def rows_text(detail: str) -> str:
    """On which rows a score on file was computed, where it says so.

    >>> rows_text('{"rows": {"which": "held-out", "count": 700}}'), rows_text("{}")
    ('on 700 held-out rows', '')
    """
    sample = json.loads(detail or "{}").get("rows")
    return f"on {sample['count']} {'' if sample['which'] == 'all' else sample['which'] + ' '}rows" if sample else ""
