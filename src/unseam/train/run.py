"""The public face of training: `fit(...) -> Run`, `load_run(folder) -> Run`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from unseam.data import config as data_config
from unseam.data import dataset_type, load_data, own_parameters
from unseam.data.base import Dataset
from unseam.data.checks import unit_range
from unseam.data.user import UserData
from unseam.data.wrappers import WRAPPERS, Wrapper
from unseam.data.wrappers import options as wrapper_options
from unseam.errors import BadInput, lookup, unknown
from unseam.files import remove_leftovers, write_atomic
from unseam.models import Architecture, Autoencoder
from unseam.objectives import OBJECTIVES, Objective, Optimiser
from unseam.train import own
from unseam.train.checkpoint import load_checkpoint
from unseam.train.cohort import check_free, plan, run_cohort, start_folder
from unseam.train.config import Member, RunConfig, Training, sweep
from unseam.train.group import weights_path
from unseam.train.order import split
from unseam.train.results import Results
from unseam.train.typed import typed
from unseam.types import Array


@dataclass(frozen=True)
class Run:
    """A run folder: its configuration, rows and models."""

    folder: Path
    config: RunConfig

    @cached_property
    def data(self) -> Dataset:
        """The data it was trained on; own files that have changed since are refused."""
        own.check(self.config.data, self.config.digests, self.folder)
        return load_data(**checked_options(self.data_config, self.folder))

    @property
    def data_config(self) -> dict[str, Any]:
        """`config.data` with the paths of now: those inside the run folder move with it."""
        return own.located(self.config.data, self.folder)

    @property
    def members(self) -> tuple[Member, ...]:
        return self.config.members

    @property
    def rows(self) -> Results:
        return Results(self.folder)

    def table(self) -> pd.DataFrame:
        """One row a member: seed, hyperparameters, status, final numbers."""
        frame = self.rows.read("runs").sort_values("member").reset_index(drop=True)
        try:
            hyper = pd.DataFrame([dict(json.loads(text)) for text in frame.pop("hyper")], index=frame.index)
        except (TypeError, ValueError):
            raise BadInput(f"{self.rows.path} is damaged: `hyper` holds no JSON objects; train the run again") from None
        return pd.concat([frame[["member", "seed"]], hyper, frame.drop(columns=["member", "seed"])], axis=1)

    def log(self) -> pd.DataFrame:
        """Long table: member, step, name, value."""
        return self.rows.read("log")

    def latents(self) -> pd.DataFrame:
        """Long table: member, step, latent and its statistics."""
        return self.rows.read("latents")

    def split(self, which: str = "held-out") -> Tensor:
        """Rows of the data: "held-out" (no member was trained on them; there may be none), "trained" or "all"."""
        train, test = split(len(self.data), self.config.training.holdout)
        return lookup({"held-out": test, "trained": train, "all": torch.arange(len(self.data))}, which, "rows")

    def held_out(self) -> Tensor:
        """Rows of the data no member was trained on (all rows when none were held out)."""
        return held if len(held := self.split("held-out")) else self.split("trained")

    def beta(self, member: int) -> float | None:
        """The weight of the KL in a member's loss, as its objective says (`kl_weight`); None where it does not."""
        hyper, kind = self.members[member].hyper, OBJECTIVES.get(self.config.objective)
        if kind is None:  # a user's own objective: what it said when it was trained
            return self.members[member].kl_weight
        known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
        gone = [name for name in (*hyper, *self.config.static) if name not in known]
        if gone:
            raise BadInput(
                f"{self.folder / 'config.json'}: hyperparameter {gone[0]!r} is not one of {self.config.objective} "
                f"({', '.join(known) or 'it has none'}); train the run again, or use the version of unseam that made it"
            )
        return kind(**hyper, **self.config.static).kl_weight()

    def snapshots(self) -> list[int]:
        """Steps at which weights were kept."""
        return sorted({int(p.stem.rsplit("-", 1)[1]) for p in (self.folder / "checkpoints").glob("*-step-*")})

    def kept_steps(self, member: int) -> list[int]:
        """Steps at which this member's weights were kept; a run that is still training may have them for some only."""
        return [step for step in self.snapshots() if self._weights_file(member, step)[0].exists()]

    def model(self, member: int, step: int | None = None) -> Autoencoder:
        """A member's model, in evaluation mode; at a snapshot's step when one is given."""
        model = self.config.architecture.build(self.data.shape, 0)
        weights, expected = self.weights(member, step), model.state_dict()
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in expected.items()}:
            raise BadInput(
                f"{self._weights_file(member, step)[0]} does not fit {self.folder / 'config.json'}: one of them is of "
                "another run or was changed; put back the one that belongs here, or train again"
            )
        model.load_state_dict(weights)
        return model.eval()

    def weights(self, member: int, step: int | None = None) -> dict[str, Tensor]:
        """A member's weights by name, in the precision they were trained in (`model` has them in single precision)."""
        path, position = self._weights_file(member, step)
        tensors = {n.removeprefix("model/"): t for n, t in load_checkpoint(path)[0].items() if n.startswith("model/")}
        if any(not t.dim() or len(t) <= position for t in tensors.values()):
            raise BadInput(f"checkpoint {path} holds no member {member}; delete it to train that part again")
        return {n: t[position] for n, t in tensors.items()}

    def weights_digest(self, member: int, step: int | None = None) -> str:
        """What tells these weights from any others: the digest that their checkpoint carries."""
        path, _ = self._weights_file(member, step)
        try:
            with safe_open(path, framework="pt") as file:
                return str((file.metadata() or {}).get("digest"))
        except (SafetensorError, OSError) as error:
            raise BadInput(f"checkpoint {path} cannot be read ({error}); delete it to train that part again") from None

    def _weights_file(self, member: int, step: int | None) -> tuple[Path, int]:
        """The checkpoint a member is in, and its place there."""
        if not 0 <= member < len(self.members):
            raise BadInput(f"member={member} is not in this run; it has members 0..{len(self.members) - 1}")
        number, position = next((g, m.index(member)) for g, m in enumerate(self.config.groups) if member in m)
        return weights_path(self.folder, number, step), position


def fit(
    data: str | Path | Array | Dataset,
    objective: str | type[Objective] = "beta-vae",
    *,
    seeds: Sequence[int] = (0,),
    out: str | Path | None = None,
    data_parameters: Mapping[str, Any] | None = None,
    show: bool | None = None,
    **settings: Any,
) -> Run:
    """Train a cohort: every seed times every combination of the hyperparameters given as lists.

    `settings` are the objective's hyperparameters (`beta=[1, 4]`), and the fields of `Architecture` (`latents=5`),
    `Training` (`steps=2000`) and `Optimiser` (`lr=1e-3`, `optimiser="adagrad"`), by name.

    >>> import tempfile
    >>> run = fit("synth-linear", "beta-vae", beta=[1e-4, 1e-2], seeds=[0, 1], steps=20, network="linear",
    ...             latents=2, data_parameters={"size": 500}, out=tempfile.mkdtemp() + "/run")
    >>> run.table()[["seed", "beta", "status"]].values.tolist()
    [[0, 0.0001, 'finished'], [1, 0.0001, 'finished'], [0, 0.01, 'finished'], [1, 0.01, 'finished']]
    """
    name, kind = _objective(objective)
    dataset = data if isinstance(data, Dataset) else load_data(data, **(data_parameters or {}))
    parts = _distribute(kind, settings)
    members, static = sweep(kind, seeds, parts["objective"])
    architecture = replace(Architecture(**parts["architecture"]), posterior=kind.posterior)
    if kind.learned_s2:
        if architecture.likelihood == "bernoulli":
            raise BadInput(f"{name} learns the variance of a Gaussian likelihood; leave out likelihood='bernoulli'")
        architecture = replace(architecture, learned_s2=True, likelihood="gaussian")
    architecture = architecture.for_data(dataset.shape, dataset.likelihood)
    training = Training(**parts["training"])
    _check(kind, architecture, training, dataset)
    optimiser = Optimiser(**parts["optimiser"])
    folder = Path(out) if out is not None else _free_folder(data, name)
    check_free(folder)
    kept = own.relative(data_config(_on_disk(dataset, folder)), folder)
    config = RunConfig(kept, name, static, members, architecture, training, optimiser)
    config = replace(config, digests=own.digests(kept, folder))
    config = plan(config, kind(**members[0].hyper, **static), dataset.shape)
    start_folder(folder, config)
    run_cohort(folder, config, kind, show)
    return Run(folder, config)


def resume(folder: str | Path, objective: type[Objective] | None = None, show: bool | None = None) -> Run:
    """Go on with a run that was stopped; a finished one is returned as it is."""
    run = load_run(folder)
    with suppress(OSError):  # a finished run may lie in a folder that can only be read
        remove_leftovers(run.folder, run.folder / "checkpoints")
    if _is_finished(run):
        return run
    run.rows.create()
    _ = run.data  # refused now if it has changed
    run_cohort(run.folder, run.config, objective or lookup(OBJECTIVES, run.config.objective, "objective"), show)
    return run


def _is_finished(run: Run) -> bool:
    """Whether every member has its row: a group writes them when all else is on disk."""
    try:
        return len(run.rows.read("runs")) >= len(run.members)
    except BadInput:  # no table yet
        return False


def load_run(folder: str | Path) -> Run:
    """Open a run folder."""
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise BadInput(
            f"run={str(folder)!r} is not a run folder (it has no config.json); train one with `unseam train`"
        )
    try:
        return Run(path, RunConfig.from_json(json.loads((path / "config.json").read_bytes())))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path / 'config.json'} is damaged: {error}; put a copy back, or train the run again") from None


def checked_options(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The stored parameters of a data set, each of the type that it takes."""
    kind = dataset_type(str(data["name"]))
    hints = {name: get_type_hints(w)[f.name] for w in WRAPPERS for name, f in wrapper_options(w).items()}
    hints |= {name: get_type_hints(kind)[f.name] for name, f in own_parameters(kind).items()}
    where = f"{folder / 'config.json'}: data"
    return {n: value if n not in hints else typed(hints[n], value, f"{where}.{n}") for n, value in data.items()}


def _objective(objective: str | type[Objective]) -> tuple[str, type[Objective]]:
    if isinstance(objective, str):
        return objective, lookup(OBJECTIVES, objective, "objective")
    return next((n for n, o in OBJECTIVES.items() if o is objective), objective.__name__), objective


def _distribute(kind: type[Objective], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each setting to the dataclass that has a field of that name."""
    homes = {"objective": kind, "architecture": Architecture, "training": Training, "optimiser": Optimiser}
    names = {home: [f.name for f in fields(c)] for home, c in homes.items()}
    parts: dict[str, dict[str, Any]] = {home: {} for home in homes}
    for name, value in settings.items():
        home = "optimiser" if name == "optimiser" else next((h for h in homes if name in names[h]), None)
        if home is None or name == "posterior":
            raise unknown("setting", name, [n for h in homes for n in names[h] if n != "posterior"])
        parts[home]["name" if name == "optimiser" else name] = value
    return parts


def _check(kind: type[Objective], architecture: Architecture, training: Training, data: Dataset) -> None:
    """What can be refused before the first step is."""
    if training.batch < kind.smallest_batch:
        raise BadInput(
            f"batch={training.batch} is too small: {kind.__name__} compares samples of a batch and needs at least "
            f"{kind.smallest_batch}"
        )
    train_rows, _ = split(len(data), training.holdout)
    if not len(train_rows):
        raise BadInput(f"the data has {len(data)} rows and holdout={training.holdout} leaves none to train on")
    if architecture.likelihood == "bernoulli" and data.likelihood != "bernoulli":
        unit_range(data)


def _on_disk(data: Dataset, folder: Path) -> Dataset:
    """Arrays in memory become files of the run, so that its processes and later readers find them."""
    if isinstance(data, Wrapper):
        return replace(data, of=_on_disk(data.of, folder))
    if not isinstance(data, UserData):
        return data
    for name in ("source", "factor_table"):
        array = getattr(data, name)
        if hasattr(array, "__array__"):
            content = BytesIO()
            np.save(content, np.asarray(array), allow_pickle=False)
            path = folder.resolve() / f"{name}.npy"
            write_atomic(path, content.getvalue())
            data = replace(data, **{name: str(path)})  # type: ignore[arg-type]
    return data


def _free_folder(data: Any, objective: str) -> Path:
    """runs/DATA-OBJECTIVE, or the first free numbered variant of it."""
    label = Path(data).stem if isinstance(data, (str, Path)) else getattr(data, "name", "array")
    base = Path("runs") / f"{label}-{objective}"
    number, folder = 1, base
    while folder.exists():
        number, folder = number + 1, base.with_name(f"{base.name}-{number + 1}")
    return folder
