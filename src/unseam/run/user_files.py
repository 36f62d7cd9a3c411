"""The user's own files behind a run: where they are now, and whether they are what the run was trained on.

Paths inside the run folder are stored relative to it, so that it can be moved; files outside by their whole path. A
digest of each is stored too: of all its bytes up to WHOLE; of a larger file, of its size and SAMPLES blocks of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unseam.data.names import DATASET_CLASSES, DRAWN, PATHS
from unseam.data.names import PERTURBED as FILE
from unseam.errors import BadInput
from unseam.readers import refusing

DIGEST_WHOLE = 1 << 26
_SAMPLES = 64  # blocks of a larger file, files of a folder
DIGEST_BLOCK = DIGEST_WHOLE // _SAMPLES
_OURS = ("source.npy", "factor_table.npy")  # what `fit` writes of arrays in memory


def files(data: Mapping[str, Any]) -> dict[str, str]:
    """The parameters that name the user's files.

    >>> files({"name": "mine.npy", "factors": None}), files({"name": "sprites", "size": 32})
    ({'name': 'mine.npy'}, {})
    """
    names = PATHS if data["name"] in DATASET_CLASSES else ("name", *PATHS)
    return {key: data[key] for key in names if isinstance(data.get(key), str) and data[key] != DRAWN}


def data_label(data: Mapping[str, Any]) -> str:
    """The name of the data in tables and pages: of a data set, a file or a folder; `array` if it was in memory.

    >>> data_label({"name": "sprites"}), data_label({"name": "data/mine.npy"})
    ('sprites', 'mine.npy')
    """
    path = Path(files(data).get("name", data["name"]))
    return "array" if str(path) == _OURS[0] else path.name  # relative to the run folder: ours


def relative(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The data's configuration as the run folder keeps it."""
    home = folder.resolve()
    inside = {key: Path(path) for key, path in files(data).items() if Path(path).is_relative_to(home)}
    return {**data, **{key: str(path.relative_to(home)) for key, path in inside.items()}}


def located_data(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The data's configuration with the paths of now; older folders name their own arrays by whole paths.

    >>> located_data({"name": "source.npy"}, Path("runs/a"))
    {'name': 'runs/a/source.npy'}
    """

    def now(path: Path) -> Path:
        moved = path.name in _OURS and not path.exists() and (folder / path.name).exists()
        return folder / (path.name if moved else path)  # a whole path stays as it is

    return {**data, **{key: str(now(Path(path))) for key, path in files(data).items()}}


def _behind(data: Mapping[str, Any], folder: Path, pairs: Any = None) -> dict[str, Path]:
    """Every user file that a run depends on: its data, the data below a perturbed set, its pairs.

    >>> _behind({"name": "mine.npy"}, Path("runs/a"), "pairs.csv")
    {'name': PosixPath('runs/a/mine.npy'), 'pairs': PosixPath('runs/a/pairs.csv')}
    """
    found = {key: Path(path) for key, path in files(located_data(data, folder)).items()}
    if "name" in found and (found["name"] / FILE).is_file():
        with refusing(f"data={str(found['name'])!r}", "damaged"):  # it may name itself
            from unseam.data.sets.perturbed import Perturbed

            below = _behind(Perturbed(str(found["name"])).document["base"], folder)
        found |= {f"base.{key}": path for key, path in below.items()}
    if isinstance(pairs, str) and Path(pairs).suffix:  # else how they are drawn
        found["pairs"] = folder / pairs
    return found


def digests(data: Mapping[str, Any], folder: Path, pairs: Any = None) -> dict[str, str]:
    """A digest of every file of the user's."""
    return {key: digest(path) for key, path in _behind(data, folder, pairs).items() if path.exists()}


def check_digests(data: Mapping[str, Any], known: Mapping[str, str], folder: Path, pairs: Any = None) -> None:
    """Refuse files that are not what the run was begun with; an older run has no digests to compare."""
    for key, path in _behind(data, folder, pairs).items():
        if key in known and path.exists() and not any(digest(path, every) == known[key] for every in (False, True)):
            raise BadInput(
                f"{'data' if key == 'name' else key}={str(path)!r} has changed since {folder} was trained on it; put "
                "the file back as it was, or train a new run on it"
            )


def digest(path: Path, every: bool = False) -> str:
    """SHA-256 of a file, or of a folder's names, sizes and some of its files.

    Of perturbed data only what is observed counts, not its page or models; with `every` all, as older runs have it.
    """
    if path.is_file():
        return _of_file(path, hashlib.sha256()).hexdigest()
    ours = (path / name for name in (FILE, "m.safetensors", "w.npy"))
    observed = (path / FILE).is_file() and not every
    inside = sorted(p for p in (ours if observed else path.rglob("*")) if p.is_file())
    sha = hashlib.sha256(
        "\n".join(f"{p.relative_to(path)} {p.stat().st_size}" for p in inside).encode("utf-8", "replace")
    )
    for p in inside[:: max(1, len(inside) // _SAMPLES)]:
        _of_file(p, sha)
    return sha.hexdigest()


def _of_file(path: Path, sha: Any) -> Any:
    size = path.stat().st_size
    sha.update(f"{size}".encode())
    starts = (
        range(0, size, DIGEST_BLOCK)
        if size <= DIGEST_WHOLE
        else [(size - DIGEST_BLOCK) * i // (_SAMPLES - 1) for i in range(_SAMPLES)]
    )
    with path.open("rb") as file:
        for start in starts:
            file.seek(start)
            sha.update(file.read(DIGEST_BLOCK))
    return sha
