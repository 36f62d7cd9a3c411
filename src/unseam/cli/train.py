"""`unseam train DATA ...`: a cohort of members, seeds x hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table
from rich.text import Text

from unseam.cli.common import emit, numbers, stdout
from unseam.cli.options import Options, convert, named_data
from unseam.errors import BadInput, choices, lookup, unknown
from unseam.models import Architecture
from unseam.objectives import OBJECTIVES, Objective, Optimiser, hyperparameters
from unseam.train import Run, Training, fit, resume


@dataclass
class Command:
    """Train a cohort on DATA: every seed times every combination of the hyperparameters given as lists.

    DATA is a name (`unseam data list`) or a path to your own .npy/.npz array or image folder; its parameters are
    flags like --data.size 32. The objective's hyperparameters are flags too (`unseam objectives`): --beta 1,2,4,8.

    Example: unseam train sprites --data.size 32 --objective beta-vae --beta 1,4,8 --seeds 0..4 --steps 5000
    """

    data: tyro.conf.Positional[str | None] = None
    """A data set's name or a path."""
    objective: str = "beta-vae"
    """What to train for; `unseam objectives` lists them."""
    seeds: str = "0"
    """One seed (0), a list (0,1,5) or a range (0..9)."""
    out: Path | None = None
    """Run folder; runs/DATA-OBJECTIVE when not given."""
    resume: Path | None = None
    """Go on with a run that was stopped; every other flag comes from the run."""
    optimiser: Annotated[str, tyro.conf.arg(metavar="|".join(choices(Optimiser, "name")))] = Optimiser.name
    """How parameters step."""
    lr: float = Optimiser.lr
    """Learning rate."""
    eps: float = Optimiser.eps
    """Adam's epsilon; 0 makes it blind to the loss's scale."""
    weight_decay: float = Optimiser.weight_decay
    """Decoupled weight decay of Adam."""
    architecture: tyro.conf.OmitArgPrefixes[Architecture] = field(default_factory=Architecture)
    training: tyro.conf.OmitArgPrefixes[Training] = field(default_factory=Training)
    json: bool = False
    """Print one JSON document."""
    options: Options = field(default_factory=dict)
    hyperparameters: Options = field(default_factory=dict)
    given: Annotated[list[str], tyro.conf.Suppress] = field(default_factory=list)  # every flag that was typed

    @staticmethod
    def option_names() -> list[str]:
        """Flags that belong to objectives: their hyperparameters and settings."""
        return sorted({f.name for kind in OBJECTIVES.values() for f in fields(kind)})  # type: ignore[arg-type]

    def run(self) -> None:
        run = self.go_on(self.resume) if self.resume else self.train()
        emit(document(run)) if self.json else show(run)

    def go_on(self, folder: Path) -> Run:
        """A resumed run is what it was begun as, so a flag that asks for something else is refused, not ignored."""
        others = [flag for flag in self.given if flag not in ("--resume", "--json")]
        if self.data is not None or others:
            told = others[0] if others else repr(self.data)
            raise BadInput(f"{told} cannot be changed with --resume: {folder} goes on as it was begun; leave it out")
        return resume(folder)

    def train(self) -> Run:
        if self.data is None:
            raise BadInput("DATA is missing; name a data set (`unseam data list`) or give a path")
        data, objective = named_data(self.data, self.options), lookup(OBJECTIVES, self.objective, "objective")
        settings = {f.name: getattr(self.architecture, f.name) for f in fields(Architecture) if f.name != "posterior"}
        settings |= {f.name: getattr(self.training, f.name) for f in fields(Training)}
        settings |= {
            "optimiser": self.optimiser,
            "lr": self.lr,
            "eps": self.eps,
            "weight_decay": self.weight_decay,
            **hyper(self.objective, objective, self.hyperparameters),
        }
        return fit(data, objective, seeds=numbers(self.seeds, "--seeds", int), out=self.out, **settings)


def hyper(name: str, objective: type[Objective], words: dict[str, str]) -> dict[str, Any]:
    """Words -> numbers (lists where a sweep was asked for) and static settings of this objective."""
    varying = hyperparameters(objective)
    known = {f.name: f.type for f in fields(objective)}  # type: ignore[arg-type]
    out: dict[str, Any] = {}
    for word, value in words.items():
        if word not in known:
            raise unknown(f"{name}: hyperparameter", word, known or ["(none)"])
        flag = f"--{word}"
        out[word] = numbers(value, flag) if word in varying else convert(value, _plain(known[word]), flag)
    return out


def _plain(kind: Any) -> Any:
    return {"int": int, "bool": bool, "str": str}.get(kind, str) if isinstance(kind, str) else kind


def document(run: Run) -> dict[str, Any]:
    rows = run.table().drop(columns=["note"])
    return {"run": run.folder, "members": rows.to_dict("records")}


def show(run: Run) -> None:
    """The members as a table, and where the run is."""
    frame = run.table()
    varying = [c for c in frame.columns[2 : frame.columns.get_loc("status")] if frame[c].nunique() > 1]
    title = f"{run.config.objective} on {run.config.data['name']}, {run.config.training.steps} steps"
    table = Table(title=Text(title))
    for name in ("member", "seed", *varying, "status", "loss", "reconstruction", "kl", "active"):
        table.add_column(name, justify="left" if name == "status" else "right")
    for row in frame.to_dict("records"):
        cells = [f"{row[c]:g}" for c in varying]
        nats = [f"{row[c]:.2f}" if isfinite(row[c]) else "-" for c in ("loss", "reconstruction", "kl")]
        table.add_row(f"{row['member']}", f"{row['seed']}", *cells, row["status"], *nats, f"{row['active']}")
    stdout.print(table)
    for row in frame[frame["note"] != ""].to_dict("records"):
        print(f"member {row['member']} stopped early: {row['note']}")
    print(f"run folder: {run.folder}")
