"""Z5: Table 3.3 of Zietlow 2022. Orthogonal decoders and disentangled codes go together, and come from the diagonal."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.ticker import EngFormatter

from unseam.geometry import haar
from unseam.run import Run
from unseam_papers.frame.draw import BLUE, DARK, GREEN, GREY, ORANGE, RED, Figure, dots, panels
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows, as_kind, join_parts
from unseam_papers.frame.verdicts import number, ordering, unless, unrun
from unseam_papers.zietlow import setups
from unseam_papers.zietlow.setups import (
    MARGIN,
    SETUPS,
    SIZES,
    TrainingSize,
    of_set,
    restarts_at_beta,
    scores,
    search,
    train_restarts,
    trained_setups,
)

ID, TITLE = "Z5", "Table 3.3: orthogonality and disentanglement of five kinds of model"
CLAIM = (
    "beta-VAEs have a smaller distance to orthogonality and a higher disentanglement score than autoencoders and full "
    "posteriors."
)
SOURCE = "Zietlow 2022, Table 3.3"
PAPER = "as published, dSprites in our drawing where its file is not here; batch size and restarts are not printed"
_PRUNED = ("Synth. Lin.", "Synth. Non-Lin.")  # where a VAE (beta = 1) prunes everything
_MODELS = ("beta-VAE", "VAE", "AE", "beta-VAE_Sigma", "random")
_COLOURS = dict(zip(_MODELS, (BLUE, GREEN, ORANGE, RED, GREY), strict=True))
_TABLE: dict[tuple[str, str], tuple[tuple[float, float] | None, ...]] = {  # mean and deviation, in the order of MODELS
    ("dSprites", "DS"): ((0.33, 0.15), (0.21, 0.10), (0.09, 0.04), (0.12, 0.06), None),
    ("dSprites", "DtO"): ((0.76, 0.08), (1.08, 0.15), (1.62, 0.03), (1.73, 0.14), (1.86, 0.11)),
    ("Synth. Lin.", "DS"): ((0.99, 0.01), None, (0.71, 0.19), (0.71, 0.31), None),
    ("Synth. Lin.", "DtO"): ((0.00, 0.00), None, (0.33, 0.18), (0.34, 0.35), (0.79, 0.21)),
    ("Synth. Non-Lin.", "DS"): ((0.73, 0.16), None, (0.59, 0.30), (0.42, 0.24), None),
    ("Synth. Non-Lin.", "DtO"): ((0.18, 0.02), None, (0.54, 0.13), (0.55, 0.02), (0.89, 0.16)),
    ("MNIST", "DtO"): (None, (1.59, 0.08), (1.83, 0.05), (1.93, 0.08), (2.11, 0.11)),
    ("fMNIST", "DtO"): (None, (1.36, 0.05), (1.87, 0.03), (2.02, 0.08), (2.11, 0.11)),
}
PUBLISHED = {row: {m: v for m, v in zip(_MODELS, values, strict=True) if v} for row, values in _TABLE.items()}
DIAGONAL, _FREE = ("beta-VAE", "VAE"), ("AE", "beta-VAE_Sigma")
READINGS = {  # of the loss: another beta, centred data, both
    "Synth. Lin.": {"mean over outputs": (3e-4, False), "centred": (1e-4, True), "both": (3e-4, True)},
    "Synth. Non-Lin.": {"mean over outputs": (6e-3, False), "centred": (1e-3, True), "both": (6e-3, True)},
}
_WORDS = {
    "mean over outputs": "the error is a mean over outputs",
    "centred": "the data is centred",
    "both": "a mean over outputs of centred data",
}


@dataclass(frozen=True)
class Settings:
    """How much of each set-up is trained."""

    sizes: dict[str, TrainingSize]
    centred: bool = True  # whether the readings with centred data are trained too


def compute(settings: Settings, work: Work) -> Numbers:
    """DS and DtO of every model of every data set at the end, and DtO at ten moments of training."""

    def one(name: str, size: TrainingSize) -> Numbers:
        found, step = cohorts(work, name, size), setups.step_name(name)
        models = work.each(found, lambda m: {**scores(*found[m]), **setups.dto_over_training(*found[m])}, step)
        random = partial(setups.random_decoders, found["AE"][0], max(10, size.restarts))
        models["random"] = {"all": work.once(f"{step}random", random)}
        asked = [which for which, (_, centred) in READINGS.get(name, {}).items() if settings.centred or not centred]
        readings = work.each(asked, partial(reading, work, name, size), step)
        return {"epochs": size.epochs, "models": models, "readings": readings, "chance": _chance(name)}

    return setups.over_sets(settings.sizes, one)


def _chance(name: str) -> float:
    """DtO of random axes in as many latents."""
    return haar(SETUPS[name].latents)[0]


def reading(work: Work, name: str, size: TrainingSize, which: str) -> Numbers:
    """DS and DtO of the beta-VAE under another reading of the loss."""
    beta, centred = READINGS[name][which]
    betas = sorted({beta for beta, with_mean in READINGS[name].values() if with_mean})
    run = train_restarts(work, name, "beta-vae", size, betas, centred=True) if centred else search(work, name, size)
    return scores(run, restarts_at_beta(run, beta))


def cohorts(work: Work, name: str, size: TrainingSize) -> dict[str, tuple[Run, list[int]]]:
    """The models of a row of the table: a run and its members."""
    setup, runs = SETUPS[name], {}
    if setup.betas:
        run = search(work, name, size)
        runs["beta-VAE"] = (run, restarts_at_beta(run, setup.beta))
        if name not in _PRUNED:
            runs["VAE"] = (run, restarts_at_beta(run, 1.0))
    else:
        run = train_restarts(work, name, "beta-vae", size)  # beta = 1
        runs["VAE"] = (run, restarts_at_beta(run, setup.beta))
    for model, objective in (("AE", "ae"), ("beta-VAE_Sigma", "beta-vae-sigma")):
        run = train_restarts(work, name, objective, size)
        runs[model] = (run, list(range(len(run.members))))
    return runs


def judge(numbers: Numbers) -> list[VerdictRow]:
    table = [
        _cell(name, score, model, value, *of_set(numbers, name, model))
        for (name, score), columns in PUBLISHED.items()
        for model, value in columns.items()
    ]
    return table + [
        row for part in (_order, _read) for name, found in trained_setups(numbers).items() for row in part(name, found)
    ]


def samples_of(result: Numbers, score: str, latents: int) -> tuple[list[float], str]:
    """What a cell of the table averages: DS, or DtO over all latents of the restarts where all are active."""
    if score == "DS":
        return result["DS"], ""
    return setups.complete(result, latents) if "active" in result else (result["all"], "")


def _cell(name: str, score: str, model: str, value: tuple[float, float], trained: str, found: Numbers) -> VerdictRow:
    """A cell of the table; `trained` is the set-up, or what stands in for it."""
    key = f"{name} {score} {model}"
    if "missing" in found:
        printed = f"{value[0]:.2f} +- {value[1]:.2f}"
        return unrun(key, f"{name}, {score} of {model}", printed, found["missing"], reason="no file")
    what = f"{name}, {score} of {model}"
    samples, missing = samples_of(found["models"][model], score, SETUPS[trained].latents)
    why = setups.why_not(trained, found["epochs"], found.get("data", ""))
    unknown = "how its weights were drawn is not printed; ours: PyTorch's" if model == "random" else ""
    reason = "not printed" if unknown else setups.why_not_reason(trained)
    return unless(unknown or why, number(key, what, (*value, None), samples, MARGIN, note=missing), reason)


def _order(name: str, found: Numbers) -> list[VerdictRow]:
    """The claim: the diagonal posterior is more orthogonal, and its code more disentangled, than AE's and Sigma's."""
    best = next(model for model in DIAGONAL if model in found["models"])
    shown = SETUPS[name].stands_in or name
    short, images = SETUPS[name].short(found["epochs"]), setups.setup_image_source(name, found.get("data", ""))
    return [
        unless(short, _lead(shown, score, best, other, found["models"], images), "too long here")
        for other in _FREE
        for score in ("DtO", "DS")
        if (shown, score) in PUBLISHED and other in found["models"]
    ]


def _lead(name: str, score: str, best: str, other: str, models: Numbers, images: str) -> VerdictRow:
    """`best` below `other` in DtO relative to random axes, or above it in DS."""
    printed = " against ".join(f"{PUBLISHED[name, score][model][0]:.2f}" for model in (best, other))
    column, side = ("relative", "below") if score == "DtO" else ("DS", "above")
    pair = (other, best) if score == "DtO" else (best, other)
    what = f"{name}: {score}{' over random axes' if score == 'DtO' else ''} of {best} {side} {other}'s"
    missing = [f"{model}: {words}" for model in pair if (words := setups.left_out(models[model][column]))]
    high, low = (setups.without_missing(models[model][column]) for model in pair)
    names, note = (f"{pair[0]}:", f"{pair[1]}:"), join_parts(images, *missing)
    return ordering(f"{name}: {score}, {best}, {other}", what, printed, high, low, names=names, note=note)


def _read(name: str, found: Numbers) -> list[VerdictRow]:
    """The published numbers of the beta-VAE against ours under other readings of the loss."""
    rows, setup = [], SETUPS[name]
    for which, result in found["readings"].items():
        for score in ("DS", "DtO"):
            samples, missing = samples_of(result, score, setup.latents)
            what = f"{name}, {score} of beta-VAE if {_WORDS[which]} (beta = {READINGS[name][which][0]:g})"
            value = (*PUBLISHED[name, score]["beta-VAE"], None)
            row = number(f"{name} {score} if {which}", what, value, samples, MARGIN, note=missing)
            rows.append(as_kind(unless(setup.short(found["epochs"]), row), "beyond the paper"))
    return rows


def draw(numbers: Numbers) -> Figure:
    """Above DS and DtO of every restart, below DtO over training; one column a data set."""
    sets = trained_setups(numbers)
    fig, axes = panels(2.5 * max(len(sets), 2), 6, 3, len(sets), squeeze=False)
    for column, (name, found) in zip(axes.T, sets.items(), strict=True):
        models = found["models"]
        for ax, score in zip(column, ("DS", "DtO"), strict=False):
            _points(ax, SETUPS[name].stands_in or name, score, models)
        column[1].axhline(found["chance"], color=DARK, lw=1, ls=":")
        for model, result in models.items():
            if "trend" in result:
                means = [setups.average(moment) for moment in result["trend"]]
                column[2].plot(result["steps"], means, "o-", ms=2.5, color=_COLOURS[model])
        column[0].set_title(name)
        column[2].xaxis.set_major_formatter(EngFormatter(sep=""))
        column[1].set_ylim(bottom=0)
        column[2].set(xlabel="batches", ylim=(0, None))
    labels = ("DS", "DtO, all latents\n(dotted: random axes)", "DtO, active latents,\nover training")
    for ax, label in zip(axes[:, 0], labels, strict=True):
        ax.set_ylabel(label)
    return fig


def _points(ax: Any, name: str, score: str, models: Numbers) -> None:
    if (name, score) not in _TABLE:  # a digit's label is not a factor
        ax.axis("off")
        return
    ax.set(xlim=(-0.5, len(_MODELS) - 0.5), xticks=range(len(_MODELS)))
    ax.set_xticklabels(["b-VAE", "VAE", "AE", "b-VAE\n_Sigma", "random"], fontsize=7)
    for place, model in enumerate(_MODELS):
        dots(ax, place, models.get(model, {}).get("all" if score == "DtO" else score, ()), _COLOURS[model])
        if model in PUBLISHED.get((name, score), {}):
            mean, deviation = PUBLISHED[name, score][model]
            ax.errorbar(place + 0.34, mean, deviation, fmt="_", color=DARK, lw=1.2, ms=6)


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    comparable = [row for row in rows.values() if row.verdict != "not comparable"]
    orders, cells = ([row for row in comparable if row.kind == f"published {kind}"] for kind in ("ordering", "number"))
    held, same = (sum(row.verdict == "agrees" for row in some) for some in (orders, cells))
    return (
        f"{held} of {len(orders)} orderings are shown; {same} of {len(cells)} published values that can be compared "
        f"agree within {MARGIN:g}. {_explained(numbers, rows)}The black marks are the published means and spreads. An "
        "orthogonality that comes from dead latents alone does not count: orderings of DtO compare active latents with "
        f"random axes in as many. {drift(trained_setups(numbers))}"
    )


def _explained(numbers: Numbers, rows: VerdictRows) -> str:
    """What each reading of the loss explains of the beta-VAE's row, and what no reading can."""
    parts = []
    for name in READINGS:
        done = numbers["sets"].get(name, {}).get("readings")
        if not done:
            continue
        words_of = {"agrees": "agrees", "holds": "agrees", "differs": "differs", "fails": "differs"}
        ways = {"the sum over outputs": "beta-VAE"} | {_WORDS[which]: f"if {which}" for which in done}
        readings = []
        for words, key in ways.items():
            DS, DtO = (words_of.get(rows[f"{name} {score} {key}"].verdict, "open") for score in ("DS", "DtO"))
            readings.append(f"{words}: DS {DS}, DtO {DtO}")
        parts.append(f"Readings of the loss on {name}: {'; '.join(readings)}. ")
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
        first, last = (setups.mean_of(result["trend"][moment]) for moment in (0, -1))
        ends.append(f"{name} {first} to {last} ({found['epochs']:g} epochs)")
    return f"DtO of the diagonal model's active latents, from the first moment kept to the end: {'; '.join(ends)}."


CHOICES = (
    *setups.CHOICES,
    "DS on 5,000 held-out samples; discrete factors use DS with the ceiling 1.",
    f"A published value agrees within {MARGIN:g}, shown by Welch's interval. DtO is compared over all latents, as "
    "printed, of the restarts in which all are active.",
    "Random decoder: PyTorch's initial weights, at draws from the prior; the thesis' are not printed, so these rows "
    "cannot be compared.",
    "Two readings of the loss, added after a look at results: the error averaged over outputs, and centred data "
    "(not at the large scale).",
    "An earlier version (commit 994f04b) had the files of MNIST and fMNIST: three restarts, 100 epochs, DtO of VAE, AE "
    "and beta-VAE_Sigma 1.68, 1.91 and 1.94 on MNIST (0.88, 1.00 and 1.02 over random axes), 1.21, 1.92 and 1.78 on "
    "fMNIST (0.63, 1.00 and 0.93). It also had one beta-VAE on dSprites as printed, for 1 of 50 epochs: DS 0.06. "
    "None of these has been made again.",
)
SCALES = {
    "tiny": Settings(SIZES["tiny"] | {"MNIST": TrainingSize(1, 0.01)}),
    "quick": Settings(SIZES["quick"]),
    "large": Settings(SIZES["large"], centred=False),
    "paper": Settings(SIZES["paper"]),
}
