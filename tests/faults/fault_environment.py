"""What the machine does: a full disk, a folder that cannot be written, a locked table. One line, and a way on.

`python tests/faults/fault_environment.py PLACE` forks a child for every case and prints one JSON document. A full disk
is a small tmpfs where mounting is allowed, and a limit on the size of files elsewhere; a folder that cannot be written
is one mounted read-only, or without the permission where this is not a superuser.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from fault_kills import Act, Campaign, Verb, forked, leftovers, warm

SIZES = (20, 40, 60, 90, 130, 180)  # kB that a training finds free; it needs some more
NAMES = ("train", "evaluate", "diagnose", "align", "report", "traverse", "export", "stress", "find", "match")
LEFT = (0, 4, 8, 16, 24, 32, 48, 64, 96)  # kB that are free when a verb writes to results.sqlite and its log
LIMITS = (256, 1024, 3000, 6000)  # bytes that a file may have


@contextmanager
def disk(place: Path, kilobytes: int) -> Iterator[Callable[..., None]]:
    """A folder on a disk of this size; what is yielded mounts it anew with other options."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(place)], check=True)
    try:
        yield lambda options: subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)
    finally:
        subprocess.run(["umount", str(place)], check=True)


def may_mount(place: Path) -> bool:
    try:
        with disk(place / "try", 64):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def limited(act: Verb, size: int) -> Verb:
    def inside() -> int:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        return act()

    return inside


def impatient(act: Verb) -> Verb:
    """Tables are waited for half a second, not a minute."""

    def inside() -> int:
        real = sqlite3.connect
        sqlite3.connect = lambda *args, **options: real(*args, **{**options, "timeout": 0.5})  # type: ignore[assignment]
        return act()

    return inside


def undone(run: Path) -> None:
    """A run as it was before its first step."""
    for path in (run / "checkpoints").iterdir():
        path.unlink()
    with closing(sqlite3.connect(run / "results.sqlite")) as connection, connection:
        for table in ("runs", "log", "latents"):
            connection.execute(f"delete from {table}")


class Environment(Campaign):
    """The same verbs; whatever stands in the way is told in one line, and once it is gone they end as they should."""

    def in_the_way(self, what: str, act: Act, call: Verb, out: Path) -> None:
        told = forked(call, out)
        self.note(f"{what}: {act.name}, " + ("ended well" if told and told["code"] == 0 else "told in one line"))
        lines = told["told"].count("\n") if told else -1
        if told and "disk is full" in told["told"]:
            self.note("of these SQLite's disk is full")
        if told is None or (told["code"] != 0 and (told["code"] not in (1, 2) or lines != 1)):
            self.defects.append(f"{what}: {act.name}: {told}")

    def gone(self, what: str, act: Act, out: Path) -> None:
        told = forked(act.again(out), out)
        if told is None or told["code"] != 0 or act.same(out) != self.expected[act.name] or leftovers(out):
            self.defects.append(f"{what}, and gone: {act.name}: {told}, {leftovers(out)} temporary files")

    def full(self, act: Act, kilobytes: int) -> None:
        with disk(self.place / "disk", 20_000) as again:
            out = self.place / "disk" / "run"
            if act.on_run:
                shutil.copytree(self.place / "whole-train", out)
            used = sum(-(-p.stat().st_size // 4096) * 4 for p in out.rglob("*")) if act.on_run else 0
            again(f"size={used + kilobytes}k")
            self.in_the_way("full disk", act, act.call(out), out)
            again("size=20000k")
            self.gone("full disk", act, out)

    def full_log(self, act: Act, kilobytes: int) -> None:
        """The tables are there, and the disk has no room for their write-ahead log to grow."""
        with disk(self.place / "disk", 4000):
            out = self.place / "disk" / "run"
            shutil.copytree(self.place / "whole-train", out)
            if act.name == "train":
                undone(out)
            with closing(sqlite3.connect(out / "results.sqlite")) as held:  # so that the log is not emptied at an end
                held.execute("select count(*) from runs").fetchall()
                ballast = self.place / "disk" / "ballast"
                free = shutil.disk_usage(out).free
                ballast.write_bytes(bytes(max(0, free - 1024 * kilobytes)))
                self.in_the_way("full log", act, act.again(out), out)
                if held.execute("pragma integrity_check").fetchall() != [("ok",)]:
                    self.defects.append(f"full log: {act.name}: results.sqlite is damaged")
                ballast.unlink()
            self.gone("full log", act, out)

    def short_files(self, act: Act, size: int) -> None:
        out = self.begin(act)
        self.in_the_way("limit on the size of files", act, limited(act.call(out), size), out)
        self.gone("limit on the size of files", act, out)

    def read_only(self, act: Act) -> None:
        with disk(self.place / "disk", 20_000) as again:
            out = self.place / "disk" / "run"
            shutil.copytree(self.place / "whole-train", out)
            with closing(sqlite3.connect(out / "results.sqlite")) as connection:
                connection.execute("pragma journal_mode=delete")
            if act.name == "train":
                undone(out)
            again("ro")
            self.in_the_way("folder that cannot be written", act, act.again(out), out)
            again("rw")
            self.gone("folder that cannot be written", act, out)

    def locked(self, act: Act) -> None:
        out = self.begin(act)
        shutil.copytree(self.place / "whole-train", out, dirs_exist_ok=True)
        if act.name == "train":
            undone(out)
        with closing(sqlite3.connect(out / "results.sqlite", isolation_level=None)) as holder:
            holder.execute("begin exclusive")
            self.in_the_way("locked table", act, impatient(act.again(out)), out)
        self.gone("locked table", act, out)


def result(campaign: Environment, mounted: bool) -> dict[str, Any]:
    cases = sum(n for what, n in campaign.counts.items() if "of these" not in what)
    return {"done": 1, "cases": cases, "counts": dict(campaign.counts), "mounted": mounted, "defects": campaign.defects}


def run(place: Path) -> dict[str, Any]:
    campaign, mounted = Environment(place, NAMES), may_mount(place)
    for act in campaign.acts.values():
        for size in LIMITS:
            campaign.short_files(act, size)
        if act.on_run or act.name == "train":
            campaign.locked(act)
        if mounted:
            for kilobytes in SIZES if act.name == "train" else SIZES[:2]:
                campaign.full(act, kilobytes)
            if act.on_run or act.name == "train":
                campaign.read_only(act)
            if act.name in ("train", "evaluate", "diagnose"):
                for kilobytes in LEFT:
                    campaign.full_log(act, kilobytes)
    return result(campaign, mounted)


def short(place: Path) -> dict[str, Any]:
    campaign = Environment(place, ("train",))
    (train,) = campaign.acts.values()
    for size in (1024, 6000):
        campaign.short_files(train, size)
    campaign.locked(train)
    return result(campaign, mounted=False)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    where, *rest = sys.argv[1:]
    os.environ["OMP_NUM_THREADS"] = "1"
    warm(Path(where), ("train",) if rest else NAMES)
    print(json.dumps(short(Path(where)) if rest else run(Path(where))))
