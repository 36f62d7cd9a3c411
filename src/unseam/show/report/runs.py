"""A folder of runs: which there are, what is found of each, and all members of one data set ordered without labels.

What is wrong with one run (damaged, unfinished) is shown in its row and does not hide the others. Only runs on the same
data are compared with each other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from unseam.atomic import write_atomic
from unseam.errors import BadInput
from unseam.run import Run, load_run
from unseam.runs.evaluate import rows_for
from unseam.runs.labels import data_place
from unseam.runs.rank_members import RULE, SUCCESS
from unseam.show.pictures import Album
from unseam.show.report import provenance
from unseam.show.report.cohort import Judged, judge, member_numbers, run_colour, scores_of, sweep_figures
from unseam.show.report.collect import ReportData, View, collect_report
from unseam.show.report.page import Shown, fill, inline, member_pages, save_figures
from unseam.show.report.sentences import headline


@dataclass(frozen=True)
class Entry:
    """One run of the folder: what was found of it, or why nothing can be shown."""

    name: str  # its folder, seen from the one above
    number: int = 0  # on the page, from 1; 0 when it is not shown
    found: ReportData | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Group:
    """Runs on the same data, and their members from best to worst by geometry alone."""

    data: str
    entries: list[Entry]
    views: list[View]
    judged: Judged

    @property
    def best(self) -> View:
        return self.views[0]

    @property
    def migs(self) -> list[float]:
        """In the order of `views`; none where the data has no factors or there are too few members to compare."""
        migs = self.judged.scores.get("mig")
        return [migs[i] for i in self.judged.order] if migs else []


def run_folders(folder: Path) -> list[Path]:
    """Folders with a config.json one or two levels down. What lies inside a run is its own."""
    found: list[Path] = []
    for child in inside(folder):
        found += [child] if is_run(child) else [grandchild for grandchild in inside(child) if is_run(grandchild)]
    if not found and folder.is_dir() and not is_run(folder):
        raise BadInput(
            f"run={str(folder)!r} is neither a run folder nor a folder of runs (no config.json in it, nor one or two "
            "levels down); train a run with `unseam train`, or name the folder that holds your runs"
        )
    return found


def is_run(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def inside(folder: Path) -> list[Path]:
    """Folders in a folder, run-2 before run-10; hidden ones and those that may not be read are left out."""
    try:
        children = [child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(".")]
    except OSError:
        return []
    return sorted(children, key=lambda child: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", child.name)])


def look_at_all(folder: Path, runs: Sequence[Path], show: bool | None) -> list[Entry]:
    """The runs that can be shown, numbered, and after them the others with the reason."""
    shown: list[Entry] = []
    others: list[Entry] = []
    for run in runs:
        entry = look_at(run.relative_to(folder).as_posix(), run, len(shown) + 1, show)
        (shown if entry.found else others).append(entry)
    return shown + others


def look_at(name: str, folder: Path, number: int, show: bool | None) -> Entry:
    try:
        return Entry(name, number, collect_report(load_run(folder), show=show, number=number))
    except BadInput as error:
        return Entry(name, reason=str(error))
    except Exception as error:  # one broken run does not hide the others
        text = str(error).splitlines()[0] if str(error) else ""
        return Entry(name, reason=f"cannot be read ({type(error).__name__}: {text})")


def grouped(entries: Sequence[Entry]) -> list[_Group]:
    """Runs by their data, the data with the most members first."""
    by_data: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.found is not None:
            config = entry.found.run.config
            by_data.setdefault(repr((sorted(config.data.items()), sorted(config.digests.items()))), []).append(entry)
    runs = [[entry.found.run for entry in some if entry.found] for some in by_data.values()]
    names = [each[0].data_name for each in runs]
    options = [provenance.data_options(each[0]) for each in runs]
    labels = [
        name if names.count(name) == 1 else f"{name} ({settings_words(option) or data_place(each[0]) or 'as it comes'})"
        for name, option, each in zip(names, options, runs, strict=True)
    ]
    groups = [group(label, some) for label, some in zip(labels, by_data.values(), strict=True)]
    return sorted(groups, key=lambda g: -len(g.views))


def group(label: str, entries: list[Entry]) -> _Group:
    """Order all members of runs on one data set without labels, and ask every metric that they share."""
    found = [entry.found for entry in entries if entry.found]
    views = [view for each in found for view in each.views]
    judged = judge(views, [scores for each in found for scores in scores_of(each.run, each.views)])
    return _Group(label, entries, [views[i] for i in judged.order], judged)


def settings_words(settings: dict[str, Any]) -> str:
    """beta 0.5, 1.5; lr 0.002.

    >>> settings_words({"beta": [0.5, 1.5], "encoder": (64, 64), "network": "mlp", "steps": 3000})
    'beta 0.5, 1.5; encoder 64-64; network mlp; steps 3000'
    """

    def option_text(value: Any) -> str:
        if isinstance(value, list):
            return ", ".join(map(option_text, value))
        if isinstance(value, tuple):
            return "-".join(map(option_text, value))
        return f"{value:g}" if isinstance(value, float) else str(value)

    return "; ".join(f"{name} {option_text(value)}" for name, value in settings.items())


# The page of a folder of runs: its tables, figures and sentences.


_FIRST = 10  # members of a ranking that are shown at once


def report_runs(
    folder: Path,
    runs: Sequence[Path],
    path: Path,
    figures: Path | None = None,
    formats: Sequence[str] = ("pdf",),
    show: bool | None = None,
) -> tuple[View, Run]:
    """Write one page on all runs, atomically; returns the best member of the first data set."""
    entries = look_at_all(folder, runs, show)
    groups = grouped(entries)
    if not groups:
        reasons = "; ".join(f"{entry.name}: {entry.reason}" for entry in entries[:3])
        raise BadInput(f"run={str(folder)!r} holds no run that can be shown, {len(entries)} found: {reasons}")
    drawn = [group_figures(group) for group in groups]
    shared, album = [inline(each, f"data-{n}") for n, each in enumerate(drawn)], Album()
    pages = member_pages(wanted(groups), album, show, sum(len(text) for each in shared for text in each.values()))
    write_atomic(path, _render(folder, entries, groups, album, pages, shared))
    if figures is not None:
        for n, each in enumerate(drawn):
            save_figures({f"data-{n}-{name}": figure for name, figure in each.items()}, figures, formats)
    best = groups[0].best
    home = next(entry.found.run for entry in groups[0].entries if entry.found and entry.number == best.run)
    return best, home


def group_figures(group: _Group) -> dict[str, Figure]:
    chosen = [entry.found.chosen for entry in group.entries if entry.found]
    ordered = sorted(group.views, key=lambda view: (view.run, view.member))
    return sweep_figures(ordered, chosen) if len(ordered) > 1 else {}


def wanted(groups: Sequence[_Group]) -> list[tuple[Run, View, bool]]:
    """The best of each data set, the chosen member of every run, then the others in their order."""
    runs = {entry.number: entry.found for group in groups for entry in group.entries if entry.found}
    best, chosen = [group.best for group in groups], [found.chosen for found in runs.values()]
    views = sorted((v for group in groups for v in group.views), key=lambda v: (v not in best, v not in chosen))
    return [(runs[view.run].run, view, True) for view in views]


def _render(
    folder: Path,
    entries: Sequence[Entry],
    groups: Sequence[_Group],
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
        success=SUCCESS,
        entries=entries,
        groups=groups,
        rows=rows,
        colours={number: run_colour(number) for number in rows},
        names=names,
        headline=headline_of(groups, names),
        leads=[_lead(group, names) for group in groups],
        rankings=[ranking_rows(group) for group in groups],
        first=_FIRST,
        pages=pages,
        full={each.page.view.anchor for each in pages},
        total=sum(len(group.views) for group in groups),
        shared=shared,
        factors=groups[0].best.factors,
    )


def run_rows(group: _Group) -> dict[int, dict[str, Any]]:
    """The rows of the table for runs on one data set, by the run's number."""
    option = provenance.differing([entry.found.run for entry in group.entries if entry.found])
    return {entry.number: run_row(entry, settings) for entry, settings in zip(group.entries, option, strict=True)}


def run_row(entry: Entry, settings: dict[str, Any]) -> dict[str, Any]:
    """One run of the table: what it is, and its numbers: the chosen member's, the mean over members, the best."""
    found = entry.found
    assert found is not None
    migs = [view.mig.value for view in found.views if view.mig is not None]
    active = sorted({view.active for view in found.views})
    numbers = member_numbers(found.chosen)
    return {
        "data": found.run.data_name,
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
        "verdict": found.chosen.diagnosis.verdict,
        "command": provenance.command(found.run) or provenance.call(found.run),
        "taken": str(rows_for(found.run)),
    }


def headline_of(groups: Sequence[_Group], names: dict[int, str]) -> str:
    """The first line: which member geometry prefers and what it holds; with several data sets, what there is."""
    if len(groups) > 1:
        members = sum(len(group.views) for group in groups)
        return f"{len(names)} runs on {len(groups)} data sets, {members} members."
    best = groups[0].best
    return f"Geometry prefers {best.name} of run {names[best.run]}: {headline(best)[0].lower()}{headline(best)[1:]}"


def _lead(group: _Group, names: dict[int, str]) -> str:
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


def ranking_rows(group: _Group) -> list[dict[str, Any]]:
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
