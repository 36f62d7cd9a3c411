"""A group of members: what it is (Job), what changes while it trains (State), and how both are written and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unseam import __version__
from unseam.device import available_devices, recorded_device
from unseam.errors import BadInput
from unseam.models.own_networks import MakeNetworks
from unseam.objectives import Objective
from unseam.rng import derive
from unseam.run.checkpoint import load_checkpoint, weights_path
from unseam.run.config import RunConfig
from unseam.train.stack import Stack, Stepper
from unseam.train.stopping import BestWeights, Callback


@dataclass(frozen=True)
class Job:
    """One group: which members of which run, trained in one process as one stack."""

    config: RunConfig
    objective: type[Objective]
    members: tuple[int, ...]  # positions in config.members
    number: int
    folder: Path
    callbacks: tuple[Callback, ...] = ()  # called at each logged step, in the process that trains
    networks: MakeNetworks | None = None  # the user's own

    @property
    def checkpoint(self) -> Path:
        return weights_path(self.folder, self.number)

    @property
    def device(self) -> torch.device:
        """Where it is trained: what the run says, or the fastest here; several GPUs take the groups in turn."""
        wanted = self.config.training.device
        gpus = [name for name in available_devices() if name.startswith("cuda")] if wanted == "cuda" else []
        return recorded_device(gpus[self.number % len(gpus)] if gpus else wanted)


@dataclass
class State:
    """All that changes while training."""

    stacks: dict[str, Stack]
    optimisers: dict[str, Stepper]
    step: int = 0
    seconds: float = 0.0
    frozen: dict[int, str] = field(default_factory=dict)  # position in the group -> why it stopped
    held: dict[int, dict[str, list[Tensor]]] = field(default_factory=dict)  # its last finite parameters
    best: BestWeights | None = None  # with early stopping
    note: str = ""  # why all members stopped, if a callback stopped them
    why_not: str = ""  # why the step was not written out (compiled_step.py) or not run by XLA, where it was tried
    engine: str = ""  # what runs the steps: eager, written-out or xla


def start(job: Job, objective: Objective, shape: tuple[int, ...]) -> State:
    """Every member's initial weights, from its own seed."""
    dtype = torch.float64 if job.config.training.precision == "float64" else torch.float32
    built = []
    for m in job.members:
        model = job.config.architecture.build(shape, job.config.members[m].seed, job.networks).to(dtype)
        model.bfloat16_networks = job.config.training.precision == "bfloat16"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(job.config.members[m].seed, "players"))
            built.append(objective.players(model))
    stacks = {name: Stack([players[name].module.to(job.device, dtype) for players in built]) for name in built[0]}
    optimisers = {
        name: Stepper(player.optimiser or job.config.optimiser, stacks[name].flat) for name, player in built[0].items()
    }
    patience = job.config.training.patience
    return State(stacks, optimisers, best=BestWeights(stacks, patience) if patience else None)


def checkpoint_state(job: Job, state: State, weights_only: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All a resumed run needs: parameters, every optimiser's state, step, who is frozen (no RNG: see batches.py)."""
    tensors = {f"{player}/{n}": t for player, stack in state.stacks.items() for n, t in stack.state().items()}
    if not weights_only:
        for player, optimiser in state.optimisers.items():
            for name, value in optimiser.state.items():
                tensors[f"optimiser/{player}/{name}"] = value
        tensors |= {} if state.best is None else state.best.tensors()
    meta = {
        "members": list(job.members),
        "step": state.step,
        "seconds": state.seconds,
        "frozen": {str(k): v for k, v in state.frozen.items()},
        "why_not_written_out": state.why_not,
        "engine": state.engine,
        "versions": {"unseam": __version__, "torch": str(torch.__version__)},
    }
    return tensors, meta if state.best is None else {**meta, "best": state.best.meta()}


def resume_group(job: Job, state: State) -> State:
    """Take up the group's checkpoint, if it has one."""
    if not job.checkpoint.exists():
        return state
    tensors, meta = load_checkpoint(job.checkpoint)
    _fits(job, state, tensors, meta)
    for player, stack in state.stacks.items():
        for name, block in stack.state().items():
            block.copy_(tensors[f"{player}/{name}"])
        prefix = f"optimiser/{player}/"
        moments = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        if moments:
            state.optimisers[player].state = moments
    state.step, state.seconds, state.engine = meta["step"], meta["seconds"], str(meta.get("engine", ""))
    state.frozen = {int(k): v for k, v in meta["frozen"].items()}
    for position in state.frozen:
        hold(state, position)
    if state.best is not None:
        state.best.load(tensors, meta["best"])
        state.held |= {position: state.best.of(position) for position in state.best.stopped}
    return state


def _fits(job: Job, state: State, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of another run or another architecture, whole as it may be."""
    expected = {n: t.shape for n, t in checkpoint_state(job, state)[0].items()}
    found = {n: t.shape for n, t in tensors.items()}
    positions = {str(i) for i in range(len(job.members))}
    step, seconds, frozen = (meta.get(name) for name in ("step", "seconds", "frozen"))
    sound = isinstance(step, int) and 0 <= step <= job.config.training.steps and isinstance(seconds, (int, float))
    sound = sound and (state.best is None or state.best.fits(meta.get("best")))
    if found != expected or not sound or not isinstance(frozen, dict) or not set(frozen) <= positions:
        raise BadInput(
            f"checkpoint {job.checkpoint} does not fit {job.folder / 'config.json'}: one of them is of another run or "
            "was changed; put back the one that belongs here, or delete the checkpoint to train that part again"
        )


def hold(state: State, position: int) -> None:
    state.held[position] = {n: [b[position].clone() for b in stack.blocks] for n, stack in state.stacks.items()}
