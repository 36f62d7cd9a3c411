"""The driver. It holds no state: it lists folders, has what is not done advanced, and repeats.

`run_locally`: one process per core; each takes the first piece that is neither done nor held, again and again.
Other engines (`cluster`) hand the same pieces to other machines.
"""

from __future__ import annotations

import os
import shlex
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from queue import Queue
from typing import Any

from unseam.atomic import cores
from unseam.errors import ENVIRONMENT, BadInput, Failed, error_text
from unseam.processes import Inbox, Line, Process, messages
from unseam.progress import bar, log
from unseam.study import lease
from unseam.study.grid import PRESETS, Grid, load_grid
from unseam.study.pieces import Place, advance, open_piece, open_study, places, read_json, start_study
from unseam.train.stopping import interruptible

LOOK = 0.5  # seconds between two checks of the folders
PATIENCE = 3  # deaths of workers without a piece done in between, after which the study is given up


def study_resume_command(folder: Path, grid: str = "GRID") -> str:
    """The command that resumes; a grid of the user's own is named by its file, which the study does not keep."""
    grid = grid if grid in PRESETS else f"{grid}.toml"
    return f"unseam study {grid} --out {shlex.quote(str(folder))}"


class Stopped(KeyboardInterrupt):
    """A study stopped by the user; its folder holds all that is needed to continue."""


def study(
    grid: str | Path | Grid,
    out: str | Path,
    *,
    on: str = "here",
    workers: int = 0,
    models: Sequence[int] | None = None,
    device: str | None = None,
    show: bool | None = None,
    **cluster: Any,
) -> dict[str, Any]:
    """Train and score every model of a grid; run it again to continue. Returns what `unseam study --json` prints.

    `grid` is a preset or a TOML file; `on` is "here", the address of a Dask scheduler, or slurm, pbs, lsf. `device` is
    where models are trained: auto, cpu, cuda, cuda:N or mps; the grid's own setting, else the CPU, when not given.
    """
    chosen, folder = load_grid(grid, None if models is None else tuple(models)), Path(out)
    todo = places(folder, chosen, device)
    check_grid(chosen, device)
    start_study(folder, chosen)
    if any(not place.done for place in todo):
        if on == "here":
            run_locally(todo, folder, workers or cores(), show, device)
        else:
            from unseam.study.cluster import elsewhere

            elsewhere(todo, folder, on, workers, show, device=device, **cluster)
    return study_summary(folder, todo)


def check_grid(grid: Grid, device: str | None = None) -> None:
    """Refuse now what a worker would refuse: every method and every data set is laid out once."""
    warned: set[str] = set()
    for piece in grid.pieces:
        new = {piece.method.name, piece.models[0].data} - warned
        if new:
            warned |= new
            with tempfile.TemporaryDirectory() as folder:
                open_piece(Place(piece, Path(folder), device))


def study_summary(folder: Path, todo: Sequence[Place]) -> dict[str, Any]:
    done = [place for place in todo if place.done]
    rows = [row for place in done for row in place.rows()]
    return {
        "study": str(folder),
        "pieces": len(todo),
        "done": len(done),
        "running": sum(place.running() for place in todo),
        "models": len(rows),
        "of": sum(len(place.piece.models) for place in todo),
        "diverged": sum(row["status"] != "finished" for row in rows),
    }


def watch(todo: Sequence[Place], show: bool | None, alive: Callable[[], bool]) -> None:
    """A bar over the files until every piece is done or `alive` says that no worker is left."""
    total, began, left = sum(len(p.piece.models) for p in todo), time.monotonic(), [p for p in todo if not p.done]
    first = shown = total - models_left(left)
    with bar("study", total, show) as tell:
        tell(first)
        while alive() and (left := [place for place in left if not place.done]):
            far = max(total - models_left(left), shown)
            tell(far - shown, note=note(todo, left, (far - first) / (time.monotonic() - began + 1e-9)))
            shown = far
            time.sleep(max(LOOK, len(left) / 1000))


def models_left(left: Sequence[Place]) -> float:
    """Models that are not done, those half done by their share."""
    return sum((1 - place.share()) * len(place.piece.models) for place in left)


def note(todo: Sequence[Place], left: Sequence[Place], pace: float) -> str:
    bad = sum(diverged(place) for place in todo if place not in left)
    running = sum(place.running() for place in left)
    return (
        f"{len(todo) - len(left)} of {len(todo)} pieces done, {running} running, {bad} models diverged, "
        f"{3600 * pace:,.0f} models/h"
    )


@lru_cache(None)
def _diverged(rows: Path) -> int:
    return sum(row["status"] != "finished" for row in read_json(rows))


def diverged(place: Place) -> int:
    """Models of a piece that is done which left the finite numbers."""
    return _diverged(place.folder / "rows.json")


def run_locally(
    todo: Sequence[Place], folder: Path, workers: int, show: bool | None, device: str | None = None
) -> None:
    """Processes of this machine, as many as there are cores; a killed one is replaced."""
    count = min(workers, sum(not place.done for place in todo))

    inbox: Inbox = Queue()
    problems: dict[str, str] = {}  # piece -> why it cannot be done

    def start() -> Process:
        return Process("unseam.study.engine:serve_parent", str(folder), device, inbox=inbox)

    last = ""
    running, deaths, done = [start() for _ in range(count)], 0, sum(p.done for p in todo)
    with interruptible() as interrupted:

        def alive() -> bool:
            nonlocal deaths, done, last
            hear(inbox, problems)
            if interrupted.is_set():
                return False
            if (now := sum(p.done for p in todo)) != done:
                deaths, done = 0, now
            for place, process in enumerate(running):
                if process.exitcode not in (None, 0):
                    deaths, last = deaths + 1, process.death()
                    if deaths > PATIENCE * count:
                        return False
                    log.warning(f"a worker died ({process.death()}); another continues")
                    running[place] = start()
            return any(process.exitcode is None for process in running)

        try:
            watch(todo, show, alive)
        finally:
            if interrupted.is_set():
                for process in running:
                    process.terminate()  # asks for a last checkpoint
            for process in running:
                process.join(60)
                process.kill()  # nothing is lost but the time since its checkpoint
        if interrupted.is_set():
            raise Stopped(f"stopped; continue with: {study_resume_command(folder, open_study(folder).name)}")
    hear(inbox, problems)
    for place in todo:
        if place.done:
            lease.remove_leases(place.folder)
    if left := [place for place in todo if not place.done]:
        held = sum(place.running() for place in left)
        stuck = sum(place.piece.name in problems for place in left)
        why = f"workers died again and again ({last})" if last else "its workers ended"
        why = f"{held} pieces are held by another driver" if held else why
        why = f"{stuck} of {len(todo)} pieces failed, for the reasons above" if stuck else why
        raise Failed(
            f"the study is not done: {why}; continue with: {study_resume_command(folder, open_study(folder).name)}"
        )


def hear(inbox: Inbox, problems: dict[str, str]) -> None:
    """Print each piece's problem once, whichever worker met it."""
    for _, message in messages(inbox, 0):
        if message is not None and message[0] not in problems:
            problems[message[0]] = message[1]
            log.warning(f"piece {message[0]}: {message[1]}")


def serve_parent(line: Line, folder: str, device: str | None) -> None:
    """A worker that ends when the driver that started it does."""
    work_on_study(folder, line.parent, device, line.send)


def work_on_study(
    folder: str,
    parent: int | None = None,
    device: str | None = None,
    report: Callable[[str, str], None] | None = None,
) -> None:
    """A worker's life: the first piece that is neither done nor held, until there is none.

    A piece that cannot be done (a damaged file, a full disk) does not stop the others: `report(name, reason)` hears
    of it, and it is not tried again by this worker. Without `report` the first such reason is raised at the end.
    """
    requested = []
    for name in ("SIGTERM", "SIGINT"):
        with suppress(ValueError, AttributeError):
            signal.signal(getattr(signal, name), lambda *_: requested.append(1))

    def stop() -> bool:
        if parent is not None and os.getppid() != parent:
            os._exit(1)  # the driver was killed: its files say how far we are
        return bool(requested)

    todo = places(Path(folder), open_study(Path(folder)), device)
    failed: dict[str, str] = {}
    with suppress(KeyboardInterrupt):
        while not stop() and (left := [p for p in todo if p.piece.name not in failed and not p.done]):
            found = [_try(place, stop, failed, report) for place in left if not place.done and not stop()]
            if "done" not in found and not stop():
                time.sleep(LOOK)  # what is left is held; its holder may die
    if failed and report is None:
        name, reason = next(iter(failed.items()))
        raise Failed(f"piece {name}: {reason}")


def _try(
    place: Place, stop: Callable[[], bool], failed: dict[str, str], report: Callable[[str, str], None] | None
) -> str:
    """Advance a piece; what is wrong with it is written down."""
    try:
        return advance(place, stop=stop)
    except (BadInput, Failed, *ENVIRONMENT) as error:
        reason = error_text(error) if isinstance(error, ENVIRONMENT) else str(error)
        failed[place.piece.name] = reason
        if report is not None:
            report(place.piece.name, reason)
        return "failed"


def one_piece(folder: str | Path, number: int, deadline: float | None = None, device: str | None = None) -> str:
    """Advance piece `number` (0, 1, ...) of a study: a task of a job array.

    A lease of another machine tells only by its silence whether its holder died: it is watched until it changes.
    """
    todo = places(Path(folder), open_study(Path(folder)), device)
    if not 0 <= number < len(todo):
        raise BadInput(f"piece={number} is not in this study; its pieces are 0..{len(todo) - 1}")
    place, end = todo[number], None if deadline is None else time.monotonic() + deadline
    before = lease.mark(place.folder)
    while (found := advance(place, end)) == "held" and before == lease.mark(place.folder) and before is not None:
        if end is not None and time.monotonic() > end:
            break
        time.sleep(LOOK)
    return found
