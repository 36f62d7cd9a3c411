"""`load_run(folder) -> Run`: open a run folder or a pack, with its own data or with other data."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unseam.errors import BadInput
from unseam.lazy import require_torch
from unseam.run import pack
from unseam.run.config import RunConfig
from unseam.run.run import Run

if TYPE_CHECKING:
    from unseam.data.base import Dataset
    from unseam.models.own_networks import MakeNetworks, Networks


def load_run(folder: str | Path, data: Any = None, networks: Networks | None = None) -> Run:
    """Open a run: a folder, or a packed run (`unseam data pack`) here or at an http address, checked file by file.

    Models load without the training data.

    Parameters
    ----------
    folder : str or Path
        The run folder, the pack, or the address of the pack.
    data : str, Path, array, DataFrame or Dataset, optional
        Data to use in place of the data that the run was trained on. The scaling of the run is applied to it.
    networks : (encoder, decoder) or function, optional
        The networks that were passed to `fit(networks=)`, which a run does not store. A function that can be imported
        is found without it.

    Returns
    -------
    Run
        Its table, models, codes and data.

    Examples
    --------
    >>> import tempfile, unseam
    >>> run = unseam.fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 200},
    ...                  out=tempfile.mkdtemp() + "/run", show=False)
    >>> len(load_run(run.folder).members)
    1
    """
    run = _opened(pack.local(folder))
    if networks is not None:
        run = replace(run, networks=_own_networks(run, networks))
    return run if data is None else replace(run, other_data=_other_data(run, data))


def _own_networks(run: Run, networks: Networks) -> MakeNetworks:
    """The function that makes a run's own networks."""
    require_torch("load_run(networks=...)")
    from unseam.models.own_networks import maker

    if run.config.networks is None:
        raise BadInput(f"networks: {run.folder} was trained with the networks of unseam; leave networks out")
    return maker(networks)


def _other_data(run: Run, data: Any) -> Dataset:
    """Other data for a run, read as its own was."""
    require_torch("load_run(data=...)")
    from unseam.data.base import Dataset
    from unseam.data.wrap import Scaled

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

    from unseam.data import DATASETS, UserData, load_data, parameters

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
        expected = ", ".join(known[:8])
        raise BadInput(
            f"data has columns {', '.join(names[:8])}; the run was trained on {expected}: give these, in this order"
        )
    return data


def _opened(folder: str | Path) -> Run:
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise BadInput(
            f"run={str(folder)!r} is not a run folder (it has no config.json); train one with `unseam train`"
        )
    try:
        run = Run(path, RunConfig.from_json(json.loads((path / "config.json").read_bytes())))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path / 'config.json'} is damaged: {error}; put a copy back, or train the run again") from None
    run.rows.check(len(run.members), run.config.architecture.latents)
    return run
