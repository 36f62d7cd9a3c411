"""Many members as one call. The cohort is cut into groups; a group is one stack in one process.

*stacked*: small networks, where Python's overhead rules: as many groups as processes, each a stack of members.
*side by side*: large networks, where arithmetic rules: one member a group, one single-threaded process a core.
Either way member s gets the result it would have got alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unseam import __version__
from unseam.data import load_data
from unseam.errors import BadInput
from unseam.files import cores, write_atomic
from unseam.objectives import Objective
from unseam.progress import bar
from unseam.train.config import RunConfig
from unseam.train.group import Job
from unseam.train.loop import train_group
from unseam.train.rows import Rows

STACKABLE = 400_000  # parameters of one member up to which a stack is faster than one member at a time
WORTH_A_PROCESS = 20_000  # member-steps below which starting a process costs more than it saves


class Interrupted(KeyboardInterrupt):
    """Training stopped by the user; the run folder holds all that is needed to go on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"stopped; go on with: unseam train --resume {folder}")
        self.folder = folder


def plan(config: RunConfig, objective: Objective, shape: tuple[int, ...]) -> RunConfig:
    """Decide how members are grouped and by how many processes they are trained; the run remembers it."""
    training, count = config.training, len(config.members)
    players = objective.players(config.architecture.build(shape, 0)).values()
    parameters = sum(p.numel() for player in players for p in player.module.parameters())
    small = config.architecture.network != "conv" and parameters <= STACKABLE
    how = training.how if training.how != "auto" else ("stacked" if small else "side-by-side")
    enough = count * training.steps >= WORTH_A_PROCESS or (how == "side-by-side" and not small)
    workers = min(count, training.workers or (cores() if enough else 1))
    pieces = workers if how == "stacked" else count
    groups = tuple(tuple(range(count))[i * count // pieces : (i + 1) * count // pieces] for i in range(pieces))
    conv = config.architecture.network == "conv"
    precision = (
        training.precision if training.precision != "auto" else ("bfloat16" if conv and fast_bfloat16() else "float32")
    )
    return replace(config, training=replace(training, how=how, workers=workers, precision=precision), groups=groups)


def fast_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 natively (AVX512-BF16 or AMX)."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def run_cohort(folder: Path, config: RunConfig, objective: type, show: bool | None = None) -> None:
    """Train every group that is not finished; call it again to go on where it stopped."""
    jobs = [Job(config, objective, members, number, folder) for number, members in enumerate(config.groups)]
    total = len(config.members) * config.training.steps
    description = f"training {len(config.members)} x {config.objective}"
    with bar(description, total, show) as advance:
        if config.training.workers <= 1:
            _inline(jobs, advance)
        else:
            _processes(jobs, config.training.workers, advance)


def check_free(folder: Path) -> None:
    """Refuse a folder that already holds a run."""
    if (folder / "config.json").exists():
        raise BadInput(f"out={str(folder)!r} already holds a run; go on with --resume {folder} or choose another --out")


def start_folder(folder: Path, config: RunConfig) -> None:
    """Lay out a new run folder."""
    document = {"unseam": __version__, "torch": str(torch.__version__), **config.to_json()}
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "config.json", json.dumps(document, indent=2))
    Rows(folder).create()


def _inline(jobs: Sequence[Job], advance: Any) -> None:
    threads = torch.get_num_threads()
    stacked = any(len(job.members) > 1 for job in jobs)
    torch.set_num_threads(1 if stacked else threads)
    try:
        for job in jobs:
            data = load_data(**job.config.data)
            train_group(job, data, lambda n, size=len(job.members): advance(n * size))  # type: ignore[misc]
    except KeyboardInterrupt:
        raise Interrupted(jobs[0].folder) from None
    finally:
        torch.set_num_threads(threads)


def _processes(jobs: Sequence[Job], workers: int, advance: Any) -> None:
    """One single-threaded process a worker; each takes the next group when it is done with one."""
    context = multiprocessing.get_context("spawn")
    steps = context.RawArray("q", len(jobs))
    queue: Any = context.SimpleQueue()
    failures: Any = context.Queue()
    for number in (*range(len(jobs)), *([-1] * workers)):
        queue.put(number)
    arguments = (list(jobs), queue, steps, failures, os.getpid())
    processes = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(workers)]
    threads = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the workers, before they load their libraries
    try:
        for process in processes:
            process.start()
    finally:
        os.environ.pop("OMP_NUM_THREADS") if threads is None else os.environ.update(OMP_NUM_THREADS=threads)
    seen = 0
    try:
        while any(process.is_alive() for process in processes):
            processes[0].join(0.2)
            for process in processes[1:]:
                process.join(0.0 if processes[0].is_alive() else 0.2)
            done = sum(n * len(job.members) for n, job in zip(steps, jobs, strict=True))
            advance(done - seen)
            seen = done
    except KeyboardInterrupt:
        _stop(processes)
        raise Interrupted(jobs[0].folder) from None
    if not failures.empty():
        kind, text = failures.get()
        raise BadInput(text) if kind == "BadInput" else RuntimeError(f"a training process failed:\n{text}")
    if any(process.exitcode == 130 for process in processes):
        raise Interrupted(jobs[0].folder)
    if any(process.exitcode for process in processes):
        codes = [process.exitcode for process in processes]
        raise RuntimeError(
            f"a training process died (exit codes {codes}); go on with: unseam train --resume {jobs[0].folder}"
        )


def _stop(processes: Sequence[Any]) -> None:
    """Ask every worker for a last checkpoint and wait for it."""
    for process in processes:
        if process.is_alive():
            process.terminate()
    for process in processes:
        process.join(60)


def _work(jobs: list[Job], queue: Any, steps: Any, failures: Any, parent: int) -> None:
    """A worker's life: take a group, train it, take the next; end when there is none or the parent is gone."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        while (number := queue.get()) >= 0:

            def tick(n: int, number: int = number) -> None:
                steps[number] += n
                if os.getppid() != parent:
                    os._exit(1)

            train_group(jobs[number], load_data(**jobs[number].config.data), tick)
    except KeyboardInterrupt:
        os._exit(130)
    except BadInput as error:
        failures.put(("BadInput", str(error)))
    except BaseException:
        failures.put(("", traceback.format_exc()))
        raise
