"""Time per training step of every objective over beta-VAE's: 64x64 convolutions, 10 latents, one thread.

The steps are those of `unseam.train` itself (feed, forward, backward, optimiser). Objectives take turns, round after
round, in one process; each one's time is its fastest round's, in processor time (of one thread: what a clock would
show on an idle machine).
"""

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from unseam.data import config, load_data
from unseam.device import retained_memory
from unseam.models import Architecture
from unseam.objectives import OBJECTIVES
from unseam.run.config import RunConfig, Training, sweep_members
from unseam.train.batches import Feed
from unseam.train.job import Job, start
from unseam.train.stack import Forward
from unseam.train.step_by_step import update
from unseam.train.torch_private import fast_bfloat16

BATCH, LATENTS, ROUNDS, STEPS = 64, 10, 6, 3
HALF = ("beta-vae", "beta-tcvae", "factor-vae", "det-vae")  # also measured in bfloat16, where the CPU has it


def stepper(name: str, batch: int = BATCH, precision: str = "float32") -> Callable[[], None]:
    """A function that makes one training step with this objective."""
    data, kind = load_data("sprites"), OBJECTIVES[name]
    members, static = sweep_members(kind, [0], {})
    architecture = Architecture(latents=LATENTS, posterior=kind.posterior, learned_s2=kind.learned_s2)
    architecture = architecture.for_data(data.shape, "gaussian" if kind.learned_s2 else "bernoulli")
    run = RunConfig(config(data), name, static, members, architecture, Training(batch=batch, precision=precision))
    job, objective = Job(run, kind, (0,), 0, Path()), kind(**members[0].hyper, **static)
    state = start(job, objective, data.shape)
    forward = Forward(job, objective, state, len(data))
    feed = Feed(data, torch.arange(len(data)), [0], batch * kind.batches)

    def step() -> None:
        x, noise = feed(state.step, forward.shapes)
        losses, _ = forward(state, x, noise, logging=False)
        forward.backward(state, losses)
        update(state, losses)
        state.step += 1

    return step


def seconds(steps: dict[str, Callable[[], None]], rounds: int = ROUNDS) -> dict[str, float]:
    """The fastest round of each, per step; the first round warms up and does not count."""
    best = dict.fromkeys(steps, float("inf"))
    for number in range(rounds + 1):
        for name, step in steps.items():
            began = time.process_time()
            for _ in range(STEPS):
                step()
            if number:
                best[name] = min(best[name], (time.process_time() - began) / STEPS)
    return best


@retained_memory()
def run() -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    best = seconds({name: stepper(name) for name in OBJECTIVES})
    big = seconds({name: stepper(name, 128) for name in ("beta-vae", "factor-vae")}, 3)
    ratios = {f"{name} / beta-vae": best[name] / best["beta-vae"] for name in OBJECTIVES if name != "beta-vae"}
    ratios["factor-vae / beta-vae, batch 128"] = big["factor-vae"] / big["beta-vae"]
    if fast_bfloat16():
        half = seconds({name: stepper(name, precision="bfloat16") for name in HALF})
        ratios |= {f"{name} / beta-vae, bfloat16": half[name] / half["beta-vae"] for name in HALF if name != "beta-vae"}
        best |= {f"{name}, bfloat16": value for name, value in half.items()}
    how = (
        f"time per training step over beta-VAE's, 64x64 conv, {LATENTS} latents, batch {BATCH}, one thread, float32, "
        f"fastest of {ROUNDS} interleaved rounds of {STEPS} steps, processor time"
    )
    return {
        "ratios": ratios,
        "how": how,
        "milliseconds": {name: 1000 * value for name, value in best.items()},
        "peak_mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
