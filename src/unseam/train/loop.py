"""Training, read downwards: a group of members, as one stack, from its first or last checkpoint to its last step.

x, noise = feed(step)                          every member its own samples and noise
losses   = lift(one member's forward pass)     one vmapped call
backward                                       for each player (model, critic, ...) its own; a long run writes both
step                                           out once and then runs that list (compiled_step.py)
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.device import kept_memory
from unseam.geometry.polarized import active_latents
from unseam.objectives import Objective
from unseam.run.checkpoint import save_checkpoint, weights_path
from unseam.run.config import split
from unseam.run.results import Results
from unseam.train.batches import Feed
from unseam.train.callbacks import LoggedStep, stopped_by
from unseam.train.compiled_step import Written, written_step
from unseam.train.forward import Forward
from unseam.train.job import Job, State, checkpoint_state, hold, resume_group, start

_EVALUATION = 2048  # held-out samples behind the final numbers
_SETTLING = 8192  # trained samples behind parameters that are set when training ends
SUMS = ("loss", "reconstruction", "kl")  # what is kept of the held-out samples
ABSENT = {"reconstruction": None}  # what does not reconstruct has no such number; no KL is a KL of 0
LATENT = ("kl", "mu_std", "mu2", "sigma2", "log_sigma2")  # and of each latent
LONGEST_CODE = 1e5  # nats of KL that no working code needs
WORSE = 10  # times the reconstruction's start by which it may get worse
_Row = dict[str, Any]


@kept_memory()
def train_group(job: Job, data: Dataset, tick: Callable[..., object]) -> None:
    """Train until the last step or an interrupt (which leaves a checkpoint), then write the final numbers.

    `tick(1)` hears of every step, with the mean losses of the batch and of the held-out samples where known; it asks
    for an interrupt by returning True.
    """
    training, steps = job.config.training, job.config.training.steps
    objective = job.objective(**job.config.members[job.members[0]].hyper, **job.config.static)
    state = resume_group(job, start(job, objective, data.shape))
    results, (train_rows, test_rows) = Results(job.folder), split(len(data), training.holdout)
    seeds = [job.config.members[m].seed for m in job.members]
    batch, pairing = training.batch * objective.batches, objective.pairing()
    feed = Feed(data, train_rows, seeds, batch, pairing=pairing, device=job.device)
    forward = Forward(job, objective, state, len(train_rows))
    watch = HeldOut(forward, feed, test_rows, training.watch) if training.watch and len(test_rows) else None
    snapshots = {round(steps * (i + 1) / training.snapshots) for i in range(training.snapshots)}
    log: dict[str, list[_Row]] = {"log": [], "latents": []}
    saved, saved_step, began = time.monotonic(), state.step, time.monotonic()

    @cache
    def written() -> Written | None:
        """The step written out, once it is asked for: the first step, which is logged, need not wait for it."""
        nonlocal saved, began
        asked = time.monotonic()
        found = written_step(forward, state, feed)
        took = time.monotonic() - asked  # no part of the training's time
        saved, began = saved + took, began + took
        return found

    def save() -> None:
        for table in log:
            results.write(table, log[table])
            log[table].clear()
        save_checkpoint(job.checkpoint, *checkpoint_state(job, state))

    with interruptible() as interrupted:
        while state.step < steps and still_training(state, len(job.members)):
            x, noise = feed(state.step, forward.shapes)
            logging = state.step % training.log_every == 0
            by_list = None if logging else written()
            if by_list is None:
                losses, report = forward(state, x, noise, logging)
                forward.backward(state, losses)
            else:
                losses = by_list(state, x, noise)
            if logging:
                speed = len(job.members) * (state.step - saved_step + 1) / (time.monotonic() - saved + 1e-9)
                seen = watch(state) if watch else {}
                record(log, job, state.step, report, seen, speed)
                stop_early(state, seen)
                if call_back(job, state, report, seen):
                    break
            update(state, losses)
            state.step += 1
            if tick(1, *(mean_loss(told) for told in (report, seen)) if logging else ()) is True:
                interrupted.set()
            if state.step in snapshots:
                save_checkpoint(
                    weights_path(job.folder, job.number, state.step), *checkpoint_state(job, state, weights_only=True)
                )
            due = training.checkpoint_steps and state.step % training.checkpoint_steps == 0
            if due or time.monotonic() - saved > training.checkpoint_seconds or interrupted.is_set():
                state.seconds += time.monotonic() - began
                began = time.monotonic()
                save()
                saved, saved_step = time.monotonic(), state.step
            if interrupted.is_set():
                raise KeyboardInterrupt
    state.seconds += time.monotonic() - began
    if state.best is not None and watch is not None:
        stop_early(state, watch(state))  # the last weights may be the best
        state.best.restore(state.stacks, state.frozen)
    _settle(state, HeldOut(forward, feed, train_rows, _SETTLING))
    save()
    last = HeldOut(forward, feed, test_rows if len(test_rows) else train_rows, _EVALUATION)
    _finish(job, state, last(state), results)


def still_training(state: State, members: int) -> bool:
    """Whether a member is neither held at its last finite weights nor stopped early."""
    stopped = set() if state.best is None else set(state.best.stopped)
    return len(stopped | set(state.frozen)) < members


def stop_early(state: State, seen: Mapping[str, Tensor]) -> None:
    """With early stopping: members whose held-out loss no longer falls are held at their best weights."""
    if state.best is not None and seen:
        for position in state.best.see(state.stacks, state.step, seen["loss"], state.frozen):
            state.held[position] = state.best.of(position)


def call_back(job: Job, state: State, report: Mapping[str, Tensor], seen: Mapping[str, Tensor]) -> bool:
    """Call the user's functions at a logged step; whether one of them stops the training here."""
    if not job.callbacks:
        return False
    weights = state.stacks["model"].state()
    values = logged_numbers(report, seen)
    logged = LoggedStep(state.step, job.members, values, weights, job.config.architecture, job.config.shape)
    if name := stopped_by(job.callbacks, logged):
        state.note = f"the callback {name} stopped training at step {state.step}"
    return bool(name)


def mean_loss(report: Mapping[str, Tensor]) -> float:
    """Over the members whose loss is a number; nan where there is none."""
    return float(report["loss"].nanmean()) if "loss" in report else float("nan")


def _settle(state: State, trained: HeldOut) -> None:
    """Set what an objective leaves for the end (`Objective.settled`) to its mean over trained samples."""
    if type(trained.forward.objective).settled is Objective.settled:
        return
    found = trained(state)
    for name, block in state.stacks["model"].state().items():
        if f"settled/{name}" in found:
            block.copy_(found[f"settled/{name}"])


def update(state: State, losses: Mapping[str, Tensor]) -> None:
    """One optimiser step of every player; a member whose loss, gradient or new weights are not finite is frozen
    at its last finite weights."""
    healthy = all(isfinite((losses[n].detach().sum() + state.stacks[n].gradient.sum()).item()) for n in losses)
    if not healthy:
        freeze(state, losses)
    before = {name: state.stacks[name].before.copy_(state.stacks[name].flat) for name in losses}
    for name in losses:
        state.optimisers[name].step()
    if not all(isfinite(state.stacks[name].flat.sum().item()) for name in losses):
        step_back(state, before)
    for position, held in state.held.items():
        for name, stack in state.stacks.items():
            for block, value in zip(stack.blocks, held[name], strict=True):
                block[position] = value


def step_back(state: State, before: Mapping[str, Tensor]) -> None:
    """Members that the step itself took out of the finite numbers are held where they were before it."""
    old = {name: stack.like(before[name]) for name, stack in state.stacks.items() if name in before}
    for position in range(next(iter(state.stacks.values())).members):
        here = [block[position] for stack in state.stacks.values() for block in stack.blocks]
        if position in state.frozen or all(torch.isfinite(block).all() for block in here):
            continue
        for name, blocks in old.items():
            for block, value in zip(state.stacks[name].blocks, blocks, strict=True):
                block[position] = value[position]
        state.frozen[position] = f"its weights were not finite after step {state.step}"
        hold(state, position)


def freeze(state: State, losses: Mapping[str, Tensor]) -> None:
    """Hold the members that left the finite numbers at their last parameters and silence their gradients."""
    for position in range(next(iter(losses.values())).shape[0]):
        gradients = [g[position] for stack in state.stacks.values() for g in stack.gradients]
        bad_loss = [name for name, loss in losses.items() if not torch.isfinite(loss[position])]
        if not bad_loss and all(torch.isfinite(g.sum()) for g in gradients):
            continue
        for gradient in gradients:
            gradient.zero_()
        if position not in state.frozen:
            what = "loss" if bad_loss else "gradient"
            state.frozen[position] = f"its {what} was not finite at step {state.step}"
            hold(state, position)


class HeldOut:
    """What is logged, on the same samples every time: up to `count` of the rows, whole batches, each member its own."""

    def __init__(self, forward: Forward, trained: Feed, rows: Tensor, count: int) -> None:
        batch = forward.batch * forward.objective.batches
        self.forward, self.batches = forward, max(1, min(count, len(rows)) // batch)
        given = (trained.data, rows, trained.given, batch, self.batches)
        self.feed = Feed(*given, trained.pairing, trained.device, like=trained)

    @torch.no_grad()
    def __call__(self, state: State) -> dict[str, Tensor]:
        """Means over the samples; the spread of mu is that over all of them."""
        shapes = self.forward.shapes
        reports = [self.forward(state, *self.feed(i, shapes), logging=True)[1] for i in range(self.batches)]
        mean = {name: torch.stack([r[name] for r in reports]).mean(0) for name in reports[0]}
        mean["latent/mu_std"] = (mean["latent/mu2"] - mean["latent/mu"].square()).clamp_min(0).sqrt()
        return mean


def record(
    log: dict[str, list[_Row]],
    job: Job,
    step: int,
    report: Mapping[str, Tensor],
    held_out: Mapping[str, Tensor],
    speed: float,
) -> None:
    """What all members say of the batch and of the held-out samples -> rows of `log` and `latents`."""
    found: dict[str, Any] = logged_numbers(report, held_out)
    report = held_out or report
    found |= {"active": count_active(report), "throughput": [speed] * len(job.members)}
    for position, member in enumerate(job.members):
        at = {"member": member, "step": step}
        log["log"] += [{**at, "name": name, "value": values[position]} for name, values in found.items()]
    log["latents"] += latent_rows(job, step, report)


def logged_numbers(report: Mapping[str, Tensor], held_out: Mapping[str, Tensor]) -> dict[str, list[float]]:
    """The numbers of the batch and of the held-out samples by name, one per member."""
    found = {name: value.tolist() for name, value in report.items() if not name.startswith(("latent/", "settled/"))}
    return found | {f"held-out/{name}": held_out[name].tolist() for name in SUMS if name in held_out}


def latent_rows(job: Job, step: int, report: Mapping[str, Tensor]) -> Iterator[_Row]:
    columns = {name: report[f"latent/{name}"].tolist() for name in LATENT}
    for position, member in enumerate(job.members):
        for latent in range(job.config.architecture.latents):
            numbers = {name: column[position][latent] for name, column in columns.items()}
            yield {"member": member, "step": step, "latent": latent, **numbers}


def count_active(report: Mapping[str, Tensor]) -> list[int]:  # (S,)
    """Latents in use, by geometry's rule; a point posterior has no variance to go by, only the spread of its means."""
    sigma2 = report["latent/sigma2"].masked_fill(report["latent/sigma2"] == 0, 1.0)
    return active_latents(report["latent/mu_std"].cpu().numpy(), sigma2.cpu().numpy()).sum(1).tolist()


def _finish(job: Job, state: State, mean: Mapping[str, Tensor], results: Results) -> None:
    """The final numbers of each member, on samples it never saw (or the training ones when none were held out)."""
    results.write("latents", latent_rows(job, job.config.training.steps, mean))
    active, rows = count_active(mean), []
    began = results.first("reconstruction") | results.first("held-out/reconstruction")  # like with like, where logged
    for position, m in enumerate(job.members):
        member, note = job.config.members[m], state.frozen.get(position, "")
        row: _Row = {"member": m, "seed": member.seed, "hyper": json.dumps(dict(member.hyper)), "step": state.step}
        row |= {name: float(mean[name][position]) if name in mean else ABSENT.get(name, 0.0) for name in SUMS}
        status = "diverged" if note else "finished"
        if not note and (note := exploded(row["reconstruction"] or 0.0, row["kl"], began.get(m))):
            status = "exploded"
        if not note and state.best is not None:
            note = state.best.note(position, state.step)
        note = note or state.note
        row |= {"status": status, "note": note}
        rows.append(row | {"active": active[position], "seconds": state.seconds})
    results.write("runs", rows)


def exploded(reconstruction: float, kl: float, began: float | None) -> str:
    """Why finite numbers are no result: a code longer than any, or a reconstruction far worse than untrained.

    >>> exploded(5.0, 3.0, 9.0), exploded(5e6, 3.0, 9.0)
    ('', 'its reconstruction went from 9 to 5e+06 nats; use a smaller lr, or --scale standard for a table')
    """
    remedy = "use a smaller lr, or --scale standard for a table"
    if kl > LONGEST_CODE:
        return f"its KL is {kl:.3g} nats; {remedy}"
    if began is not None and reconstruction > began + WORSE * (abs(began) + 1):
        return f"its reconstruction went from {began:.3g} to {reconstruction:.3g} nats; {remedy}"
    return ""


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Ctrl-C, SIGTERM and a closed terminal set an event instead of tearing a step apart (main thread only)."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    signals = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = [signal.signal(s, lambda *_: event.set()) for s in signals]
    try:
        yield event
    finally:
        for s, handler in zip(signals, previous, strict=True):
            signal.signal(s, handler)
