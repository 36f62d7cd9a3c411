"""Z6: Figure 3.4 of Zietlow 2022. Over restarts, the more orthogonal decoder has the more disentangled code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from unseam_papers.frame.draw import BLUE, GREEN, ORANGE, figure
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import Row, as_kind, joined
from unseam_papers.frame.verdicts import trend, unrun
from unseam_papers.zietlow import setups
from unseam_papers.zietlow.setups import SETUPS, SIZES, WITH_FACTORS, Size, left_out, members, scores, search

ID, TITLE = "Z6", "Figure 3.4: disentanglement against orthogonality over restarts"
CLAIM = "Restarts of one beta-VAE on dSprites whose decoders are nearer to orthogonal are better disentangled."
SOURCE = "Zietlow 2022, Figure 3.4"
PAPER = "smaller than published: sprites for dSprites, one training at three ages for trainings of 10, 30, 50 epochs"
AGES = (0.2, 0.6, 1.0)  # of the training
COLOURS = (ORANGE, GREEN, BLUE)
PRINTED = "clear correlation between DtO and DS"


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
        ages = work.each(steps, partial(scores, run, chosen), prefix=f"{name}-")
        sets[name] = {"steps": steps, "ages": [ages[step] for step in steps], "beta": SETUPS[name].beta}
    return {"sets": sets}


def points(ages: Sequence[Numbers]) -> tuple[list[float], list[float], str]:
    """Relative DtO and DS of the restarts that have a DtO, and how many have none."""
    distance, ds = ([value for age in ages for value in age[score]] for score in ("relative", "DS"))
    pairs = [(a, b) for a, b in zip(distance, ds, strict=True) if a is not None]
    return [a for a, _ in pairs], [b for _, b in pairs], left_out(distance)


def judge(numbers: Numbers) -> list[Row]:
    rows = []
    for name, found in numbers["sets"].items():
        setup, label = SETUPS[name], SETUPS[name].label(name)
        distance, ds, missing = points(found["ages"][-1:])
        what = f"{label}, finished runs: DS falls as DtO over random axes' rises"
        stands = "sprites stand in for dSprites" if setup.stands_in else ""
        row = trend(name, what, PRINTED, distance, ds, -1, note=joined(stands, missing))
        rows.append(row if setup.stands_in else as_kind(row, "beyond the paper"))
        distance, ds, missing = points(found["ages"])
        why = "one restart gives three points here, three trainings there: not independent, so not tested"
        all_ages = trend(f"{name}, ages", f"{label}, three ages of each", PRINTED, distance, ds, -1)
        row = unrun(all_ages.key, all_ages.what, PRINTED, joined(why, missing), all_ages.ours, "published ordering")
        rows.append(row if setup.stands_in else as_kind(row, "beyond the paper"))
    return rows


def draw(numbers: Numbers) -> Figure:
    """DS against DtO, one panel a data set, coloured by age."""
    fig = figure(3.2 * len(numbers["sets"]) + 0.6, 3.3)
    axes = np.atleast_1d(fig.subplots(1, len(numbers["sets"])))
    for ax, (name, found) in zip(axes, numbers["sets"].items(), strict=True):
        for age, step, colour in zip(found["ages"], found["steps"], COLOURS, strict=True):
            distance, ds, _ = points([age])
            ax.plot(distance, ds, "o", color=colour, ms=5, alpha=0.8, mew=0, label=f"{step:,} batches")
        ax.set(title=f"{SETUPS[name].label(name)}, beta = {found['beta']:g}", xlabel="DtO (random axes: 1)")
        ax.legend()
    axes[0].set_ylabel("DS")
    return fig


def conclude(numbers: Numbers, rows: Mapping[str, Row]) -> str:
    parts = []
    for name in numbers["sets"]:
        weak = "" if rows[name].verdict in ("agrees", "holds") else " (not shown to be negative)"
        parts.append(
            f"On {SETUPS[name].label(name)}: {rows[name].ours} among finished runs{weak}, "
            f"{rows[f'{name}, ages'].ours} at three ages."
        )
    return (
        " ".join(parts) + " Points of one restart at three ages are not independent, and both scores improve with "
        "training: only the finished runs tell whether orthogonality predicts which restart is the better one. DtO is "
        "taken over the active latents and divided by that of random axes in as many, so that a restart does not gain "
        "by pruning."
    )


CHOICES = (
    *setups.CHOICES,
    "Ages: one fifth, three fifths and all of one training, instead of trainings of 10, 30 and 50 epochs.",
    "MNIST and fMNIST have no factors, so no DS.",
)
SCALES = {
    "tiny": Settings(SIZES["tiny"]),
    "quick": Settings(SIZES["quick"]),
    "large": Settings(SIZES["large"]),
    "paper": Settings(WITH_FACTORS),
}
