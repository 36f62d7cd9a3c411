"""`unseam evaluate RUN`: every member of a run against the data's factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_args

import numpy as np
import tyro
from rich.table import Table

from unseam.cli.common import Device, MaybeInt, MaybePath, ModelData, OneMember, RunOrModel, emit, reading_note, stdout
from unseam.cli.model_file import run_of_file
from unseam.run import load_run
from unseam.runs.choices import Which

if TYPE_CHECKING:
    from unseam.metrics import Score


@dataclass
class Command:
    """Score a trained run: its codes against the data's true factors, on rows it was not trained on.

    A data set with too few held-out rows (500, or what a metric needs) is scored on all its rows; the output says so.

    Example: unseam evaluate runs/sprites-beta-vae --metrics mig,dci-disentanglement
    """

    run_folder: RunOrModel
    metrics: str = "mig"
    """Names separated by commas, or `all`."""
    member: OneMember = None
    rows: Annotated[Which | None, tyro.conf.arg(metavar="|".join(get_args(Which)))] = None
    """Which rows to score on; held-out ones where there are enough, else all. Where combinations of factors were left
    out (--data.without, share, correlate): full, with them, or left-out, those alone."""
    samples: MaybeInt = None
    """How many rows at most; 10,000, or what the metrics need."""
    factors: MaybePath = None
    """The factors, a table with one row per observation, for a run whose data came without (or other factors)."""
    seed: int = 0
    """Seed of the choice of rows and of the metrics."""
    ci: bool = False
    """Add 95 % intervals, by half-samples of the rows."""
    device: Device = "auto"
    data: ModelData = None
    json: bool = False
    """Print one JSON document: each member's scores, and their means over the members as `scores`."""

    def run(self) -> None:
        from unseam.runs.evaluate import evaluate, rows_for, with_factors

        run = (run_of_file(self.run_folder, self.data) or load_run(self.run_folder)).on(self.device)
        if self.factors is not None:
            run = with_factors(run, self.factors)
        members = None if self.member is None else [self.member]
        row_sample = rows_for(run, self.metrics, self.rows, self.samples, self.seed)
        scores = evaluate(run, self.metrics, members, self.samples, self.seed, self.ci, rows=self.rows)
        if self.json:
            rows = [{"member": m, "scores": {n: s.to_json() for n, s in each.items()}} for m, each in scores.items()]
            document = {"scores": _means(list(scores.values())), "members": rows, "rows": row_sample.to_json()}
            emit(
                {"run": run.folder, **document, **({"read": reading_note(run.data)} if reading_note(run.data) else {})}
            )
            return
        names = list(next(iter(scores.values())))
        stdout.print(f"{run.data_name}, {row_sample}", soft_wrap=True)
        if reading_note(run.data):
            stdout.print(f"read: {reading_note(run.data)}", soft_wrap=True)
        K = run.config.architecture.latents
        passive = {m: len(each[names[0]].settings["passive"]) for m, each in scores.items()}
        cells = {m: [f"{K - passive[m]} of {K}", *(_cell(each[n]) for n in names)] for m, each in scores.items()}
        for table in _tables(["latents", *names], cells):
            stdout.print(table)
        if any(passive.values()):
            stdout.print("latents: those in use, which are scored; the others have no vote", soft_wrap=True)
        for note in dict.fromkeys(note for each in scores.values() for s in each.values() for note in s.notes):
            stdout.print(note, soft_wrap=True)


def _tables(names: list[str], cells: Mapping[int, list[str]]) -> list[Table]:
    """A row per member; where that is too wide for the terminal, a row per metric and as many members as fit."""
    columns = zip(["member", *names], *([str(m), *row] for m, row in cells.items()), strict=True)
    if sum(max(map(len, column)) + 3 for column in columns) < stdout.width:
        return [_table("member", names, {str(m): row for m, row in cells.items()})]
    widest = max(len("member 00"), *(len(cell) for row in cells.values() for cell in row))
    fit = max(1, (stdout.width - max(map(len, names)) - 4) // (widest + 3))
    return [
        _table("", [f"member {m}" for m in some], {n: [cells[m][i] for m in some] for i, n in enumerate(names)})
        for some in (list(cells)[start : start + fit] for start in range(0, len(cells), fit))
    ]


def _table(first: str, columns: list[str], rows: Mapping[str, list[str]]) -> Table:
    table = Table(first)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for name, row in rows.items():
        table.add_row(name, *row)
    return table


def _cell(score: Score) -> str:
    return f"{score.value:.3f}" + (f" [{score.ci[0]:.3f}, {score.ci[1]:.3f}]" if score.ci else "")


def _means(members: list[dict[str, Score]]) -> dict[str, Any]:
    """Each metric's mean over the members, with its settings."""
    out = {}
    for name, first in members[0].items():
        scores = [member[name] for member in members if name in member]
        parts = [s.per_factor for s in scores if s.per_factor is not None]
        per_factor = np.mean(parts, axis=0).tolist() if parts else None
        value = float(np.mean([s.value for s in scores]))
        out[name] = {"value": value, "per_factor": per_factor, "settings": dict(first.settings)}
    return out
