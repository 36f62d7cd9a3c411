"""Z7: Table 3.4 and Figure 3.5 of Zietlow 2022. Axes are found if and only if their singular values differ.

The force that turns a linear decoder with singular values in the ratio r to its axes is what the worst rotation, by
45 degrees, costs. From the entanglement cost with M = J^T J / s2 >> beta and latents of unit variance:

    cost / beta = 1/2 [ sum_i log M_ii - log det M ] = log( (r^2 + 1) / (2 r) )        0 at r = 1
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from scipy.stats import kstest, spearmanr

from unseam.geometry import haar
from unseam.rng import numpy_generator
from unseam.types import Array
from unseam_papers.allen.shapes import pull
from unseam_papers.frame.draw import BLUE, GREY, INK, ORANGE, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Work, holds, plus_minus
from unseam_papers.zietlow.setups import CHOICES, SETUPS, Size, members, scores, search, train, trend, within

NAME = "Synth. Lin."
PUBLISHED = {  # ratio: DS, DtO
    1.0: ((0.51, 0.28), (0.49, 0.32)),
    1.2: ((0.76, 0.25), (0.20, 0.24)),
    1.5: ((0.98, 0.06), (0.01, 0.06)),
}
STRONG = 1e-2  # a beta with a stronger pull, still far below the first collapse at 0.16
STRETCHED = 2.0  # the ratio of Synth. Lin. itself: its cohort is Table 3.3's


@dataclass(frozen=True)
class Settings:
    """Which ratios, and how much is trained."""

    ratios: tuple[float, ...]
    size: Size
    strong: Size  # the same with a beta a hundred times as large: the pull grows with beta


def compute(settings: Settings, work: Work) -> Numbers:
    """DS and DtO of every restart at every ratio, at the end and over training."""
    points = [
        {"ratio": ratio, **work.once(f"{ratio}", partial(point, work, ratio, settings))} for ratio in settings.ratios
    ]
    strong = [work.once(f"{ratio}-strong", partial(turned, work, ratio, settings)) for ratio in settings.ratios]
    return {"points": points, "strong": strong, "epochs": settings.size.epochs}


def point(work: Work, ratio: float, settings: Settings) -> Numbers:
    if ratio == STRETCHED:
        run = search(work, NAME, settings.size)
        chosen = members(run, SETUPS[NAME].beta)
    else:
        run = train(work, NAME, "beta-vae", settings.size, ratio=ratio)
        chosen = list(range(len(run.members)))
    return {**scores(run, chosen), **trend(run, chosen)}


def turned(work: Work, ratio: float, settings: Settings) -> Numbers:
    run = train(work, NAME, "beta-vae", settings.strong, (STRONG,), ratio=ratio)
    return scores(run, range(len(run.members)))


def judge(numbers: Numbers) -> list[Row]:
    points = {point["ratio"]: point for point in numbers["points"]}
    short, rows = numbers["epochs"] < SETUPS[NAME].epochs, []
    for ratio, published in PUBLISHED.items():
        for score, (mean, deviation) in zip(("DS", "DtO"), published, strict=True):
            what, value = f"{score} at ratio {ratio}", f"{mean:.2f} +- {deviation:.2f}"
            samples = points[ratio][score]
            if short:
                note = f"{numbers['epochs']:g} of {SETUPS[NAME].epochs} epochs"
                rows.append(Row(what, value, plus_minus(samples, ".2f"), "not comparable", note))
            else:
                rows.append(Row(what, value, plus_minus(samples, ".2f"), within(mean, deviation, samples)))
    strong = dict(zip(points, numbers["strong"], strict=True))
    for ratio, found in strong.items():
        ours = f"DS {plus_minus(found['DS'], '.2f')}, DtO {plus_minus(found['DtO'], '.2f')}"
        rows.append(Row(f"ratio {ratio:g} at beta = {STRONG:g}", "not published", ours, "not comparable"))
    return [*rows, *_boundary(points)]


def _boundary(points: dict[float, Numbers]) -> list[Row]:
    """What theory says: chance at ratio 1, better the larger the ratio."""
    ratio = np.concatenate([[r] * len(p["DtO"]) for r, p in points.items()])
    distance = np.concatenate([p["DtO"] for p in points.values()])
    found = spearmanr(ratio, distance, alternative="less")
    p_chance = float(kstest(points[1.0]["DtO"], plane_distances()).pvalue)
    return [
        Row(
            "DtO falls as the ratio grows",
            "yes",
            f"rank correlation {found.statistic:.2f} (p = {found.pvalue:.2g})",
            holds(bool(found.statistic < 0 and found.pvalue < 0.05)),
        ),
        Row(
            "at ratio 1 the axes are random",
            "yes",
            f"DtO {plus_minus(points[1.0]['DtO'], '.2f')}, random axes {haar(2)[0]:.2f} +- {haar(2)[1]:.2f} "
            f"(Kolmogorov-Smirnov p = {p_chance:.2g})",
            holds(p_chance > 0.05) if len(points[1.0]["DtO"]) >= 8 else "not comparable",
            "" if len(points[1.0]["DtO"]) >= 8 else "fewer than 8 restarts cannot tell",
        ),
    ]


def plane_distances(count: int = 4000) -> Array:
    """DtO of random axes in the plane: |V - P| = 2 sqrt(1 - cos a), a uniform in [0, 45] degrees."""
    angle = numpy_generator(0, "plane").uniform(0, np.pi / 4, count)
    return 2 * np.sqrt(1 - np.cos(angle))


def draw(numbers: Numbers) -> Figure:
    """DtO and DS over the ratio, the pull that theory predicts, and how DtO falls over training."""
    fig = figure(10.5, 3.4)
    axes = fig.subplots(1, 3)
    ratios = np.array([p["ratio"] for p in numbers["points"]])
    for score, colour, place in (("DtO", BLUE, -0.008), ("DS", ORANGE, 0.008)):
        for point in numbers["points"]:
            axes[0].plot([point["ratio"] + place] * len(point[score]), point[score], "o", ms=3, color=colour, alpha=0.5)
        axes[0].plot(ratios, [np.mean(p[score]) for p in numbers["points"]], color=colour, label=score)
        column = 0 if score == "DS" else 1
        for ratio, published in PUBLISHED.items():
            axes[0].errorbar(ratio + 3 * place, published[column][0], published[column][1], fmt="_", color=INK, lw=1)
    strong = [np.mean(found["DtO"]) for found in numbers["strong"]]
    axes[0].plot(ratios, strong, "--", color=BLUE, label=f"DtO at beta = {STRONG:g}")
    axes[0].axvline(1, color=GREY, ls="--", lw=1)
    axes[0].axhline(haar(2)[0], color=GREY, ls=":", lw=1)
    axes[0].set(title="not identified at ratio 1 (dashed)", xlabel="ratio of the singular values", ylim=(-0.05, 1.4))
    axes[0].legend(loc="upper center", ncols=3, columnspacing=1.0, handlelength=1.2, fontsize=7.5)
    fine = np.linspace(1, ratios.max(), 200)
    axes[1].plot(fine, [pull(r) for r in fine], color=INK)
    axes[1].plot(ratios, [pull(r) for r in ratios], "o", color=INK, ms=4)
    axes[1].set(title="predicted pull: cost of turning by 45 degrees", xlabel="ratio", ylabel="nats per beta")
    for shade, point in zip(np.linspace(0.75, 0.0, len(ratios)), numbers["points"], strict=True):
        mean = np.mean(point["trend"], 1)
        axes[2].plot(point["steps"], mean, "o-", ms=2.5, color=(shade, shade, 0.35 + shade / 2))
        axes[2].annotate(f" {point['ratio']:g}", (point["steps"][-1], mean[-1]), fontsize=8, va="center")
    axes[2].set(title="DtO over training, by ratio", xlabel="batches", ylim=(0, None))
    axes[2].xaxis.set_major_formatter(EngFormatter(sep=""))
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    points = {p["ratio"]: p for p in numbers["points"]}
    slow = [r for r, p in points.items() if r > 1 and np.mean(p["DtO"]) > 0.05]
    waiting = (
        "At ratio "
        + ", ".join(f"{r:g}" for r in slow)
        + " the restarts are not at their axes yet (mean DtO above 0.05). "
        if slow
        else "Every ratio above 1 has reached its axes (mean DtO at most 0.05). "
    )
    forces = ", ".join(f"{pull(r):.3f} at {r:g}" for r in points)
    closer = [float(np.mean(found["DtO"])) for found in numbers["strong"]]
    sharper = (
        f"At beta = {STRONG:g}, where the pull is a hundred times as strong, the mean DtO is "
        + ", ".join(f"{distance:.2f} at {r:g}" for r, distance in zip(points, closer, strict=True))
        + "."
    )
    start = {
        "agrees": "With equal singular values the alignment cannot be told from chance. ",
        "differs": "With equal singular values the alignment is not that of chance in these runs. ",
        "not comparable": "These are too few restarts to test chance at ratio 1. ",
    }[rows[-1].verdict]
    return (
        f"{start}{waiting}The optimum is aligned at every ratio above 1, but the pull towards it, in nats per beta, is "
        f"{forces}: near 1 it is so weak that a spread over restarts is likely to be a matter of training time rather "
        f"than of identifiability (right panel). {sharper}"
    )


Z7 = Exhibit(
    id="Z7",
    title="Table 3.4: degenerate singular values",
    claim="A linear beta-VAE finds the factors when their scales differ, and random axes when they are equal.",
    source="Zietlow 2022, Table 3.4 and Figure 3.5; Proposition 1",
    choices=(
        *CHOICES[:2],
        "Agreement: our mean lies within the published mean +- deviation.",
        "The scale of the loss decides how much beta = 1e-4 is. Ours sums over dimensions. As the restarts had not "
        f"settled after 600 epochs, beta = {STRONG:g} was added after a look at the results, for fewer epochs.",
    ),
    scales={
        "tiny": Settings((1.0, 1.2, 1.5), Size(2, 0.1), Size(2, 0.1)),
        "quick": Settings((1.0, 1.2, 1.5, 2.0), Size(8, 10), Size(8, 20)),
        "paper": Settings((1.0, 1.1, 1.2, 1.5, 2.0), Size(10, 600), Size(10, 100)),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
