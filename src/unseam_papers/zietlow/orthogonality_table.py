"""Z5: Table 3.3 of Zietlow 2022. Orthogonal decoders and disentangled codes go together, and come from the diagonal."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from unseam.geometry import haar
from unseam.train import Run
from unseam_papers.frame.draw import BLUE, GREEN, GREY, INK, ORANGE, RED, dots, figure
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import Row, as_kind, joined
from unseam_papers.frame.verdicts import number, ordering, unless, unrun
from unseam_papers.zietlow import setups
from unseam_papers.zietlow.setups import (
    MARGIN,
    SETUPS,
    SIZES,
    Size,
    available,
    average,
    complete,
    known,
    left_out,
    mean_of,
    members,
    over_training,
    random_decoders,
    scores,
    search,
    train,
)

ID, TITLE = "Z5", "Table 3.3: orthogonality and disentanglement of five kinds of model"
CLAIM = (
    "beta-VAEs have a smaller distance to orthogonality and a higher disentanglement score than autoencoders and full "
    "posteriors."
)
SOURCE = "Zietlow 2022, Table 3.3"
PAPER = (
    "the synthetic sets as published; smaller elsewhere: sprites for dSprites, 5 of 400 and 500 epochs of MNIST and "
    "fMNIST"
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
READINGS = {  # of the loss: another beta, centred data, both
    "Synth. Lin.": {"mean over outputs": (3e-4, False), "centred": (1e-4, True), "both": (3e-4, True)},
    "Synth. Non-Lin.": {"mean over outputs": (6e-3, False), "centred": (1e-3, True), "both": (6e-3, True)},
}
WORDS = {
    "mean over outputs": "the error is a mean over outputs",
    "centred": "the data is centred",
    "both": "a mean over outputs of centred data",
}


@dataclass(frozen=True)
class Settings:
    """How much of each set-up is trained."""

    sizes: dict[str, Size]
    centred: bool = True  # whether the readings with centred data are trained too


def compute(settings: Settings, work: Work) -> Numbers:
    """DS and DtO of every model of every data set at the end, and DtO at ten moments of training."""
    sets: Numbers = {}
    for name, size in settings.sizes.items():
        if why := available(name):
            sets[name] = {"missing": why}
            continue
        found = cohorts(work, name, size)
        models = work.each(found, partial(measured, found), prefix=f"{name}-")
        random = partial(random_decoders, found["AE"][0], max(10, size.restarts))
        models["random"] = {"all": work.once(f"{name}-random", random)}
        asked = [which for which, (_, centred) in READINGS.get(name, {}).items() if settings.centred or not centred]
        readings = work.each(asked, partial(reading, work, name, size), prefix=f"{name}-")
        chance = haar(SETUPS[name].latents)[0]
        sets[name] = {"epochs": size.epochs, "models": models, "readings": readings, "chance": chance}
    return {"sets": sets}


def measured(found: dict[str, tuple[Run, list[int]]], model: str) -> Numbers:
    return {**scores(*found[model]), **over_training(*found[model])}


def reading(work: Work, name: str, size: Size, which: str) -> Numbers:
    """DS and DtO of the beta-VAE under another reading of the loss."""
    beta, centred = READINGS[name][which]
    betas = sorted({beta for beta, with_mean in READINGS[name].values() if with_mean})
    run = train(work, name, "beta-vae", size, betas, centred=True) if centred else search(work, name, size)
    return scores(run, members(run, beta))


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


def judge(numbers: Numbers) -> list[Row]:
    missing = {"missing": "not part of this scale"}
    table = [
        cell(name, score, model, value, numbers["sets"].get(name, missing))
        for (name, score), columns in PUBLISHED.items()
        for model, value in columns.items()
    ]
    here = {name: found for name, found in numbers["sets"].items() if "missing" not in found}
    orders = [row for name, found in here.items() for row in order(name, found)]
    return [*table, *orders, *(row for name, found in here.items() for row in read(name, found))]


def samples_of(result: Numbers, score: str, latents: int) -> tuple[list[float], str]:
    """What a cell of the table averages: DS, or DtO over all latents of the restarts where all are active."""
    if score == "DS":
        return result["DS"], ""
    return complete(result, latents) if "active" in result else (result["all"], "")


def cell(name: str, score: str, model: str, value: tuple[float, float], found: Numbers) -> Row:
    key, what = f"{name} {score} {model}", f"{name}, {score} of {model}"
    if "missing" in found:
        return unrun(key, what, f"{value[0]:.2f} +- {value[1]:.2f}", found["missing"])
    setup = SETUPS[name]
    samples, missing = samples_of(found["models"][model], score, setup.latents)
    why = "other images and networks than dSprites" if setup.stands_in else setup.short(found["epochs"])
    unknown = "how its weights were drawn is not printed; ours: PyTorch's" if model == "random" else ""
    return unless(unknown or why, number(key, what, (*value, None), samples, MARGIN, note=missing))


def order(name: str, found: Numbers) -> list[Row]:
    """The claim: the diagonal posterior is more orthogonal, and its code more disentangled, than AE's and Sigma's."""
    best = next(model for model in DIAGONAL if model in found["models"])
    short = SETUPS[name].short(found["epochs"])
    return [
        unless(short, lead(name, score, best, other, found["models"]))
        for other in FREE
        for score in ("DtO", "DS")
        if (name, score) in PUBLISHED
    ]


def lead(name: str, score: str, best: str, other: str, models: Numbers) -> Row:
    """`best` below `other` in DtO relative to random axes, or above it in DS."""
    printed = " against ".join(f"{PUBLISHED[name, score][model][0]:.2f}" for model in (best, other))
    column, side = ("relative", "below") if score == "DtO" else ("DS", "above")
    pair = (other, best) if score == "DtO" else (best, other)
    what = f"{name}: {score}{' over random axes' if score == 'DtO' else ''} of {best} {side} {other}'s"
    missing = [f"{model}: {words}" for model in pair if (words := left_out(models[model][column]))]
    note = joined("sprites stand in for dSprites" if SETUPS[name].stands_in else "", *missing)
    high, low = (known(models[model][column]) for model in pair)
    names = (f"{pair[0]}:", f"{pair[1]}:")
    return ordering(f"{name}: {score}, {best}, {other}", what, printed, high, low, names=names, note=note)


def read(name: str, found: Numbers) -> list[Row]:
    """The published numbers of the beta-VAE against ours under other readings of the loss."""
    rows, setup = [], SETUPS[name]
    for which, result in found["readings"].items():
        for score in ("DS", "DtO"):
            samples, missing = samples_of(result, score, setup.latents)
            what = f"{name}, {score} of beta-VAE if {WORDS[which]} (beta = {READINGS[name][which][0]:g})"
            value = (*PUBLISHED[name, score]["beta-VAE"], None)
            row = number(f"{name} {score} if {which}", what, value, samples, MARGIN, note=missing)
            rows.append(as_kind(unless(setup.short(found["epochs"]), row), "beyond the paper"))
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
                means = [average(moment) for moment in result["trend"]]
                column[2].plot(result["steps"], means, "o-", ms=2.5, color=COLOURS[model])
        column[0].set_title(SETUPS[name].label(name))
        column[2].xaxis.set_major_formatter(EngFormatter(sep=""))
        column[1].set_ylim(bottom=0)
        column[2].set(xlabel="batches", ylim=(0, None))
    for ax, label in zip(
        axes[:, 0],
        ("DS", "DtO, all latents\n(dotted: random axes)", "DtO, active latents,\nover training"),
        strict=True,
    ):
        ax.set_ylabel(label)
    return fig


def _points(ax: Any, name: str, score: str, models: Numbers) -> None:
    if (name, score) not in TABLE:  # a digit's label is not a factor
        ax.axis("off")
        return
    ax.set(xlim=(-0.5, len(MODELS) - 0.5), xticks=range(len(MODELS)))
    ax.set_xticklabels(["b-VAE", "VAE", "AE", "b-VAE\n_Sigma", "random"], fontsize=7)
    for place, model in enumerate(MODELS):
        dots(ax, place, models.get(model, {}).get("all" if score == "DtO" else score, ()), COLOURS[model])
        if model in PUBLISHED.get((name, score), {}):
            mean, deviation = PUBLISHED[name, score][model]
            ax.errorbar(place + 0.34, mean, deviation, fmt="_", color=INK, lw=1.2, ms=6)


def conclude(numbers: Numbers, rows: Mapping[str, Row]) -> str:
    sets = {name: found for name, found in numbers["sets"].items() if "missing" not in found}
    orders = [row for row in rows.values() if row.kind == "published ordering" and row.verdict != "not comparable"]
    cells = [row for row in rows.values() if row.kind == "published number" and row.verdict != "not comparable"]
    held, same = (sum(row.verdict == "agrees" for row in some) for some in (orders, cells))
    return (
        f"{held} of {len(orders)} orderings are shown; {same} of {len(cells)} published values that can be compared "
        f"agree within {MARGIN:g}. {explained(numbers, rows)}The black marks are the published means and spreads. An "
        "orthogonality that comes from dead latents alone does not count: orderings of DtO compare active latents with "
        f"random axes in as many. {drift(sets)}"
    )


def explained(numbers: Numbers, rows: Mapping[str, Row]) -> str:
    """What each reading of the loss explains of the beta-VAE's row, and what no reading can."""
    parts = []
    for name in READINGS:
        done = numbers["sets"].get(name, {}).get("readings")
        if not done:
            continue
        as_is = {score: rows[f"{name} {score} beta-VAE"].verdict for score in ("DS", "DtO")}
        verdicts = {which: [rows[f"{name} {score} if {which}"].verdict for score in as_is] for which in done}
        said = {"agrees": "agrees", "holds": "agrees", "differs": "differs", "fails": "differs"}
        told = [f"the sum over outputs: DS {said.get(as_is['DS'], 'open')}, DtO {said.get(as_is['DtO'], 'open')}"]
        told += [f"{WORDS[w]}: DS {said.get(a, 'open')}, DtO {said.get(b, 'open')}" for w, (a, b) in verdicts.items()]
        parts.append(f"Readings of the loss on {name}: {'; '.join(told)}. ")
    return "".join(parts) + (
        "No reading of beta touches the autoencoder, which has none. Against a mean everywhere: on MNIST beta = 1 "
        "would be 784 in our units and should leave no active latent (not tried). "
        if parts
        else ""
    )


def drift(sets: Numbers) -> str:
    ends = []
    for name, found in sets.items():
        result = next(found["models"][model] for model in DIAGONAL if model in found["models"])
        ends.append(f"{name} {mean_of(result['trend'][0])} to {mean_of(result['trend'][-1])}")
    return f"DtO of the diagonal model's active latents from the first tenth of training to the end: {'; '.join(ends)}."


CHOICES = (
    *setups.CHOICES,
    "DS on 5,000 held-out samples; discrete factors use DS with the ceiling 1.",
    f"A published value agrees within {MARGIN:g}, shown by Welch's interval. DtO is compared over all latents, as "
    "printed, of the restarts in which all are active.",
    "Random decoder: PyTorch's initial weights, at draws from the prior; the thesis' are not printed, so these rows "
    "cannot be compared.",
    "Two readings of the loss, added after a look at results: the error averaged over outputs, and centred data "
    "(not at the large scale).",
)
SCALES = {
    "tiny": Settings(SIZES["tiny"] | {"MNIST": Size(1, 0.01)}),
    "quick": Settings(SIZES["quick"]),
    "large": Settings(SIZES["large"], centred=False),
    "paper": Settings(SIZES["paper"]),
}
