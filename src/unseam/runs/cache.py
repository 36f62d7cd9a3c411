"""Results computed for a member are cached: a row of `computed` in results.sqlite, and an npz of arrays beside it.

A row is found again by what it depends on: the member's weights (by digest), the step, the rows, the settings, the
version of the package and its code; that the data is still what it was, `Run.data` sees to. The arrays are written
first, whole or not at all, so a row never points at half a file. A folder that cannot be written to, or a damaged row,
costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unseam import __version__
from unseam.atomic import write_array
from unseam.axes import Array
from unseam.readers import DAMAGE
from unseam.run import Run
from unseam.run.results import Results

SCHEMA = """create table if not exists computed (what text, member integer, step integer, key text, settings text,
    version text, document text, primary key (what, member, key)) without rowid"""
# what makes the numbers: the packages that `runs` imports, and the random draws
CODE = ("axes", "data", "geometry", "linear", "metrics", "models", "objectives", "rng", "run", "runs", "stats", "train")


class CachedResult(NamedTuple):
    """A cached result: what JSON can hold, and arrays by name."""

    document: dict[str, Any]
    arrays: dict[str, Array]


def once(
    run: Run,
    what: str,
    member: int,
    settings: Mapping[str, Any],
    make: Callable[[], CachedResult],
    step: int | None = None,
) -> CachedResult:
    """The cached result, or what `make` returns, which is then cached."""
    if not run.keeps:
        return make()
    key, identity = _identity(run, member, settings, step)
    found = _read(run.folder, what, member, key)
    if found is not None:
        return found
    result = make()
    _write(run.folder, (what, member, step, key, identity, __version__), result)
    return result


def cached_result(run: Run, what: str, member: int, settings: Mapping[str, Any]) -> CachedResult | None:
    """The cached result; None where it would have to be computed."""
    return _read(run.folder, what, member, _identity(run, member, settings)[0]) if run.keeps else None


def _identity(run: Run, member: int, settings: Mapping[str, Any], step: int | None = None) -> tuple[str, str]:
    """What a result depends on: a key, and its JSON text."""
    on = {"weights": run.weights_digest(member, step), "unseam": __version__, "code": code()}
    identity = json.dumps({**settings, **on}, sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:16], identity


@lru_cache
def code() -> str:
    """A digest of the package's own numbers' source: what other code computed is computed again."""
    root, sha = Path(__file__).parents[1], hashlib.sha256()
    for part in CODE:
        for file in sorted((root / part).rglob("*.py")) or [root / f"{part}.py"]:
            sha.update(file.read_bytes())
    return sha.hexdigest()[:16]


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def _place(folder: Path, what: str, member: int, key: str) -> Path:
    return folder / "computed" / f"{what}-{member}-{key}.npz"


def _read(folder: Path, what: str, member: int, key: str) -> CachedResult | None:
    """The cached result; None where there is none, or none that can be read."""
    try:
        with Results(folder).connection(read_only=True) as connection:
            query = "select document from computed where what = ? and member = ? and key = ?"
            row = connection.execute(query, (what, member, key)).fetchone()
        if row is None:
            return None
        with np.load(_place(folder, what, member, key), allow_pickle=False) as archive:
            document = json.loads(row[0])
            return CachedResult(document, dict(archive)) if document.pop("digest") == _digest(document) else None
    except (*DAMAGE, sqlite3.Error):
        return None


def _write(folder: Path, row: tuple[Any, ...], result: CachedResult) -> None:
    what, member, _, key, *_ = row
    try:
        write_array(_place(folder, what, member, key), result.arrays)
        with Results(folder).connection() as connection, connection:
            connection.execute(SCHEMA)
            values = (*row, json.dumps({**result.document, "digest": _digest(result.document)}))
            connection.execute("insert or replace into computed values (?, ?, ?, ?, ?, ?, ?)", values)
    except (sqlite3.Error, OSError):  # a folder that may only be read
        return
