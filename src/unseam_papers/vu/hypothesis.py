"""V3: the hypothesis of Vu 2024, swept: does I_m beat SAP when there are fewer independent groups than latents?"""

from dataclasses import dataclass, replace

import numpy as np

from unseam.axes import Array
from unseam.linear import Scenario
from unseam.linear.scenarios import even_groups
from unseam_papers.frame.draw import DARK, Figure, panels
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows, join_parts
from unseam_papers.frame.verdicts import because, control, paired, trend
from unseam_papers.vu.solutions import CHOICES as SOLUTION_CHOICES
from unseam_papers.vu.solutions import TRAININGS, measure_solutions
from unseam_papers.vu.tables import SERIES

ID, TITLE = "V3", "The hypothesis: I_m beats SAP when independent groups are fewer than latents"
CLAIM = (
    "If the factors hide fewer independent groups than there are latents, I_m outperforms SAP, the more the larger the "
    "difference; otherwise the order is reversed."
)
SOURCE = "Vu 2024, slide 'Hypothesis'"
CHOICES = (
    *SOLUTION_CHOICES,
    "Which sizes: the slides show (3,4,3) and (5,5,4). Ours: a sweep, factors in runs of nearly equal length.",
    "When a part of the hypothesis agrees: a one-sided test over the cells shows it on trained codes and does not on "
    "untrained ones. Where both show it, the metrics alone make the pattern, and the part is not comparable: it says "
    "nothing of disentanglement that was learned. This was decided after a look: both showed it.",
)
PAPER = "nothing is published about the sweep: our larger one"
_CONTROLS = {
    "untrained": "untrained codes",
    "diagonal": "codes of diagonal Sw, Sz = s2 I",
    "exact": "exact principal axes",
}


@dataclass(frozen=True)
class Settings:
    """All sizes s x extra dimensions x latents m x numbers of groups up to both s and m."""

    s: tuple[int, ...]
    extra: tuple[int, ...]  # n - s
    m: tuple[int, ...]
    starts: int
    steps: int = 5000

    def cells(self) -> list[tuple[int, int, int, int]]:  # (s, n, m, groups)
        sizes = [(s, s + e, m) for s in self.s for e in self.extra for m in self.m if m <= s + e]
        return [(s, n, m, g) for s, n, m in sizes for g in range(1, min(s, m) + 1)]


SCALES = {
    "tiny": Settings(s=(3,), extra=(1,), m=(2, 3), starts=2, steps=40),
    "quick": Settings(s=(3, 4, 5), extra=(0, 1), m=(2, 3, 4, 5), starts=8),
    "large": Settings(s=(3, 4, 5), extra=(0, 1), m=(2, 3, 4, 5), starts=40),
    "paper": Settings(s=(3, 4, 5, 6), extra=(0, 1), m=(2, 3, 4, 5, 6), starts=20),
}


def compute(settings: Settings, work: Work) -> Numbers:
    """One cell after another; each is remembered."""
    cells = {f"s{s}-n{n}-m{m}-g{g}": (s, n, m, g) for s, n, m, g in settings.cells()}

    def one(cell: str) -> dict[str, object]:
        s, n, m, g = cells[cell]
        return measure_solutions(Scenario(n=n, groups=even_groups(s, g)), m, settings.starts, settings.steps)

    out = []
    for name, found in work.each(cells, one).items():
        means = {way: [float(np.mean(found[way][metric])) for metric in ("I", "SAP")] for way in (*TRAININGS, "exact")}
        out.append({**dict(zip(("s", "n", "m", "groups"), cells[name], strict=True)), **means})
        out[-1]["converged"] = found["converged"]
    return {"cells": out}


def _gaps(numbers: Numbers) -> Array:  # m - groups of every cell
    return np.array([c["m"] - c["groups"] for c in numbers["cells"]])


def _lead(numbers: Numbers, way: str) -> Array:
    """Of I_m over SAP in points, of every cell."""
    return np.array([c[way][0] - c[way][1] for c in numbers["cells"]])


def _parts(numbers: Numbers, way: str) -> list[VerdictRow]:
    """The three parts of the hypothesis on one kind of code, each tested over the cells."""
    gap, ahead = _gaps(numbers), _lead(numbers, way)
    I, SAP = np.array([c[way] for c in numbers["cells"]]).T
    fewer, equal = gap > 0, gap == 0
    rows = [
        paired("fewer", "fewer groups than latents: I_m ahead of SAP", "anticipated", I[fewer], SAP[fewer], ".0f"),
        trend("grows", "the lead grows with m - groups", "more pronounced", gap[fewer], ahead[fewer], 1),
        paired("equal", "as many groups as latents: SAP ahead of I_m", "reversed", SAP[equal], I[equal], ".0f"),
    ]
    return [replace(row, ours=row.ours.replace("restarts", "cells").replace("points", "cells")) for row in rows]


def judge(numbers: Numbers) -> list[VerdictRow]:
    """The hypothesis on trained codes, beside codes that nothing was learned for; then all kinds of codes, shown."""
    rows = [
        _told_apart(*both) for both in zip(*(_parts(numbers, way) for way in ("trained", "untrained")), strict=True)
    ]
    for way, what in _CONTROLS.items():
        ours = "; ".join(f"{row.what}: {row.ours}, {row.rule.split(', ')[-1]}" for row in _parts(numbers, way))
        rows.append(control(way, f"the same on {what}", ours))
    return rows


def _told_apart(trained: VerdictRow, untrained: VerdictRow) -> VerdictRow:
    """Not comparable where untrained codes show the same."""
    if not trained.verdict == untrained.verdict == "agrees":
        return trained
    rule = join_parts(trained.rule, f"untrained codes show it too ({untrained.ours}; {untrained.rule.split(', ')[-1]})")
    why = "codes that nothing was learned for show it too: the metrics make the pattern, so no training can confirm it"
    return because(replace(trained, verdict="not comparable", rule=rule), "cannot be asked", why)


def draw(numbers: Numbers) -> Figure:
    """The lead of I_m over SAP against m - groups: one point a cell, one panel a kind of code."""
    fig, axes = panels(10, 3.3, columns=3, sharey=True)
    for ax, (way, colour, marker, label) in zip(axes, SERIES, strict=True):
        gap, ahead = _gaps(numbers), _lead(numbers, way)
        shift = np.linspace(-0.22, 0.22, len(gap))
        ax.axhline(0, color=DARK, lw=0.8)
        ax.plot(gap + shift, ahead, marker, color=colour, alpha=0.55, ms=5, mew=0)
        steps = np.unique(gap)
        ax.plot(steps, [ahead[gap == g].mean() for g in steps], "_", color=DARK, ms=22, mew=2.5)
        ax.set(title=label, xlabel="latents m - independent groups", xticks=steps)
    axes[0].set_ylabel("I_m minus SAP, points of success rate")
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    gap, (trained, untrained, aligned) = _gaps(numbers), (_lead(numbers, way) for way in TRAININGS)
    alike = np.corrcoef(trained, untrained)[0, 1] if np.ptp(trained) and np.ptp(untrained) else 0.0
    three = [rows[key] for key in ("fewer", "grows", "equal")]
    same = sum("untrained codes show it too" in row.rule for row in three)
    before = (
        f"So {same} of the three parts are there before anything is learned and prove nothing about training; a likely "
        "reason is the penalty of I_m, which is computed from the true dependence of the factors and favours few "
        "groups. "
    )
    fewer, done = gap > 0, np.mean([c["converged"] for c in numbers["cells"]])
    right = (np.array([c["exact"] for c in numbers["cells"]]) > 0).sum(0)  # cells, by I_m and by SAP
    held = sum(row.verdict == "agrees" for row in three) + same
    return (
        f"Of the hypothesis' three parts {held} hold on the {len(gap)} cells (s, n, m, groups) of trained codes. The "
        f"leads of I_m on trained and on untrained codes correlate at {alike:.2f} over the cells; where I_m should "
        f"lead, it does by {trained[fewer].mean():.0f} points after and {untrained[fewer].mean():.0f} before training. "
        f"{before if same else ''}"
        f"With a diagonal Sw and Sz = s2 I I_m is ahead of SAP in {int((aligned[fewer] > 0).sum())} of the "
        f"{int(fewer.sum())} cells with fewer groups than latents; {done:.0f} % of these runs had converged, so it "
        "is the exact code that tells what alignment does: on the exact principal axes I_m finds the true groups in "
        f"{right[0]} and SAP in {right[1]} of the {len(gap)} cells. More groups than latents are left out: no "
        "assignment to latents can then be the true partition, and both rates are 0."
    )
