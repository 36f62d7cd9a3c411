"""Where data files live: $UNSEAM_DATA, else ~/.cache/unseam. Files appear there whole or not at all.

Not platformdirs: on macOS and Windows it would name another folder than the one that users have filled.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from unseam.atomic import atomic_file, write_atomic
from unseam.axes import Array
from unseam.readers import DAMAGE


def data_folder() -> Path:
    """The data folder (which may not exist yet)."""
    if os.environ.get("UNSEAM_DATA"):
        return Path(os.environ["UNSEAM_DATA"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unseam"


def cached_array(name: str, shape: tuple[int, ...], make: Callable[[], Array]) -> Array:
    """`make()`, cached under the data folder; a folder that cannot be written only costs time."""
    path = data_folder() / "cache" / name
    with suppress(*DAMAGE):
        array = np.load(path, allow_pickle=False)
        if array.shape == shape:
            return array
    array = make()
    with suppress(OSError), atomic_file(path) as temporary:
        np.save(temporary, array)
    return array


# Checks that read a whole file are done once: the result is cached under the identity of the file.


LARGE_FILE = 1 << 26  # bytes from which a note is worth keeping


def remember(source: Any, key: str | None, compute: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """`compute()`, or its cached result for this file (by path, size and time of change).

    >>> remember(None, None, lambda: (0.0, 1.0))
    (0.0, 1.0)
    """
    path = Path(source) if isinstance(source, (str, Path)) else None
    if path is None or path.stat().st_size < LARGE_FILE:
        return compute()
    stat = path.stat()
    identity = f"{path.resolve()}\n{stat.st_size}\n{stat.st_mtime_ns}\n{key}"
    note = data_folder() / "checked" / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, TypeError):  # no note, or a damaged one
        low, high = json.loads(note.read_text())
        return float(low), float(high)
    found = compute()
    with suppress(OSError):  # a folder that cannot be written only costs time
        write_atomic(note, json.dumps(found))
    return found
