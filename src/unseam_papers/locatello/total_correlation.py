"""L2: total correlation of the sampled and of the mean code over strength (Locatello 2019, Figure 1).

TC of a Gaussian fitted to the codes = 1/2 (sum_j log S_jj - log det S), S their covariance.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unseam.objectives import OBJECTIVES
from unseam.run import Run
from unseam.runs.evaluate import evaluate
from unseam.study import load
from unseam.study.analyse.columns import finished_models as finished
from unseam_papers.frame.draw import BLUE, DARK, GREEN, GREY, ORANGE, RED, figure
from unseam_papers.frame.exhibit import Numbers, Work, as_in_the_study, both, official
from unseam_papers.frame.rows import VerdictRow
from unseam_papers.frame.verdicts import beyond, p_trend, trend
from unseam_papers.locatello.models import on_both_studies, packaged_study

ID, TITLE = "L2", "Total correlation of the sampled and of the mean code over strength"
CLAIM = "As regularisation grows the total correlation of the sampled code falls while that of the mean code rises."
SOURCE = "Locatello 2019, Figure 1 (slides: Key experimental results 1); sizes: the paper"
CHOICES = (
    "The data: Color-dSprites, in the paper at 64 x 64, and here at scale paper (on the official file where it is in "
    "the data folder, else on our drawing). Quick: our sprites in random colours, 12 x 12, on a grid with fewer "
    "places and orientations.",
    "The likelihood: Bernoulli in the paper (the slides do not say), and here at scale paper. Quick: a Gaussian whose "
    "variance makes one pixel stand for as many as it covers of the published image, so that the published strengths "
    "keep their meaning.",
    "Networks and steps: convolutional (slides), 300,000 steps and 50 seeds (paper), and here at scale paper. Quick: "
    "small MLPs and few steps. Its learning rate, 3e-3, was chosen after a look at 1e-3 (3 seeds, 1500 steps), where "
    "the mean code's total correlation rose significantly for DIP-VAE-I only and fell for DIP-VAE-II. Before that, a "
    "pass at 16 x 16 with a Bernoulli likelihood had the mean code's fall for beta-VAE and beta-TCVAE. So the rise is "
    "not the same for every way of training.",
    "FactorVAE's critic: 6 x 1000 in the paper. Ours: 3 x 64 at the quick scale.",
    "At scale large the models are those of the study in studies/sprites16.parquet: Bernoulli, 16 x "
    "16, its own strengths, steps and critic.",
)
PAPER = "as published (strengths, seeds, steps and networks as in the paper), on our drawing where dSprites is not here"
METHODS = {
    "beta-vae": ("β-VAE", BLUE),
    "factor-vae": ("FactorVAE", ORANGE),
    "beta-tcvae": ("β-TCVAE", GREEN),
    "dip-vae-i": ("DIP-VAE-I", RED),
    "dip-vae-ii": ("DIP-VAE-II", DARK),
    "annealed-vae": ("AnnealedVAE", GREY),
}
COLOURED = "sprites-colour"  # what stands for Color-dSprites in a study
_APART = "annealed-vae"  # the figure leaves it out: its strength is a capacity
_CODES = {"sampled": "gaussian-tc-sampled", "mean": "gaussian-tc"}
TRENDS = {"sampled": (-1, "decreases"), "mean": (1, "increases")}
_PIXELS, VARIANCE = 64 * 64, 0.25  # of the published images; of a Bernoulli pixel at 1/2


@dataclass(frozen=True)
class Settings:
    seeds: int
    steps: int
    methods: tuple[str, ...] = tuple(METHODS)
    strengths: int = 4  # of the six published ones, from the weakest to the strongest
    size: int = 12
    orientations: int = 10
    places: int = 16
    latents: int = 10
    widths: tuple[int, ...] = (64, 64)  # of an MLP with a Gaussian likelihood; none: the study's network, Bernoulli
    critic: tuple[int, int] = (64, 3)  # width and depth of FactorVAE's second network
    lr: float = 1e-3
    batch: int = 32
    samples: int = 4000
    workers: int = 0  # processes; 0 lets `fit` decide
    table: str = ""  # a finished study that comes with the package, taken instead
    second: str = ""  # another one, shown beside it


SCALES = {
    "tiny": Settings(
        seeds=1, steps=4, methods=("beta-vae", "annealed-vae"), strengths=2, size=8, widths=(8,), samples=200
    ),
    "quick": Settings(seeds=2, steps=1500, lr=3e-3, workers=2),
    "large": Settings(seeds=2, steps=1500, lr=3e-3, workers=2, table="sprites16.parquet", second="evening.parquet"),
    "paper": Settings(
        seeds=50,
        steps=300_000,
        strengths=6,
        size=64,
        orientations=40,
        places=32,
        widths=(),
        critic=(1000, 6),
        lr=1e-4,
        batch=64,
        samples=10_000,
    ),
}


def published_strengths(method: str, count: int) -> tuple[str, list[float]]:
    """The published hyperparameter of a method, and `count` of its published values.

    >>> published_strengths("beta-vae", 3)
    ('beta', [1.0, 4.0, 16.0])
    """
    ((name, grid),) = OBJECTIVES[method].grid.items()
    return name, [float(grid[i]) for i in np.linspace(0, len(grid) - 1, count).round().astype(int)]


def _train(settings: Settings, work: Work, method: str) -> Run:
    name, grid = published_strengths(method, settings.strengths)
    more: dict[str, Any] = {name: grid}
    if method == "factor-vae":
        more |= {"width": settings.critic[0], "depth": settings.critic[1]}
    data, parameters = _images(settings)
    return work.train(
        data,
        method,
        seeds=list(range(settings.seeds)),
        steps=settings.steps,
        batch=settings.batch,
        workers=settings.workers,
        lr=settings.lr,
        latents=settings.latents,
        **_network(settings),
        data_parameters=parameters,
        **more,
    )


def _images(settings: Settings) -> tuple[str, dict[str, Any]]:
    """Coloured sprites: at their full size and grid the official ones, where they are here."""
    if not settings.widths and official("sprites") != "sprites":
        return official("sprites"), {"colour": True}
    places = {"xs": settings.places, "ys": settings.places}
    return "sprites", {"size": settings.size, "colour": True, "orientations": settings.orientations, **places}


def _network(settings: Settings) -> dict[str, Any]:
    if not settings.widths:
        return {**as_in_the_study(), "holdout": 0.0}
    s2 = VARIANCE * settings.size**2 / _PIXELS  # one pixel stands for (64 / size)^2 of the published ones
    return {"network": "mlp", **both(settings.widths), "likelihood": "gaussian", "s2": s2}


def _correlations(run: Run, method: str, samples: int) -> dict[str, list[float]]:
    """Strength and both total correlations, one per member."""
    scores = evaluate(run, list(_CODES.values()), samples=samples, rows="all")
    name, _ = published_strengths(method, 2)
    members = range(len(run.members))
    found = {code: [scores[m][metric].value for m in members] for code, metric in _CODES.items()}
    return {"strength": [run.members[m].hyper[name] for m in members], **found}


def from_study(models: pd.DataFrame) -> Numbers:
    """The same numbers of a study's models, on its coloured sprites where it has them."""
    data = COLOURED if COLOURED in set(models["data"]) else models["data"].iloc[0]
    kept = models[models["data"] == data].dropna(subset=["unsup.tc-sampled", "unsup.tc-mean"])
    kept = kept.assign(sampled=kept["unsup.tc-sampled"], mean=kept["unsup.tc-mean"], active=kept["free.active"])
    columns = ["strength", "sampled", "mean", "active"]
    groups = {str(method): part for method, part in kept.groupby("method", sort=False) if method in METHODS}
    return {method: {name: part[name].tolist() for name in columns} for method, part in groups.items()}


def _compute(settings: Settings, work: Work) -> Numbers:
    if settings.table:
        return from_study(finished(load(packaged_study(settings.table)).table()))

    def one(method: str) -> dict[str, list[float]]:
        run = _train(settings, work, method)
        return _correlations(run, method, settings.samples) | {"active": [float(a) for a in run.table()["active"]]}

    return work.each(settings.methods, one, prefix="" if _images(settings)[0] == "sprites" else "official-")


def _ends(found: dict[str, list[float]], code: str) -> tuple[float, float]:
    """The mean at the weakest and at the strongest setting."""
    strength, value = np.array(found["strength"]), np.array(found[code])
    return float(value[strength == strength.min()].mean()), float(value[strength == strength.max()].mean())


def _judge(numbers: Numbers) -> list[VerdictRow]:
    rows = []
    for method, found in numbers.items():
        for code, (sign, claim) in TRENDS.items():
            first, last = _ends(found, code)
            what = f"{METHODS[method][0]}: total correlation of the {code} code over strength"
            note = f"{first:.2f} -> {last:.2f} nats from the weakest to the strongest"
            row = trend(f"{method} {code}", what, claim, found["strength"], found[code], sign, note=note)
            apart = beyond(row.key, what, row.ours, note=f"{note}; a capacity: more is weaker, and the figure has none")
            rows.append(apart if method == _APART else row)
    above = {METHODS[m][0]: np.mean(np.greater(f["mean"], f["sampled"])) for m, f in numbers.items() if m != _APART}
    ours = ", ".join(f"{label} {share:.0%}" for label, share in above.items()) + " of the runs"
    rows.append(beyond("above", "total correlation of the mean above that of the sampled code", ours))
    what = "rank correlation over runs of the mean code's total correlation and the number of active latents"
    ours = ", ".join(f"{METHODS[m][0]} {rho:.2f}" for m, rho in with_active(numbers).items())
    note = "Bonheme & Grzes 2021: passive latents are what the mean code's total correlation rises by (negative here)"
    return [*rows, beyond("active", what, ours or "none", note=note)]


def with_active(numbers: Numbers) -> dict[str, float]:
    """Rank correlation of the mean code's total correlation with the number of active latents, per method."""
    kept = {m: f for m, f in numbers.items() if m != _APART}
    return {m: p_trend(f["active"], f["mean"], 1)[0] for m, f in kept.items()}


def _draw(numbers: Numbers) -> Figure:
    """Total correlation over strength, sampled left, mean right; a dot a run, a line a method."""
    fig = figure(9.6, 3.5)
    axes = fig.subplots(1, 2, sharey=True)
    for ax, code in zip(axes, _CODES, strict=True):
        for method, found in numbers.items():
            label, colour = METHODS[method]
            values = np.unique(found["strength"])
            place = np.searchsorted(values, found["strength"]) / max(len(values) - 1, 1)
            shift = 0.012 * (list(METHODS).index(method) - 2.5)
            ax.plot(place + shift, found[code], "o", color=colour, ms=3, alpha=0.45, mew=0)
            middle = [np.mean(np.array(found[code])[np.array(found["strength"]) == v]) for v in values]
            style = ":" if method == _APART else "-"
            ax.plot(np.linspace(0, 1, len(values)) + shift, middle, style, color=colour, lw=1.8, label=label)
        ax.set_yscale("symlog", linthresh=0.1)
        ax.set(xlabel="strength (published values)", xticks=(0, 1), xticklabels=("weakest", "strongest"))
        ax.set_title(f"{code} code")
    axes[0].set_ylabel("total correlation, nats")
    axes[0].set_ylim(0, 1.5 * max(max(found[code]) for found in numbers.values() for code in _CODES))
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def _names(numbers: Numbers, code: str, sign: int) -> str:
    """The methods whose trend has this sign and is significant."""
    found = {METHODS[m][0]: p_trend(f["strength"], f[code], sign)[1] for m, f in numbers.items() if m != _APART}
    return ", ".join(label for label, p in found.items() if p < 0.05) or "none"


def _conclude(numbers: Numbers, rows: Mapping[str, VerdictRow]) -> str:
    kept = [f for m, f in numbers.items() if m != _APART]
    share = np.mean(np.concatenate([np.greater(f["mean"], f["sampled"]) for f in kept]))
    weak, strong = np.mean([_ends(f, "active") for f in kept], axis=0)
    return (
        f"Sampled code: the total correlation falls significantly for {_names(numbers, 'sampled', -1)} and rises for "
        f"{_names(numbers, 'sampled', 1)}. Mean code: it rises for {_names(numbers, 'mean', 1)} and falls for "
        f"{_names(numbers, 'mean', -1)}. In {share:.0%} of the runs the mean code has more total correlation than the "
        f"sampled one. {weak:.1f} latents are active at the weakest and {strong:.1f} at the strongest setting. Bonheme "
        "& Grzes (2021, arXiv 2109.12679) show on the paper's own models that passive latents, whose means are "
        "small but not zero, are what the mean code's total correlation rises by. Here it goes along with fewer active "
        f"latents for {_signs(numbers, -1)} and with more for {_signs(numbers, 1)}."
    )


def _signs(numbers: Numbers, sign: int) -> str:
    """The methods in which the correlation with the number of active latents has this sign."""
    return (
        ", ".join(f"{METHODS[m][0]} ({rho:.2f})" for m, rho in with_active(numbers).items() if sign * rho > 0) or "none"
    )


compute, judge, draw, conclude = on_both_studies(_compute, _judge, _draw, _conclude)
