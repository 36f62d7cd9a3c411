"""Many members as one call. The cohort is cut into groups; a group is one stack in one process.

*stacked*: small networks, where Python's overhead rules: as many groups as processes, each a stack of members.
*side by side*: large networks, where arithmetic rules: one member a group, one single-threaded process a core.
Either way member s gets the result it would have got alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch

from unseam import __version__
from unseam.atomic import cores, remove_leftovers, write_atomic
from unseam.data import load_data
from unseam.device import available_devices, device, torch_threads
from unseam.errors import ENVIRONMENT, BadInput, Failed, error_text
from unseam.models.own_networks import MakeNetworks
from unseam.objectives import Objective
from unseam.progress import bar, log
from unseam.run.config import Engine, RunConfig, Training
from unseam.run.results import Results
from unseam.run.user_files import located_data
from unseam.train.job import Job, State, start
from unseam.train.loop import loss_text, train_group
from unseam.train.stack import Forward
from unseam.train.stopping import Callback
from unseam.train.torch_private import fast_bfloat16
from unseam.train.workers import Interrupted, address, resume_command, train_in_processes
from unseam.train.xla import installed

STACKABLE = 400_000  # parameters of one member up to which a stack is faster than one member at a time
XLA_STARTS = 4.0  # seconds in which a step is translated and compiled
XLA_SAVES = (5e-4, 8.5e-5, 3e-9)  # seconds that a step is faster then; more for each member; for each parameter of it
WORTH_A_PROCESS = 20_000  # member-steps below which starting a process costs more than it saves


def plan(
    config: RunConfig, objective: Objective, shape: tuple[int, ...], networks: MakeNetworks | None = None
) -> RunConfig:
    """Decide how members are grouped and by how many processes they are trained; the run remembers it."""
    training, count = where(config.training), len(config.members)
    players = objective.players(config.architecture.build(shape, 0, networks)).values()
    parameters = sum(p.numel() for player in players for p in player.module.parameters())
    small = config.architecture.network != "conv" and parameters <= STACKABLE
    if config.architecture.network == "own":
        if training.how == "stacked":
            raise BadInput("how='stacked' takes networks of unseam; yours are trained side by side, one at a time")
        training = replace(training, how="side-by-side")
    if training.device != "cpu":
        training = replace(training, engine=engine_for(training, worth=False))
        return on_accelerator(replace(config, training=training), objective, shape, networks)
    how = training.how if training.how != "auto" else ("stacked" if small else "side-by-side")
    enough = count * training.steps >= WORTH_A_PROCESS or (how == "side-by-side" and not small)
    workers = min(count, training.workers or (cores() if enough else 1))
    pieces = workers if how == "stacked" else count
    conv = config.architecture.network == "conv"
    precision = (
        training.precision if training.precision != "auto" else ("bfloat16" if conv and fast_bfloat16() else "float32")
    )
    training = replace(training, how=how, workers=workers, precision=precision)
    worth = config.architecture.network in ("mlp", "linear") and worth_xla(training.steps, count / pieces, parameters)
    training = replace(training, engine=engine_for(training, worth))
    return replace(config, training=training, groups=_cut(count, pieces))


def engine_for(training: Training, worth: bool) -> Engine:
    """What runs the steps: what was asked for, or XLA where it is worth it and JAX is installed."""
    if training.engine == "xla":
        if not installed():
            raise BadInput("engine='xla' needs JAX; install it with: pip install 'unseam[xla]', or use --engine auto")
        if training.device != "cpu":
            raise BadInput(f"engine='xla' runs on the CPU, not on device={training.device!r}; use --engine auto")
    if training.engine != "auto":
        return training.engine
    return "xla" if worth and installed() else "written-out"


def worth_xla(steps: int, members: float, parameters: int) -> bool:
    """Whether a group trains long enough to win back what XLA takes to start.

    >>> worth_xla(3000, 1, 7000), worth_xla(3000, 10, 7000), worth_xla(10_000, 1, 7000), worth_xla(3000, 1, 1_000_000)
    (False, True, True, True)
    """
    each, by_member, by_parameter = XLA_SAVES
    return steps * (each + members * (by_member + parameters * by_parameter)) > XLA_STARTS


def where(training: Training) -> Training:
    """With the device by its name here; `cuda` is all GPUs."""
    found = device(training.device).type if ":" not in training.device else str(device(training.device))
    if found == "mps" and training.precision == "float64":
        raise BadInput("device='mps' has no double precision; use --device cpu or --precision float32")
    return replace(training, device=found)


def on_accelerator(
    config: RunConfig, objective: Objective, shape: tuple[int, ...], networks: MakeNetworks | None = None
) -> RunConfig:
    """As many members in a stack as a device's memory holds, and a process a device; own networks one at a time."""
    training, count = config.training, len(config.members)
    conv = config.architecture.network == "conv"
    half = conv and training.device.startswith("cuda") and torch.cuda.is_bf16_supported()
    precision = training.precision if training.precision != "auto" else ("bfloat16" if half else "float32")
    devices = sum(name.startswith("cuda") for name in available_devices()) if training.device == "cuda" else 1
    workers = min(count, training.workers or devices, devices)
    how: Literal["stacked", "side-by-side"] = "stacked" if networks is None else "side-by-side"
    config = replace(config, training=replace(training, how=how, workers=workers, precision=precision))
    at_once = members_at_once(config, objective, shape) if networks is None else 1
    pieces = max(workers, -(-count // at_once))
    return replace(config, groups=_cut(count, pieces))


def _cut(count: int, pieces: int) -> tuple[tuple[int, ...], ...]:
    """Members 0..count-1 in groups of almost one size.

    >>> _cut(5, 2)
    ((0, 1), (2, 3, 4))
    """
    return tuple(tuple(range(count))[i * count // pieces : (i + 1) * count // pieces] for i in range(pieces))


def run_cohort(
    folder: Path,
    config: RunConfig,
    objective: type,
    show: bool | None = None,
    callbacks: Sequence[Callback] = (),
    networks: MakeNetworks | None = None,
) -> None:
    """Train every group that is not finished; call it again to continue where it stopped."""
    ours = (folder, tuple(callbacks), networks)
    jobs = [Job(config, objective, members, number, *ours) for number, members in enumerate(config.groups)]
    total = len(config.members) * config.training.steps
    description = f"training {len(config.members)} x {config.objective}"
    try:
        with bar(description, total, show) as advance:
            if config.training.workers <= 1 or callbacks or not can_be_imported(jobs[0]):
                _inline(jobs, advance)
            else:
                train_in_processes(jobs, config.training.workers, advance)
    except ENVIRONMENT as error:
        raise Failed(f"{error_text(error)}; then continue with: {resume_command(folder)}") from error


def check_free(folder: Path) -> None:
    """Refuse a folder that already holds a run."""
    if (folder / "config.json").exists():
        raise BadInput(
            f"out={str(folder)!r} already holds a run; continue with {resume_command(folder)} or choose another --out"
        )


def start_folder(folder: Path, config: RunConfig) -> None:
    """Lay out a new run folder."""
    document = {"unseam": __version__, "torch": str(torch.__version__), **config.to_json()}
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)  # of one that died before it had a configuration
    Results(folder).create()  # before config.json: what has one can be resumed
    write_atomic(folder / "config.json", json.dumps(document, indent=2))


def can_be_imported(job: Job) -> bool:
    """Whether other processes find the objective and the networks; if not, say why this one trains all members."""
    source = job.config.networks
    missing = [job.objective.__name__] if address(job.objective) is None else []
    missing += [source.kinds] if source is not None and not source.function else []
    for name in missing:
        log.warning(
            f"{name} is defined in a script, notebook or function (or given as objects), so all members are trained in "
            "this process; move it to a module of its own to use several"
        )
    return not missing


def _inline(jobs: Sequence[Job], advance: Any) -> None:
    """Train group after group in this process, with one thread where matrices are small: more would only stall."""
    config = jobs[0].config
    small = config.training.how == "stacked" and config.architecture.network != "conv"
    alone = not small and all(len(job.members) == 1 for job in jobs)
    try:
        with torch_threads(torch.get_num_threads() if alone else 1):
            for job in jobs:
                data = load_data(**located_data(job.config.data, job.folder))
                size = len(job.members)
                train_group(job, data, lambda n, *losses, size=size: advance(n * size, loss_text(*losses)))
    except KeyboardInterrupt:
        raise Interrupted(jobs[0].folder) from None


# How many members fit on a GPU: the memory that a step of one of them takes, measured, against what is free.


SHARE = 0.8  # of the free memory; the rest is the allocator's


def members_at_once(config: RunConfig, objective: Objective, shape: tuple[int, ...]) -> int:
    """How many members fit on the device at once; all of them if it shares the CPU's memory (MPS)."""
    if not config.training.device.startswith("cuda"):
        return len(config.members)
    job = Job(replace(config, groups=((0,),)), type(objective), (0,), 0, Path())
    torch.cuda.reset_peak_memory_stats(job.device)
    before = torch.cuda.memory_allocated(job.device)
    one_step(job, objective, shape)
    took = torch.cuda.max_memory_allocated(job.device) - before
    return fitting(torch.cuda.mem_get_info(job.device)[0], took)


def fitting(free: int, one: int) -> int:
    """
    >>> fitting(free=1000, one=150), fitting(free=100, one=150)
    (5, 1)
    """
    return max(1, int(SHARE * free / max(one, 1)))


def one_step(job: Job, objective: Objective, shape: tuple[int, ...]) -> State:
    """Forward, backward and the optimisers' step on a batch of zeros: the memory that a step needs."""
    state = start(job, objective, shape)
    forward = Forward(job, objective, state, size=job.config.training.batch)
    members, batch = len(job.members), job.config.training.batch * objective.batches
    x = torch.zeros(members, batch, *shape, device=job.device)
    noise = {name: torch.zeros(members, *s, device=job.device) for name, s in forward.shapes.items()}
    if objective.pairing():
        noise["changed"] = torch.zeros(members, job.config.training.batch, 1, device=job.device)
    losses, _ = forward(state, x, noise, logging=False)
    forward.backward(state, losses)
    for optimiser in state.optimisers.values():
        optimiser.step()
    return state
