"""`load_data` takes a name from DATASETS or a path to the user's own data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import torch.utils.data

from unseam.axes import Array
from unseam.data.base import Dataset
from unseam.data.download.web import local_copy
from unseam.data.names import DATASET_CLASSES as NAMES
from unseam.data.names import DRAWN, PATHS, PERTURBED
from unseam.data.sets.perturbed import Perturbed
from unseam.data.user import UserData
from unseam.data.wrap import WRAPPERS, Wrapper
from unseam.errors import BadInput, unknown
from unseam.from_json import as_type
from unseam.lazy import named_object

DATASETS: dict[str, type[Dataset]] = {name: named_object(place) for name, place in NAMES.items()}
ALIASES = {"factors": "factor_table", "likelihood": "assume"}  # what users say: the fields of UserData
INPUTS = ("source", "of", "folder")  # fields that are the data itself


def wrapper_options(kind: type[Wrapper]) -> dict[str, dataclasses.Field[Any]]:
    """A wrapper's parameters."""
    return {field.name: field for field in dataclasses.fields(kind) if field.name != "of"}


def wrap(data: Dataset, values: dict[str, Any]) -> Dataset:
    """Wrap the data set for every option that differs from its default."""
    for kind in WRAPPERS:
        own = {name: values[name] for name in wrapper_options(kind) if name in values}
        if any(value != wrapper_options(kind)[name].default for name, value in own.items() if name != "subset_seed"):
            data = kind(data, **own)
    return data


def own_parameters(kind: type[Dataset]) -> dict[str, dataclasses.Field[Any]]:
    """The parameters of a data set by the names that `load_data` takes, without those that any set takes.

    Parameters
    ----------
    kind : type of Dataset
        A class of `DATASETS`.

    Returns
    -------
    dict
        The dataclass field of each parameter, by name.

    Examples
    --------
    >>> sorted(own_parameters(DATASETS["ring"]))
    ['circles', 'points', 'radius', 'small']
    """
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind} is not a dataclass")
    user_names = {field: name for name, field in ALIASES.items()} if kind is UserData else {}
    return {
        user_names.get(field.name, field.name): field for field in dataclasses.fields(kind) if field.name not in INPUTS
    }


def parameters(kind: type[Dataset]) -> dict[str, dataclasses.Field[Any]]:
    """A data set's own parameters, and those of the wrappers, which any set takes.

    Parameters
    ----------
    kind : type of Dataset
        A class of `DATASETS`.

    Returns
    -------
    dict
        The dataclass field of each parameter, by name.

    Examples
    --------
    >>> {"circles", "share", "correlate"} <= set(parameters(DATASETS["ring"]))
    True
    """
    return {**own_parameters(kind), **{name: field for w in WRAPPERS for name, field in wrapper_options(w).items()}}


def dataset_type(name: str | Path) -> type[Dataset]:
    """Which data set a name or a path means.

    Parameters
    ----------
    name : str or Path
        A name of `unseam data list`, or a path.

    Returns
    -------
    type of Dataset
        Its class; `UserData` for the user's own file.

    Examples
    --------
    >>> dataset_type("ring").__name__
    'Ring'
    """
    if str(name) in DATASETS:
        return DATASETS[str(name)]
    path = Path(name)
    if path.exists() or path.suffix or "/" in str(name):
        if not path.exists():
            raise BadInput(f"data={str(name)!r}: no such file or folder")
        if (path / "config.json").is_file() and (path / "checkpoints").is_dir():
            raise BadInput(f"data={str(name)!r} is a run, not data; continue with it: unseam train --resume {name}")
        return Perturbed if (path / PERTURBED).exists() else UserData
    raise unknown("data", str(name), DATASETS, "is not a data set, and there is no such file or folder")


def load_data(name: str | Path | Array, **options: Any) -> Dataset:
    """Load a data set by name, or your own data by path or array.

    Parameters
    ----------
    name : str, Path or array
        A name (`unseam data list`), a file or its address, a folder of images, or an array of observations.
    **options
        Parameters of the data set (`size=32`; `unseam data list` shows them), and those that every data set takes, such
        as `share`, `correlate` and `scale`.

    Returns
    -------
    Dataset
        Observations by row number; `factors` and `observe` where the factors are known.

    Examples
    --------
    >>> load_data("sprites", size=32, shapes=1).shape
    (1, 32, 32)
    >>> load_data("sprites", sise=32)
    Traceback (most recent call last):
    unseam.errors.BadInput: sprites parameter='sise' is unknown; did you mean 'size'? Known: ...
    """
    name = local_copy(name, "data") if isinstance(name, str) and "://" in name else name
    named = isinstance(name, (str, Path))
    if isinstance(name, (torch.utils.data.Dataset, torch.utils.data.DataLoader)):
        ways = "dataset.tensors[0], or torch.stack([row[0] for row in dataset])"
        raise BadInput(f"data is a {type(name).__name__}; give its observations as one array: {ways}")
    kind = dataset_type(name) if named else UserData  # type: ignore[arg-type]
    known, own = parameters(kind), own_parameters(kind)
    for option in options:
        if option not in known:
            raise unknown(f"{name if named else 'user data'} parameter", option, known)
    chosen = {option: _resolved(option, value) for option, value in options.items()}
    fields = {own[option].name: value for option, value in chosen.items() if option in own}
    if kind in (UserData, Perturbed):
        source_field = "source" if kind is UserData else "folder"
        fields[source_field] = str(Path(name).resolve()) if named else name  # type: ignore[arg-type]
    return wrap(kind(**fields), {option: value for option, value in chosen.items() if option not in own})


def load_config(config: Mapping[str, Any], where: str) -> Dataset:
    """What a file says of a data set (`config`), every parameter checked to be of the type that it takes.

    Parameters
    ----------
    config : dict
        The name and the parameters of a data set.
    where : str
        What to call the document in messages.

    Returns
    -------
    Dataset
        The data set.

    Examples
    --------
    >>> load_config({"name": "ring", "circles": 3}, "config.json").shape
    (2,)
    """
    return load_data(**typed_options(config, where))


def typed_options(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The configuration of a data set with every value checked to be of the type that its parameter takes.

    Parameters
    ----------
    config : dict
        The name and the parameters of a data set.
    where : str
        What to call the document in messages.

    Returns
    -------
    dict
        The same; a value that is not of its parameter's type is refused.

    Examples
    --------
    >>> typed_options({"name": "ring", "radius": 3}, "config.json")
    {'name': 'ring', 'radius': 3}
    """
    kind = dataset_type(str(config["name"]))
    hints = {name: get_type_hints(w)[f.name] for w in WRAPPERS for name, f in wrapper_options(w).items()}
    hints |= {name: get_type_hints(kind)[f.name] for name, f in own_parameters(kind).items()}
    return {n: value if n not in hints else as_type(hints[n], value, f"{where}.{n}") for n, value in config.items()}


def likelihood_options(name: str | Path | Array, likelihood: str) -> dict[str, str]:
    """The options of the user's own data that follow from the likelihood: only a Bernoulli one needs values in [0, 1].

    Parameters
    ----------
    name : str, Path or array
        As `load_data` takes it.
    likelihood : str
        As `Architecture` takes it.

    Returns
    -------
    dict
        Options for `load_data`.

    Examples
    --------
    >>> likelihood_options([[0.0]], "poisson"), likelihood_options("sprites", "gaussian")
    ({'likelihood': 'gaussian'}, {})
    """
    kind = dataset_type(name) if isinstance(name, (str, Path)) else UserData
    if likelihood == "auto" or "likelihood" not in own_parameters(kind):
        return {}
    return {"likelihood": "bernoulli" if likelihood == "bernoulli" else "gaussian"}


def _resolved(option: str, value: Any) -> Any:
    """A path that stays right when a run is read from elsewhere."""
    if option in PATHS and isinstance(value, (str, Path)) and value != DRAWN:
        return str(Path(value).resolve())
    return value


def config(data: Dataset) -> dict[str, Any]:
    """The whole configuration as plain JSON; `load_data(**config(data))` is the same data.

    Parameters
    ----------
    data : Dataset
        Any data set.

    Returns
    -------
    dict
        Its name and every parameter.

    Examples
    --------
    >>> config(load_data("ring", circles=3))
    {'name': 'ring', 'circles': 3, 'points': 16, 'radius': 10.0, 'small': 3.0}
    """
    outer: dict[str, Any] = {}
    while isinstance(data, Wrapper):
        outer = {**{name: getattr(data, name) for name in wrapper_options(type(data))}, **outer}
        data = data.of
    values = {name: getattr(data, field.name) for name, field in own_parameters(type(data)).items()}
    name = data.source if isinstance(data, UserData) else data.folder if isinstance(data, Perturbed) else data.name
    for what, value in {"data": name, **values}.items():
        if hasattr(value, "__array__"):
            raise BadInput(f"{what} is an array in memory, which a run cannot store; save it as .npy and pass its path")
    return {"name": name, **values, **outer}
