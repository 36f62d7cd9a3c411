"""Who works at a piece: a numbered lease, which later ones outrank.

    FOLDER/lease-00000003       the newest is the one that counts; {"token", "host", "boot", "space", "pid", "started",
                                "beats", "share", "released"}

A piece is taken by making the file of the next number, which only one process can (O_EXCL). The number is a fencing
token: a holder that was paused (Ctrl-Z, a suspended machine, a frozen container) and wakes finds a newer lease than
its own, and every file it is about to rename into place asks first (`atomic.guarded`). The new holder deletes the
temporary files of the old one, so a rename that was prepared before the pause fails after it.

Clocks of different machines are never compared. A lease is free when its holder says so (`released`), when the holder
is a process of this machine (same boot, same space of process numbers) that has ended, or when the observer has seen
the same content for `SILENCE` seconds of its own monotonic clock: a holder changes it every `BEAT` seconds.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from unseam.atomic import is_running, pid_space

BEAT = 2.0  # seconds between heartbeats
SILENCE = 60.0  # seconds of the observer without one, after which a lease is free
WIDTH = 512  # bytes of a lease, always: it is rewritten in place, and never shorter
_NAME = re.compile(r"lease-(\d+)$")
_first_sight: dict[Path, tuple[bytes, float]] = {}  # lease -> its content, and when this process saw it first


class Lost(Exception):
    """Another worker holds the piece: this one must write nothing more."""


@dataclass
class Lease:
    """The right to work at a piece, until another process takes the next number."""

    path: Path
    token: str
    share: float = 0.0  # of the work, for those who watch
    beats: int = 0
    lost: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise `Lost` unless this is the newest lease."""
        found = newest(self.path.parent)
        if found is None or found != self.path or _document(_content(found)).get("token") != self.token:
            self.lost.set()
            raise Lost(f"{self.path.parent} was taken over by another worker")

    def beat(self, released: bool = False) -> None:
        """Rewrite the file in place; a file that is gone is not made again."""
        self.beats += 1
        document = {**_holder(), "token": self.token, "beats": self.beats, "share": round(self.share, 4)}
        text = json.dumps(document | ({"released": True} if released else {})).encode().ljust(WIDTH)
        with suppress(OSError):
            descriptor = os.open(self.path, os.O_WRONLY)
            try:
                os.pwrite(descriptor, text, 0)
            finally:
                os.close(descriptor)

    def release(self, done: bool) -> None:
        """Let others have it; a piece that is done needs no lease any more."""
        if done:
            with suppress(Lost):
                self.check()
                self.path.unlink(missing_ok=True)
        else:
            self.beat(released=True)


def newest(folder: Path) -> Path | None:
    """The lease that counts."""
    try:
        numbered = [(int(match[1]), name) for name in os.listdir(folder) if (match := _NAME.match(name))]
    except FileNotFoundError:
        return None
    return folder / max(numbered)[1] if numbered else None


def claim(folder: Path) -> Lease | None:
    """Take a piece if it is free: its newest lease is released, of a process that ended, or silent."""
    folder.mkdir(parents=True, exist_ok=True)
    before = newest(folder)
    if before is not None and not is_free(before):
        return None
    number = 1 if before is None else int(before.name.partition("-")[2]) + 1
    lease = Lease(folder / f"lease-{number:08d}", secrets.token_hex(8))
    try:
        os.close(os.open(lease.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:  # another process was faster
        return None
    lease.beat()
    for old in folder.glob("lease-*"):  # they count no more, and their holders see that they are gone
        if (match := _NAME.match(old.name)) and int(match[1]) < number:
            old.unlink(missing_ok=True)
            _first_sight.pop(old, None)
    return lease


def is_free(path: Path) -> bool:
    """Whether the owner of this lease is gone."""
    now = time.monotonic()  # before the file is read: a pause in between must not look like the holder's silence
    content = _content(path)
    document = _document(content)
    if document.get("released") is True or _ended(document):
        return True
    known, since = _first_sight.setdefault(path, (content, now))
    if known != content:
        _first_sight[path] = content, now
        return False
    return now - since > SILENCE


def share_of(folder: Path) -> float:
    """How far the newest holder says it is, in [0, 1]."""
    path = newest(folder)
    share = None if path is None else _document(_content(path)).get("share")
    return float(share) if isinstance(share, (int, float)) else 0.0


def mark(folder: Path) -> tuple[Path, bytes] | None:
    """The newest lease and its content, which a holder that lives changes."""
    path = newest(folder)
    return None if path is None else (path, _content(path))


def remove_leases(folder: Path) -> None:
    """Of a piece that is done: a worker killed between two looks may have left one."""
    for path in folder.glob("lease-*"):
        path.unlink(missing_ok=True)


@contextmanager
def heartbeat(lease: Lease) -> Iterator[None]:
    """Beats while the block runs, and sees whether the lease was lost."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(BEAT):
            with suppress(Lost, OSError):
                lease.check()
                lease.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@cache
def _boot() -> str:
    """This start of this machine; empty where the system does not tell."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _started(pid: int) -> int | None:
    """When a process began, in the kernel's ticks: a number that is given out again belongs to another process."""
    with suppress(OSError, ValueError, IndexError, OverflowError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])
    return None


def _holder() -> dict[str, Any]:
    pid = os.getpid()
    place = {"host": socket.gethostname()[:100], "boot": _boot(), "space": pid_space()}
    return {**place, "pid": pid, "started": _started(pid)}


def _ended(document: dict[str, Any]) -> bool:
    """Whether the holder is a process of this machine, as this process numbers them, that runs no more."""
    here = _holder()
    pid = document.get("pid")
    if not isinstance(pid, int) or any(document.get(name) != here[name] for name in ("host", "boot", "space")):
        return False
    began, now = document.get("started"), _started(pid)
    return not is_running(pid) or (began is not None and now is not None and began != now)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _document(content: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        found = json.loads(content)
        return found if isinstance(found, dict) else {}
    return {}
