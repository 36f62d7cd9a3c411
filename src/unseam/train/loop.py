"""Training, read downwards: a group of members, as one stack, from its first or last checkpoint to its last step.

report   = engine.report()                     at logged steps, with that of held-out samples
done     = engine.run(count)                   one step (step_by_step.py) or many (xla.py):
    x, noise = feed(step)                          every member its own samples and noise
    losses   = lift(one member's forward pass)     one vmapped call
    gradients, update                              for each player (model, critic, ...) its own
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, nan
from typing import Any

from torch import Tensor

from unseam.data.base import Dataset
from unseam.device import flushed_denormals, retained_memory
from unseam.geometry.polarized import active_latents
from unseam.objectives import Objective
from unseam.progress import log
from unseam.run.checkpoint import save_checkpoint, weights_path
from unseam.run.config import split
from unseam.run.results import Results
from unseam.train.batches import Feed
from unseam.train.job import Job, State, checkpoint_state, resume_group, start
from unseam.train.stack import Forward
from unseam.train.step_by_step import StepByStep, mean_report
from unseam.train.stopping import LoggedStep, interruptible, stopped_by
from unseam.train.xla import XLA, xla_engine

_EVALUATION = 2048  # held-out samples behind the final numbers
_SETTLING = 8192  # trained samples behind parameters that are set when training ends
SUMS = ("loss", "reconstruction", "kl")  # what is stored of the held-out samples
ABSENT = {"reconstruction": None}  # an objective that does not reconstruct has no such number; its KL is 0
LATENT = ("kl", "mu_std", "mu2", "sigma2", "log_sigma2")  # and of each latent
LONGEST_CODE = 1e5  # nats of KL that no working code needs
WORSE = 10  # times the reconstruction's start by which it may get worse
_Row = dict[str, Any]


@retained_memory()
@flushed_denormals()
def train_group(job: Job, data: Dataset, tick: Callable[..., object]) -> None:
    """Train until the last step or an interrupt (which leaves a checkpoint), then write the final numbers.

    `tick(done)` is called after every step, or every few, and after a logged one `tick(done, loss, held_out_loss)` with
    the mean losses of the batch and of the held-out samples. It asks for an interrupt by returning True.
    """
    training = job.config.training
    objective = job.objective(**job.config.members[job.members[0]].hyper, **job.config.static)
    state = resume_group(job, start(job, objective, data.shape))
    train_rows, test_rows = split(len(data), training.holdout)
    seeds = [job.config.members[m].seed for m in job.members]
    batch, pairing = training.batch * objective.batches, objective.pairing()
    feed = Feed(data, train_rows, seeds, batch, pairing=pairing, device=job.device)
    forward = Forward(job, objective, state, len(train_rows))
    watch = HeldOut(forward, feed, test_rows, training.watch) if training.watch and len(test_rows) else None
    journal = Journal(job, state)

    with interruptible() as interrupted:
        engine = choose_engine(job, forward, state, feed, journal)
        while state.step < training.steps and still_training(state, len(job.members)):
            shown: tuple[float, ...] = ()
            if state.step % training.log_every == 0:
                report = engine.report()
                held_out = watch(state, engine) if watch else {}
                journal.record(report, held_out)
                if stop_early(state, held_out):
                    engine.members_held()
                if call_back(job, state, report, held_out):
                    break
                shown = (mean_loss(report), mean_loss(held_out))
            done = engine.run(journal.next_stop() - state.step)
            if tick(done, *shown) is True:
                interrupted.set()
            journal.after_step(interrupted.is_set())
            if interrupted.is_set():
                raise KeyboardInterrupt

    if state.best is not None and watch is not None:
        stop_early(state, watch(state))  # the last weights may be the best
        state.best.restore(state.stacks, state.frozen)
    _settle(state, HeldOut(forward, feed, train_rows, _SETTLING))
    journal.save()
    last = HeldOut(forward, feed, test_rows if len(test_rows) else train_rows, _EVALUATION)
    finish(job, state, last(state), journal.results)


def choose_engine(job: Job, forward: Forward, state: State, feed: Feed, journal: Journal) -> StepByStep | XLA:
    """What the run asks for, where it can be had; a group that has begun with one continues with it."""
    training = job.config.training
    if training.engine == "xla" and state.step < training.steps and state.engine in ("", "xla"):
        with journal.paused():
            found = xla_engine(forward, state, feed)
        if found is not None:
            return found
        if job.number == 0:
            log.warning(f"trained without XLA, which is slower: {state.why_not}")
    return StepByStep(forward, state, feed, journal.paused, may_compile=training.engine != "eager")


class Journal:
    """What a group leaves in the run folder while it trains: logged rows, checkpoints and snapshots of the weights.

    Rows reach the folder with the checkpoint that follows them, so a run that is killed resumes without repeating any.
    """

    def __init__(self, job: Job, state: State) -> None:
        steps, snapshots = job.config.training.steps, job.config.training.snapshots
        self.job, self.state, self.results = job, state, Results(job.folder)
        self.rows: dict[str, list[_Row]] = {"log": [], "latents": []}
        self.snapshots = {round(steps * (i + 1) / snapshots) for i in range(snapshots)}
        self.saved_step = state.step
        self.saved = self.counted = time.monotonic()  # of the last checkpoint; until when `state.seconds` counts

    def record(self, report: Mapping[str, Tensor], held_out: Mapping[str, Tensor]) -> None:
        """Turn what is known of the batch and of the held-out samples into rows of `log` and `latents`."""
        step, members = self.state.step, self.job.members
        speed = len(members) * (step - self.saved_step + 1) / (time.monotonic() - self.saved + 1e-9)
        values: dict[str, Any] = logged_numbers(report, held_out)
        values |= {"active": count_active(held_out or report), "throughput": [speed] * len(members)}
        for position, member in enumerate(members):
            key = {"member": member, "step": step}
            self.rows["log"] += [{**key, "name": name, "value": value[position]} for name, value in values.items()]
        self.rows["latents"] += latent_rows(self.job, step, held_out or report)

    def next_stop(self) -> int:
        """The step of the next logged row, snapshot or checkpoint, or the last one."""
        step, training = self.state.step, self.job.config.training
        every = [n for n in (training.log_every, training.checkpoint_steps) if n]
        known = [snapshot for snapshot in self.snapshots if snapshot > step]
        return min(training.steps, *(step - step % n + n for n in every), *known)

    def after_step(self, interrupted: bool) -> None:
        """Write a snapshot and a checkpoint where they are due."""
        step, training = self.state.step, self.job.config.training
        if step in self.snapshots:
            path = weights_path(self.job.folder, self.job.number, step)
            save_checkpoint(path, *checkpoint_state(self.job, self.state, weights_only=True))
        due = training.checkpoint_steps and step % training.checkpoint_steps == 0
        if due or interrupted or time.monotonic() - self.saved > training.checkpoint_seconds:
            self.save()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Time in this block is not training time."""
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        self.saved, self.counted = self.saved + took, self.counted + took

    def save(self) -> None:
        """Write the rows and a checkpoint."""
        now = time.monotonic()
        self.state.seconds += now - self.counted
        self.counted = now
        for table, rows in self.rows.items():
            self.results.write(table, rows)
            rows.clear()
        save_checkpoint(self.job.checkpoint, *checkpoint_state(self.job, self.state))
        self.saved, self.saved_step = time.monotonic(), self.state.step


def still_training(state: State, members: int) -> bool:
    """Whether a member is neither held at its last finite weights nor stopped early."""
    stopped = set() if state.best is None else set(state.best.stopped)
    return len(stopped | set(state.frozen)) < members


def stop_early(state: State, held_out: Mapping[str, Tensor]) -> list[int]:
    """With early stopping: hold members whose held-out loss no longer falls at their best weights; who stops now."""
    if state.best is None or not held_out:
        return []
    stopping = state.best.see(state.stacks, state.step, held_out["loss"], state.frozen)
    state.held |= {position: state.best.of(position) for position in stopping}
    return stopping


def call_back(job: Job, state: State, report: Mapping[str, Tensor], held_out: Mapping[str, Tensor]) -> bool:
    """Call the user's functions at a logged step; whether one of them stops the training here."""
    if not job.callbacks:
        return False
    weights = state.stacks["model"].state()
    values = logged_numbers(report, held_out)
    logged = LoggedStep(
        state.step,
        job.members,
        values,
        weights,
        lambda: job.config.architecture.build(job.config.shape, 0, job.networks),
    )
    if name := stopped_by(job.callbacks, logged):
        state.note = f"the callback {name} stopped training at step {state.step}"
    return bool(name)


def mean_loss(report: Mapping[str, Tensor]) -> float:
    """Over the members whose loss is a number; nan where there is none."""
    return float(report["loss"].nanmean()) if "loss" in report else float("nan")


def loss_text(loss: float = nan, held_out: float = nan) -> str | None:
    """What is printed beside the bar; None leaves it as it is.

    >>> loss_text(41.271, 43.1), loss_text()
    ('loss 41.27, held-out 43.1', None)
    """
    parts = [f"{word} {value:.4g}" for word, value in (("loss", loss), ("held-out", held_out)) if isfinite(value)]
    return ", ".join(parts) or None


def _settle(state: State, trained: HeldOut) -> None:
    """Set what an objective leaves for the end (`Objective.settled`) to its mean over trained samples."""
    if type(trained.forward.objective).settled is Objective.settled:
        return
    found = trained(state)
    for name, block in state.stacks["model"].state().items():
        if f"settled/{name}" in found:
            block.copy_(found[f"settled/{name}"])


class HeldOut:
    """What is logged, on the same samples every time: up to `count` of the rows, whole batches, each member its own."""

    def __init__(self, forward: Forward, trained: Feed, rows: Tensor, count: int) -> None:
        batch = forward.batch * forward.objective.batches
        self.forward, self.batches = forward, max(1, min(count, len(rows)) // batch)
        same = (trained.data, rows, trained.member_seeds, batch, self.batches)
        self.feed = Feed(*same, trained.pairing, trained.device, like=trained)

    def __call__(self, state: State, engine: StepByStep | XLA | None = None) -> dict[str, Tensor]:
        """Means over the samples, by an engine or by the objective as it is; the spread of mu is that over all."""
        if engine is None:
            mean = mean_report(self.forward, state, self.feed, self.batches)
        else:
            mean = engine.held_out(self.feed, self.batches)
        mean["latent/mu_std"] = (mean["latent/mu2"] - mean["latent/mu"].square()).clamp_min(0).sqrt()
        return mean


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


def finish(job: Job, state: State, mean: Mapping[str, Tensor], results: Results) -> None:
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
        row |= {"status": status, "note": note, "engine": state.engine}
        rows.append(row | {"active": active[position], "seconds": state.seconds})
    results.write("runs", rows)


def exploded(reconstruction: float, kl: float, began: float | None) -> str:
    """Why finite numbers are not a result: a code longer than any, or a reconstruction far worse than untrained.

    >>> exploded(5.0, 3.0, 9.0), exploded(5e6, 3.0, 9.0)
    ('', 'its reconstruction went from 9 to 5e+06 nats; use a smaller lr, or --scale standard for a table')
    """
    remedy = "use a smaller lr, or --scale standard for a table"
    if kl > LONGEST_CODE:
        return f"its KL is {kl:.3g} nats; {remedy}"
    if began is not None and reconstruction > began + WORSE * (abs(began) + 1):
        return f"its reconstruction went from {began:.3g} to {reconstruction:.3g} nats; {remedy}"
    return ""
