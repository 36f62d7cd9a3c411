"""N8: when does the perturbation of chapter 4 work on small sprites? The gap, the teacher and beta, each against each.

    gap       reconstruction, as printed: encoders stay frozen with their noise, and only reconstructions count
              elbo: both sides choose the noise of each latent anew, and pay for it
    teacher   restart, as printed: the entangled side is the restart of the lowest MIG
              turned: the disentangled model itself, two latents turned by 45 degrees
    beta      of the models that m is learned from, and of the fresh ones that are scored

The noise of latents is not a further factor: where it is frozen the KL is a constant of m, so the ELBO's gap is that of
reconstructions; where it is free and reconstructions alone count, it goes to 0 and nothing holds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from unseam.data.base import Dataset
from unseam.perturb import Settings as Game
from unseam.perturb import perturb
from unseam.run import Run
from unseam_papers.frame.draw import BLUE, GREY, ORANGE, Figure, dots, panels
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows, join_parts
from unseam_papers.frame.verdicts import as_kind, ordering
from unseam_papers.zietlow import broken

ID, TITLE = "N8", "The printed perturbation on small sprites: gap, teacher and beta"
CLAIM = "Whether a small change of the data lowers the MIG of VAEs depends on the gap that it was learned on."
SOURCE = "after Zietlow 2022, section 4.2.4, which has one of the cells"
PAPER = "our own: more restarts and longer"
_GAPS, _TEACHERS = ("reconstruction", "elbo"), ("restart", "turned")  # as printed, and ours
_FIRST = 300  # the first seed of the models that are scored; teachers have 0 to 5, Z11's models 200 to 219
CHOICES = (
    "Data, networks, lengths and m's settings are those of Z11 at quick: 16 x 16 sprites of three factors, changes of "
    "at most 0.1, 800 rounds. One m a cell, learned from six restarts, and six fresh models on it and on the original.",
    "Rule, fixed before the first run: the change works in a cell if the MIG of fresh models on the original is above "
    "that on the changed data by the one-sided Mann-Whitney test at 5 %.",
)


@dataclass(frozen=True)
class Settings:
    restarts: int
    steps: int
    rounds: int
    teachers: int = 6
    betas: tuple[float, ...] = (0.5, 1.0)


SCALES = {
    "tiny": Settings(1, 20, 5, teachers=2, betas=(1.0,)),
    "quick": Settings(6, 3000, 800, betas=(1.0,)),
    "large": Settings(6, 3000, 800),
    "paper": Settings(20, 30_000, 8000, teachers=10, betas=(0.25, 0.5, 1.0, 1.5)),
}


def _length(settings: Settings) -> Settings:
    """What a cohort depends on: those of one beta are the same whichever others are asked for."""
    return replace(settings, betas=())


def _as_z11(settings: Settings) -> broken.Settings:
    return broken.Settings({"beta-vae": {}}, settings.restarts, settings.steps, settings.rounds)


def _cohort(settings: Settings, work: Work, name: str, data: Dataset, beta: float, first: int, count: int) -> Run:
    from unseam.train import fit, resume

    folder = work.runs / f"{ID}-{name}-{beta:g}-{broken.named(_length(settings), first, count)}"
    if (folder / "config.json").exists():
        return work.noted(resume(folder))
    options = {**broken.training(_as_z11(settings)), "beta": beta, "seeds": list(range(first, first + count))}
    return work.noted(fit(data, "beta-vae", out=folder, **work.how(options)))


def _scored(run: Run) -> list[float]:
    from unseam.runs.evaluate import evaluate

    found = evaluate(run, "mig")
    return [float(found[member]["mig"].value) for member in sorted(found)]


def _original(settings: Settings, work: Work, beta: float) -> list[float]:
    data = broken.base(_as_z11(settings))
    return _scored(_cohort(settings, work, "original", data, beta, _FIRST, settings.restarts))


def _cell(settings: Settings, work: Work, cell: tuple[float, str, str]) -> dict[str, Any]:
    beta, gap, how = cell
    data = broken.base(_as_z11(settings))
    teachers = _cohort(settings, work, "teachers", data, beta, 0, settings.teachers)
    name = f"{gap}-{how}"
    folder = work.runs / f"{ID}-m-{name}-{beta:g}-{broken.named(_length(settings))}"
    made = perturb(data, folder, Game(rounds=settings.rounds, gap=gap), teachers, how)  # type: ignore[arg-type]
    fresh = _cohort(settings, work, name, made.data, beta, _FIRST, settings.restarts)
    gaps = [made.found.gap_before, made.found.gap_after]
    return {"mig": _scored(fresh), "gaps": gaps, "turns": [made.turns["before"], made.turns["after"]]}


def _label(cell: tuple[float, str, str]) -> str:
    return f"{cell[0]:g}-{cell[1]}-{cell[2]}"


def compute(settings: Settings, work: Work) -> Numbers:
    cells = {_label(cell): cell for cell in product(settings.betas, _GAPS, _TEACHERS)}
    found = {name: work.once(f"cell-{name}", partial(_cell, settings, work, cell)) for name, cell in cells.items()}
    original = work.each(settings.betas, partial(_original, settings, work), prefix="original-")
    return {
        "cells": [
            {"beta": cell[0], "gap": cell[1], "teacher": cell[2], "original": original[cell[0]], **found[name]}
            for name, cell in cells.items()
        ]
    }


def judge(numbers: Numbers) -> list[VerdictRow]:
    return [_row(cell) for cell in numbers["cells"]]


def _key(cell: Mapping[str, Any]) -> str:
    return _label((cell["beta"], cell["gap"], cell["teacher"]))


def _row(cell: Mapping[str, Any]) -> VerdictRow:
    printed = " (both as printed)" if (cell["gap"], cell["teacher"]) == (_GAPS[0], _TEACHERS[0]) else ""
    what = f"beta {cell['beta']:g}, gap {cell['gap']}, teacher {cell['teacher']}{printed}: MIG on the original above"
    before, after = cell["gaps"]
    note = join_parts(
        f"gap {before:.2f} to {after:.2f} nats",
        f"preferred axes of the disentangled model {cell['turns'][0]:.0f} to {cell['turns'][1]:.0f} degrees",
    )
    row = ordering(_key(cell), what, "yes", cell["original"], cell["mig"], names=("original", "changed"), note=note)
    return as_kind(row, "beyond the paper")


def draw(numbers: Numbers) -> Figure:
    """MIG of fresh models: on the original, and on the data of each m."""
    fig, ax = panels(8.0, 3.4)
    for place, cell in enumerate(numbers["cells"]):
        dots(ax, place - 0.15, cell["original"], GREY, width=0.06)
        dots(ax, place + 0.15, cell["mig"], BLUE if cell["gap"] == _GAPS[0] else ORANGE, width=0.06)
    ax.set_xticks(
        range(len(numbers["cells"])), [_key(cell).replace("-", "\n") for cell in numbers["cells"]], fontsize=8
    )
    ax.set(ylabel="MIG", ylim=(0, None), title="grey: original, blue: gap of reconstructions, orange: gap of ELBOs")
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    text = "; ".join(
        f"beta {c['beta']:g}, {c['gap']}, {c['teacher']} {np.mean(c['original']):.2f} to {np.mean(c['mig']):.2f}"
        for c in numbers["cells"]
    )
    works = {
        value: [rows[_key(c)].verdict == "holds" for c in numbers["cells"] if value in (c["gap"], c["teacher"])]
        for value in (*_GAPS, *_TEACHERS)
    }
    counted = ", ".join(f"{value} {sum(found)} of {len(found)}" for value, found in works.items())
    return f"Mean MIG of fresh models, original to changed: {text}. Cells in which the change works: {counted}."
