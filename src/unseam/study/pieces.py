"""A piece of a study on disk: one folder, advanced by the holder of its lease, done when it has its rows.

    DIR/study.json              the grid
    DIR/pieces/NAME/run         a run folder: config.json, checkpoints
    DIR/pieces/NAME/scores      member-0.json, ...: each model's row, as it is evaluated
    DIR/pieces/NAME/codes.npy   codes of some rows (S, N, K), for scores that compare models
    DIR/pieces/NAME/rows.json   all rows: the piece is done
    DIR/pieces/NAME/lease-N     the owner and its heartbeat (lease.py)

Files are the truth and each is written whole. Only the newest lease may write: a holder that was paused while another
took over stops at its next file. What is scored is the checkpoint of the last step, and nothing before it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unseam.atomic import guarded, remove_temporaries, write_array, write_atomic
from unseam.data import typed_options
from unseam.device import flushed_denormals, torch_threads
from unseam.errors import BadInput
from unseam.objectives import OBJECTIVES
from unseam.run import Run, load_run
from unseam.run.settings import resolve_settings, typed_settings
from unseam.study.evaluate import Evaluator
from unseam.study.grid import Grid, Piece, StudyModel, from_json
from unseam.study.lease import Lease, Lost, claim, heartbeat, is_free, newest, share_of
from unseam.train.fitting import begin_run
from unseam.train.job import Job
from unseam.train.loop import train_group

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

    def rows(self) -> list[dict[str, Any]]:
        """One row per model, once it is done."""
        if not self.done:
            return []
        path, models = self.folder / "rows.json", self.piece.models
        found = read_json(path)
        if not isinstance(found, list) or len(found) != len(models) or not all(map(is_row_of, found, models)):
            raise BadInput(f"{path} is damaged; delete it to compute it again")
        return found

    def share(self) -> float:
        """How far it is, in [0, 1], as its holder last reported."""
        return 1.0 if self.done else share_of(self.folder)

    def running(self) -> bool:
        lease = None if self.done else newest(self.folder)
        return lease is not None and not is_free(lease)


def is_row_of(row: Any, model: StudyModel) -> bool:
    """Whether it is this model's row: what it is, and scores (their names have a dot) that are numbers or missing."""
    if not isinstance(row, dict) or not isinstance(row.get("status"), str):
        return False
    key = [row.get(name) for name in ("data", "method", "strength", "seed")]
    scores = [value for name, value in row.items() if "." in name]
    known = [model.data, model.method.name, model.strength, model.seed]
    return key == known and "number" in row and all(score is None or type(score) in (int, float) for score in scores)


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


# advancing


class Deadline(Exception):
    """A piece was left at its checkpoint, for later."""


def advance(place: Place, deadline: float | None = None, stop: Callable[[], bool] = lambda: False) -> str:
    """Take a piece on until it is done ("done"), the time is up ("later"), or another process has it ("held").

    `deadline` is a time of `time.monotonic`; `stop` may ask for the end before it.
    """
    if place.done:
        return "done"
    lease = claim(place.folder)
    if lease is None:
        return "held"

    def over() -> bool:
        return stop() or lease.lost.is_set() or (deadline is not None and time.monotonic() > deadline)

    try:
        if not place.done:  # another process may have finished it between the two checks
            with torch_threads(1), flushed_denormals(), heartbeat(lease), guarded(lease.check):
                _work(place, lease, over)
    except Deadline:
        return "held" if lease.lost.is_set() else "later"
    except Lost:
        return "held"
    finally:
        lease.release(place.done)
    return "done"


def _work(place: Place, lease: Lease, over: Callable[[], bool]) -> None:
    """Train from the last checkpoint, evaluate what is not, write the rows."""
    remove_temporaries(
        place.folder, place.folder / "run", place.folder / "run" / "checkpoints", place.folder / "scores"
    )

    def tell(share: float) -> None:
        lease.share = share

    run = train_piece(place, lambda share: tell(_TRAINING * share), over)
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


def train_piece(place: Place, tell: Callable[[float], None], over: Callable[[], bool]) -> Run:
    """The run of a piece, trained to its end."""
    run, steps = open_piece(place), int(place.piece.settings.get("steps", 1))
    if run.finished and at_its_end(run):
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
        raise  # a signal: its checkpoint is written, and training must stop
    return run


def at_its_end(run: Run) -> bool:
    """Whether the checkpoint is that of the step at which the results were taken."""
    return bool((run.table()["step"] == run.step(0)).all())


def open_piece(place: Place) -> Run:
    """The run folder of a piece, laid out if it is not."""
    folder, piece = place.folder / "run", place.piece
    if (folder / "config.json").is_file():
        return load_run(folder)
    strengths = list(dict.fromkeys(m.strength for m in piece.models))
    seeds = list(dict.fromkeys(m.seed for m in piece.models))
    data = typed_options(piece.data, f"data.{piece.models[0].data}")
    on_device = {} if place.device is None else {"device": place.device}
    settings = {"device": "cpu", **piece.settings, **on_device, **piece.method.fixed, "how": "stacked", "workers": 1}
    settings = typed_settings(OBJECTIVES[piece.method.objective], settings, piece.name)
    settings[piece.method.swept] = strengths
    choices = resolve_settings(piece.method.objective, settings, optimiser=settings.pop("optimiser", None))
    return begin_run(data.pop("name"), choices, seeds=seeds, out=folder, data_parameters=data)
