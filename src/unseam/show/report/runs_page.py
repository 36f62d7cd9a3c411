"""The page of a folder of runs: what stands in its tables, figures and sentences."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from unseam.errors import BadInput
from unseam.files import write_atomic
from unseam.runs.choose import RULE
from unseam.runs.evaluate import rows_for
from unseam.runs.names import data_name
from unseam.show.pictures import Album
from unseam.show.report import made
from unseam.show.report.cohort import member_numbers, sweep_figures
from unseam.show.report.page import Shown, fill, inline, member_pages, save_figures
from unseam.show.report.runs import Entry, Group, grouped, look_at_all, settings_words
from unseam.show.report.scatter import run_colour
from unseam.show.report.view import View
from unseam.show.report.words import headline, sentence
from unseam.train import Run

FIRST = 10  # members of a ranking that are shown at once


def report_runs(
    folder: Path,
    runs: Sequence[Path],
    path: Path,
    figures: Path | None = None,
    formats: Sequence[str] = ("pdf",),
    show: bool | None = None,
) -> tuple[View, Run]:
    """Look at every run, put them on one page and write it, whole or not at all; returns the first data set's best."""
    entries = look_at_all(folder, runs, show)
    groups = grouped(entries)
    if not groups:
        reasons = "; ".join(f"{entry.name}: {entry.reason}" for entry in entries[:3])
        raise BadInput(f"run={str(folder)!r} holds no run that can be shown, {len(entries)} found: {reasons}")
    drawn = [group_figures(group) for group in groups]
    shared, album = [inline(each, f"data-{n}") for n, each in enumerate(drawn)], Album()
    pages = member_pages(wanted(groups), album, show, sum(len(text) for each in shared for text in each.values()))
    write_atomic(path, render(folder, entries, groups, album, pages, shared))
    if figures is not None:
        for n, each in enumerate(drawn):
            save_figures({f"data-{n}-{name}": figure for name, figure in each.items()}, figures, formats)
    best = groups[0].best
    home = next(entry.found.run for entry in groups[0].entries if entry.found and entry.number == best.run)
    return best, home


def group_figures(group: Group) -> dict[str, Figure]:
    chosen = [entry.found.chosen for entry in group.entries if entry.found]
    ordered = sorted(group.views, key=lambda view: (view.run, view.member))
    return sweep_figures(ordered, chosen) if len(ordered) > 1 else {}


def wanted(groups: Sequence[Group]) -> list[tuple[Run, View, bool]]:
    """The best of each data set, the chosen member of every run, then the others in their order."""
    runs = {entry.number: entry.found for group in groups for entry in group.entries if entry.found}
    best, chosen = [group.best for group in groups], [found.chosen for found in runs.values()]
    views = sorted((v for group in groups for v in group.views), key=lambda v: (v not in best, v not in chosen))
    return [(runs[view.run].run, view, True) for view in views]


def render(
    folder: Path,
    entries: Sequence[Entry],
    groups: Sequence[Group],
    album: Album,
    pages: Sequence[Shown],
    shared: Sequence[dict[str, Markup]],
) -> str:
    """Fill in the template."""
    rows = {number: row for group in groups for number, row in run_rows(group).items()}
    names = {entry.number: entry.name for entry in entries if entry.found}
    return fill(
        "runs.html",
        album,
        folder=folder.resolve().name,
        place=folder,
        rule=RULE,
        entries=entries,
        groups=groups,
        rows=rows,
        colours={number: run_colour(number) for number in rows},
        names=names,
        headline=headline_of(groups, names),
        leads=[lead(group, names) for group in groups],
        rankings=[ranking_rows(group) for group in groups],
        first=FIRST,
        pages=pages,
        full={each.page.view.anchor for each in pages},
        total=sum(len(group.views) for group in groups),
        shared=shared,
        factors=groups[0].best.factors,
    )


def run_rows(group: Group) -> dict[int, dict[str, Any]]:
    """The rows of the table for runs on one data set, by the run's number."""
    told = made.differing([entry.found.run for entry in group.entries if entry.found])
    return {entry.number: run_row(entry, settings) for entry, settings in zip(group.entries, told, strict=True)}


def run_row(entry: Entry, settings: dict[str, Any]) -> dict[str, Any]:
    """One run of the table: what it is, and its numbers: the chosen member's, the mean over members, the best."""
    found = entry.found
    assert found is not None
    migs = [view.mig.value for view in found.views if view.mig is not None]
    active = sorted({view.active for view in found.views})
    numbers = member_numbers(found.chosen)
    return {
        "data": data_name(found.run),
        "objective": found.run.config.objective,
        "members": len(found.run.members),
        "finished": len(found.views),
        "seeds": len({member.seed for member in found.run.members}),
        "settings": settings_words(settings),
        "mig": {"chosen": numbers["mig"], "mean": np.mean(migs), "best": max(migs)} if migs else {},
        "dto": found.chosen.relative_dto if found.chosen.active > 1 else None,
        "cost": found.chosen.cost,
        "active": f"{active[0]}" if len(active) == 1 else f"{active[0]} to {active[-1]}",
        "latents": found.run.config.architecture.latents,
        "headline": headline(found.chosen),
        "verdict": sentence(found.chosen.diagnosis.verdict),
        "command": made.command(found.run) or made.call(found.run),
        "taken": str(rows_for(found.run)),
    }


def headline_of(groups: Sequence[Group], names: dict[int, str]) -> str:
    """The first line: which member geometry prefers and what it holds; with several data sets, what there is."""
    if len(groups) > 1:
        members = sum(len(group.views) for group in groups)
        return f"{len(names)} runs on {len(groups)} data sets, {members} members."
    best = groups[0].best
    return f"Geometry prefers {best.name} of run {names[best.run]}: {headline(best)[0].lower()}{headline(best)[1:]}"


def lead(group: Group, names: dict[int, str]) -> str:
    """What the ranking of one data set says, and whether labels agree."""
    best, count = group.best, len(group.views)
    if count == 1:
        return f"On {group.data}: one member, that of run {names[best.run]}."
    text = (
        f"On {group.data}, {count} members of {len(group.entries)} run{'s' if len(group.entries) > 1 else ''}: without "
        f"labels {best.name} of run {names[best.run]} comes first"
    )
    migs = group.migs
    if not migs:
        return text + "."
    place = 1 + sum(value > migs[0] for value in migs)
    return f"{text}; by MIG ({migs[0]:.2f}) it is number {place}, and the best has {max(migs):.2f}."


def ranking_rows(group: Group) -> list[dict[str, Any]]:
    """Members from best to worst by geometry, with the numbers of each and its place by MIG."""
    migs = group.migs
    return [
        {
            "view": view,
            "order": i + 1,
            **member_numbers(view),
            "relative": view.relative_dto if view.active > 1 else None,
            "place": 1 + sum(other > migs[i] for other in migs) if migs else None,
        }
        for i, view in enumerate(group.views)
    ]
