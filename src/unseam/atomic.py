"""Files appear whole or not at all; and how many cores there are to make them."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from io import BytesIO
from pathlib import Path
from typing import Any


def pid_space() -> str:
    """Which processes the numbers of this one name: containers with one host name have spaces of their own."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


# of this machine's processes, in the names of temporary files
MARK = hashlib.sha256(f"{platform.node()} {pid_space()}".encode()).hexdigest()[:6]
_TEMPORARY = re.compile(r"^\..*\.[0-9a-f]{6}-\d+\.[a-z0-9_]{8}(\.\w+)?$")
_guard: ContextVar[Callable[[], None] | None] = ContextVar("guard", default=None)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary name in the same folder; on disk and renamed to `path` if the block ends well, deleted if not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     os.listdir(folder)
    ['a.txt']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, of=path.stem)
    temporary = path.with_name(f".{path.stem}.{MARK}-{os.getpid()}.{secrets.token_hex(4)}{path.suffix}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # the umask takes away what it must
    try:
        yield temporary
        flush(temporary)
        check_guard()
        try:
            os.replace(temporary, path)
        except FileNotFoundError:
            check_guard()  # the process that took over has deleted it
            raise
        flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def guarded(check: Callable[[], None]) -> Iterator[None]:
    """Ask `check` before every file of this block (and thread) takes its name; it raises to forbid it.

    >>> def forbid():
    ...     raise PermissionError("not ours any more")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, guarded(forbid):
    ...     write_atomic(Path(folder) / "a.txt", "a")
    Traceback (most recent call last):
    PermissionError: not ours any more
    """
    token = _guard.set(check)
    try:
        yield
    finally:
        _guard.reset(token)


def check_guard() -> None:
    """Raise if a guard of this block forbids to write."""
    check = _guard.get()
    if check is not None:
        check()


def remove_temporaries(*folders: Path) -> None:
    """Delete every temporary file of any process: the rename into place then fails."""
    for folder in folders:
        for path in folder.iterdir() if folder.is_dir() else ():
            if _TEMPORARY.match(path.name):
                path.unlink(missing_ok=True)


def remove_leftovers(*folders: Path, of: str = "") -> list[str]:
    """Delete the temporary files of processes of this machine that died while writing (`of` one file); their names."""
    start = f".{of}." if of else "."
    inside = [path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.name.startswith(start)]
    found = [path for path in inside if _orphaned(path.name)]
    for path in found:
        path.unlink(missing_ok=True)
    return [path.name for path in found]


def _orphaned(name: str) -> bool:
    parts = re.search(rf"\.{MARK}-(\d+)\.[a-z0-9_]{{8}}(\.\w+)?$|\.(\d+)\.tmp$", name)
    return parts is not None and not is_running(int(parts[1] or parts[3]))


def is_running(pid: int) -> bool:
    """Whether a process of this machine runs; one that ended, but that its parent has not collected yet, does not.

    >>> is_running(os.getpid())
    True
    """
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (ProcessLookupError, OverflowError):
        return False
    except (OSError, IndexError):  # another user's, or a system without /proc
        return True
    return state not in "ZX"


def write_atomic(path: Path, content: bytes | str) -> None:
    """The whole content under the name, or what was there before."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


def write_array(path: Path, array: Any) -> None:
    """An array as .npy, several by name as .npz, whole or not at all.

    >>> import numpy as np
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_array(Path(folder) / "a.npz", {"a": [1, 2]})
    ...     np.load(Path(folder) / "a.npz")["a"].tolist()
    [1, 2]
    """
    import numpy as np

    content = BytesIO()
    if isinstance(array, Mapping):
        np.savez(content, **array)
    else:
        np.save(content, np.asarray(array), allow_pickle=False)
    write_atomic(path, content.getvalue())


def flush(path: Path) -> None:
    """Onto the disk: a file's bytes, or a folder's names (which some systems do not offer)."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def free_path(base: Path) -> Path:
    """The path, or the first numbered variant of it that does not exist.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "run").mkdir()
    ...     free_path(Path(folder) / "run").name
    'run-2'
    """
    number, path = 1, base
    while path.exists():
        number, path = number + 1, base.with_name(f"{base.name}-{number + 1}")
    return path


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
