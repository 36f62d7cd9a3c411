"""The public face of training: `fit(...) -> Run`, `load_run(folder) -> Run`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from unseam.data import DATASETS, load_config, load_data, parameters, said_of
from unseam.data import config as data_config
from unseam.data.base import Dataset, Scale
from unseam.data.checks import unit_range, whole_numbers
from unseam.data.pairs import read_pairs
from unseam.data.scaling import bright, uneven
from unseam.data.user import UserData
from unseam.data.wrappers import Scaled, Wrapper, wrap
from unseam.device import device
from unseam.errors import BadInput, lookup, unknown
from unseam.files import remove_leftovers, write_atomic
from unseam.models import Architecture, Autoencoder
from unseam.models.likelihood import COUNTS
from unseam.objectives import OBJECTIVES, Objective, Optimiser
from unseam.progress import stderr
from unseam.train import apply, own, packed
from unseam.train.checkpoint import load_checkpoint
from unseam.train.cohort import check_free, plan, run_cohort, start_folder, where
from unseam.train.config import Member, RunConfig, Training, sweep
from unseam.train.group import weights_path
from unseam.train.order import split
from unseam.train.results import Results
from unseam.train.track import known_tracker, tracked
from unseam.typed import typed
from unseam.types import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """A run folder: its configuration, rows and models."""

    folder: Path
    config: RunConfig
    given: Dataset | None = None  # data to use in place of that it was trained on (`load_run(folder, data=...)`)
    device: str = "cpu"  # where its models are put

    def on(self, name: str, double: bool = False) -> Run:
        """The same run with its models on another device; `double` asks for one that has double precision."""
        found = device(name)
        return replace(self, device="cpu" if double and found.type == "mps" else str(found))

    @cached_property
    def data(self) -> Dataset:
        """The data it was trained on; own files that have changed since are refused."""
        if self.given is not None:
            return self.given
        own.check(self.config.data, self.config.digests, self.folder)
        return load_config(self.data_config, f"{self.folder / 'config.json'}: data")

    @property
    def keeps(self) -> bool:
        """Whether results may be stored with it: not with a packed one, whose files are fixed, nor of other data."""
        return self.given is None and packed.pack_of(self.folder) is None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation; known without the data."""
        return self.config.shape or self.data.shape

    def encode(self, x: Any, member: int | None = None) -> Any:  # (N, ...) -> (N, K)
        """The means of q(z|x), as what x is (an array, a DataFrame, a tensor); x is in the data's own units."""
        model = self.model(self._one(member))
        rows = apply.observations(x, self.shape, self.config.scaling, self.config.features)
        codes = apply.in_chunks(lambda part: model.encode(part).mean, rows, self.device)
        return apply.like(x, codes, [f"z{i}" for i in range(codes.shape[1])])

    transform = encode

    def decode(self, z: Any, member: int | None = None) -> Any:  # (N, K) -> (N, *shape)
        """E[x|z] in the data's own units."""
        kind = OBJECTIVES.get(self.config.objective)
        if kind is not None and not kind.decodes:
            raise BadInput(f"{self.config.objective} trains no decoder; there is nothing to decode with")
        model, codes = self.model(self._one(member)), apply.numbers(z, "z").float()
        if codes.ndim != 2 or codes.shape[1] != model.latents:
            raise BadInput(f"z has shape {tuple(codes.shape)}; this run has codes {('N', model.latents)}")
        x = apply.in_chunks(model.mean, codes, self.device)
        x = x if self.config.scaling is None else self.config.scaling.undo(x)
        return apply.like(z, x, self.config.features or [f"x{i}" for i in range(x[0].numel())])

    def reconstruct(self, x: Any, member: int | None = None) -> Any:  # (N, ...) -> (N, *shape)
        """What is left of x behind the codes, in the data's own units."""
        return self.decode(self.encode(x, member), member)

    def _one(self, member: int | None) -> int:
        if member is None and len(self.members) > 1:
            raise BadInput(f"this run has {len(self.members)} members; say which: member=0..{len(self.members) - 1}")
        return member or 0

    @property
    def data_config(self) -> dict[str, Any]:
        """`config.data` with the paths of now: those inside the run folder move with it."""
        return own.located(self.config.data, self.folder)

    def __repr__(self) -> str:
        """One line: a run's configuration fills a page."""
        c = self.config
        made = f"{len(c.members)} x {c.objective} on {own.called(c.data)}, {c.training.steps} steps"
        return f"Run({str(self.folder)!r}: {made})"

    def _repr_html_(self) -> str:
        """The members as a table, for notebooks."""
        frame = self.table()
        return f"<p>{escape(repr(self))}</p>" + frame.to_html(index=False, float_format="{:.4g}".format, escape=True)

    @property
    def members(self) -> tuple[Member, ...]:
        return self.config.members

    @property
    def rows(self) -> Results:
        return Results(self.folder)

    def table(self) -> pd.DataFrame:
        """One row a member: seed, hyperparameters, status, final numbers."""
        import pandas as pd

        frame = self.rows.read("runs").sort_values("member").reset_index(drop=True)
        try:
            hyper = pd.DataFrame([dict(json.loads(text)) for text in frame.pop("hyper")], index=frame.index)
        except (TypeError, ValueError):
            raise BadInput(f"{self.rows.path} is damaged: `hyper` holds no JSON objects; train the run again") from None
        frame["reconstruction"] = frame["reconstruction"].astype(float)  # none at all is not a number
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
        return lookup(
            {"held-out": test, "trained": train, "all": torch.arange(len(self.data), device="cpu")}, which, "rows"
        )

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
        model = self.config.architecture.build(self.shape, 0)
        weights, expected = self.weights(member, step), model.state_dict()
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in expected.items()}:
            raise BadInput(
                f"{self._weights_file(member, step)[0]} does not fit {self.folder / 'config.json'}: one of them is of "
                "another run or was changed; put back the one that belongs here, or train again"
            )
        model.load_state_dict(weights)
        return model.eval().to(self.device)

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
    track: str | None = None,
    scale: Scale | None = None,
    **settings: Any,
) -> Run:
    """Train a cohort: every seed times every combination of the hyperparameters given as lists.

    `settings` are the objective's hyperparameters (`beta=[1, 4]`), and the fields of `Architecture` (`latents=5`),
    `Training` (`steps=2000`) and `Optimiser` (`lr=1e-3`, `optimiser="adagrad"`), by name. `scale` brings the columns of
    a table to one scale ("standard" or "unit"); the run keeps it and undoes it when it decodes. `track` passes what is
    logged on to "tensorboard" or "wandb" as well.

    >>> import tempfile
    >>> run = fit("synth-linear", "beta-vae", beta=[1e-4, 1e-2], seeds=[0, 1], steps=20, network="linear",
    ...             latents=2, data_parameters={"size": 500}, out=tempfile.mkdtemp() + "/run")
    >>> run.table()[["seed", "beta", "status"]].values.tolist()
    [[0, 0.0001, 'finished'], [1, 0.0001, 'finished'], [0, 0.01, 'finished'], [1, 0.01, 'finished']]
    """
    known_tracker(track)
    run, kind = begin(data, objective, seeds=seeds, out=out, data_parameters=data_parameters, scale=scale, **settings)
    if out is None and show is not False:
        stderr.print(f"run folder: {run.folder} (out= chooses another)", soft_wrap=True)
    with tracked(run.folder, run.config, track):
        run_cohort(run.folder, run.config, kind, show)
    return run


def begin(
    data: str | Path | Array | Dataset,
    objective: str | type[Objective] = "beta-vae",
    *,
    seeds: Sequence[int] = (0,),
    out: str | Path | None = None,
    data_parameters: Mapping[str, Any] | None = None,
    scale: Scale | None = None,
    **settings: Any,
) -> tuple[Run, type[Objective]]:
    """What `fit` does before the first step: everything checked, and the folder laid out."""
    name, kind = _objective(objective)
    asked = {"scale": scale} if scale not in (None, "none") else {}
    if isinstance(data, Dataset):
        dataset = wrap(data, asked)
    else:
        said = said_of(data, str(settings.get("likelihood", "auto")))
        dataset = load_data(data, **{**said, **(data_parameters or {}), **asked})
    parts = _distribute(kind, settings)
    members, static = sweep(kind, seeds, parts["objective"])
    pairing = kind(**members[0].hyper, **static).pairing()
    if pairing is not None and pairing.file:
        static["pairs"] = str(Path(pairing.how).resolve())
        read_pairs(static["pairs"], len(dataset))  # refused now if they are none
    architecture = replace(Architecture(**parts["architecture"]), posterior=kind.posterior)
    if kind.learned_s2:
        if architecture.likelihood not in ("auto", "gaussian"):
            other = architecture.likelihood
            raise BadInput(f"{name} learns the variance of a Gaussian likelihood; leave out likelihood={other!r}")
        architecture = replace(architecture, learned_s2=True, likelihood="gaussian")
    architecture = architecture.for_data(dataset.shape, dataset.likelihood)
    training = Training(**parts["training"])
    _check(kind, architecture, training, dataset)
    optimiser = Optimiser(**parts["optimiser"])
    folder = Path(out) if out is not None else free_folder(data, name)
    check_free(folder)
    kept = own.relative(data_config(_on_disk(dataset, folder)), folder)
    config = RunConfig(kept, name, static, members, architecture, training, optimiser)
    config = replace(config, digests=own.digests(kept, folder, static.get("pairs")), **_described(dataset))
    config = plan(config, kind(**members[0].hyper, **static), dataset.shape)
    _warn(dataset, scale)
    start_folder(folder, config)
    return Run(folder, config), kind


def _warn(data: Dataset, scale: Scale | None) -> None:
    """One's own data whose scale rules the loss, and that nobody said a word about."""
    if scale is not None or not isinstance(data, UserData) or data.likelihood != "gaussian":
        return
    if told := uneven(data, data.features) if len(data.shape) == 1 else bright(data):
        warnings.warn(told, stacklevel=3)


def _described(data: Dataset) -> dict[str, Any]:
    """What a run must know of its data to encode and decode without it."""
    layers = [data]
    while isinstance(layers[-1], Wrapper):
        layers.append(layers[-1].of)
    scaled = next((layer.scaling for layer in layers if isinstance(layer, Scaled)), None)
    features = (layers[-1].features if isinstance(layers[-1], UserData) else None) or ()
    return {"shape": tuple(data.shape), "features": features, "scaling": scaled}


def resume(
    folder: str | Path,
    objective: type[Objective] | None = None,
    show: bool | None = None,
    steps: int | None = None,
    device: str | None = None,
) -> Run:
    """Go on with a run that was stopped, on its device or another; a finished one is returned as it is, or goes on to
    `steps` in all."""
    run = load_run(folder)
    kind = objective or lookup(OBJECTIVES, run.config.objective, "objective")  # all that can be refused, before
    placed = run.config.training if device is None else where(replace(run.config.training, device=device))
    if steps is not None:
        run = extended(run, steps)
    with suppress(OSError):  # a finished run may lie in a folder that can only be read
        remove_leftovers(run.folder, run.folder / "checkpoints")
    if _is_finished(run):
        return run
    run.rows.create()
    own.check(run.config.data, run.config.digests, run.folder, run.config.static.get("pairs"))
    _ = run.data  # refused now if it cannot be read
    training = replace(run.config.training, device=placed.device)
    run_cohort(run.folder, replace(run.config, training=training), kind, show)
    return run


def _is_finished(run: Run) -> bool:
    """Whether every member has its row: a group writes them when all else is on disk."""
    try:
        return len(run.rows.read("runs")) >= len(run.members)
    except BadInput:  # no table yet
        return False


def extended(run: Run, steps: int) -> Run:
    """The run with more steps to go; its final numbers are removed, to be written again at the new end."""
    before = run.config.training.steps
    if steps < before:
        raise BadInput(f"steps={steps} is less than the {before} steps of {run.folder}; a run can only become longer")
    if steps == before:
        return run
    if packed.pack_of(run.folder) is not None:
        raise BadInput(f"{run.folder} is a packed run, without its optimisers' state; go on where it was trained")
    _ = run.data  # refused now if it has changed
    run.rows.create()
    run.rows.reopen(before)
    config = replace(run.config, training=replace(run.config.training, steps=steps))
    document = json.loads((run.folder / "config.json").read_bytes())
    write_atomic(run.folder / "config.json", json.dumps({**document, **config.to_json()}, indent=2))
    return Run(run.folder, config)


def load_run(folder: str | Path, data: Any = None) -> Run:
    """Open a run: a folder, or a packed one (`unseam data pack`) here or at an http address, checked file by file.

    Models load without the training data; what needs data takes that of the run, or `data`.
    `data` is a path, an array, a DataFrame or a data set; a run's own scaling is applied to it.
    """
    run = _opened(packed.local(folder))
    return run if data is None else replace(run, given=_given(run, data))


def _given(run: Run, data: Any) -> Dataset:
    """Other data for a run, read as its own was."""
    if not isinstance(data, Dataset):
        data = _read_alike(run, data)
    if run.config.scaling is not None and not isinstance(data, Scaled):
        data = Scaled(data, "standard")
        data.__dict__["scaling"] = run.config.scaling  # its numbers, not those of this data
    known = run.config.shape
    if known and tuple(data.shape) != known:
        raise BadInput(f"data has observations of shape {tuple(data.shape)}, the run was trained on {known}")
    return data


def _read_alike(run: Run, data: Any) -> Dataset:
    """A file, an array or a table of the columns the run knows, by their names where it has any."""
    import pandas as pd

    if isinstance(data, pd.DataFrame) and run.config.features:
        if missing := [name for name in run.config.features if name not in data.columns]:
            raise BadInput(f"data has no column {missing[0]!r}, which the run was trained on")
        data = data[list(run.config.features)]
    took = parameters(UserData).keys() - {"factors", "scale"}
    mine = dict(run.config.data) if run.config.data["name"] not in DATASETS else {}
    mine = {name: value for name, value in mine.items() if name in took}
    with suppress(BadInput):  # a file that still has the columns of labels
        return _same_columns(run, load_data(data, **mine))
    return _same_columns(run, load_data(data, **{name: value for name, value in mine.items() if name != "labels"}))


def _same_columns(run: Run, data: Dataset) -> Dataset:
    names, known = getattr(data, "features", None), run.config.features
    if names and known and tuple(names) != tuple(known):
        told = ", ".join(known[:8])
        raise BadInput(
            f"data has columns {', '.join(names[:8])}; the run was trained on {told}: give these, in this order"
        )
    return data


def _opened(folder: str | Path) -> Run:
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise BadInput(
            f"run={str(folder)!r} is not a run folder (it has no config.json); train one with `unseam train`"
        )
    try:
        return Run(path, RunConfig.from_json(json.loads((path / "config.json").read_bytes())))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path / 'config.json'} is damaged: {error}; put a copy back, or train the run again") from None


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


def typed_settings(kind: type[Objective], settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings of `fit` as a file gives them, each of the type that it takes."""
    homes = {"objective": kind, "architecture": Architecture, "training": Training, "optimiser": Optimiser}
    parts = _distribute(kind, settings)
    hints = {name: get_type_hints(homes[home])[name] for home, part in parts.items() for name in part}
    return {n: typed(hints["name" if n == "optimiser" else n], v, f"{where}: {n}") for n, v in settings.items()}


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
    if architecture.likelihood in COUNTS:
        whole_numbers(data, architecture.likelihood)


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


def _label(data: Any) -> str:
    """What a run on it is called: a file's name, a data set's, or "array" for what has none.

    >>> _label("my/wine.csv"), _label("sprites"), _label(torch.zeros(3, 2))
    ('wine', 'sprites', 'array')
    """
    while isinstance(data, Wrapper):
        data = data.of
    source = data.source if isinstance(data, UserData) else data
    if isinstance(source, (str, Path)):
        return Path(source).stem
    return str(source.name) if isinstance(source, Dataset) else "array"


def free_folder(data: Any, objective: str) -> Path:
    """runs/DATA-OBJECTIVE, or the first free numbered variant of it."""
    base = Path("runs") / f"{_label(data)}-{objective}"
    number, folder = 1, base
    while folder.exists():
        number, folder = number + 1, base.with_name(f"{base.name}-{number + 1}")
    return folder
