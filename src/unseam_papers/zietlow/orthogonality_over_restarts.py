"""Z6: Figure 3.4 of Zietlow 2022. Over restarts, the more orthogonal decoder has the more disentangled code."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from unseam_papers.frame.draw import BLUE, GREEN, ORANGE, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Work, holds
from unseam_papers.zietlow.setups import CHOICES, SETUPS, SIZES, WITH_FACTORS, Size, members, scores, search

AGES = (0.2, 0.6, 1.0)  # of the training: the thesis shows runs of 10, 30 and 50 epochs
COLOURS = (ORANGE, GREEN, BLUE)


@dataclass(frozen=True)
class Settings:
    """How much of each set-up is trained."""

    sizes: dict[str, Size]


def compute(settings: Settings, work: Work) -> Numbers:
    """DS and DtO of every restart at three ages."""
    sets = {}
    for name, size in settings.sizes.items():
        run = search(work, name, size)
        chosen, kept = members(run, SETUPS[name].beta), run.snapshots()
        steps = [kept[round(age * len(kept)) - 1] for age in AGES]
        ages = [work.once(f"{name}-{step}", partial(scores, run, chosen, step)) for step in steps]
        sets[name] = {"steps": steps, "ages": ages, "beta": SETUPS[name].beta}
    return {"sets": sets}


def correlation(ages: Sequence[Numbers]) -> tuple[float, float, int]:
    """Spearman's rank correlation of DS and DtO over the points of some ages, its one-sided p, and their number."""
    ds, distance = (np.concatenate([age[score] for age in ages]) for score in ("DS", "DtO"))
    if len(ds) < 3 or not np.ptp(ds) or not np.ptp(distance):
        return 0.0, 1.0, len(ds)
    found = spearmanr(ds, distance, alternative="less")
    return float(found.statistic), float(found.pvalue), len(ds)


def judge(numbers: Numbers) -> list[Row]:
    rows = []
    for name, found in numbers["sets"].items():
        label = SETUPS[name].label(name)
        rho, p, count = correlation(found["ages"][-1:])
        judged = SETUPS[name].stands_in
        published = "negative" if judged else "not published"
        ours = f"rank correlation {rho:.2f} over {count} restarts (p = {p:.2g})"
        verdict = holds(rho < 0 and p < 0.05) if judged else "not comparable"
        rows.append(Row(f"{label}, finished runs", published, ours, verdict))
        rho, p, count = correlation(found["ages"])
        ours = f"rank correlation {rho:.2f} over {count} points"
        note = "one restart gives three points here, three trainings there"
        rows.append(Row(f"{label}, three ages of each", published, ours, "not comparable", note))
    return rows


def draw(numbers: Numbers) -> Figure:
    """DS against DtO, one panel a data set, coloured by age."""
    fig = figure(3.2 * len(numbers["sets"]) + 0.6, 3.3)
    axes = np.atleast_1d(fig.subplots(1, len(numbers["sets"])))
    for ax, (name, found) in zip(axes, numbers["sets"].items(), strict=True):
        for age, step, colour in zip(found["ages"], found["steps"], COLOURS, strict=True):
            ax.plot(age["DtO"], age["DS"], "o", color=colour, ms=5, alpha=0.8, mew=0, label=f"{step:,} batches")
        label = SETUPS[name].label(name)
        ax.set(title=f"{label}, beta = {found['beta']:g}", xlabel="DtO")
        ax.legend()
    axes[0].set_ylabel("DS")
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    parts = []
    for name, found in numbers["sets"].items():
        (whole, *_), (end, q, _) = correlation(found["ages"]), correlation(found["ages"][-1:])
        label = SETUPS[name].label(name)
        parts.append(
            f"On {label} the rank correlation is {end:.2f} among finished runs{'' if q < 0.05 else ' (no evidence)'} "
            f"and {whole:.2f} over all points."
        )
    return (
        " ".join(parts) + " Points of one restart at three ages are not independent, and both scores improve with "
        "training: only the finished runs tell whether orthogonality predicts which restart is the better one."
    )


Z6 = Exhibit(
    id="Z6",
    title="Figure 3.4: disentanglement against orthogonality over restarts",
    claim="Restarts of one beta-VAE on dSprites whose decoders are nearer to orthogonal are better disentangled.",
    source="Zietlow 2022, Figure 3.4",
    choices=(
        *CHOICES,
        "Ages: one fifth, three fifths and all of one training, instead of trainings of 10, 30 and 50 epochs.",
        "MNIST and fMNIST have no factors, so no DS.",
    ),
    scales={
        "tiny": Settings(SIZES["tiny"]),
        "quick": Settings(SIZES["quick"]),
        "paper": Settings(WITH_FACTORS),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
