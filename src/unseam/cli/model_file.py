"""FILE.py:NAME in the place of RUN: a model of the user's own, made by their Python file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from unseam.errors import BadInput
from unseam.progress import log

if TYPE_CHECKING:
    from unseam.run import Run

_MOST_ROWS = 10_000  # of a data set that has a name
_ARRAY = re.compile(r"(?P<file>.+\.(npz|h5|hdf5)):(?P<name>\w+)")
_NEIGHBOURS: dict[str, Path] = {}  # modules that a model's file imported from its own folder
_PLACE = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")


def model_file(place: str | Path) -> Path | None:
    """The Python file of FILE.py:NAME; None for anything else.

    >>> model_file("nets/vae.py:make_model"), model_file("runs/a")
    (PosixPath('nets/vae.py'), None)
    """
    found = _PLACE.fullmatch(str(place))
    return None if found is None else Path(found["file"])


def load_model(place: str | Path) -> Any:
    """What NAME is in the file: a model, or a function without arguments that returns one."""
    found = _PLACE.fullmatch(str(place))
    assert found is not None
    file, name = Path(found["file"]).resolve(), found["name"]
    spec = spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise BadInput(f"model={str(place)!r}: there is no file {found['file']}")
    sys.path.insert(0, str(file.parent))  # as `python FILE.py` has it
    _forget_neighbours(file.parent)
    module, before = module_from_spec(spec), set(sys.modules)
    sys.modules.setdefault(file.stem, module)
    with _in_one_line(place, file):
        spec.loader.exec_module(module)
    _NEIGHBOURS.update({name: file.parent for name in sys.modules.keys() - before if _lies_in(name, file.parent)})
    if not hasattr(module, name):
        names = [n for n in vars(module) if not n.startswith("_")]
        raise BadInput(f"model={str(place)!r}: {file.name} has no {name}; it has {', '.join(names[-8:])}")
    model = getattr(module, name)
    from unseam.models.adapters import adapter_for
    from unseam.models.own_networks import described

    if adapter_for(model) is None and callable(model):
        with _in_one_line(place, file):
            model = model()
    if adapter_for(model) is None:
        raise BadInput(
            f"model={str(place)!r} is of type {described(model)}; give a model with encode and decode, an (encoder, "
            "decoder) pair, or a function without arguments that returns one"
        )
    return model


def _forget_neighbours(folder: Path) -> None:
    """So that a file imports its own neighbours, not those of the same names that stand beside an earlier model."""
    for name in [name for name, place in _NEIGHBOURS.items() if place != folder]:
        del _NEIGHBOURS[name]
        sys.modules.pop(name, None)


def _lies_in(name: str, folder: Path) -> bool:
    """Whether a module was imported from this folder."""
    place = getattr(sys.modules[name], "__file__", None)
    return place is not None and Path(place).resolve().is_relative_to(folder)


@contextmanager
def _in_one_line(place: str | Path, file: Path) -> Iterator[None]:
    """An error in the user's file as one line that says where; `python FILE.py` shows the rest."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # the file is the user's and may fail in any way
        lines = [step.lineno for step in extract_tb(error.__traceback__) if Path(step.filename) == file]
        where = f"line {lines[-1]} of {file.name}" if lines else file.name
        text = (str(error).strip().splitlines() or [""])[0][:160]
        raise BadInput(f"model={str(place)!r}: {where} fails with {type(error).__name__}: {text}") from error


def read_observations(data: str | None, place: str | Path) -> Any:
    """The rows of --data and their factors, where it has any: a file, a folder of images or a data set's name."""
    if data is None:
        raise BadInput(f"{str(place)!r} needs --data FILE, some of the observations that the model was trained on")
    import torch

    from unseam.data import load_data
    from unseam.data.base import layers
    from unseam.data.registry import DATASETS
    from unseam.data.user import UserData

    array = _ARRAY.fullmatch(data)
    if data in DATASETS:
        found = load_data(data)
    else:  # gaussian: any numbers
        key = {} if array is None else {"key": array["name"]}
        found = load_data(data if array is None else array["file"], likelihood="gaussian", **key)
    if len(found) > _MOST_ROWS and data in DATASETS:
        rows = torch.randperm(len(found), generator=torch.Generator().manual_seed(0))[:_MOST_ROWS]
        log.info(f"note: {len(rows):,} of the {len(found):,} rows of {data}, drawn at random, are read")
    else:
        rows = torch.arange(len(found))
    x, factors = found.batch(rows), None if found.space is None else found.factors(rows).numpy()
    inner = layers(found)[-1]
    if isinstance(inner, UserData) and inner.features:
        import pandas as pd

        return pd.DataFrame(x.numpy(), columns=list(inner.features)), factors
    return x, factors


def refuse_run_flags(place: str | Path, device: str) -> None:
    """Refuse --device beside a model, whose file says where it is."""
    if device != "auto":
        raise BadInput(f"--device belongs to a run; {str(place)!r} says in its file where the model is")


def refuse_model_flags(place: str | Path, data: str | None, likelihood: str | None = None) -> None:
    """Refuse --data and --likelihood beside anything but a model."""
    for flag, value in (("--data", data), ("--likelihood", likelihood)):
        if value is not None:
            raise BadInput(f"{flag} belongs to a model, FILE.py:NAME; {str(place)!r} has its own")


def run_of_file(
    place: str | Path, data: str | None, out: str | Path | None = None, likelihood: str | None = None
) -> Run | None:
    """FILE.py:NAME with --data as a run; None where the place is a run folder."""
    if model_file(place) is None:
        refuse_model_flags(place, data, likelihood)
        return None
    from unseam.runs.adapted_run import as_run

    x, factors = read_observations(data, place)
    return as_run(load_model(place), x, factors=factors, out=out, likelihood=likelihood)
