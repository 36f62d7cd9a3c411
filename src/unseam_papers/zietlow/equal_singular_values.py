"""Z7: Table 3.4 and Figure 3.5 of Zietlow 2022. Axes are found if and only if their singular values differ.

The force that turns a linear decoder with singular values in the ratio r to its axes is what the worst rotation, by
45 degrees, costs. From the entanglement cost with M = J^T J / s2 >> beta and latents of unit variance:

    cost / beta = 1/2 [ sum_i log M_ii - log det M ] = log( (r^2 + 1) / (2 r) )        0 at r = 1
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.ticker import EngFormatter

from unseam.axes import Array
from unseam.rng import numpy_generator
from unseam_papers.allen.shapes import worst_axes_cost
from unseam_papers.frame.draw import BLUE, DARK, GREY, ORANGE, Figure, column, panels
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows, join_parts, plus_minus
from unseam_papers.frame.verdicts import alike, as_kind, beyond, number, ordering, three_way, trend, unless, welch
from unseam_papers.zietlow import setups
from unseam_papers.zietlow.setups import (
    CHANCE_DTO,
    MARGIN,
    NARROW,
    SETUPS,
    TrainingSize,
    average,
    left_out,
    mean_of,
    scores,
    without_missing,
)

ID, TITLE = "Z7", "Table 3.4: degenerate singular values"
CLAIM = "A linear beta-VAE finds the factors when their scales differ, and random axes when they are equal."
SOURCE = "Zietlow 2022, Table 3.4 and Figure 3.5; Proposition 1"
PAPER = "as published (its number of restarts is not printed); ratios 1.1 and 2 and beta = 0.01 are ours"
_NAME = "Synth. Lin."
PUBLISHED = {  # ratio: DS, DtO
    1.0: {"DS": (0.51, 0.28), "DtO": (0.49, 0.32)},
    1.2: {"DS": (0.76, 0.25), "DtO": (0.20, 0.24)},
    1.5: {"DS": (0.98, 0.06), "DtO": (0.01, 0.06)},
}
_FITTED = 5e-3  # the beta that a review predicted to give the printed table after 600 epochs
_FRESH = 100  # the first seed of the scale that tries it: none of these restarts helped to choose it
_STRONG = 1e-2  # a beta with a stronger pull, still far below the first collapse at 0.16
STRETCHED = 2.0  # the ratio of Synth. Lin. itself: its cohort is Table 3.3's


@dataclass(frozen=True)
class Settings:
    """Which ratios, and how much is trained."""

    ratios: tuple[float, ...]
    size: TrainingSize
    equal: TrainingSize  # at ratio 1, where nothing is to be found and chance is to be shown
    strong: TrainingSize  # with a beta a hundred times as large: the pull grows with beta
    fitted: bool = False  # at each ratio of the table also the beta that fits it, both on fresh seeds


def compute(settings: Settings, work: Work) -> Numbers:
    """DS and DtO of every restart at every ratio, at the end and over training."""
    points = work.each(settings.ratios, partial(_point, work, settings))
    strong = work.each(settings.ratios, partial(_turned, work, settings), prefix="strong-")
    return {
        "points": [{"ratio": ratio, **found} for ratio, found in points.items()],
        "strong": list(strong.values()),
        "epochs": settings.size.epochs,
    }


def _point(work: Work, settings: Settings, ratio: float) -> Numbers:
    printed, size = SETUPS[_NAME].beta, settings.equal if ratio == 1 else settings.size
    if settings.fitted and ratio in PUBLISHED:
        run = setups.train_restarts(work, _NAME, "beta-vae", size, (printed, _FITTED), first=_FRESH, ratio=ratio)
    elif ratio == STRETCHED:
        run = setups.search(work, _NAME, size)
    else:
        run = setups.train_restarts(work, _NAME, "beta-vae", size, ratio=ratio)
    at, fitted = (setups.restarts_at_beta(run, beta) for beta in (printed, _FITTED))
    found = {**scores(run, at), **setups.dto_over_training(run, at)}
    return {**found, "fitted": scores(run, fitted)} if settings.fitted and ratio in PUBLISHED else found


def _turned(work: Work, settings: Settings, ratio: float) -> Numbers:
    run = setups.train_restarts(work, _NAME, "beta-vae", settings.strong, (_STRONG,), ratio=ratio)
    return scores(run, range(len(run.members)))


def judge(numbers: Numbers) -> list[VerdictRow]:
    points = {point["ratio"]: point for point in numbers["points"]}
    short = SETUPS[_NAME].short(numbers["epochs"])
    table = [_compared(ratio, score, points[ratio]) for ratio, published in PUBLISHED.items() for score in published]
    strong = [stronger(ratio, found) for ratio, found in zip(points, numbers["strong"], strict=True)]
    fitted = [
        as_kind(_compared(ratio, score, point["fitted"], _FITTED), "beyond the paper")
        for ratio, point in points.items()
        if "fitted" in point
        for score in PUBLISHED[ratio]
    ]
    return [unless(short, row, "too long here") for row in (*table, *boundary(points))] + fitted + strong


def _compared(ratio: float, score: str, found: Numbers, beta: float = 0.0) -> VerdictRow:
    samples, missing = setups.complete(found, SETUPS[_NAME].latents) if score == "DtO" else (found["DS"], "")
    published = (*PUBLISHED[ratio][score], None)
    key, what = f"{score} at {ratio}", f"{score} at ratio {ratio}"
    if beta:
        key, what = f"{key}, {beta:g}", f"{what}, beta = {beta:g} instead of the printed 1e-4, fresh seeds"
    return number(key, what, published, samples, MARGIN, note=missing)


def stronger(ratio: float, found: Numbers) -> VerdictRow:
    ours = f"DS {plus_minus(found['DS'], '.2f')}, DtO {plus_minus(without_missing(found['DtO']), '.2f')}"
    note = join_parts("beta added after a look at results", left_out(found["DtO"]))
    return beyond(f"strong {ratio:g}", f"ratio {ratio:g} at beta = {_STRONG:g}", ours, note=note)


def boundary(points: dict[float, Numbers]) -> list[VerdictRow]:
    """What the table is there to show: chance at ratio 1, and less of it with every step away from 1."""
    distances = {ratio: without_missing(point["DtO"]) for ratio, point in points.items()}
    ratio = [r for r, found in distances.items() for _ in found]
    missing = left_out([value for point in points.values() for value in point["DtO"]])
    n, chance = max(len(distances[1.0]), 2), "the axes are random: DtO against that of random axes"
    note = (
        f"margin: what angles on 0 to 30 degrees instead of 0 to 45 would change; with {n} restarts the test agrees in "
        f"{100 * power(n, 45):.0f} % of cases if the axes are random and in {100 * power(n, 30):.0f} % if they are on "
        "0 to 30 degrees"
    )
    steps = [
        ordering(f"{high:g} to {low:g}", f"DtO at ratio {high:g} above that at {low:g}",
                 f"{PUBLISHED[high]['DtO'][0]:.2f} against {PUBLISHED[low]['DtO'][0]:.2f}",
                 distances[high], distances[low], names=(f"{high:g}:", f"{low:g}:"))
        for high, low in ((1.0, 1.2), (1.2, 1.5))
    ]  # fmt: skip
    small = alike("1.2 random", f"at ratio 1.2 {chance}", "they are not: a ratio of 1.2 is enough", distances[1.2],
                  CHANCE_DTO, CHANCE_DTO - NARROW)  # fmt: skip
    return [
        trend("falls", "DtO falls as the ratio grows", "the degeneracy disappears even for small rescaling", ratio,
              [value for found in distances.values() for value in found], -1, note=missing),
        *steps,
        alike("random", f"at ratio 1 {chance}", "random alignments", distances[1.0], CHANCE_DTO, CHANCE_DTO - NARROW,
              note=note),
        beyond("random at 1.2", small.what, small.ours, rule=small.rule,
               note="the margin and the restarts decide what can be told: see the row above"),
    ]  # fmt: skip


def plane_distances(count: int = 4000, degrees: float = 45, seed: int = 0) -> Array:
    """DtO of random axes in the plane: |V - P| = 2 sqrt(1 - cos a), a uniform from 0 to 45 degrees."""
    angle = numpy_generator(seed, "plane").uniform(0, np.radians(degrees), count)
    return 2 * np.sqrt(1 - np.cos(angle))


def power(n: int, degrees: float, trials: int = 1000) -> float:
    """How often the test of random axes agrees with n restarts whose angles are uniform from 0 to `degrees`.

    >>> power(40, 45) > 0.8 > 0.05 > power(40, 30)
    True
    """
    draws = plane_distances(n * trials, degrees, seed=1).reshape(trials, n)
    return float(
        np.mean([three_way(*welch(d, CHANCE_DTO, 0.0, np.inf), CHANCE_DTO - NARROW) == "agrees" for d in draws])
    )


def draw(numbers: Numbers) -> Figure:
    """DtO and DS over the ratio, the pull that theory predicts, and how DtO falls over training."""
    fig, axes = panels(10.5, columns=3)
    ratios = np.array([p["ratio"] for p in numbers["points"]])
    for score, colour, place in (("DtO", BLUE, -0.008), ("DS", ORANGE, 0.008)):
        for point in numbers["points"]:
            column(axes[0], point["ratio"] + place, without_missing(point[score]), colour, ms=3, alpha=0.5)
        axes[0].plot(ratios, [average(p[score]) for p in numbers["points"]], color=colour, label=score)
        for ratio, published in PUBLISHED.items():
            axes[0].errorbar(ratio + 3 * place, *published[score], fmt="_", color=DARK, lw=1)
    strong = [average(found["DtO"]) for found in numbers["strong"]]
    axes[0].plot(ratios, strong, "--", color=BLUE, label=f"DtO at beta = {_STRONG:g}")
    axes[0].axvline(1, color=GREY, ls="--", lw=1)
    axes[0].axhline(CHANCE_DTO, color=GREY, ls=":", lw=1)
    axes[0].set(title="not identified at ratio 1 (dashed)", xlabel="ratio of the singular values", ylim=(-0.05, 1.4))
    axes[0].legend(loc="upper center", ncols=3, columnspacing=1.0, handlelength=1.2, fontsize=7.5)
    fine = np.linspace(1, ratios.max(), 200)
    axes[1].plot(fine, [worst_axes_cost(r) for r in fine], color=DARK)
    axes[1].plot(ratios, [worst_axes_cost(r) for r in ratios], "o", color=DARK, ms=4)
    axes[1].set(title="predicted pull: cost of turning by 45 degrees", xlabel="ratio", ylabel="nats per beta")
    for shade, point in zip(np.linspace(0.75, 0.0, len(ratios)), numbers["points"], strict=True):
        mean = [average(moment) for moment in point["trend"]]
        axes[2].plot(point["steps"], mean, "o-", ms=2.5, color=(shade, shade, 0.35 + shade / 2))
        axes[2].annotate(f" {point['ratio']:g}", (point["steps"][-1], mean[-1]), fontsize=8, va="center")
    axes[2].set(title="DtO over training, by ratio", xlabel="batches", ylim=(0, None))
    axes[2].xaxis.set_major_formatter(EngFormatter(sep=""))
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    points = {p["ratio"]: p["DtO"] for p in numbers["points"]}
    slow = ", ".join(f"{r:g}" for r, found in points.items() if r > 1 and not average(found) <= 0.05)
    waiting = (
        f"At ratio {slow} the restarts are not at their axes (mean DtO above 0.05). "
        if slow
        else "Every ratio above 1 has reached its axes (mean DtO at most 0.05). "
    )
    start = {
        "agrees": "With equal singular values the alignment is that of chance, within the margin. ",
        "differs": "With equal singular values the alignment is not that of chance in these runs. ",
        "open": "With equal singular values these restarts neither show chance nor exclude it. ",
        "not comparable": "With equal singular values these are too few restarts to show chance. ",
    }[rows["random"].verdict]
    small = (
        "A ratio of 1.2 is already told from 1. "
        if rows["1 to 1.2"].verdict == "agrees"
        else f"A ratio of 1.2 has no effect that these restarts show: DtO {mean_of(points[1.2])} against "
        f"{mean_of(points[1.0])}. "
    )
    forces = ", ".join(f"{worst_axes_cost(r):.3f} at {r:g}" for r in points)
    closer = ", ".join(f"{mean_of(found['DtO'])} at {r:g}" for r, found in zip(points, numbers["strong"], strict=True))
    return (
        f"{start}{small}{waiting}The optimum is aligned at every ratio above 1, but the pull towards it, in nats per "
        f"beta, is {forces}: near 1 it is so weak that a spread over restarts is likely to be a matter of training "
        f"time rather than of identifiability (right panel). At beta = {_STRONG:g}, with a pull a hundred times as "
        f"strong, the mean DtO is {closer}.{_fit(rows)}"
    )


def _fit(rows: VerdictRows) -> str:
    """How many cells of the table the fitted beta gives."""
    found = [row for key, row in rows.items() if key.endswith(f", {_FITTED:g}")]
    held = sum(row.verdict == "holds" for row in found)
    return f" At beta = {_FITTED:g} on fresh seeds {held} of {len(found)} cells of the table come out." if found else ""


CHOICES = (
    *setups.CHOICES[:3],
    "The scale of the loss decides how much beta = 1e-4 is. Ours sums over dimensions. As the restarts had not "
    f"settled after 600 epochs, beta = {_STRONG:g} was added after a look at the results, for fewer epochs.",
    f"A published value agrees within {MARGIN:g} of DS or of DtO. Its deviations of 0.2 to 0.3 are so large that ten "
    "restarts on each side rarely show that.",
    f"beta = {_FITTED:g} is a description of the table, not a reading of the loss: a review tried three betas for 100 "
    "epochs, found that 0.03 came close to all six cells, and predicted 5e-3 for 600 epochs. It is tested here on "
    "seeds that were not used for that.",
    "An earlier version (commit 3f5a57d) at the printed beta, on other seeds, ten restarts a ratio: DS 0.49, 0.51 and "
    "0.62, DtO 0.40, 0.41 and 0.33 at ratio 1, 1.2 and 1.5.",
)
SCALES = {
    "tiny": Settings((1.0, 1.2, 1.5), TrainingSize(2, 0.1), TrainingSize(2, 0.1), TrainingSize(2, 0.1)),
    "quick": Settings((1.0, 1.2, 1.5, 2.0), TrainingSize(8, 10), TrainingSize(8, 10), TrainingSize(8, 20)),
    "large": Settings((1.0, 1.2, 1.5), TrainingSize(10, 600), TrainingSize(40, 600), TrainingSize(10, 100), True),
    "paper": Settings(
        (1.0, 1.1, 1.2, 1.5, 2.0), TrainingSize(10, 600), TrainingSize(40, 600), TrainingSize(10, 100), True
    ),
}
