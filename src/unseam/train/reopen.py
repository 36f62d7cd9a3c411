"""`load_run(folder) -> Run` and `resume(folder) -> Run`: a run as it lies there, with other data, or going on."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from unseam.data import DATASETS, load_data, parameters
from unseam.data.base import Dataset
from unseam.data.user import UserData
from unseam.data.wrappers import Scaled
from unseam.errors import BadInput, lookup
from unseam.files import remove_leftovers, write_atomic
from unseam.objectives import OBJECTIVES, Objective
from unseam.train import own, packed
from unseam.train.cohort import run_cohort, where
from unseam.train.config import RunConfig
from unseam.train.run import Run


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
    if run.finished:
        return run
    run.rows.create()
    own.check(run.config.data, run.config.digests, run.folder, run.config.static.get("pairs"))
    _ = run.data  # refused now if it cannot be read
    training = replace(run.config.training, device=placed.device)
    run_cohort(run.folder, replace(run.config, training=training), kind, show)
    return run


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
