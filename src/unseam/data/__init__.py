"""Data: factors -> observations. `load_data` takes a name from DATASETS or a path to the user's own data."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from unseam.data.archives import DSprites
from unseam.data.base import Dataset
from unseam.data.faces import Faces
from unseam.data.idx import FashionMnist, Mnist
from unseam.data.images import Digits
from unseam.data.manifolds import Manifolds
from unseam.data.rooms import Rooms
from unseam.data.sprites import Sprites
from unseam.data.synthetic import Ring, SynthLinear, SynthNonlinear
from unseam.data.user import UserData
from unseam.errors import BadInput, unknown
from unseam.types import Array

DATASETS: dict[str, type[Dataset]] = {
    "digits": Digits,
    "dsprites": DSprites,
    "faces": Faces,
    "fashion-mnist": FashionMnist,
    "manifolds": Manifolds,
    "mnist": Mnist,
    "ring": Ring,
    "rooms": Rooms,
    "sprites": Sprites,
    "synth-linear": SynthLinear,
    "synth-nonlinear": SynthNonlinear,
}
PATHS = ("background", "factors", "path")  # parameters that name files
ALIASES = {"factors": "factor_table", "likelihood": "assume"}  # what users say: the fields of UserData


def parameters(kind: type[Dataset]) -> dict[str, dataclasses.Field[Any]]:
    """The parameters of a data set by the names that `load_data` takes.

    >>> sorted(parameters(SynthLinear))
    ['ratio', 'seed', 'size']
    """
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind} is no dataclass")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if kind is UserData:
        said = {field: name for name, field in ALIASES.items()}
        return {said.get(name, name): field for name, field in fields.items() if name != "source"}
    return fields


def dataset_type(name: str | Path) -> type[Dataset]:
    """Which data set a name or a path means."""
    if str(name) in DATASETS:
        return DATASETS[str(name)]
    path = Path(name)
    if path.exists() or path.suffix or "/" in str(name):
        if not path.exists():
            raise BadInput(f"data={str(name)!r}: no such file or folder")
        return UserData
    raise unknown("data", str(name), DATASETS)


def load_data(name: str | Path | Array, **options: Any) -> Dataset:
    """A data set by name, or the user's own by path or array.

    >>> load_data("sprites", size=32, shapes=1).shape
    (1, 32, 32)
    >>> load_data("sprites", sise=32)
    Traceback (most recent call last):
    unseam.errors.BadInput: sprites parameter='sise' is unknown; did you mean 'size'? Known: ...
    """
    named = isinstance(name, (str, Path))
    kind = dataset_type(name) if named else UserData  # type: ignore[arg-type]
    known = parameters(kind)
    for option in options:
        if option not in known:
            raise unknown(f"{name if named else 'user data'} parameter", option, known)
        if option in PATHS and isinstance(options[option], (str, Path)):
            options[option] = str(Path(options[option]).resolve())  # a run may be read from elsewhere
    if kind is not UserData:
        return kind(**options)
    source = str(Path(name).resolve()) if named else name  # type: ignore[arg-type]
    return UserData(source, **{known[option].name: value for option, value in options.items()})


def config(data: Dataset) -> dict[str, Any]:
    """The whole configuration as plain JSON; `load_data(**config(data))` is the same data.

    >>> config(load_data("ring", circles=3))
    {'name': 'ring', 'circles': 3, 'points': 16, 'radius': 10.0, 'small': 3.0}
    """
    values = {name: getattr(data, field.name) for name, field in parameters(type(data)).items()}
    name = data.source if isinstance(data, UserData) else data.name
    for what, value in {"data": name, **values}.items():
        if hasattr(value, "__array__"):
            raise BadInput(f"{what} is an array in memory, which a run cannot store; save it as .npy and pass its path")
    return {"name": name, **values}
