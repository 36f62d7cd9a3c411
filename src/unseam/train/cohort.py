"""Many members as one call. The cohort is cut into groups; a group is one stack in one process.

*stacked*: small networks, where Python's overhead rules: as many groups as processes, each a stack of members.
*side by side*: large networks, where arithmetic rules: one member a group, one single-threaded process a core.
Either way member s gets the result it would have got alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shlex
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite, nan
from multiprocessing import connection
from pathlib import Path
from typing import Any

import torch

from unseam import __version__
from unseam.data import load_data
from unseam.device import device, here
from unseam.errors import ENVIRONMENT, BadInput, Failed, in_words
from unseam.files import cores, remove_leftovers, write_atomic
from unseam.objectives import Objective
from unseam.progress import bar, stderr
from unseam.train.config import RunConfig, Training
from unseam.train.group import Job
from unseam.train.loop import interruptible, train_group
from unseam.train.own import located
from unseam.train.private import fast_bfloat16
from unseam.train.results import Results
from unseam.train.room import members_at_once

STACKABLE = 400_000  # parameters of one member up to which a stack is faster than one member at a time
WORTH_A_PROCESS = 20_000  # member-steps below which starting a process costs more than it saves


def way_on(folder: Path) -> str:
    """The command that goes on with a run, as a shell takes it.

    >>> way_on(Path("my runs/a"))
    "unseam train --resume 'my runs/a'"
    """
    return f"unseam train --resume {shlex.quote(str(folder))}"


class Interrupted(KeyboardInterrupt):
    """Training stopped by the user; the run folder holds all that is needed to go on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"stopped; go on with: {way_on(folder)}")
        self.folder = folder


def plan(config: RunConfig, objective: Objective, shape: tuple[int, ...]) -> RunConfig:
    """Decide how members are grouped and by how many processes they are trained; the run remembers it."""
    training, count = where(config.training), len(config.members)
    players = objective.players(config.architecture.build(shape, 0)).values()
    parameters = sum(p.numel() for player in players for p in player.module.parameters())
    small = config.architecture.network != "conv" and parameters <= STACKABLE
    if training.device != "cpu":
        return on_accelerator(replace(config, training=training), objective, shape)
    how = training.how if training.how != "auto" else ("stacked" if small else "side-by-side")
    enough = count * training.steps >= WORTH_A_PROCESS or (how == "side-by-side" and not small)
    workers = min(count, training.workers or (cores() if enough else 1))
    pieces = workers if how == "stacked" else count
    conv = config.architecture.network == "conv"
    precision = (
        training.precision if training.precision != "auto" else ("bfloat16" if conv and fast_bfloat16() else "float32")
    )
    return replace(
        config, training=replace(training, how=how, workers=workers, precision=precision), groups=cut(count, pieces)
    )


def where(training: Training) -> Training:
    """With the device by its name here; `cuda` is all GPUs."""
    found = device(training.device).type if ":" not in training.device else str(device(training.device))
    if found == "mps" and training.precision == "float64":
        raise BadInput("device='mps' has no double precision; use --device cpu or --precision float32")
    return replace(training, device=found)


def on_accelerator(config: RunConfig, objective: Objective, shape: tuple[int, ...]) -> RunConfig:
    """As many members in a stack as a device's memory holds, and a process a device."""
    training, count = config.training, len(config.members)
    conv = config.architecture.network == "conv"
    half = conv and training.device.startswith("cuda") and torch.cuda.is_bf16_supported()
    precision = training.precision if training.precision != "auto" else ("bfloat16" if half else "float32")
    devices = sum(name.startswith("cuda") for name in here()) if training.device == "cuda" else 1
    workers = min(count, training.workers or devices, devices)
    config = replace(config, training=replace(training, how="stacked", workers=workers, precision=precision))
    pieces = max(workers, -(-count // members_at_once(config, objective, shape)))
    return replace(config, groups=cut(count, pieces))


def cut(count: int, pieces: int) -> tuple[tuple[int, ...], ...]:
    """Members 0..count-1 in groups of almost one size.

    >>> cut(5, 2)
    ((0, 1), (2, 3, 4))
    """
    return tuple(tuple(range(count))[i * count // pieces : (i + 1) * count // pieces] for i in range(pieces))


def run_cohort(folder: Path, config: RunConfig, objective: type, show: bool | None = None) -> None:
    """Train every group that is not finished; call it again to go on where it stopped."""
    jobs = [Job(config, objective, members, number, folder) for number, members in enumerate(config.groups)]
    total = len(config.members) * config.training.steps
    description = f"training {len(config.members)} x {config.objective}"
    try:
        with bar(description, total, show) as advance:
            if config.training.workers <= 1:
                _inline(jobs, advance)
            else:
                _processes(jobs, config.training.workers, advance)
    except ENVIRONMENT as error:
        raise Failed(f"{in_words(error)}; then go on with: {way_on(folder)}") from error


def check_free(folder: Path) -> None:
    """Refuse a folder that already holds a run."""
    if (folder / "config.json").exists():
        raise BadInput(f"out={str(folder)!r} already holds a run; go on with {way_on(folder)} or choose another --out")


def start_folder(folder: Path, config: RunConfig) -> None:
    """Lay out a new run folder."""
    document = {"unseam": __version__, "torch": str(torch.__version__), **config.to_json()}
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)  # of one that died before it had a configuration
    Results(folder).create()  # before config.json: what has one can be resumed
    write_atomic(folder / "config.json", json.dumps(document, indent=2))


def _inline(jobs: Sequence[Job], advance: Any) -> None:
    threads = torch.get_num_threads()
    stacked = any(len(job.members) > 1 for job in jobs)
    torch.set_num_threads(1 if stacked else threads)
    try:
        for job in jobs:
            data = load_data(**located(job.config.data, job.folder))
            size = len(job.members)
            train_group(job, data, lambda n, *told, size=size: advance(n * size, told_as(*told)))
    except KeyboardInterrupt:
        raise Interrupted(jobs[0].folder) from None
    finally:
        torch.set_num_threads(threads)


def told_as(loss: float = nan, held_out: float = nan) -> str | None:
    """What stands beside the bar; None leaves what stood there.

    >>> told_as(41.271, 43.1), told_as()
    ('loss 41.27, held-out 43.1', None)
    """
    parts = [f"{word} {value:.4g}" for word, value in (("loss", loss), ("held-out", held_out)) if isfinite(value)]
    return ", ".join(parts) or None


def _processes(jobs: Sequence[Job], workers: int, advance: Any) -> None:
    """One single-threaded process a worker; each asks for the next group when it is done with one."""
    context = multiprocessing.get_context("spawn")
    steps, seen = context.RawArray("q", len(jobs)), 0
    told = context.RawArray("d", [nan] * (2 * len(jobs)))  # the last losses of each group, of batches and held out
    todo, deaths = deque(range(len(jobs))), Counter[int]()
    with interruptible() as interrupted:
        staff = [Worker(context, jobs, steps, told) for _ in range(workers)]
        try:
            while any(worker.line for worker in staff):
                for worker in wait_for(staff):
                    if worker.answer(todo) == "died":
                        todo.appendleft(bury(worker, deaths, jobs[0].folder))
                        staff[staff.index(worker)] = Worker(context, jobs, steps, told)
                done = sum(n * len(job.members) for n, job in zip(steps, jobs, strict=True))
                advance(done - seen, told_as(mean(told[::2]), mean(told[1::2])))
                seen = done
                if interrupted.is_set():
                    raise Interrupted(jobs[0].folder)
        except BaseException:
            for worker in staff:  # ask those still at work for a last checkpoint
                worker.process.terminate()
            raise
        finally:
            for worker in staff:
                worker.process.join(60)


class Worker:
    """A process that trains the groups it is handed, and the line to it."""

    def __init__(self, context: Any, jobs: Sequence[Job], steps: Any, told: Any) -> None:
        ours, theirs = context.Pipe()
        self.line: Any = ours  # None once there is nothing left to hand out
        self.number, self.folder = -1, jobs[0].folder  # of the group it has
        self.process = context.Process(target=_work, args=(list(jobs), steps, told, theirs, os.getpid()), daemon=True)
        with one_thread():
            self.process.start()
        theirs.close()  # so that the line ends when the process does

    def answer(self, todo: deque[int]) -> str:
        """Take what the worker says and hand it the next group; "died" when it will say nothing more."""
        try:
            kind, text = self.line.recv()
            if kind == "stopped":
                raise Interrupted(self.folder)
            if kind != "next":
                raise {"BadInput": BadInput, "Failed": Failed}.get(kind, RuntimeError)(text)
            self.number = todo.popleft() if todo else -1
            self.line.send(self.number)
        except (EOFError, OSError):
            return "died"
        if self.number < 0:
            self.line = None
        return kind


def mean(values: Sequence[float]) -> float:
    """Over those that are numbers.

    >>> mean([nan, 2.0, 4.0])
    3.0
    """
    known = [v for v in values if isfinite(v)]
    return sum(known) / len(known) if known else nan


def wait_for(staff: Sequence[Worker]) -> list[Worker]:
    """Those who have something to say, or died; after a fifth of a second nobody."""
    lines = {worker.line: worker for worker in staff if worker.line}
    return [lines[line] for line in connection.wait(list(lines), 0.2)]


def bury(worker: Worker, deaths: Counter[int], folder: Path) -> int:
    """The group of a worker that was killed, for another to go on with; a group that kills two of them is given up."""
    worker.process.join()
    deaths[worker.number] += 1
    told = f"a training process died (exit code {worker.process.exitcode}; out of memory?)"
    if worker.number < 0 or deaths[worker.number] > 1:
        raise Failed(f"{told}; free memory or use fewer --workers, then go on with: {way_on(folder)}")
    stderr.print(f"{told}; another goes on with its group", soft_wrap=True)
    return worker.number


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes started here use one thread; they read it before they load their libraries."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        os.environ.pop("OMP_NUM_THREADS") if before is None else os.environ.update(OMP_NUM_THREADS=before)


def handed(line: Any, parent: int) -> int:
    """The next group's number. A worker whose parent is gone ends: a fork of it may hold the line open for ever."""
    while not line.poll(1.0):
        if os.getppid() != parent:
            os._exit(1)
    return line.recv()


def _work(jobs: list[Job], steps: Any, told: Any, line: Any, parent: int) -> None:
    """A worker's life: ask for a group, train it, ask again; end when there is none or the parent is gone."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)

    def tick(n: int, *losses: float) -> None:
        steps[number] += n
        if losses:
            told[2 * number], told[2 * number + 1] = losses
        if os.getppid() != parent:
            os._exit(1)

    try:
        line.send(("next", ""))
        while (number := handed(line, parent)) >= 0:
            job = jobs[number]
            train_group(job, load_data(**located(job.config.data, job.folder)), tick)
            line.send(("next", ""))
    except KeyboardInterrupt:
        line.send(("stopped", ""))
    except (EOFError, BrokenPipeError):
        pass
    except BadInput as error:
        line.send(("BadInput", str(error)))
    except ENVIRONMENT as error:
        line.send(("Failed", f"{in_words(error)}; then go on with: {way_on(jobs[0].folder)}"))
    except BaseException:
        line.send(("bug", f"a training process failed:\n{traceback.format_exc()}"))
