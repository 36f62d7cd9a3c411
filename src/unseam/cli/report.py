"""`unseam report RUN|DIR`: one self-contained HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from unseam.cli.common import AsJson, MaybeInt, MaybePath, ModelData, ModelLikelihood, RunFolder, emit, stdout
from unseam.cli.model_file import run_of_file


@dataclass
class Command:
    """Write a run's report: verdict, numbers, traversals, the cohort, how it was made. One file, no network.

    A folder of runs becomes one page on which they are compared.

    Example: unseam report runs/sprites-beta-vae --save-figures paper/figures --formats pdf,svg
    """

    run_folder: RunFolder
    """The run folder, or a folder of run folders; or FILE.py:NAME, a model of your own, with --data."""
    out: MaybePath = None
    """The report's file; report.html in the folder when not given."""
    member: MaybeInt = None
    """Which member is shown first; the one that geometry prefers when not given."""
    figures: Annotated[Path | None, tyro.conf.arg(name="save-figures", metavar="DIR")] = None
    """Also save every figure in this folder."""
    formats: str = "pdf"
    """Formats of these figures: svg, pdf, png, separated by commas."""
    data: ModelData = None
    likelihood: ModelLikelihood = None
    json: AsJson = False

    def run(self) -> None:
        from unseam.runs.rank_members import SUCCESS
        from unseam.show.report.write import write_run_report

        formats = [name.strip() for name in self.formats.split(",")]
        run = run_of_file(self.run_folder, self.data, likelihood=self.likelihood) or self.run_folder
        done = write_run_report(run, self.out, self.member, figures=self.figures, formats=formats)
        if self.json:
            best = done.chosen and done.chosen.diagnosis
            document: dict[str, Any] = {"chosen": done.chosen and done.chosen.member, "chosen_run": done.run}
            document |= {"verdict": best and best.verdict, "warnings": best.warnings if best else []}
            file = {"report": done.path, "bytes": done.path.stat().st_size, "figures": self.figures}
            rows = {
                "rows": done.rows.to_json() if done.rows else None,
                "geometry_rows": done.at.to_json() if done.at else None,
            }
            quoted = {"success": SUCCESS} if done.chosen is not None and done.among > 1 else {}
            emit({"run": getattr(run, "folder", run), **file, **document, **quoted, **rows})
            return
        chosen = "none, because the objective has no decoder" if done.chosen is None else done.chosen.name
        where = [f"scores on {done.rows}"] * bool(done.rows) + [f"geometry at {done.at}"] * bool(done.at)
        success = f"; {SUCCESS}" if done.chosen is not None and done.among > 1 else ""
        stdout.print(f"chosen without labels: {chosen}{success}", soft_wrap=True)
        stdout.print(", ".join(where), soft_wrap=True) if where else None
        stdout.print(f"report: {done.path}", soft_wrap=True)
