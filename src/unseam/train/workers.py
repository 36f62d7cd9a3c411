"""Groups of a cohort trained by several processes; the group of a process that dies continues in another."""

from __future__ import annotations

import re
import shlex
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from math import isfinite, nan
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from unseam.data import load_data
from unseam.errors import ENVIRONMENT, BadInput, Failed, error_text
from unseam.models.own_networks import import_networks
from unseam.objectives import Objective
from unseam.processes import Inbox, Line, Process, messages
from unseam.progress import log
from unseam.run.config import RunConfig
from unseam.run.user_files import located_data
from unseam.train.job import Job
from unseam.train.loop import loss_text, train_group
from unseam.train.stopping import interruptible

WORK = "unseam.train.workers:_work"
PAUSE = 0.2  # seconds between two messages about progress


def address(objective: type[Objective]) -> dict[str, str] | None:
    """Where another process finds this objective; None for one that is defined in a script, a notebook or a function.

    >>> from unseam.objectives import OBJECTIVES
    >>> address(OBJECTIVES["vae"])
    {'module': 'unseam.objectives.elbo', 'name': 'VAE', 'file': ''}
    """
    module, name = objective.__module__, objective.__qualname__
    if module == "__main__" or "<locals>" in name:
        return None
    own = module.partition(".")[0] == "unseam"
    return {"module": module, "name": name, "file": "" if own else str(getattr(sys.modules[module], "__file__", ""))}


def found_at(place: dict[str, str]) -> type[Objective]:
    """The objective at an address; its module may not be on the import path (pytest's importlib mode)."""
    try:
        found: Any = import_module(place["module"])
    except ModuleNotFoundError:
        if not place["file"]:
            raise
        found = loaded(place["module"], place["file"])
    for part in place["name"].split("."):
        found = getattr(found, part)
    objective: type[Objective] = found
    return objective


def loaded(name: str, file: str) -> ModuleType:
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Worker:
    """A process and the group that it trains; -1 when it has none."""

    process: Process
    group: int = -1
    idle: bool = False  # there was nothing left to train


def resume_command(folder: Path) -> str:
    """The command that resumes a run, quoted for the shell.

    >>> resume_command(Path("my runs/a"))
    "unseam train --resume 'my runs/a'"
    """
    return f"unseam train --resume {shlex.quote(str(folder))}"


class Interrupted(KeyboardInterrupt):
    """Training stopped by the user; the run folder holds all that is needed to continue."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"stopped; continue with: {resume_command(folder)}")
        self.folder = folder


@contextmanager
def without_resume() -> Iterator[None]:
    """For training in a temporary folder: errors do not mention how to resume it.

    >>> with without_resume():
    ...     raise Failed("the disk is full; then continue with: unseam train --resume /tmp/abc/run")
    Traceback (most recent call last):
    unseam.errors.Failed: the disk is full; then start it again
    """
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped before anything was saved; start it again") from None
    except Failed as error:
        raise Failed(re.sub(r"then continue with: .*", "then start it again", str(error))) from error


def train_in_processes(jobs: Sequence[Job], workers: int, advance: Any) -> None:
    """Train every group, in one single-threaded process for each worker, which asks for one group after the other."""
    job, inbox = jobs[0], Inbox()
    document = (job.config.to_json(), address(job.objective), str(job.folder))
    todo, deaths = deque(range(len(jobs))), Counter[int]()
    losses: dict[int, list[float]] = {}

    def start() -> Worker:
        return Worker(Process(WORK, *document, inbox=inbox))

    with interruptible() as interrupted:
        running = [start() for _ in range(workers)]
        try:
            while not all(worker.idle for worker in running):
                done = 0
                for process, message in messages(inbox, PAUSE):
                    worker = next((w for w in running if w.process is process), None)
                    if worker is None or (message is None and worker.idle):
                        continue
                    if message is None:
                        todo.appendleft(requeue(worker, deaths, job.folder))
                        running[running.index(worker)] = start()
                    elif message[0] == "progress":
                        _, number, steps, *losses[number] = message
                        done += steps * len(jobs[number].members)
                    else:
                        hand_out(worker, message, todo, job.folder)
                advance(done, loss_text(*map(_mean, zip(*losses.values(), strict=True))))
                if interrupted.is_set():
                    raise Interrupted(job.folder)
        except BaseException:  # also KeyboardInterrupt; it is raised again
            for worker in running:  # ask those still at work for a last checkpoint
                worker.process.terminate()
            raise
        finally:
            for worker in running:
                worker.process.join(60)


def hand_out(worker: Worker, message: Sequence[str], todo: deque[int], folder: Path) -> None:
    """Give a worker its next group, -1 when there is none; raise what it reports."""
    kind, *text = message
    if kind == "stopped":
        raise Interrupted(folder)
    if kind != "next":
        raise {"BadInput": BadInput, "Failed": Failed}.get(kind, RuntimeError)(*text)
    worker.group = todo.popleft() if todo else -1
    worker.idle = worker.group < 0
    worker.process.send(worker.group)


def requeue(worker: Worker, deaths: Counter[int], folder: Path) -> int:
    """The group of a dead worker, for another; a group that has ended two processes is given up."""
    worker.process.join()
    deaths[worker.group] += 1
    text = f"a training process died ({worker.process.death()})"
    if worker.group < 0 or deaths[worker.group] > 1:
        raise Failed(f"{text}; fix this or use --workers 1, then continue with: {resume_command(folder)}")
    log.warning(f"{text}; another process continues its group")
    return worker.group


def _mean(values: Sequence[float]) -> float:
    """Mean of the finite values; NaN if there is none.

    >>> _mean([nan, 2.0, 4.0])
    3.0
    """
    known = [v for v in values if isfinite(v)]
    return sum(known) / len(known) if known else nan


class Progress:
    """Steps and losses of a group, reported to the parent a few times a second."""

    def __init__(self, line: Line, number: int) -> None:
        self.line, self.number = line, number
        self.steps, self.losses, self.sent = 0, (nan, nan), 0.0

    def __call__(self, steps: int, *losses: float) -> None:
        self.line.check_parent()
        self.steps += steps
        self.losses = losses or self.losses  # type: ignore[assignment]
        if time.monotonic() - self.sent > PAUSE:
            self.report()

    def report(self) -> None:
        if self.steps:
            self.line.send("progress", self.number, self.steps, *self.losses)
            self.steps, self.sent = 0, time.monotonic()


def _work(line: Line, document: dict[str, Any], objective: dict[str, str], folder: str) -> None:
    """What a training process does: ask for a group, train it, ask again, until there is none."""
    torch.set_num_threads(1)
    try:
        config, kind = RunConfig.from_json(document), found_at(objective)
        networks = None if config.networks is None else import_networks(config.networks)
        line.send("next")
        while (number := line.receive()) >= 0:
            job = Job(config, kind, config.groups[number], number, Path(folder), networks=networks)
            progress = Progress(line, number)
            train_group(job, load_data(**located_data(config.data, job.folder)), progress)
            progress.report()
            line.send("next")
    except KeyboardInterrupt:
        line.send("stopped")
    except (EOFError, BrokenPipeError):
        pass
    except BadInput as error:
        line.send("BadInput", str(error))
    except ENVIRONMENT as error:
        line.send("Failed", f"{error_text(error)}; then continue with: {resume_command(Path(folder))}")
    except BaseException:  # the first process prints the traceback, and ends
        line.send("bug", f"a training process failed:\n{traceback.format_exc()}")
