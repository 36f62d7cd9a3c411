"""Where data files live: $UNSEAM_DATA, else ~/.cache/unseam. Files appear there whole or not at all.

Not platformdirs: on macOS and Windows it would name another folder than the one that users have filled.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from unseam.files import atomic_file
from unseam.read import DAMAGE
from unseam.types import Array


def data_folder() -> Path:
    """The data folder (which may not exist yet)."""
    if os.environ.get("UNSEAM_DATA"):
        return Path(os.environ["UNSEAM_DATA"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unseam"


def cached_array(name: str, shape: tuple[int, ...], make: Callable[[], Array]) -> Array:
    """`make()`, kept under the data folder; a folder that cannot be written only costs time."""
    path = data_folder() / "cache" / name
    with suppress(*DAMAGE):
        array = np.load(path, allow_pickle=False)
        if array.shape == shape:
            return array
    array = make()
    with suppress(OSError), atomic_file(path) as temporary:
        np.save(temporary, array)
    return array
