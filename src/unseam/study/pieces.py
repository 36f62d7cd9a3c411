"""A piece of a study on disk: one folder, advanced by whoever holds its lease, done when it has its rows.

    DIR/study.json              the grid
    DIR/pieces/NAME/run         a run folder: config.json, checkpoints
    DIR/pieces/NAME/scores      member-0.json, ...: each model's row, as it is evaluated
    DIR/pieces/NAME/codes.npy   codes of some rows (S, N, K), for scores that compare models
    DIR/pieces/NAME/rows.json   all rows: the piece is done
    DIR/pieces/NAME/lease       who is at work; his heartbeat

Files are the truth and each is written whole. A lease saves work and nothing more: should two hold one (a network file
system that is late), both write the same bytes.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unseam.atomic import is_running, remove_leftovers, write_array, write_atomic
from unseam.data import typed_options
from unseam.errors import BadInput
from unseam.objectives import OBJECTIVES
from unseam.run import Run, load_run
from unseam.run.settings import choose, typed_settings
from unseam.study.evaluate import Evaluator
from unseam.study.grid import Grid, Model, Piece, from_json
from unseam.train.fitting import begin
from unseam.train.job import Job
from unseam.train.loop import train_group

BEAT = 2.0  # seconds between heartbeats
SILENCE = 60.0  # seconds without one after which a lease is nobody's
_TRAINING = 0.5  # of a piece's progress; the rest is its evaluation


@dataclass(frozen=True)
class Place:
    """A piece and its folder."""

    piece: Piece
    folder: Path
    device: str | None = None  # where it is trained; no part of what it is

    @property
    def done(self) -> bool:
        return (self.folder / "rows.json").is_file()

    @property
    def lease(self) -> Path:
        return self.folder / "lease"

    def rows(self) -> list[dict[str, Any]]:
        """One row a model, once it is done."""
        if not self.done:
            return []
        path, models = self.folder / "rows.json", self.piece.models
        found = read_json(path)
        if not isinstance(found, list) or len(found) != len(models) or not all(map(is_row_of, found, models)):
            raise BadInput(f"{path} is damaged; delete it to compute it again")
        return found

    def share(self) -> float:
        """How far it is, in [0, 1]: as its holder last said."""
        if self.done:
            return 1.0
        with suppress(OSError, ValueError, TypeError, KeyError):
            return float(json.loads(self.lease.read_bytes())["share"])
        return 0.0

    def running(self) -> bool:
        return not self.done and self.lease.exists() and not is_stale(self.lease)


def is_row_of(row: Any, model: Model) -> bool:
    """Whether it is this model's row: what it is, and scores (their names have a dot) that are numbers or missing."""
    if not isinstance(row, dict) or not isinstance(row.get("status"), str):
        return False
    told = [row.get(name) for name in ("data", "method", "strength", "seed")]
    scores = [value for name, value in row.items() if "." in name]
    known = [model.data, model.method.name, model.strength, model.seed]
    return told == known and "number" in row and all(score is None or type(score) in (int, float) for score in scores)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise BadInput(f"{path} is damaged; delete it to compute it again") from None


def places(folder: Path, grid: Grid, device: str | None = None) -> list[Place]:
    return [Place(piece, folder / "pieces" / piece.name, device) for piece in grid.pieces]


def open_study(folder: Path) -> Grid:
    """The grid of a study's folder."""
    path = folder / "study.json"
    if not path.is_file():
        raise BadInput(f"study={str(folder)!r} has no study.json; start one with `unseam study GRID --out {folder}`")
    try:
        return from_json(read_json(path))
    except BadInput as error:
        raise BadInput(f"{path} is damaged ({error}); put a copy back") from None


def start_study(folder: Path, grid: Grid) -> None:
    """Lay out a study, or check that the one that is there is the same."""
    document = json.loads(json.dumps(grid.to_json()))
    if not (folder / "study.json").exists():
        write_atomic(folder / "study.json", json.dumps(document, indent=2))
    if read_json(folder / "study.json") != document:
        raise BadInput(f"out={str(folder)!r} holds a study of another grid; choose another --out")


# leases


def is_stale(lease: Path) -> bool:
    """Whether its holder is gone: silent for a minute, or a process of this machine that no longer runs."""
    try:
        age = time.time() - lease.stat().st_mtime
        holder = json.loads(lease.read_bytes())
        alive = holder["host"] != socket.gethostname() or is_running(int(holder["pid"]))
    except FileNotFoundError:
        return False  # released just now
    except (OSError, ValueError, KeyError, TypeError):
        return age > BEAT  # not yet written, or torn by the kill of its holder
    return age > SILENCE or not alive


def claim(lease: Path) -> bool:
    """Take the lease if it is free or its holder is gone; O_EXCL lets one alone make the file."""
    if lease.exists() and is_stale(lease):
        with suppress(OSError):  # whoever renames it, removes it; the others fail here
            gone = lease.with_name(f".lease-{os.getpid()}-{threading.get_ident()}")
            os.rename(lease, gone)
            gone.unlink()
    lease.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(lease, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(beat_text(0.0))
    return True


def beat_text(share: float) -> str:
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "share": round(share, 4)})


@contextmanager
def held(lease: Path) -> Iterator[Callable[[float], None]]:
    """A heartbeat while the block runs; yields `tell(share)`. The lease is released at the end."""
    told, stop = [0.0], threading.Event()

    def beat() -> None:
        while not stop.wait(BEAT):
            with suppress(OSError):
                lease.write_text(beat_text(told[0]))

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield lambda share: told.__setitem__(0, share)
    finally:
        stop.set()
        thread.join()
        lease.unlink(missing_ok=True)


# advancing


class Deadline(Exception):
    """A piece was left at its checkpoint, for later."""


def advance(place: Place, deadline: float | None = None, stop: Callable[[], bool] = lambda: False) -> str:
    """Take a piece on until it is done ("done"), the time is up ("later"), or somebody else has it ("held").

    `deadline` is a time of `time.monotonic`; `stop` may ask for the end before it.
    """
    if place.done:
        return "done"
    if not claim(place.lease):
        return "held"
    torch.set_flush_denormal(True)  # of this thread: the same bits whoever computes
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def over() -> bool:
        return stop() or (deadline is not None and time.monotonic() > deadline)

    try:
        with held(place.lease) as tell:
            _work(place, tell, over)
    except Deadline:
        return "later"
    finally:
        torch.set_num_threads(threads)
    return "done"


def _work(place: Place, tell: Callable[[float], None], over: Callable[[], bool]) -> None:
    """Train from the last checkpoint, evaluate what is not, write the rows."""
    remove_leftovers(place.folder, place.folder / "run", place.folder / "run" / "checkpoints", place.folder / "scores")
    run = train(place, lambda share: tell(_TRAINING * share), over)
    evaluator = Evaluator(run, place.piece)
    codes, rows, seconds = [], [], []
    for member in range(len(place.piece.models)):
        path = place.folder / "scores" / f"member-{member}.json"
        began = time.process_time()
        fresh = not path.is_file()
        if fresh:
            write_atomic(path, json.dumps(evaluator.row(member), sort_keys=True))
        rows.append(read_json(path))
        codes.append(evaluator.codes(member))
        seconds.append(time.process_time() - began)
        tell(_TRAINING + (1 - _TRAINING) * (member + 1) / len(place.piece.models))
        if fresh and over() and member + 1 < len(place.piece.models):  # something was done, however short the time
            raise Deadline
    write_array(place.folder / "codes.npy", np.stack(codes))  # .npy: an .npz holds the time of day
    times = {"training": float(run.table()["seconds"].max()), "evaluation": seconds}
    write_atomic(place.folder / "seconds.json", json.dumps(times))
    write_atomic(place.folder / "rows.json", json.dumps(rows, sort_keys=True, indent=1))


def train(place: Place, tell: Callable[[float], None], over: Callable[[], bool]) -> Run:
    """The run of a piece, trained to its end."""
    run, steps = opened(place), int(place.piece.settings.get("steps", 1))
    if run.finished:
        return run
    run.rows.create()
    count = [0]

    def tick(n: int, *_losses: float) -> bool:
        count[0] += n
        tell(min(1.0, count[0] / steps))
        return over()

    job = Job(run.config, OBJECTIVES[run.config.objective], run.config.groups[0], 0, run.folder)
    try:
        train_group(job, run.data, tick)
    except KeyboardInterrupt:
        if over():
            raise Deadline from None
        raise  # a signal: its checkpoint is written, and whoever trains is to stop
    return run


def opened(place: Place) -> Run:
    """The run folder of a piece, laid out if it is not."""
    folder, piece = place.folder / "run", place.piece
    if (folder / "config.json").is_file():
        return load_run(folder)
    strengths = list(dict.fromkeys(m.strength for m in piece.models))
    seeds = list(dict.fromkeys(m.seed for m in piece.models))
    data = typed_options(piece.data, f"data.{piece.models[0].data}")
    asked = {} if place.device is None else {"device": place.device}
    settings = {"device": "cpu", **piece.settings, **asked, **piece.method.fixed, "how": "stacked", "workers": 1}
    settings = typed_settings(OBJECTIVES[piece.method.objective], settings, piece.name)
    settings[piece.method.swept] = strengths
    choices = choose(piece.method.objective, settings, optimiser=settings.pop("optimiser", None))
    return begin(data.pop("name"), choices, seeds=seeds, out=folder, data_parameters=data)
