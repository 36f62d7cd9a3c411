"""N2: factors that are not independent while training (the setting of Traeuble 2021 and Roth 2023).

p(x, y) ~ exp(-(x - y)^2 / 2 sigma^2), factors scaled to [0, 1]; scored on all combinations, where x and y are
independent, and on those that were left out.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from unseam.data import load_data
from unseam.data.base import Dataset
from unseam.metrics import score
from unseam.runs.represent import represent, some, without_constants
from unseam.train import Run
from unseam_papers.frame.draw import BLUE, GREEN, ORANGE, Figure, figure
from unseam_papers.frame.exhibit import Numbers, Work, both, given
from unseam_papers.frame.rows import Row, Rows, plus_minus
from unseam_papers.frame.verdicts import LEVEL, beyond, p_above

ID, TITLE = "N2", "Correlated factors: what is left of disentanglement when two factors go together"
CLAIM = "A VAE trained on data in which two factors go together separates them less."
SOURCE = "beyond the papers; the setting is that of Traeuble 2021 and Roth 2023"
CHOICES = (
    "The data: our sprites at 16 x 16, upright, 3 shapes, 6 sizes, 16 x 16 places; x and y correlated with sigma 0.4 "
    "or 0.1, rows thinned, not repeated.",
    "The models: small MLPs; each method at one strength of its own published grid, the same for every sigma. "
    "FactorVAE's critic has 3 layers of 100 (published: 6 of 1,000).",
    "Fewer rows are left the stronger the correlation (sigma 0.1: a quarter), so data and correlation change together; "
    "the control trains on as many rows of independent factors.",
    "MIG of x and y is the mean over these two factors alone: the others (shape, scale) stay independent. Scores "
    "are of active latents, on 3,000 rows of the full grid or of what was left out; no row was held out.",
)
PAPER = "our own: longer and with more seeds"
METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "beta-vae": ("β-VAE", BLUE, {"beta": 4.0}),
    "factor-vae": ("FactorVAE", ORANGE, {"gamma": 10.0, "width": 100, "depth": 3}),
    "hfs": ("HFS", GREEN, {}),
}
SIGMAS = ("none", "0.4", "0.1", "fewer")  # fewer: independent, as many rows as sigma 0.1 leaves
METRICS = ("mig", "mcc", "dci-disentanglement")
PAIR = "MIG of x and y"  # the two that are correlated
SCORED = ("mig", PAIR, "mcc", "dci-disentanglement")
RULE = "one-sided Mann-Whitney over seeds, fixed before the run"


@dataclass(frozen=True)
class Settings:
    seeds: int
    steps: int
    methods: tuple[str, ...] = tuple(METHODS)
    size: int = 16
    places: int = 16
    scales: int = 6
    latents: int = 6
    widths: tuple[int, ...] = (64, 64)
    lr: float = 1e-3
    s2: float = 0.02
    samples: int = 3000


SCALES = {
    "tiny": Settings(seeds=2, steps=4, methods=("beta-vae",), size=8, places=6, scales=2, widths=(8,), samples=200),
    "quick": Settings(seeds=5, steps=2000),
    "paper": Settings(seeds=20, steps=50_000),
}


def parameters(settings: Settings, sigma: str) -> dict[str, Any]:
    places = {"xs": settings.places, "ys": settings.places}
    base = {"size": settings.size, "orientations": 1, "scales": settings.scales, **places}
    if sigma == "fewer":
        thin = load_data("sprites", **parameters(settings, "0.1"))
        return {**base, "share": round(len(thin) / len(load_data("sprites", **base)), 4)}
    return base if sigma == "none" else {**base, "correlate": f"x,y={sigma}"}


def train(settings: Settings, work: Work, method: str, sigma: str) -> Run:
    same = {"network": "mlp", **both(settings.widths), "likelihood": "gaussian", "holdout": 0.0}
    same |= {"seeds": list(range(settings.seeds)), **given(settings, "steps", "lr", "latents", "s2")}
    return work.train("sprites", method, data_parameters=parameters(settings, sigma), **same, **METHODS[method][2])


def scores(run: Run, full: Dataset, rows: torch.Tensor, metrics: tuple[str, ...] = METRICS) -> dict[str, list[float]]:
    """Every member against the factors of these rows of the full grid; passive latents do not vote."""
    out: dict[str, list[float]] = {metric: [] for metric in metrics}
    for member in range(len(run.members)):
        seen = without_constants(represent(run.model(member), full, rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # mcc leaves out the shape, which has no order
            found = score(seen.codes, seen.factors, seen.space, list(metrics), active=seen.active)
        for metric in metrics:
            out[metric].append(found[metric].value)
        if "mig" in metrics:
            assert seen.space is not None
            each = dict(zip(seen.space.names, np.asarray(found["mig"].per_factor), strict=True))
            out.setdefault(PAIR, []).append(float(each["x"] + each["y"]) / 2)
    return out


def compute(settings: Settings, work: Work) -> Numbers:
    full = load_data("sprites", **parameters(settings, "none"))
    everywhere = some(torch.arange(len(full)), settings.samples)

    def one(method: str, sigma: str) -> dict[str, Any]:
        run = train(settings, work, method, sigma)
        left = getattr(run.data, "left_out", None)
        return {
            "all": scores(run, full, everywhere),
            "left out": scores(run, full, some(left, settings.samples), ("mcc",))
            if left is not None and len(left)
            else None,
            "rows": len(run.data),
            "active": [float(a) for a in run.table()["active"]],
        }

    return {m: {s: work.once(f"{m}-{s}", partial(one, m, s)) for s in SIGMAS} for m in settings.methods}


def judge(numbers: Numbers) -> list[Row]:
    rows = []
    for method, found in numbers.items():
        label = METHODS[method][0]
        for metric in SCORED:
            at = {sigma: found[sigma]["all"][metric] for sigma in SIGMAS}
            ours = ", ".join(f"{sigma}: {plus_minus(values, '.2f')}" for sigma, values in at.items())
            p = p_above(at["none"], at["0.1"])
            rule = f"falls from independent to sigma 0.1: {RULE}, p = {p:.2g}"
            rows.append(beyond(f"{method} {metric}", f"{label}: {metric} on all combinations", ours, p < LEVEL, rule))
        fewer, thin = found["fewer"]["all"][PAIR], found["0.1"]["all"][PAIR]
        p, ours = p_above(fewer, thin), f"{np.mean(fewer):.2f} against {np.mean(thin):.2f}"
        rule = f"above: {RULE}, p = {p:.2g}"
        what = f"{label}: {PAIR} after as many rows of independent factors, against sigma 0.1"
        so = "so it is not the number of rows" if p < LEVEL else ""
        rows.append(beyond(f"{method} fewer", what, ours, p < LEVEL, rule, so))
        rows.append(beyond(f"{method} left out", f"{label}: MCC on combinations that were left out", left_out(found)))
        used = ", ".join(f"{sigma}: {np.mean(found[sigma]['active']):.1f}" for sigma in SIGMAS)
        rows.append(beyond(f"{method} active", f"{label}: latents in use, of 4 factors, mean over seeds", used))
    return rows


def left_out(found: Mapping[str, Any]) -> str:
    told = {s: found[s]["left out"] for s in SIGMAS if found[s]["left out"]}
    return ", ".join(f"{s}: {plus_minus(scores['mcc'], '.2f')}" for s, scores in told.items()) or "none were left out"


def draw(numbers: Numbers) -> Figure:
    """A dot a seed, a line a method, over the correlation."""
    fig = figure(9.6, 3.2)
    shown = SIGMAS[:3]
    for ax, metric in zip(fig.subplots(1, len(SCORED)), SCORED, strict=True):
        for place, (method, found) in enumerate(numbers.items()):
            label, colour, _ = METHODS[method]
            values = [found[sigma]["all"][metric] for sigma in shown]
            for x, each in enumerate(values):
                ax.plot([x + 0.06 * place] * len(each), each, "o", color=colour, ms=3, alpha=0.5, mew=0)
            middle = [np.mean(each) for each in values]
            ax.plot(np.arange(len(shown)) + 0.06 * place, middle, color=colour, lw=1.8, label=label)
        ax.set(title=metric, xticks=range(len(shown)), xticklabels=("independent", "σ 0.4", "σ 0.1"), ylim=(0, None))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def conclude(numbers: Numbers, rows: Rows) -> str:
    falls = [METHODS[m][0] for m in numbers if rows[f"{m} {PAIR}"].verdict == "holds"]
    stays = [METHODS[m][0] for m in numbers if rows[f"{m} {PAIR}"].verdict != "holds"]
    also = f", not significantly for {', '.join(stays)}" if stays else ""
    low = max(mean(found, "none") for found in numbers.values()) < 0.2  # a MIG that has little to lose
    weak = " x and y reach equally far: even independent, their axes are hardly told apart (A11)." if low else ""
    dead = [METHODS[m][0] for m, found in numbers.items() if np.mean(found["none"]["active"]) < 2]
    weak += (
        f" {', '.join(dead)}: fewer than two latents in use at this strength, so nothing is said of it." if dead else ""
    )
    means = [f"{METHODS[m][0]} {' / '.join(f'{mean(found, s):.2f}' for s in SIGMAS)}" for m, found in numbers.items()]
    return (
        f"{PAIR}, independent / sigma 0.4 / sigma 0.1 / as few rows, independent: {'; '.join(means)}. It falls from "
        f"independent to sigma 0.1 for {', '.join(falls) or 'none'}{also}.{weak}"
    )


def mean(found: Mapping[str, Any], sigma: str) -> float:
    return float(np.mean(found[sigma]["all"][PAIR]))
