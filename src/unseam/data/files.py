"""Where data files live: $UNSEAM_DATA, else the user's cache directory. Files appear there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def data_folder() -> Path:
    """The data folder (which may not exist yet)."""
    if os.environ.get("UNSEAM_DATA"):
        return Path(os.environ["UNSEAM_DATA"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unseam"


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary name in the same folder, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
