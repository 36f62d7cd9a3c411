"""The numbers at the top of a report, each with its interval or what chance gives, and how to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unseam.geometry import metrics
from unseam.geometry.jacobian import singular
from unseam.geometry.orthogonality import distances, select
from unseam.runs.diagnose import see
from unseam.show.view import POINTS, View, dci, scored
from unseam.train import Run
from unseam.types import Array


@dataclass(frozen=True)
class Tile:
    """One number: what it is called, its value, an interval or a comparison, and how to read it."""

    name: str
    value: str
    beside: str
    read: str


def tiles(run: Run, view: View) -> list[Tile]:
    """The chosen member's numbers."""
    d = view.diagnosis
    out = [] if view.mig is None else [mig_tile(view), *dci_tile(view)]
    if d.dto is not None and d.dto_haar:
        low, high = interval(point_distances(run, view))
        beside = f"95 % [{low:.3f}, {high:.3f}], chance {d.dto_haar:.3f}"
        out.append(Tile("DtO", f"{d.dto:.3f}", beside, "distance of the decoder's axes from orthogonal; 0 is best"))
    low, high = interval(np.asarray(d.arrays["costs"]) / d.beta)
    beside = f"95 % [{low:.3f}, {high:.3f}] nats of KL"
    out.append(Tile("entanglement cost", f"{view.cost:.3f}", beside, "what mixed latents cost; 0 is best"))
    out.append(Tile("active latents", f"{d.active}", f"of {len(d.latents)}", "latents that carry information"))
    if d.sigma_law_r is not None:
        beside = f"median error {d.sigma_law_error:.0%}"
        out.append(
            Tile("Σ law r", f"{d.sigma_law_r:.2f}", beside, "posterior noise as the theory predicts it; 1 is best")
        )
    loss = f"reconstruction {view.row['reconstruction']:.2f}, KL {view.row['kl']:.2f}"
    out.append(Tile("loss", f"{view.row['loss']:.2f}", f"nats: {loss}", "on data never trained on"))
    return [*out, *scores_on_file(run, view)]


def mig_tile(view: View) -> Tile:
    """MIG with its interval and chance level: half-samples of the rows (metrics/uncertainty.py)."""
    found: Any = scored(view.seen, ci=True)["mig"]
    low, high = found.ci
    beside = f"95 % [{low:.3f}, {high:.3f}], chance {found.chance:.3f}"
    return Tile("MIG", f"{found.value:.3f}", beside, "each factor in one latent; 1 is best")


def dci_tile(view: View) -> list[Tile]:
    """Disentanglement beside the other two of DCI."""
    found = dci(view)
    if not found:
        return []
    others = ", ".join(f"{name} {found[name].value:.2f}" for name in ("completeness", "informativeness"))
    value = f"{found['disentanglement'].value:.3f}"
    return [Tile("DCI", value, f"disentanglement; {others}", "each latent for one factor; 1 is best")]


def point_distances(run: Run, view: View) -> Array:  # (N,)
    """DtO point by point, at the rows of the diagnosis."""
    model = run.model(view.member)
    with torch.no_grad():
        z = see(run, model, POINTS, 0).posterior.mean
        gram = metrics(model.decode, z, model.likelihood, dtype=torch.float64).gram
    active = np.array([latent.active for latent in view.diagnosis.latents])
    return distances(singular(select(gram, active))[1].numpy())


def interval(values: Array) -> tuple[float, float]:
    """95 % of a mean, from the spread over points.

    >>> low, high = interval(np.array([1.0, 3.0]))
    >>> round(low, 2), round(high, 2)
    (0.04, 3.96)
    """
    middle, error = float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return middle - 1.96 * error, middle + 1.96 * error


def scores_on_file(run: Run, view: View) -> list[Tile]:
    """What `unseam evaluate` has written into the run's rows, but MIG and DCI, which stand above."""
    rows = run.rows.read("scores")
    rows = rows[(rows["member"] == view.member) & ~rows["name"].str.fullmatch("mig|dci-.*")]
    return [Tile(r["name"], f"{r['value']:.3f}", "", "on file, by `unseam evaluate`") for r in rows.to_dict("records")]
