"""Published runs: a folder with `pack.json`, which names every file with its size and SHA-256. Here or at an address.

Nothing is opened before it was checked; names cannot lead out of the folder; no file of a pack is ever run.
"""

from __future__ import annotations

import hashlib
import json
import re
import urllib.error
import urllib.parse
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from unseam.atomic import write_atomic
from unseam.data.cache import data_folder
from unseam.data.download.fetch import DOWNLOAD_ERRORS, answer_of, bring, pour, reason, wrong
from unseam.data.download.sources import File
from unseam.errors import BadInput, MissingPackage, unknown

MANIFEST = "pack.json"
LARGEST_MANIFEST = 1 << 24  # bytes: a study has thousands of files
_SHOWN = 5  # runs that an error lists
_PART = "[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}"  # of a name; file systems take 255 letters, and we add some
NAME = re.compile(f"{_PART}(/{_PART}){{0,9}}")


def local(place: str | Path) -> Path:
    """The folder of a run, fetched if it is an address; a packed one is checked first."""
    text = str(place)
    if text.startswith("hf:"):
        folder = _from_hub(text)
    else:
        folder = fetched(text) if re.match(r"https?://", text) else Path(place)
    pack = pack_of(folder)
    return folder if pack is None else _checked(pack, folder.resolve())


_HUB = re.compile(r"hf:(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[\w.-]+))?(/(?P<run>[\w.+/-]+))?")


def _from_hub(address: str) -> Path:
    """The run at `hf:OWNER/NAME[@REVISION][/RUN]`, in the cache of huggingface_hub; of several runs only this one.

    >>> _from_hub("hf:nobody")
    Traceback (most recent call last):
    unseam.errors.BadInput: run='hf:nobody' must be hf:OWNER/NAME, hf:OWNER/NAME@REVISION or hf:OWNER/NAME/RUN
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
        run = found["run"] or only(runs, address)
        if run not in runs:
            raise unknown("run", run, runs)
        patterns = [MANIFEST, "README.md", f"{run}/*"]
        return Path(huggingface_hub.snapshot_download(allow_patterns=patterns, **which)) / run
    except BadInput:
        raise
    except Exception as error:  # of its many kinds some are not an OSError, and they change with its versions
        raise BadInput(f"run={address!r} cannot be fetched: {reason(error)}") from None


def pack_of(folder: Path) -> Path | None:
    """The pack that a folder is, or that it belongs to; `.` belongs to the folder above it too."""
    place = folder.resolve()
    try:
        return next((pack for pack in (place, place.parent) if (pack / MANIFEST).is_file()), None)
    except OSError as error:  # a name longer than any
        raise BadInput(f"run={str(folder)[:80]!r} cannot be opened: {error.strerror}") from None


def _checked(pack: Path, folder: Path) -> Path:
    """The run of a pack (its only one, or the folder named), when all its files are what the manifest says."""
    document = read_manifest((pack / MANIFEST).read_bytes(), str(pack / MANIFEST))
    run = pack / only(document["runs"], str(pack)) if folder == pack else folder
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


def only(runs: list[str], where: str) -> str:
    """The one run of a pack; of several one must be named."""
    if len(runs) > 1:
        known = ", ".join(f"{where}/{run}" for run in runs[:_SHOWN]) + (", ..." if len(runs) > _SHOWN else "")
        raise BadInput(f"{where} holds {len(runs)} runs; open one: {known}")
    return runs[0]


def fetched(address: str) -> Path:
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
    name = name or only(document["runs"], base)
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


def manifest(files: Mapping[str, Path], runs: list[str], about: Mapping[str, Any]) -> str:
    """`pack.json` of these files, by their names in the pack."""
    listed = {
        name: {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, path in sorted(files.items())
    }
    return json.dumps({**about, "runs": runs, "files": listed}, indent=2)
