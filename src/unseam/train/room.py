"""How many members fit on a GPU: the memory that a step of one of them takes, measured, against what is free."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from unseam.objectives import Objective
from unseam.train.config import RunConfig
from unseam.train.forward import Forward
from unseam.train.group import Job, State, start

SHARE = 0.8  # of the free memory; the rest is the allocator's


def members_at_once(config: RunConfig, objective: Objective, shape: tuple[int, ...]) -> int:
    """Members of which a step fits the device together; all where memory is not the device's own (MPS)."""
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
    """Forward, backward and the optimisers' step on a batch of zeros: what a step holds, whatever it learns."""
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
