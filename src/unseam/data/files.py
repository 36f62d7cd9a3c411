"""Where data files live: $UNSEAM_DATA, else the user's cache directory. Files appear there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from unseam.types import Array


def data_folder() -> Path:
    """The data folder (which may not exist yet)."""
    if os.environ.get("UNSEAM_DATA"):
        return Path(os.environ["UNSEAM_DATA"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unseam"


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary name in the same folder; renamed to `path` if the block ends well, deleted if not.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     os.listdir(folder)
    ['a.txt']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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
