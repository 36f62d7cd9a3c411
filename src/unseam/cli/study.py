"""`unseam study GRID --out DIR`: every model of a grid, trained and scored; and what to do with a study."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.text import Text

from unseam.cli.common import AsJson, MaybeFloat, MaybeInt, MaybePath, MaybeText, emit, parse_numbers, stdout
from unseam.errors import BadInput

ACTS = ("show", "analyse", "table", "work")


@dataclass
class Command:
    """Train and score every model of a grid: data sets x methods x strengths x seeds. Run it again to continue.

    GRID is a preset (minute, hour, evening, locatello) or a TOML file. `unseam study show GRID` says how many models,
    how long here and how much disk; `unseam study show DIR` how far a study is. `unseam study table DIR --out FILE`
    writes one row per model (.parquet, .csv); `unseam study analyse DIR` one page of what the models say together.

    Example: unseam study minute --out studies/first
    """

    grid: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="GRID|show|table|analyse")]
    """A grid, or what to do with the second word."""
    target: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[GRID|DIR]")] = None
    """The grid or study of show, table and analyse."""
    out: MaybePath = None
    """Folder of the study; studies/GRID when not given. Of table and analyse: where they write."""
    on: str = "here"
    """here; dask (its processes here); tcp://HOST:PORT of a Dask scheduler; or slurm, pbs, lsf."""
    workers: int = 0
    """Processes, or jobs of a cluster; 0: one per core."""
    models: MaybeText = None
    """Only these models, by their numbers (in `locatello` the published model_num): 0..49 or 3,1800."""
    device: MaybeText = None
    """Where models are trained: auto, cpu, cuda, cuda:N or mps; the grid's own, else the CPU, when not given."""
    options: MaybeText = None
    """Options of the cluster's jobs, for dask-jobqueue: queue=short,walltime=01:00:00,memory=2GB."""
    deadline: MaybeFloat = None
    """Seconds after which a task leaves its piece at a checkpoint; for jobs with a time limit."""
    print_jobs: bool = False
    """Print a job array (SLURM, PBS, LSF) that advances one piece a task, and stop."""
    piece: MaybeInt = None
    """With `work DIR`: advance this piece only (what a task of the printed job array does)."""
    json: AsJson = False
    typed_flags: Annotated[list[str], tyro.conf.Suppress] = field(default_factory=list)

    def run(self) -> None:
        if self.grid in ACTS and self.target is None:
            raise BadInput(f"unseam study {self.grid} needs a second word: a grid or the folder of a study")
        if self.grid not in ACTS and self.target is not None:
            raise BadInput(f"unexpected argument {self.target!r}; write `unseam study {self.grid} --out DIR`")
        {"show": self.show, "analyse": self.analyse, "table": self.table, "work": self.work}.get(
            self.grid, self.study
        )()

    def study(self) -> None:
        from unseam.study import study

        out = self.out or Path("studies") / Path(self.grid).stem
        if self.print_jobs:
            self.jobs(out)
            return
        found = study(self.grid, out, on=self.on, workers=self.workers, models=self.chosen(), deadline=self.deadline,
                      options=self.options, device=self.device)  # fmt: skip
        emit(found) if self.json else tell(found)

    def chosen(self) -> list[int] | None:
        return None if self.models is None else parse_numbers(self.models, "--models", int)

    def jobs(self, out: Path) -> None:
        from unseam.study.cluster import job_array
        from unseam.study.engine import check_grid
        from unseam.study.grid import load_grid
        from unseam.study.pieces import start_study

        grid = load_grid(self.grid, None if self.models is None else tuple(self.chosen() or ()))
        check_grid(grid, self.device)
        start_study(out, grid)
        script = job_array(out, len(grid.pieces), self.deadline, self.device)
        emit({"study": out, "pieces": len(grid.pieces), "script": script}) if self.json else print(script)

    def show(self) -> None:
        from unseam.study.cost import cost
        from unseam.study.engine import study_summary
        from unseam.study.grid import load_grid
        from unseam.study.pieces import open_study, places

        if Path(str(self.target), "study.json").is_file():
            folder = Path(str(self.target))
            found = study_summary(folder, places(folder, open_study(folder)))
            emit(found) if self.json else tell(found)
            return
        grid = load_grid(str(self.target), None if self.models is None else tuple(self.chosen() or ()))
        found = cost(grid, self.workers)
        emit(found) if self.json else stdout.print(_in_words(found), soft_wrap=True)

    def table(self) -> None:
        from unseam.study import load

        out = load(str(self.target)).save(self.out or Path(str(self.target)) / "table.parquet")
        emit({"table": out}) if self.json else print(f"table: {out}")

    def analyse(self) -> None:
        from unseam.show.pages.study import write_analysis

        target = Path(str(self.target))
        found = write_analysis(target, self.out or (target if target.is_dir() else target.with_suffix("")) / "analysis")
        if self.json:
            emit(found)
            return
        for sentence in found["answers"]:
            stdout.print(Text(sentence))
        for name, path in found["tables"].items():
            print(f"{name}: {path}")
        print(f"page: {found['page']}")

    def work(self) -> None:
        from unseam.study.engine import one_piece, work_on_study

        if self.piece is None:
            work_on_study(str(self.target), device=self.device)
            return
        state = one_piece(str(self.target), self.piece, self.deadline, self.device)
        emit({"piece": self.piece, "state": state}) if self.json else print(f"piece {self.piece}: {state}")


def tell(found: dict[str, Any]) -> None:
    running = f", {found['running']} running" if found["running"] else ""
    print(f"{found['models']} of {found['of']} models in {found['done']} of {found['pieces']} pieces{running}, "
          f"{found['diverged']} diverged")  # fmt: skip
    print(f"study: {found['study']}")
    if found["models"] == found["of"]:
        print(f"what its models say together: unseam study analyse {found['study']}")


def _in_words(found: dict[str, Any]) -> str:
    """Models, hours and disk.

    >>> print(_in_words({"grid": "g", "models": 2, "pieces": 1, "workers": 2, "unknown": "no data"}))
    g: 2 models in 1 pieces; time and disk are not known here: no data
    """
    head = f"{found['grid']}: {found['models']:,} models in {found['pieces']:,} pieces"
    if "unknown" in found:
        return f"{head}; time and disk are not known here: {found['unknown']}"
    return (
        f"{head}; on {found['workers']} quiet cores {hours(found['training_hours'])} of training and "
        f"{hours(found['evaluation_hours'])} of evaluation ({found['evaluation_seconds']:.1f} s a model), "
        f"{found['bytes'] / 2**20:,.0f} MB of disk"
    )


def hours(h: float) -> str:
    """As people say it.

    >>> hours(0.01), hours(0.5), hours(30)
    ('36 s', '30 min', '30 h')
    """
    return f"{h * 3600:.0f} s" if h < 1 / 30 else f"{h * 60:.0f} min" if h < 2 else f"{h:,.0f} h"
