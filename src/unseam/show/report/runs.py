"""A folder of runs: which there are, what is found of each, and all members of one data set ordered without labels.

What is wrong with one run (damaged, unfinished) is said in its row and does not hide the others. Only runs on the same
data are compared with each other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unseam.errors import BadInput
from unseam.runs.names import data_name, data_place
from unseam.show.report import made
from unseam.show.report.cohort import Judged, judge, scores_of
from unseam.show.report.view import Findings, View, find
from unseam.train import load_run


@dataclass(frozen=True)
class Entry:
    """One run of the folder: what was found of it, or why nothing can be shown."""

    name: str  # its folder, seen from the one above
    number: int = 0  # on the page, from 1; 0 when it is not shown
    found: Findings | None = None
    reason: str = ""


@dataclass(frozen=True)
class Group:
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
        return Entry(name, number, find(load_run(folder), show=show, number=number))
    except BadInput as error:
        return Entry(name, reason=str(error))
    except Exception as error:  # whatever is wrong with one run, the others are shown
        text = str(error).splitlines()[0] if str(error) else ""
        return Entry(name, reason=f"cannot be read ({type(error).__name__}: {text})")


def grouped(entries: Sequence[Entry]) -> list[Group]:
    """Runs by their data, the data with the most members first."""
    by_data: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.found is not None:
            config = entry.found.run.config
            by_data.setdefault(repr((sorted(config.data.items()), sorted(config.digests.items()))), []).append(entry)
    runs = [[entry.found.run for entry in some if entry.found] for some in by_data.values()]
    names = [data_name(each[0]) for each in runs]
    options = [made.data_options(each[0]) for each in runs]
    labels = [
        name if names.count(name) == 1 else f"{name} ({settings_words(told) or data_place(each[0]) or 'as it comes'})"
        for name, told, each in zip(names, options, runs, strict=True)
    ]
    groups = [group(label, some) for label, some in zip(labels, by_data.values(), strict=True)]
    return sorted(groups, key=lambda g: -len(g.views))


def group(label: str, entries: list[Entry]) -> Group:
    """Order all members of runs on one data set without labels, and ask every metric that they share."""
    found = [entry.found for entry in entries if entry.found]
    views = [view for each in found for view in each.views]
    judged = judge(views, [scores for each in found for scores in scores_of(each.run, each.views)])
    return Group(label, entries, [views[i] for i in judged.order], judged)


def settings_words(settings: dict[str, Any]) -> str:
    """beta 0.5, 1.5; lr 0.002.

    >>> settings_words({"beta": [0.5, 1.5], "encoder": (64, 64), "network": "mlp", "steps": 3000})
    'beta 0.5, 1.5; encoder 64-64; network mlp; steps 3000'
    """

    def said(value: Any) -> str:
        if isinstance(value, list):
            return ", ".join(map(said, value))
        if isinstance(value, tuple):
            return "-".join(map(said, value))
        return f"{value:g}" if isinstance(value, float) else str(value)

    return "; ".join(f"{name} {said(value)}" for name, value in settings.items())
