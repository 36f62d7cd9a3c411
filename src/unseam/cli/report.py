"""`unseam report RUN|DIR`: one self-contained HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from unseam.cli.common import emit, stdout


@dataclass
class Command:
    """Write a run's report: verdict, numbers, traversals, the cohort, how it was made. One file, no network.

    A folder of runs becomes one page on which they are compared.

    Example: unseam report runs/sprites-beta-vae --figures paper/figures --formats pdf,svg
    """

    run_folder: tyro.conf.Positional[Path]
    """The run folder, or a folder of run folders."""
    out: Path | None = None
    """The report's file; report.html in the folder when not given."""
    member: int | None = None
    """Which member is shown first; the one that geometry prefers when not given."""
    figures: Path | None = None
    """Also save every figure in this folder."""
    formats: str = "pdf"
    """Formats of these figures: svg, pdf, png, separated by commas."""
    json: bool = False
    """Print one JSON document."""

    def run(self) -> None:
        from unseam.show.report.write import write

        formats = [name.strip() for name in self.formats.split(",")]
        done = write(self.run_folder, self.out, self.member, figures=self.figures, formats=formats)
        if self.json:
            told = {"chosen": done.chosen.member, "chosen_run": done.run, "verdict": done.chosen.diagnosis.verdict}
            file = {"report": done.path, "bytes": done.path.stat().st_size, "figures": self.figures}
            emit({"run": self.run_folder, **file, **told, "rows": done.rows.to_json()})
            return
        stdout.print(f"chosen without labels: {done.chosen.name}; scores on {done.rows}")
        stdout.print(f"report: {done.path}", soft_wrap=True)
