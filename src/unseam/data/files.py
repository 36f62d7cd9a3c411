"""Where data files live: $UNSEAM_DATA, else the user's cache directory. Files appear there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from unseam.files import atomic_file
from unseam.types import Array


def data_folder() -> Path:
    """The data folder (which may not exist yet)."""
    if os.environ.get("UNSEAM_DATA"):
        return Path(os.environ["UNSEAM_DATA"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unseam"


def cached_array(name: str, make: Callable[[], Array]) -> Array:
    """`make()`, kept under the data folder; a folder that cannot be written only costs time."""
    path = data_folder() / "cache" / name
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        array = make()
    try:
        with atomic_file(path) as temporary:
            np.save(temporary, array)
    except OSError:
        return array
    return array
