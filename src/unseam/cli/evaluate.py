"""`unseam evaluate RUN`: every member of a run against the data's factors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from rich.table import Table

from unseam.cli.common import emit, stdout
from unseam.metrics import Score
from unseam.runs.evaluate import evaluate, rows_for
from unseam.train import load_run


@dataclass
class Command:
    """Score a trained run: its codes against the data's true factors, on rows it was not trained on.

    A data set with too few held-out rows (500, or what a metric needs) is scored on all its rows; the output says so.

    Example: unseam evaluate runs/sprites-beta-vae --metrics mig,dci-disentanglement
    """

    run_folder: tyro.conf.Positional[Path]
    """The run folder."""
    metrics: str = "mig"
    """Names separated by commas, or `all`."""
    member: int | None = None
    """One member; all when not given."""
    rows: Annotated[Literal["held-out", "trained", "all"] | None, tyro.conf.arg(metavar="held-out|trained|all")] = None
    """Which rows to score on; held-out ones where there are enough, else all."""
    samples: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """How many rows at most; 10,000, or what the metrics need."""
    seed: int = 0
    """Which rows, and the metrics' own randomness."""
    ci: bool = False
    """Add 95 % bootstrap intervals."""
    json: bool = False
    """Print one JSON document: each member's scores, and their means over the members as `scores`."""

    def run(self) -> None:
        run = load_run(self.run_folder)
        members = range(len(run.members)) if self.member is None else [self.member]
        taken = rows_for(run, self.metrics, self.rows, self.samples, self.seed)
        scores = evaluate(run, self.metrics, members, self.samples, self.seed, self.ci, rows=self.rows)
        if self.json:
            rows = [{"member": m, "scores": {n: s.to_json() for n, s in each.items()}} for m, each in scores.items()]
            document = {"scores": means(list(scores.values())), "members": rows, "rows": taken.to_json()}
            emit({"run": run.folder, **document})
            return
        names = list(next(iter(scores.values())))
        stdout.print(f"{run.config.data['name']}, {taken}", soft_wrap=True)
        table = Table()
        for name in ("member", *names):
            table.add_column(name, justify="right")
        for m, each in scores.items():
            table.add_row(str(m), *(cell(each[n]) for n in names))
        stdout.print(table)


def cell(score: Score) -> str:
    return f"{score.value:.3f}" + (f" [{score.ci[0]:.3f}, {score.ci[1]:.3f}]" if score.ci else "")


def means(members: list[dict[str, Score]]) -> dict[str, Any]:
    """Each metric's mean over the members, with its settings."""
    out = {}
    for name, first in members[0].items():
        scores = [member[name] for member in members if name in member]
        parts = [s.per_factor for s in scores if s.per_factor is not None]
        per_factor = np.mean(parts, axis=0).tolist() if parts else None
        value = float(np.mean([s.value for s in scores]))
        out[name] = {"value": value, "per_factor": per_factor, "settings": dict(first.settings)}
    return out
