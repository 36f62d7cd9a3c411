"""`fit(...) -> Run`: check the settings, lay out the folder, train."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from unseam.atomic import free_path, remove_leftovers, write_array, write_atomic
from unseam.axes import Array
from unseam.data import config as data_config
from unseam.data import likelihood_options, load_data
from unseam.data.base import Dataset, layers, unit_range, whole_numbers
from unseam.data.names import DataScale
from unseam.data.pairs import read_pairs
from unseam.data.registry import wrap
from unseam.data.scaling import bright, uneven
from unseam.data.torch_data import is_torch_data, read_torch_data
from unseam.data.user import UserData
from unseam.data.wrap import Scaled, Wrapper
from unseam.errors import BadInput, lookup
from unseam.models import Architecture
from unseam.models.likelihood import COUNTS
from unseam.models.own_networks import MakeNetworks, Networks, source_of
from unseam.objectives import OBJECTIVES, Objective, Optimiser
from unseam.progress import log
from unseam.readers import as_array, as_frame, frame_columns
from unseam.run import user_files
from unseam.run.config import RunConfig, Training, split, sweep_members
from unseam.run.load import load_run
from unseam.run.run import Run, pack_of
from unseam.run.settings import Choices, OptimiserName, Settings, resolve_settings
from unseam.train.check_objective import check_gradient, with_networks
from unseam.train.cohort import check_free, plan, run_cohort, start_folder, where
from unseam.train.stopping import Callback, check_callbacks, check_patience
from unseam.train.track import check_tracker, tracked


def fit(
    data: str | Path | Array | Dataset,
    objective: str | type[Objective] | Objective = "beta-vae",
    *,
    networks: Networks | None = None,
    architecture: Architecture | None = None,
    training: Training | None = None,
    optimiser: Optimiser | OptimiserName | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
    out: str | Path | None = None,
    data_parameters: Mapping[str, Any] | None = None,
    scale: DataScale | None = None,
    check: bool = True,
    track: str | None = None,
    callbacks: Callback | Sequence[Callback] | None = None,
    show: bool | None = None,
    **settings: Unpack[Settings],
) -> Run:
    """Train a cohort: every seed times every combination of the hyperparameters given as lists.

    Parameters
    ----------
    data : str, Path, array, Dataset or DataLoader
        The name of a data set (`unseam data list`), a path to your own file or folder of images, an array or table
        of shape (rows, columns) or of images, a data set, or a torch Dataset or DataLoader whose items are x, (x,) or
        (x, y): every row is read once, and y becomes the factors that `evaluate` scores against.
    objective : str, Objective or its type, default="beta-vae"
        What to minimise: a name (`unseam objectives`), an objective class, or an instance such as `BetaVAE(beta=8)`.
    networks : (encoder, decoder) or function, optional
        Your own torch modules in the place of ours, or a function without arguments that returns the two. Every seed
        calls the function for its own initial weights; modules are copied with the weights that they have, for one
        seed. The encoder returns (B, 2K), means and log-variances, or the pair (mean, log-variance); the decoder
        returns the data's shape, logits for pixels in [0, 1].
    architecture : Architecture, optional
        The networks, the latents and the likelihood.
    training : Training, optional
        Steps, batch, held-out share, logging, checkpoints, processes, device and precision.
    optimiser : Optimiser or {"adam", "adagrad", "sgd"}, default="adam"
        How parameters step; a name leaves the other fields to the short form (`lr=`, `b1=`, `b2=`, `eps=`,
        `weight_decay=`).
    hyperparameters : dict, optional
        Hyperparameters of the objective by name; for an objective of your own. A list is swept.
    seeds : sequence of int, default=(0,)
        One member is trained for each seed and combination of hyperparameters.
    out : str or Path, optional
        The run folder to create; runs/DATA-OBJECTIVE by default.
    data_parameters : dict, optional
        Parameters of the data set, such as `{"size": 32}`.
    scale : {"standard", "unit", "none"}, optional
        Scale the columns of a table to mean 0 and standard deviation 1, or to 0..1. The run remembers the scaling
        and undoes it when it decodes. "none" leaves them as they are and silences the warning about it.
    check : bool, default=True
        Compare the gradient of an objective of your own, and of your own networks, with finite differences before the
        first step, and warn if they differ. A stop-gradient on purpose also differs: then pass False.
    track : {"tensorboard", "wandb"}, optional
        Also pass what is logged on to this tracker.
    callbacks : callable or sequence of callables, optional
        Called with a `LoggedStep` (`step`, `members`, `values`, `model(member)`) at every logged step. One that
        returns True stops the training of these members there. All members are then trained in this process.
    show : bool, optional
        Whether to show a progress bar; by default if stderr is a terminal.
    **settings : Settings
        The short form: fields of `Architecture` (`latents=10`, `network="mlp"`), `Training` (`steps=5000`) and
        `Optimiser` (`lr=1e-3`), and the built-in objectives' hyperparameters (`beta=4`, or `beta=[1, 4]` to sweep).
        A setting may not be given both here and in an object.

    Returns
    -------
    Run
        The run folder: `run.table()`, `run.model(member)`, `run.encode(x)`, `run.decode(z)`.

    Examples
    --------
    >>> import tempfile
    >>> run = fit("synth-linear", "beta-vae", beta=[1e-4, 1e-2], seeds=[0, 1], steps=20, network="linear",
    ...             latents=2, data_parameters={"size": 500}, out=tempfile.mkdtemp() + "/run")
    >>> run.table()[["seed", "beta", "status"]].values.tolist()
    [[0, 0.0001, 'finished'], [1, 0.0001, 'finished'], [0, 0.01, 'finished'], [1, 0.01, 'finished']]

    The same settings as objects:

    >>> from unseam.models import Architecture
    >>> from unseam.run import Training
    >>> run = fit("synth-linear", hyperparameters={"beta": 1e-2}, architecture=Architecture("linear", latents=2),
    ...           training=Training(steps=20), data_parameters={"size": 500}, out=tempfile.mkdtemp() + "/run")
    """
    if track is not None:
        check_tracker(track)
    functions = check_callbacks(callbacks)
    choices = resolve_settings(objective, settings, architecture, training, optimiser, hyperparameters)
    run = begin_run(
        data,
        choices,
        seeds=seeds,
        out=out,
        data_parameters=data_parameters,
        scale=scale,
        networks=networks,
        check=check,
    )
    if out is None and show is not False:
        log.info(f"run folder: {run.folder} (out= chooses another)")
    with tracked(run.folder, run.config, track) if track else nullcontext():
        run_cohort(run.folder, run.config, choices.kind, show, functions, run.networks)
    return run


def begin_run(
    data: str | Path | Array | Dataset,
    choices: Choices,
    *,
    seeds: Sequence[int] = (0,),
    out: str | Path | None = None,
    data_parameters: Mapping[str, Any] | None = None,
    scale: DataScale | None = None,
    networks: Networks | None = None,
    check: bool = True,
) -> Run:
    """What `fit` does before the first step: everything checked, and the folder laid out."""
    name, kind, training = choices.name, choices.kind, choices.training
    wrapping = {"scale": scale} if scale not in (None, "none") else {}
    if isinstance(data, Dataset):
        dataset = wrap(data, wrapping)
    else:
        if is_torch_data(data):
            data, data_parameters = from_torch(data, data_parameters)
        from_likelihood = likelihood_options(data, choices.architecture.likelihood)
        dataset = load_data(data, **{**from_likelihood, **(data_parameters or {}), **wrapping})
    members, static = sweep_members(kind, seeds, choices.hyperparameters)
    pairing = kind(**members[0].hyper, **static).pairing()
    if pairing is not None and pairing.file:
        static["pairs"] = str(Path(pairing.how).resolve())
        read_pairs(static["pairs"], len(dataset))  # refused now if they are none
    architecture = replace(choices.architecture, posterior=kind.posterior, aligned=False)
    if kind.learned_s2:
        if architecture.likelihood not in ("auto", "gaussian"):
            other = architecture.likelihood
            raise BadInput(f"{name} learns the variance of a Gaussian likelihood; leave out likelihood={other!r}")
        architecture = replace(architecture, learned_s2=True, likelihood="gaussian")
    architecture = architecture.for_data(dataset.shape, dataset.likelihood)
    make: MakeNetworks | None = None
    if networks is not None or architecture.network == "own":
        architecture, make = with_networks(architecture, networks, dataset, len(seeds))
    _check(kind, architecture, training, dataset)
    folder = Path(out) if out is not None else free_folder(data, name)
    check_free(folder)
    source = None if networks is None else source_of(networks)
    requested = RunConfig({}, name, static, members, architecture, training, choices.optimiser, networks=source)
    config = plan(requested, kind(**members[0].hyper, **static), dataset.shape, make)
    if check and (networks is not None or kind not in OBJECTIVES.values()):
        check_gradient(config, kind, dataset, make)
    config = replace(config, **stored_data(dataset, folder, static.get("pairs")))
    _warn(dataset, scale)
    start_folder(folder, config)
    return Run(folder, config, networks=make)


def from_torch(data: Any, parameters: Mapping[str, Any] | None) -> tuple[Array, dict[str, Any]]:
    """The observations of a torch Dataset or DataLoader; its labels become factors, unless some were given."""
    x, labels = read_torch_data(data)
    known_values = dict(parameters or {})
    if labels is not None and "factors" not in known_values:
        classes = {"kinds": "categorical"} if labels.ndim == 1 and labels.dtype.kind in "iu" else {}
        known_values |= {"factors": labels, **classes}
    return x, known_values


def _warn(data: Dataset, scale: DataScale | None) -> None:
    """Warn if an unscaled column of the user's data dominates the loss."""
    if scale is not None or not isinstance(data, UserData) or data.likelihood != "gaussian":
        return
    if known_values := uneven(data, data.features) if len(data.shape) == 1 else bright(data):
        warnings.warn(known_values, stacklevel=3)


def stored_data(data: Dataset, folder: Path, pairs: Any = None) -> dict[str, Any]:
    """What a run's configuration holds of its data, with which it encodes and decodes without it; arrays in memory
    are written into the folder."""
    stored = user_files.relative(data_config(_on_disk(data, folder)), folder)
    scaled = next((layer.scaling for layer in layers(data) if isinstance(layer, Scaled)), None)
    inner = layers(data)[-1]
    features = (inner.features if isinstance(inner, UserData) else None) or ()
    digests = user_files.digests(stored, folder, pairs)
    return {"data": stored, "digests": digests, "shape": tuple(data.shape), "features": features, "scaling": scaled}


def _check(kind: type[Objective], architecture: Architecture, training: Training, data: Dataset) -> None:
    """What can be refused before the first step is."""
    if training.batch < kind.smallest_batch:
        raise BadInput(
            f"batch={training.batch} is too small: {kind.__name__} compares samples of a batch and needs at least "
            f"{kind.smallest_batch}"
        )
    train_rows, _ = split(len(data), training.holdout)
    check_patience(training, len(data) - len(train_rows))
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
        if array is not None and not isinstance(array, (str, Path)):
            path = folder.resolve() / f"{name}.npy"
            write_array(path, _plain(array, name, data))
            data = replace(data, **{name: str(path)})  # type: ignore[arg-type]
    return data


def _plain(array: Any, name: str, data: UserData) -> Array:
    """What `UserData` reads of an array or a table in memory, as NumPy writes it."""
    frame = as_frame(array, name)
    if frame is None:
        return np.asarray(as_array(array, name))
    if name == "source" and data.key is None and data.labels is None:
        return frame_columns(frame).numbers(data.where)
    return np.asarray(frame)


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


def resume(
    folder: str | Path,
    objective: type[Objective] | None = None,
    show: bool | None = None,
    steps: int | None = None,
    device: str | None = None,
    callbacks: Callback | Sequence[Callback] | None = None,
    networks: Networks | None = None,
) -> Run:
    """Continue a run that was stopped.

    A finished run is returned as it is, unless `steps` asks for more.

    Parameters
    ----------
    folder : str or Path
        The run folder.
    objective : type of Objective, optional
        The class of an objective of your own, which a run folder does not store.
    show : bool, optional
        Whether to show a progress bar; by default if stderr is a terminal.
    steps : int, optional
        Steps in all, to train longer than the run was configured for.
    device : str, optional
        Train on this device from now on.
    callbacks : callable or sequence of callables, optional
        As in `fit`.
    networks : (encoder, decoder) or function, optional
        As in `load_run`.

    Returns
    -------
    Run
        The finished run.

    Examples
    --------
    >>> import tempfile
    >>> run = fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 200},
    ...           out=tempfile.mkdtemp() + "/run", show=False)
    >>> resume(run.folder, steps=10, show=False).table()["step"].tolist()
    [10]
    """
    functions, run = check_callbacks(callbacks), load_run(folder, networks=networks)
    kind = objective or lookup(OBJECTIVES, run.config.objective, "objective")  # all that can be refused, before
    placed = run.config.training if device is None else where(replace(run.config.training, device=device))
    if steps is not None:
        run = extended(run, steps)
    with suppress(OSError):  # a finished run may lie in a folder that can only be read
        remove_leftovers(run.folder, run.folder / "checkpoints")
    if run.finished:
        return run
    run.rows.create()
    user_files.check_digests(run.config.data, run.config.digests, run.folder, run.config.static.get("pairs"))
    _ = run.data  # refused now if it cannot be read
    training = replace(run.config.training, device=placed.device)
    run_cohort(run.folder, replace(run.config, training=training), kind, show, functions, run.make_networks)
    return run


def extended(run: Run, steps: int) -> Run:
    """The run with more steps to go; its final numbers are removed, to be written again at the new end."""
    before = run.config.training.steps
    if steps < before:
        raise BadInput(f"steps={steps} is less than the {before} steps of {run.folder}; a run can only become longer")
    if steps == before:
        return run
    if run.config.architecture.aligned:
        raise BadInput(
            f"{run.folder} is an aligned run, which has no optimiser's state; train the run it was made from"
        )
    if pack_of(run.folder) is not None:
        raise BadInput(f"{run.folder} is a packed run, without its optimisers' state; continue where it was trained")
    _ = run.data  # refused now if it has changed
    run.rows.create()
    run.rows.reopen(before)
    config = replace(run.config, training=replace(run.config.training, steps=steps))
    document = json.loads((run.folder / "config.json").read_bytes())
    write_atomic(run.folder / "config.json", json.dumps({**document, **config.to_json()}, indent=2))
    return replace(run, config=config)
