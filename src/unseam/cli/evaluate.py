"""`unseam evaluate RUN`: every member of a run against the data's factors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.table import Table

from unseam.cli.common import emit, stdout
from unseam.evaluate import evaluate
from unseam.train import load_run


@dataclass
class Command:
    """Score a trained run: codes of held-out rows against the data's true factors.

    Example: unseam evaluate runs/sprites-beta-vae --metrics mig,dci-disentanglement
    """

    run_folder: tyro.conf.Positional[Path]
    """The run folder."""
    metrics: str = "mig"
    """Names separated by commas, or `all`."""
    member: int | None = None
    """One member; all when not given."""
    samples: int = 10_000
    """How many rows to score on."""
    seed: int = 0
    """Which rows, and the metrics' own randomness."""
    json: bool = False
    """Print one JSON document."""

    def run(self) -> None:
        run = load_run(self.run_folder)
        members = range(len(run.members)) if self.member is None else [self.member]
        scores = evaluate(run, self.metrics, members, self.samples, self.seed)
        if self.json:
            rows = [{"member": m, "scores": {n: s.to_json() for n, s in each.items()}} for m, each in scores.items()]
            emit({"run": run.folder, "scores": rows[0]["scores"] if len(rows) == 1 else {}, "members": rows})
            return
        names = list(next(iter(scores.values())))
        table = Table(title=f"{self.samples} rows of {run.config.data['name']}")
        for name in ("member", *names):
            table.add_column(name, justify="right")
        for m, each in scores.items():
            table.add_row(str(m), *(f"{each[n].value:.3f}" for n in names))
        stdout.print(table)
