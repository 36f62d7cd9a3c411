"""`fit(...) -> Run`: what is asked for, checked and laid out in a folder before the first step, then trained."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from unseam.data import config as data_config
from unseam.data import load_data, said_of
from unseam.data.base import Dataset, Scale
from unseam.data.checks import unit_range, whole_numbers
from unseam.data.pairs import read_pairs
from unseam.data.scaling import bright, uneven
from unseam.data.user import UserData
from unseam.data.wrapper import layers
from unseam.data.wrappers import Scaled, Wrapper, wrap
from unseam.errors import BadInput, lookup, unknown
from unseam.files import free_path, write_array
from unseam.models import Architecture
from unseam.models.likelihood import COUNTS
from unseam.objectives import OBJECTIVES, Objective, Optimiser
from unseam.progress import stderr
from unseam.train import own
from unseam.train.cohort import check_free, plan, run_cohort, start_folder
from unseam.train.config import RunConfig, Training, sweep
from unseam.train.order import split
from unseam.train.run import Run
from unseam.train.track import known_tracker, tracked
from unseam.typed import typed
from unseam.types import Array


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
    scaled = next((layer.scaling for layer in layers(data) if isinstance(layer, Scaled)), None)
    inner = layers(data)[-1]
    features = (inner.features if isinstance(inner, UserData) else None) or ()
    return {"shape": tuple(data.shape), "features": features, "scaling": scaled}


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
            path = folder.resolve() / f"{name}.npy"
            write_array(path, array)
            data = replace(data, **{name: str(path)})  # type: ignore[arg-type]
    return data


def _label(data: Any) -> str:
    """What a run on it is called: a file's name, a data set's, or "array" for what has none.

    >>> _label("my/wine.csv"), _label("sprites"), _label([[0.0, 1.0]])
    ('wine', 'sprites', 'array')
    """
    inner = layers(data)[-1]
    source = inner.source if isinstance(inner, UserData) else inner
    if isinstance(source, (str, Path)):
        return Path(source).stem
    return str(source.name) if isinstance(source, Dataset) else "array"


def free_folder(data: Any, objective: str) -> Path:
    """runs/DATA-OBJECTIVE, or the first free numbered variant of it."""
    return free_path(Path("runs") / f"{_label(data)}-{objective}")
