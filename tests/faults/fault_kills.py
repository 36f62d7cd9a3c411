"""Kills: a verb dies before one of its file events (or at any time), and then goes on as if nothing had happened.

`python tests/faults/fault_kills.py PLACE EVENTS RANDOM` imports the package once and forks a child for every kill: a
child in which Python's audit hook sends SIGKILL to itself before the k-th time that something in PLACE is opened for
writing, renamed, removed or made, or that a database is opened. It prints one JSON document of counts.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "sqlite3.connect")
TRAIN = ["--network", "mlp", "--encoder", "4", "--decoder", "4", "--latents", "2", "--seeds", "0,1", "--steps", "6",
         "--log-every", "3", "--checkpoint-steps", "3", "--snapshots", "1", "--batch", "8"]  # fmt: skip
SLOW = 20  # kills of `report`, which takes seconds
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def child(act: Callable[[], int], place: Path, die_at: int | None, line: int) -> None:
    """In the forked process: count file events, die before the chosen one, tell how it went."""
    seen = 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        if (
            event not in EVENTS
            or str(place) not in str(args[0])
            or (event == "open" and not int(args[2] or 0) & WRITES)
        ):
            return
        seen += 1
        if seen == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    told = io.StringIO()
    sys.addaudithook(hook)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(told):
            code = act()
    except BaseException as error:
        code, _ = 99, told.write(f"{type(error).__name__}: {error}")
    os.write(line, json.dumps({"code": code, "events": seen, "told": told.getvalue()[-500:]}).encode())
    os._exit(0)


def forked(
    act: Callable[[], int], place: Path, die_at: int | None = None, after: float | None = None
) -> dict[str, Any] | None:
    """What the child told; None when it was killed."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(read)
        child(act, place, die_at, write)
    os.close(write)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(read, "rb") as file:
        told = file.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(told) if told and not os.WIFSIGNALED(status) else None


def state(folder: Path) -> dict[str, Any]:
    """All that must be the same after a kill and a resume: every tensor, every row but those of time."""
    from unseam.train.checkpoint import load_checkpoint

    out: dict[str, Any] = {}
    for path in sorted((folder / "checkpoints").glob("*.safetensors")):
        tensors, meta = load_checkpoint(path)
        out |= {f"{path.name}/{name}": tensor.numpy().tobytes() for name, tensor in tensors.items()}
        out[path.name] = (meta["step"], meta["frozen"])
    queries = (
        "select member, seed, hyper, status, step, loss, reconstruction, kl, active, note from runs order by member",
        "select * from log where name != 'throughput' order by member, step, name",
        "select * from latents order by member, step, latent",
    )
    with closing(sqlite3.connect(folder / "results.sqlite")) as connection:
        out["integrity"] = connection.execute("pragma integrity_check").fetchall()
        out |= {query: connection.execute(query).fetchall() for query in queries}
    return out


def leftovers(folder: Path) -> int:
    return len(list(folder.rglob(".*")))


class Campaign:
    """The kills of one place, and what came of them."""

    def __init__(self, place: Path) -> None:
        self.place, self.counts, self.defects = place, Counter[str](), []
        place.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        np.save(place / "mine.npy", rng.normal(size=(60, 3)).astype(np.float32))
        np.save(place / "factors.npy", np.arange(60) % 3)

    def verb(self, *args: str) -> Callable[[], int]:
        from unseam.cli import main

        return lambda: main(list(args))

    def train(self, out: Path) -> Callable[[], int]:
        own = [str(self.place / "mine.npy"), "--data.factors", str(self.place / "factors.npy"), "--workers", "1"]
        return self.verb("train", *own, *TRAIN, "--out", str(out))

    def whole(self, act: Callable[[], int], place: Path) -> int:
        """Run without a kill; how many file events it has."""
        told = forked(act, place)
        if told is None or told["code"] != 0:
            raise RuntimeError(f"the uninterrupted run failed: {told}")
        return int(told["events"])

    def chosen(self, events: int, count: int, rng: random.Random) -> list[int]:
        """Which events to die before: all of them while the count allows, else some."""
        every = list(range(1, events + 1))
        return every if count >= events else sorted(rng.sample(every, count))

    def truth(self) -> None:
        """A training that was never killed: how many file events it has, how long it takes, what it ends with."""
        out, began = self.place / "truth", time.perf_counter()
        self.counts["file events of train"] = self.whole(self.train(out), out)
        self.took, self.expected = time.perf_counter() - began, state(out)

    def training(self, points: int, times: int, seed: int = 0) -> None:
        """Kill a training before its file events or at random times; then go on, and compare with one never killed."""
        rng = random.Random(seed)
        for point in self.chosen(self.counts["file events of train"], points, rng):
            self.killed_training("train, before a file event", die_at=point)
        for _ in range(times):
            self.killed_training("train, at a random time", after=rng.uniform(0, self.took))

    def killed_training(self, what: str, **how: Any) -> None:
        out, expected = self.place / "run", self.expected
        shutil.rmtree(out, ignore_errors=True)
        died = forked(self.train(out), out, **how) is None
        self.counts[what if died else "ended before the kill"] += 1
        if died and self.counts[what] % 4 == 0 and (out / "config.json").exists():  # and again, while it goes on
            told = forked(self.verb("train", "--resume", str(out)), out, die_at=1 + self.counts[what] % 7)
            self.counts["train --resume, before a file event"] += told is None
        begun = (out / "config.json").exists()
        told = forked(self.verb("train", "--resume", str(out)) if begun else self.train(out), out)
        if told is None or told["code"] != 0:
            self.defects.append(f"{what} {how}: could not go on: {told}")
        elif (found := state(out)) != expected:
            self.defects.append(
                f"{what} {how}: other numbers in {[k for k in expected if found.get(k) != expected[k]][:3]}"
            )
        if self.counts[what] % 25 == 0:
            print(dict(self.counts), self.defects, file=sys.stderr, flush=True)
        if leftovers(out):
            self.counts["temporary files left after going on"] += leftovers(out)

    def reading(self, points: int, times: int, seed: int = 0) -> None:
        """Kill the verbs that read a run: files are whole or absent, the run is as it was, a second call ends well."""
        rng, base = random.Random(seed), self.place / "truth"
        verbs = {
            "evaluate": (["evaluate", "RUN", "--metrics", "mig"], []),
            "diagnose": (["diagnose", "RUN", "--no-figures"], []),
            "align": (["align", "RUN", "--points", "20"], ["aligned/alignment.json", "aligned/member-0.npz"]),
            "report": (["report", "RUN"], ["report.html"]),
        }
        for name, (args, files) in verbs.items():
            some = points if name != "report" else min(points // 2, SLOW)
            out = self.place / "read"
            act = self.verb(*(str(out) if word == "RUN" else word for word in args))
            expected = self.fresh(base, out)
            began = time.perf_counter()
            events = self.whole(act, out)
            took = time.perf_counter() - began
            self.counts[f"file events of {name}"] = events
            deaths = [{"die_at": point} for point in self.chosen(events, some, rng)]
            for how in (*deaths, *({"after": rng.uniform(0, took)} for _ in range(times if some == points else 0))):
                self.fresh(base, out)
                died = forked(act, out, **how) is None
                self.counts[f"{name}, {'before a file event' if 'die_at' in how else 'at a random time'}" if died
                            else "ended before the kill"] += 1  # fmt: skip
                torn = [file for file in files if (out / file).exists() and not sound(out / file)]
                again = forked(act, out)
                if torn or again is None or again["code"] != 0 or state(out) != expected:
                    self.defects.append(f"{name} {how}: torn {torn}, again {again}, same run {state(out) == expected}")
                if not all(sound(out / file) for file in files):
                    self.defects.append(f"{name} {how}: not all of {files} were written")

    def fresh(self, base: Path, out: Path) -> dict[str, Any]:
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(base, out)
        return state(out)


def sound(path: Path) -> bool:
    """Whether a file is there and whole."""
    if not path.is_file():
        return False
    content = path.read_bytes()
    if path.suffix == ".json":
        return bool(json.loads(content))
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return all(archive[name].dtype is not None for name in archive.files)
    return content.rstrip().endswith({".png": b"IEND\xaeB`\x82", ".html": b"</html>"}[path.suffix])


def warm(place: Path) -> None:
    """Every verb once, so that the forks inherit what it imports."""
    first = Campaign(place)
    out = str(place / "warm")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for act in (first.train(Path(out)), *(first.verb(name, out) for name in ("evaluate", "align", "report"))):
            act()


def run(place: Path, points: int, times: int, seed: int = 0, reading: int | None = None) -> dict[str, Any]:
    """All kills; Ctrl-C ends early with what was done."""
    campaign, stopped = Campaign(place), False
    try:
        campaign.truth()
        campaign.training(points, 0, seed)
        campaign.reading(points if reading is None else reading, times // 8, seed)
        campaign.training(0, times, seed)
    except KeyboardInterrupt:
        stopped = True
    kills = sum(n for what, n in campaign.counts.items() if ", " in what)
    return {"kills": kills, "counts": dict(campaign.counts), "defects": campaign.defects, "stopped early": stopped}


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)  # so that there are no threads to lose in a fork
    where, *numbers = sys.argv[1:]
    warm(Path(where))
    print(json.dumps(run(Path(where), *map(int, numbers))))
