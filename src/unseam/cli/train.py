"""`unseam train DATA ...`: a cohort of members, seeds x hyperparameters."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import tyro
from rich.table import Table
from rich.text import Text

from unseam.cli.common import (
    UNFINISHED_MARK,
    AsJson,
    MaybePath,
    Options,
    convert,
    emit,
    named_data,
    new_folder,
    parse_numbers,
    reading_note,
    stdout,
)
from unseam.data.names import DataScale
from unseam.errors import BadInput, literal_choices, lookup, unknown
from unseam.models import Architecture
from unseam.objectives import Optimiser
from unseam.progress import log
from unseam.run import Run, Training

if TYPE_CHECKING:
    from unseam.objectives import Objective
    from unseam.run.settings import OptimiserName


@dataclass
class Command:
    """Train a cohort on DATA: every seed times every combination of the hyperparameters given as lists.

    DATA is a name (`unseam data list`) or a path to your own table, array or image folder; its parameters are
    flags like --data.size 32. The objective's hyperparameters are flags too (`unseam objectives`): --beta 1,2,4,8.

    Example: unseam train sprites --data.size 32 --objective beta-vae --beta 1,4,8 --seeds 0..4 --steps 5000
    """

    data: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[DATA]")] = None
    """A data set's name or a path."""
    objective: str = "beta-vae"
    """What to train for; `unseam objectives` lists them."""
    seeds: str = "0"
    """One seed (0), a list (0,1,5) or a range (0..9)."""
    out: MaybePath = None
    """Run folder, new or empty; runs/DATA-OBJECTIVE when not given."""
    resume: MaybePath = None
    """Continue with a run that was stopped, or with a finished one to --steps N; all else but --device is the run's."""
    scale: Annotated[DataScale | None, tyro.conf.arg(metavar="standard|unit|none")] = None
    """Tables: every column to mean 0 and standard deviation 1, or to 0..1; undone when a member decodes."""
    optimiser: Annotated[str, tyro.conf.arg(metavar="|".join(literal_choices(Optimiser, "name")))] = Optimiser.name
    """How parameters step."""
    lr: float = Optimiser.lr
    """Learning rate."""
    b1: float = Optimiser.b1
    """Decay of Adam's first moment."""
    b2: float = Optimiser.b2
    """Decay of Adam's second moment."""
    eps: float = Optimiser.eps
    """Adam's epsilon; 0 makes it blind to the loss's scale."""
    weight_decay: float = Optimiser.weight_decay
    """Decoupled weight decay of Adam."""
    architecture: tyro.conf.OmitArgPrefixes[Architecture] = field(default_factory=Architecture)
    training: tyro.conf.OmitArgPrefixes[Training] = field(default_factory=Training)
    track: Annotated[str | None, tyro.conf.arg(metavar="tensorboard|wandb")] = None
    """Pass what is logged on to a tracker as well (extras `tensorboard`, `wandb`)."""
    json: AsJson = False
    options: Options = field(default_factory=dict)
    hyperparameters: Options = field(default_factory=dict)
    typed_flags: Annotated[list[str], tyro.conf.Suppress] = field(default_factory=list)  # every flag that was typed
    read: Annotated[str, tyro.conf.Suppress] = ""  # what was read of the user's own file

    @staticmethod
    def option_names() -> list[str]:
        """Flags that belong to objectives: their hyperparameters and settings."""
        from unseam.objectives import OBJECTIVES  # not above: --help needs no torch

        return sorted({f.name for kind in OBJECTIVES.values() for f in fields(kind)})  # type: ignore[arg-type]

    def run(self) -> None:
        run = self.go_on(self.resume) if self.resume else self.train()
        if self.json:
            emit({**_document(run), **({"read": self.read} if self.read else {})})
            return
        _show(run)
        if self.read:
            stdout.print(f"read: {self.read}", soft_wrap=True)

    def go_on(self, folder: Path) -> Run:
        """A resumed run is what it was begun as, so a flag that asks for something else is refused, not ignored."""
        others = [flag for flag in self.typed_flags if flag not in ("--resume", "--device", "--steps", "--json")]
        if self.data is not None or others:
            what = others[0] if others else repr(self.data)
            raise BadInput(
                f"{what} cannot be changed with --resume: {folder} continues with its own settings; leave it out"
            )
        from unseam.train import resume

        changes = {
            name: getattr(self.training, name) for name in ("device", "steps") if f"--{name}" in self.typed_flags
        }
        run = resume(folder, **changes)
        (folder / UNFINISHED_MARK).unlink(missing_ok=True)
        return run

    def train(self) -> Run:
        if self.data is None:
            raise BadInput("DATA is missing; name a data set (`unseam data list`) or give a path")
        from unseam.data import likelihood_options
        from unseam.objectives import OBJECTIVES
        from unseam.train import fit
        from unseam.train.cohort import check_free
        from unseam.train.fitting import free_folder

        scaled = {"scale": self.scale} if self.scale in ("standard", "unit") else {}
        data = named_data(
            self.data, {**likelihood_options(self.data, self.architecture.likelihood), **self.options, **scaled}
        )
        objective = lookup(OBJECTIVES, self.objective, "objective")
        strengths = hyper(self.objective, objective, self.hyperparameters)
        name = cast("OptimiserName", self.optimiser)  # checked by Optimiser, with a hint
        optimiser = Optimiser(name, self.lr, self.b1, self.b2, self.eps, self.weight_decay)
        self.read = reading_note(data) or ""
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda what, *_: log.warning(f"warning: {what}")
            seeds = parse_numbers(self.seeds, "--seeds", int)
            folder = self.out or free_folder(data, self.objective)
            check_free(folder)
            with new_folder(folder):
                return fit(
                    data,
                    objective,
                    seeds=seeds,
                    out=folder,
                    scale=None if self.scale is None else "none",
                    track=self.track,
                    architecture=self.architecture,
                    training=self.training,
                    optimiser=optimiser,
                    hyperparameters=strengths,
                )


def hyper(name: str, objective: type[Objective], words: dict[str, str]) -> dict[str, Any]:
    """Parse words into numbers (lists for a sweep) and static settings of this objective."""
    from unseam.objectives import hyperparameters

    varying = hyperparameters(objective)
    known = {f.name: f.type for f in fields(objective)}  # type: ignore[arg-type]
    out: dict[str, Any] = {}
    for word, value in words.items():
        if word not in known:
            raise unknown(f"{name}: hyperparameter", word, known or ["(none)"])
        flag = f"--{word}"
        out[word] = parse_numbers(value, flag) if word in varying else convert(value, _plain(known[word]), flag)
    return out


def _plain(kind: Any) -> Any:
    return {"int": int, "bool": bool, "str": str}.get(kind, str) if isinstance(kind, str) else kind


def _document(run: Run) -> dict[str, Any]:
    rows = run.table().drop(columns=["note"])
    return {"run": run.folder, "members": rows.to_dict("records")}


def in_nats(value: float) -> str:
    """Short enough for a table, however large.

    >>> in_nats(7.716), in_nats(1.4973e25), in_nats(float("nan"))
    ('7.72', '1.5e+25', '-')
    """
    if not isfinite(value):
        return "-"
    return f"{value:.2f}" if abs(value) < 1e6 else f"{value:.2g}"


def _show(run: Run) -> None:
    """The members as a table, and where the run is."""
    frame = run.table()
    varying = [c for c in frame.columns[2 : frame.columns.get_loc("status")] if frame[c].nunique() > 1]
    title = f"{run.config.objective} on {run.data_name}, {run.config.training.steps} steps"
    table = Table(title=Text(title))
    for name in ("member", "seed", *varying, "status", "loss", "reconstruction", "kl", "active"):
        table.add_column(name, justify="left" if name == "status" else "right")
    for row in frame.to_dict("records"):
        cells = [f"{row[c]:g}" for c in varying]
        nats = [in_nats(row[c]) for c in ("loss", "reconstruction", "kl")]
        table.add_row(f"{row['member']}", f"{row['seed']}", *cells, row["status"], *nats, f"{row['active']}")
    stdout.print(table)
    for row in frame[frame["note"] != ""].to_dict("records"):
        what = "stopped early" if row["status"] == "diverged" else row["status"]
        print(f"member {row['member']} {what}: {row['note']}")
    print(f"run folder: {run.folder}")
    print(f"next: unseam report {shlex.quote(str(run.folder))}")
