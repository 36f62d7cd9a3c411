"""`load_run(folder) -> Run`: open a run folder or a pack, with its own data or with other data.

A pack is a folder of published runs with `pack.json`, which names every file with its size and SHA-256; it is here or
at an address. Nothing of it is opened before it was checked; names cannot lead out of the folder; no file of a pack is
ever run.
"""

from __future__ import annotations

import hashlib
import json
import re
import urllib.error
import urllib.parse
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from unseam.atomic import write_atomic
from unseam.data.cache import data_folder
from unseam.data.download.fetch import DOWNLOAD_ERRORS, answer_of, bring, pour, reason, wrong
from unseam.data.download.sources import File
from unseam.errors import BadInput, MissingPackage, unknown
from unseam.lazy import require_torch
from unseam.run.config import RunConfig
from unseam.run.run import MANIFEST, Run, not_stored, pack_of

if TYPE_CHECKING:
    from unseam.data.base import Dataset
    from unseam.models.own_networks import MakeNetworks, Networks

LARGEST_MANIFEST = 1 << 24  # bytes: a study has thousands of files
_SHOWN = 5  # runs that an error lists
_PART = "[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}"  # of a name; file systems take 255 letters, and we add some
NAME = re.compile(f"{_PART}(/{_PART}){{0,9}}")


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
    run = _opened(local_run(folder))
    if networks is not None:
        run = replace(run, networks=_own_networks(run, networks))
    return with_data(run, data)


def with_data(run: Run, data: Any) -> Run:
    """The run as it is, its networks and its device, with other data; with its own for None."""
    return run if data is None else replace(run, other_data=_other_data(run, data))


def _own_networks(run: Run, networks: Networks) -> MakeNetworks:
    """The function that makes a run's own networks."""
    require_torch("load_run(networks=...)")
    from unseam.models.own_networks import maker

    if run.config.networks is None:
        raise BadInput(f"networks: {run.folder} was trained with the networks of unseam; leave networks out")
    if run.config.adapted:
        raise BadInput(f"networks: {not_stored(run)}")
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


def local_run(place: str | Path) -> Path:
    """The folder of a run, fetched if it is an address; a packed one is checked first."""
    text = str(place)
    if text.startswith("hf:"):
        folder = _from_hub(text)
    else:
        folder = fetched_run(text) if re.match(r"https?://", text) else Path(place)
    pack = pack_of(folder)
    return folder if pack is None else _checked_pack(pack, folder.resolve())


_HUB = re.compile(r"hf:(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[\w.-]+))?(/(?P<run>[\w.+/-]+))?")


def _from_hub(address: str) -> Path:
    """The run at `hf:OWNER/NAME[@REVISION][/RUN]`, in the cache of huggingface_hub; of several runs only this one.

    >>> _from_hub("hf:owner")
    Traceback (most recent call last):
    unseam.errors.BadInput: run='hf:owner' must be hf:OWNER/NAME, hf:OWNER/NAME@REVISION or hf:OWNER/NAME/RUN
    """
    found = _HUB.fullmatch(address)
    if found is None:
        raise BadInput(f"run={address!r} must be hf:OWNER/NAME, hf:OWNER/NAME@REVISION or hf:OWNER/NAME/RUN")
    try:
        import huggingface_hub
    except ImportError:
        raise MissingPackage(f"run={address!r}", "huggingface_hub", "hub") from None
    which = {"repo_id": found["repository"], "revision": found["revision"]}
    try:
        manifest_path = Path(huggingface_hub.hf_hub_download(filename=MANIFEST, **which))
        if manifest_path.stat().st_size > LARGEST_MANIFEST:
            raise BadInput(f"run={address!r}: its {MANIFEST} has more than {LARGEST_MANIFEST:,} bytes")
        runs = read_manifest(manifest_path.read_bytes(), f"{address}/{MANIFEST}")["runs"]
        run = found["run"] or only_run(runs, address)
        if run not in runs:
            raise unknown("run", run, runs)
        patterns = [MANIFEST, "README.md", f"{run}/*"]
        return Path(huggingface_hub.snapshot_download(allow_patterns=patterns, **which)) / run
    except BadInput:
        raise
    except Exception as error:  # of its many kinds some are not an OSError, and they change with its versions
        raise BadInput(f"run={address!r} cannot be fetched: {reason(error)}") from None


def _checked_pack(pack: Path, folder: Path) -> Path:
    """The run of a pack (its only one, or the folder named), when all its files are what the manifest says."""
    document = read_manifest((pack / MANIFEST).read_bytes(), str(pack / MANIFEST))
    run = pack / only_run(document["runs"], str(pack)) if folder == pack else folder
    for file in document["files"]:
        if not (pack / file.name).is_relative_to(run):
            continue
        reason = wrong(pack / file.name, file) if (pack / file.name).is_file() else "missing"
        if reason:
            raise BadInput(f"{pack / file.name} is not what {MANIFEST} says ({reason}); copy or fetch it again")
    return run


def read_manifest(content: bytes, where: str) -> dict[str, Any]:
    """A manifest, checked: {"runs": [folder, ...], "files": [File, ...]}."""
    try:
        document = json.loads(content)
        runs = [str(name) for name in document["runs"]]
        files = [File(str(n), (), int(f["bytes"]), {"sha256": str(f["sha256"])}) for n, f in document["files"].items()]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BadInput(f"{where} is not the manifest of a packed run ({error!r})") from None
    for name in (*runs, *(file.name for file in files)):
        if not NAME.fullmatch(name) or ".." in PurePosixPath(name).parts:
            raise BadInput(
                f"{where} names {name[:80]!r}, which is not a plain name inside the folder; it is not opened"
            )
    if not runs:
        raise BadInput(f"{where} holds no run")
    return {"runs": runs, "files": files}


def only_run(runs: list[str], where: str) -> str:
    """The one run of a pack; of several one must be named."""
    if len(runs) > 1:
        known = ", ".join(f"{where}/{run}" for run in runs[:_SHOWN]) + (", ..." if len(runs) > _SHOWN else "")
        raise BadInput(f"{where} holds {len(runs)} runs; open one: {known}")
    return runs[0]


def fetched_run(address: str) -> Path:
    """The run at an address, in the data folder: PACK, or PACK/RUN; what is there and right is not fetched again."""
    base, name = address.removesuffix(MANIFEST).rstrip("/"), ""
    try:
        try:
            content = _download_manifest(base)
        except urllib.error.HTTPError:  # no pack, so it may be a run in one
            if base.count("/") < 3:
                raise
            base, _, name = base.rpartition("/")
            content = _download_manifest(base)
    except DOWNLOAD_ERRORS as error:
        raise BadInput(f"run={address!r} cannot be fetched: {reason(error)}") from None
    document = read_manifest(content, f"{base}/{MANIFEST}")
    name = name or only_run(document["runs"], base)
    if name not in document["runs"]:
        raise unknown("run", name, document["runs"])
    folder = data_folder() / "packs" / hashlib.sha256(content).hexdigest()[:16]
    for file in document["files"]:
        if file.name.startswith(f"{name}/") or "/" not in file.name:
            bring(folder, file, [f"{base}/{urllib.parse.quote(file.name)}"])
    write_atomic(folder / MANIFEST, content)
    return folder / name


def _download_manifest(base: str) -> bytes:
    """Download the pack's manifest (truncated at the largest allowed size)."""
    content = BytesIO()
    with answer_of(f"{base}/{MANIFEST}") as answer:
        pour(answer, content, 0, LARGEST_MANIFEST)
    return content.getvalue()
