"""Z5: Table 3.3 of Zietlow 2022. Orthogonal decoders and disentangled codes go together, and come from the diagonal."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from unseam.geometry import haar
from unseam.train import Run
from unseam_papers.frame.draw import BLUE, GREEN, GREY, INK, ORANGE, RED, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Work, holds, p_above, plus_minus
from unseam_papers.zietlow.setups import (
    CHOICES,
    SETUPS,
    SIZES,
    Size,
    available,
    members,
    random_decoders,
    scores,
    search,
    train,
    trend,
    within,
)

MODELS = ("beta-VAE", "VAE", "AE", "beta-VAE_Sigma", "random")
COLOURS = dict(zip(MODELS, (BLUE, GREEN, ORANGE, RED, GREY), strict=True))
TABLE: dict[tuple[str, str], tuple[tuple[float, float] | None, ...]] = {  # mean and deviation, in the order of MODELS
    ("dSprites", "DS"): ((0.33, 0.15), (0.21, 0.10), (0.09, 0.04), (0.12, 0.06), None),
    ("dSprites", "DtO"): ((0.76, 0.08), (1.08, 0.15), (1.62, 0.03), (1.73, 0.14), (1.86, 0.11)),
    ("Synth. Lin.", "DS"): ((0.99, 0.01), None, (0.71, 0.19), (0.71, 0.31), None),
    ("Synth. Lin.", "DtO"): ((0.00, 0.00), None, (0.33, 0.18), (0.34, 0.35), (0.79, 0.21)),
    ("Synth. Non-Lin.", "DS"): ((0.73, 0.16), None, (0.59, 0.30), (0.42, 0.24), None),
    ("Synth. Non-Lin.", "DtO"): ((0.18, 0.02), None, (0.54, 0.13), (0.55, 0.02), (0.89, 0.16)),
    ("MNIST", "DtO"): (None, (1.59, 0.08), (1.83, 0.05), (1.93, 0.08), (2.11, 0.11)),
    ("fMNIST", "DtO"): (None, (1.36, 0.05), (1.87, 0.03), (2.02, 0.08), (2.11, 0.11)),
}
PUBLISHED = {row: {m: v for m, v in zip(MODELS, values, strict=True) if v} for row, values in TABLE.items()}
DIAGONAL, FREE = ("beta-VAE", "VAE"), ("AE", "beta-VAE_Sigma")


@dataclass(frozen=True)
class Settings:
    """How much of each set-up is trained."""

    sizes: dict[str, Size]


def compute(settings: Settings, work: Work) -> Numbers:
    """DS and DtO of every model of every data set at the end, and DtO at ten moments of training."""
    sets: Numbers = {}
    for name, size in settings.sizes.items():
        if why := available(name):
            sets[name] = {"missing": why}
            continue
        found = cohorts(work, name, size)
        models = {
            model: work.once(f"{name}-{model}", partial(measured, run, chosen))
            for model, (run, chosen) in found.items()
        }
        run, restarts = found["AE"][0], max(10, size.restarts)
        if SETUPS[name].betas:
            models["beta-VAE"]["nearby"] = work.once(f"{name}-nearby", partial(nearby, found["beta-VAE"][0], name))
        models["random"] = {"DtO": work.once(f"{name}-random", partial(random_decoders, run, restarts))}
        sets[name] = {"epochs": size.epochs, "models": models, "chance": haar(SETUPS[name].latents)[0]}
    return {"sets": sets}


def cohorts(work: Work, name: str, size: Size) -> dict[str, tuple[Run, list[int]]]:
    """The models of a row of the table: a run and its members."""
    setup, runs = SETUPS[name], {}
    if setup.betas:
        run = search(work, name, size)
        runs["beta-VAE"] = (run, members(run, setup.beta))
        if setup.stands_in:  # on the synthetic data a VAE prunes everything
            runs["VAE"] = (run, members(run, 1.0))
    else:
        run = train(work, name, "beta-vae", size)  # beta = 1
        runs["VAE"] = (run, members(run, setup.beta))
    for model, objective in (("AE", "ae"), ("beta-VAE_Sigma", "beta-vae-sigma")):
        run = train(work, name, objective, size)
        runs[model] = (run, list(range(len(run.members))))
    return runs


def nearby(run: Run, name: str) -> dict[str, Numbers]:
    """The same scores one step of the search over beta below and above: how much hangs on the scale of the loss."""
    setup = SETUPS[name]
    place = setup.betas.index(setup.beta)
    near = [beta for beta in setup.betas[max(place - 1, 0) : place + 2] if beta != setup.beta]
    return {f"{beta:g}": scores(run, members(run, beta)) for beta in near}


def measured(run: Run, chosen: Sequence[int]) -> Numbers:
    return {**scores(run, chosen, ds=run.data.space is not None), **trend(run, chosen)}


def judge(numbers: Numbers) -> list[Row]:
    rows = []
    for (name, score), columns in PUBLISHED.items():
        found = numbers["sets"].get(name, {"missing": "not part of this scale"})
        for model, (mean, deviation) in columns.items():
            what, published = f"{name}, {score} of {model}", f"{mean:.2f} +- {deviation:.2f}"
            if "missing" in found:
                rows.append(Row(what, published, "not run", "not comparable", found["missing"]))
            else:
                samples, near = found["models"][model][score], found["models"][model].get("nearby", {})
                row = _row(name, what, published, (mean, deviation), found, samples)
                others = ", ".join(
                    f"{plus_minus(result[score], '.2f')} at beta = {beta}" for beta, result in near.items()
                )
                rows.append(replace(row, note="; ".join(part for part in (row.note, others) if part)))
    return rows + [
        row for name, found in numbers["sets"].items() if "missing" not in found for row in _order(name, found)
    ]


def _row(
    name: str, what: str, published: str, value: tuple[float, float], found: Numbers, samples: Sequence[float]
) -> Row:
    setup, ours = SETUPS[name], plus_minus(samples, ".2f")
    if setup.stands_in:
        return Row(what, published, ours, "not comparable", "other images and networks than dSprites")
    if found["epochs"] < setup.epochs and "random" not in what:
        return Row(what, published, ours, "not comparable", f"{found['epochs']:g} of {setup.epochs} epochs")
    return Row(what, published, ours, within(*value, samples))


def _order(name: str, found: Numbers) -> list[Row]:
    """The claim: the diagonal posterior is more orthogonal than AE and than the full posterior."""
    models = found["models"]
    best = next(model for model in DIAGONAL if model in models)
    rows = []
    for other in FREE:
        a, b = models[best]["DtO"], models[other]["DtO"]
        p = p_above(b, a)
        ours = f"{np.mean(a):.2f} against {np.mean(b):.2f} (Mann-Whitney p = {p:.2g})"
        rows.append(Row(f"{name}: DtO of {best} below {other}'s", "yes", ours, holds(p < 0.05)))
    return rows


def draw(numbers: Numbers) -> Figure:
    """Above DS and DtO of every restart, below DtO over training; one column a data set."""
    sets = {name: found for name, found in numbers["sets"].items() if "missing" not in found}
    fig = figure(2.5 * max(len(sets), 2), 6)
    axes = fig.subplots(3, len(sets), squeeze=False)
    for column, (name, found) in zip(axes.T, sets.items(), strict=True):
        models = found["models"]
        for ax, score in zip(column, ("DS", "DtO"), strict=False):
            _points(ax, name, score, models)
        column[1].axhline(found["chance"], color=INK, lw=1, ls=":")
        for model, result in models.items():
            if "trend" in result:
                column[2].plot(result["steps"], np.mean(result["trend"], 1), "o-", ms=2.5, color=COLOURS[model])
        column[0].set_title(SETUPS[name].label(name))
        column[2].xaxis.set_major_formatter(EngFormatter(sep=""))
        column[1].set_ylim(bottom=0)
        column[2].set(xlabel="batches", ylim=(0, None))
    for ax, label in zip(axes[:, 0], ("DS", "DtO (dotted: chance)", "DtO over training"), strict=True):
        ax.set_ylabel(label)
    return fig


def _points(ax: Any, name: str, score: str, models: Numbers) -> None:
    if (name, score) not in TABLE:  # a digit's label is not a factor
        ax.axis("off")
        return
    ax.set(xlim=(-0.5, len(MODELS) - 0.5), xticks=range(len(MODELS)))
    ax.set_xticklabels(["b-VAE", "VAE", "AE", "b-VAE\n_Sigma", "random"], fontsize=7)
    for place, model in enumerate(MODELS):
        samples = models.get(model, {}).get(score, ())
        shift = np.linspace(-0.2, 0.2, len(samples))
        ax.plot(place + shift, samples, "o", ms=3, color=COLOURS[model], alpha=0.7, mew=0)
        if model in PUBLISHED.get((name, score), {}):
            mean, deviation = PUBLISHED[name, score][model]
            ax.errorbar(place + 0.34, mean, deviation, fmt="_", color=INK, lw=1.2, ms=6)


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    sets = {name: found for name, found in numbers["sets"].items() if "missing" not in found}
    orders = [row for name, found in sets.items() for row in _order(name, found)]
    held = sum(row.verdict == "agrees" for row in orders)
    compared = [row for row in rows if row not in orders and row.verdict != "not comparable"]
    same = sum(row.verdict == "agrees" for row in compared)
    trained = [row for row in compared if "random" not in row.what]
    drift = "; ".join(
        f"{name} {np.mean(r['trend'][0]):.2f} to {np.mean(r['trend'][-1]):.2f}"
        for name, found in sets.items()
        for model, r in found["models"].items()
        if model == next(m for m in DIAGONAL if m in found["models"])
    )
    return (
        f"{held} of {len(orders)} orderings hold at 5 %. {same} of {len(compared)} published values that can be "
        f"compared ({len(trained)} of them of trained models) lie within their spread. DtO of "
        f"the diagonal model from the first tenth of training to the end: {drift}. "
        "The black marks are the published means and spreads. DtO of an untrained decoder depends "
        "on how its weights are drawn, which the thesis does not say; the dotted line is that of random axes (Haar)."
    )


Z5 = Exhibit(
    id="Z5",
    title="Table 3.3: orthogonality and disentanglement of five kinds of model",
    claim="beta-VAEs have a smaller distance to orthogonality and a higher disentanglement score than autoencoders and "
    "full posteriors.",
    source="Zietlow 2022, Table 3.3",
    choices=(
        *CHOICES,
        "DS on 5,000 held-out samples, DtO at 1,000; discrete factors use DS with the ceiling 1.",
        "Agreement: our mean lies within the published mean +- deviation.",
        "Random decoder: PyTorch's initial weights, at draws from the prior.",
    ),
    scales={
        "tiny": Settings(SIZES["tiny"] | {"MNIST": Size(2, 0.01)}),
        "quick": Settings(SIZES["quick"]),
        "paper": Settings(SIZES["paper"]),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
