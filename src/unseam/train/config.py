"""What a run is: data, objective, architecture, training, members. The object is its configuration, and is JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import product
from typing import Any, Literal

from unseam.errors import BadInput, unknown
from unseam.models import Architecture
from unseam.objectives import Objective, Optimiser, hyperparameters


@dataclass(frozen=True)
class Training:
    """How the members are trained."""

    steps: int = 10_000
    """optimiser steps of each member"""
    batch: int = 64
    """samples a step (each of the `batches` an objective needs)"""
    holdout: float = 0.1
    """share of the data never trained on, used for the final numbers"""
    log_every: int = 100
    """steps between logged rows"""
    watch: int = 256
    """held-out samples on which loss and latents are logged (0: latents on the training batch)"""
    checkpoint_seconds: float = 30.0
    """seconds between checkpoints"""
    checkpoint_steps: int = 0
    """steps between checkpoints, as well (0: only by time)"""
    snapshots: int = 0
    """keep the weights at this many evenly spaced steps, to look at training afterwards"""
    how: Literal["auto", "stacked", "side-by-side"] = "auto"
    """stacked: all members of a process as one; side-by-side: one member at a time, a process a core"""
    workers: int = 0
    """processes (0: one a core when there is work enough, else this one)"""
    precision: Literal["auto", "float32", "bfloat16", "float64"] = "auto"
    """auto: bfloat16 networks for conv where the CPU has it (weights, loss and optimiser stay float32), else float32"""

    def __post_init__(self) -> None:
        for name, least in (
            ("steps", 1),
            ("batch", 1),
            ("log_every", 1),
            ("watch", 0),
            ("checkpoint_steps", 0),
            ("snapshots", 0),
        ):
            if getattr(self, name) < least:
                raise BadInput(f"{name}={getattr(self, name)} must be at least {least}")
        if not 0 <= self.holdout < 1:
            raise BadInput(f"holdout={self.holdout} must be in [0, 1): it is the share of the data kept for testing")
        if self.workers < 0:
            raise BadInput(f"workers={self.workers} must be 0 (decide for me) or a number of processes")
        for name in ("how", "precision"):
            known = {
                "how": ("auto", "stacked", "side-by-side"),
                "precision": ("auto", "float32", "bfloat16", "float64"),
            }[name]
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)


@dataclass(frozen=True)
class Member:
    """One model of a cohort: its seed and its own hyperparameters."""

    seed: int
    hyper: Mapping[str, float]


@dataclass(frozen=True)
class RunConfig:
    """A whole run; `config.json` is its `to_json`."""

    data: Mapping[str, Any]
    objective: str
    static: Mapping[str, Any]  # the objective's settings that are the same for all members
    members: tuple[Member, ...]
    architecture: Architecture
    training: Training = field(default_factory=Training)
    optimiser: Optimiser = field(default_factory=Optimiser)
    groups: tuple[tuple[int, ...], ...] = ()  # which members are trained together (`cohort.plan`)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> RunConfig:
        architecture = dict(document["architecture"])
        for widths in ("encoder", "decoder"):
            architecture[widths] = tuple(architecture[widths])
        return RunConfig(
            data=document["data"],
            objective=document["objective"],
            static=document["static"],
            members=tuple(Member(m["seed"], m["hyper"]) for m in document["members"]),
            architecture=Architecture(**architecture),
            training=Training(**document["training"]),
            optimiser=Optimiser(**document["optimiser"]),
            groups=tuple(tuple(group) for group in document["groups"]),
        )


def sweep(
    objective: type[Objective], seeds: Sequence[int], settings: Mapping[str, Any]
) -> tuple[tuple[Member, ...], dict[str, Any]]:
    """Settings -> members (the product of every swept hyperparameter and the seeds) and the static settings.

    >>> from unseam.objectives import OBJECTIVES
    >>> members, static = sweep(OBJECTIVES["beta-vae"], [0, 1], {"beta": [1, 4]})
    >>> [(m.seed, m.hyper["beta"]) for m in members]
    [(0, 1.0), (1, 1.0), (0, 4.0), (1, 4.0)]
    """
    hyper, known = hyperparameters(objective), [f.name for f in fields(objective)]  # type: ignore[arg-type]
    for name in settings:
        if name not in known:
            raise unknown(f"{objective.__name__}: hyperparameter", name, known or ["(none)"])
    if not seeds:
        raise BadInput("seeds is empty; give at least one, for instance 0..4")
    grid = {name: _floats(name, settings.get(name, default)) for name, default in hyper.items()}
    static = {name: value for name, value in settings.items() if name not in hyper}
    combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    members = tuple(Member(int(seed), combination) for combination in combinations for seed in seeds)
    for combination in combinations:
        objective(**combination, **static).check()
    return members, static


def _floats(name: str, value: Any) -> list[float]:
    values = value if isinstance(value, (list, tuple)) else [value]
    try:
        return [float(v) for v in values]
    except (TypeError, ValueError):
        raise BadInput(f"{name}={value!r} must be a number or a list of numbers") from None
