"""What a run is: data, objective, architecture, training, members. The object is its configuration, and is JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from itertools import product
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

from unseam.data.scaling import Scaling
from unseam.errors import BadInput, check_literals, unknown
from unseam.from_json import as_type
from unseam.models.architecture import Architecture, NetworkSource
from unseam.objectives import Optimiser
from unseam.rng import generator

if TYPE_CHECKING:
    from torch import Tensor

    from unseam.objectives import Objective

_LARGEST = 1 << 20  # samples of a batch
Engine = Literal["auto", "eager", "written-out", "xla"]


@dataclass(frozen=True)
class Training:
    """How the members of a cohort are trained. The fields are documented one by one.

    Examples
    --------
    >>> Training(steps=500, batch=32).holdout
    0.1
    """

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
    """keep the weights at this many evenly spaced steps, to study training afterwards"""
    patience: int = 0
    """early stopping: a member stops when its held-out loss has not fallen for this many steps, and every member ends
    with the weights of its lowest held-out loss (0: all steps, the last weights)"""
    how: Literal["auto", "stacked", "side-by-side"] = "auto"
    """stacked: all members of a process as one; side-by-side: one member at a time, a process per core"""
    workers: int = 0
    """processes (0: one per core when there is work enough, else this one)"""
    device: str = "auto"
    """auto (the fastest here), cpu, cuda (all GPUs), cuda:N or mps; GPUs are experimental (not yet tested on one)"""
    precision: Literal["auto", "float32", "bfloat16", "float64"] = "auto"
    """auto: bfloat16 networks for conv where the device has it (weights, loss, optimiser stay float32), else float32"""
    engine: Engine = "auto"
    """what runs a step: the objective as it is (eager), the list of its operations (written-out, from 1,000 steps on),
    or many steps at once by XLA (needs the extra xla); auto: xla for long runs of stacked networks, else written-out"""

    def __post_init__(self) -> None:
        least_of = {"steps": 1, "batch": 1, "log_every": 1, "watch": 0, "checkpoint_steps": 0, "snapshots": 0,
                    "patience": 0}  # fmt: skip
        for name, least in least_of.items():
            if getattr(self, name) < least:
                raise BadInput(f"{name}={getattr(self, name)} must be at least {least}")
        if self.batch > _LARGEST:
            raise BadInput(
                f"batch={str(self.batch)[:20]} must be at most {_LARGEST:,}: a step holds all of it in memory"
            )
        if not 0 <= self.holdout < 1:
            raise BadInput(f"holdout={self.holdout} must be in [0, 1): it is the share of the data kept for testing")
        if self.workers < 0:
            raise BadInput(f"workers={self.workers} must be 0 (decide for me) or a number of processes")
        check_literals(self)


@dataclass(frozen=True)
class Member:
    """One model of a cohort: its seed and its own hyperparameters.

    Parameters
    ----------
    seed : int
        Of its initial weights, its batches and its noise.
    hyper : dict of float
        Its hyperparameters by name.
    kl_weight : float, optional
        The weight of the KL in its loss, as its objective says; older runs do not have it.

    Examples
    --------
    >>> Member(1, {"beta": 2.0}).label(3)
    'member 3 (beta 2, seed 1)'
    """

    seed: int
    hyper: Mapping[str, float]
    kl_weight: float | None = None  # what its objective says; older runs do not know it

    @property
    def setting(self) -> tuple[tuple[str, float], ...]:
        """Its hyperparameters, sorted by name: equal for members that differ in their seed only."""
        return tuple(sorted(self.hyper.items()))

    @property
    def setting_words(self) -> list[str]:
        """Each hyperparameter with its value.

        >>> Member(1, {"beta": 2.0}).setting_words
        ['beta 2']
        """
        return [f"{name} {value:g}" for name, value in self.hyper.items()]

    def label(self, member: int) -> str:
        """What tables and pages call a member.

        >>> Member(1, {"beta": 2.0}).label(3)
        'member 3 (beta 2, seed 1)'
        """
        return f"member {member} ({', '.join([*self.setting_words, f'seed {self.seed}'])})"


@dataclass(frozen=True)
class RunConfig:
    """The whole configuration of a run; `config.json` is its `to_json`.

    Parameters
    ----------
    data : dict
        The name and the parameters of the data set.
    objective : str
        The name of the objective.
    static : dict
        Settings of the objective that are the same for all members.
    members : tuple of Member
        Seeds and hyperparameters.
    architecture : Architecture
        Networks, latents and likelihood.
    training : Training
        Steps, batch, logging, checkpoints and device.
    optimiser : Optimiser
        How parameters step.
    groups : tuple of tuple of int
        Which members are trained together.
    digests : dict
        Of the user's own files, by parameter.
    shape : tuple of int
        Of one observation.
    features : tuple of str
        The names of the columns of a table.
    scaling : Scaling, optional
        Of the columns of a table; undone when a member decodes.
    networks : NetworkSource, optional
        Where the user's own networks come from.
    adapted : str, default=""
        The kind of model, for a run that holds a model trained elsewhere; empty for a trained run.

    Examples
    --------
    >>> from unseam.models import Architecture
    >>> config = RunConfig({"name": "sprites"}, "beta-vae", {}, (Member(0, {"beta": 4.0}),), Architecture(),
    ...                    groups=((0,),))
    >>> config.training.steps, RunConfig.from_json(config.to_json()) == config
    (10000, True)
    """

    data: Mapping[str, Any]
    objective: str
    static: Mapping[str, Any]  # the objective's settings that are the same for all members
    members: tuple[Member, ...]
    architecture: Architecture
    training: Training = field(default_factory=Training)
    optimiser: Optimiser = field(default_factory=Optimiser)
    groups: tuple[tuple[int, ...], ...] = ()  # which members are trained together (`cohort.plan`)
    digests: Mapping[str, str] = field(default_factory=dict)  # of the user's own files (`own`), by parameter
    shape: tuple[int, ...] = ()  # of one observation; older runs ask their data
    features: tuple[str, ...] = ()  # the names of a table's columns
    scaling: Scaling | None = None  # of a table's columns; undone when a member decodes
    networks: NetworkSource | None = None  # where the user's own networks come from
    adapted: str = ""  # the class of a model trained elsewhere, which this run only shows (`runs/adapted_run.py`)

    def to_json(self) -> dict[str, Any]:
        """The document that config.json holds."""

        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> RunConfig:
        """The run a document describes; one that was changed by hand or by a damaged disk is refused in one line."""
        if not isinstance(document, dict):
            raise BadInput(f"it holds a {type(document).__name__}, not an object")
        names = [f.name for f in fields(RunConfig)]
        if isinstance(document.get("training"), dict):  # from before there was a choice
            document = {**document, "training": {"device": "cpu", **document["training"]}}
        config: RunConfig = as_type(RunConfig, {k: v for k, v in document.items() if k in names}, "config")
        if not isinstance(config.data.get("name"), str):
            raise BadInput("config.data has no name")
        if not all(0 < length < 2**31 for length in config.shape):
            raise BadInput(f"config.shape={list(config.shape)} is not the shape of an observation")
        if config.features and config.shape != (len(config.features),):
            raise BadInput(f"config.features are {len(config.features)} names for observations of {config.shape}")
        if sorted(m for group in config.groups for m in group) != list(range(len(config.members))) or not config.groups:
            raise BadInput(f"config.groups must hold each of the {len(config.members)} members once")
        return config


def sweep_members(
    objective: type[Objective], seeds: Sequence[int], settings: Mapping[str, Any]
) -> tuple[tuple[Member, ...], dict[str, Any]]:
    """Settings -> members (the product of every swept hyperparameter and the seeds) and the static settings.

    >>> from unseam.objectives import OBJECTIVES
    >>> members, static = sweep_members(OBJECTIVES["beta-vae"], [0, 1], {"beta": [1, 4]})
    >>> [(m.seed, m.hyper["beta"]) for m in members]
    [(0, 1.0), (1, 1.0), (0, 4.0), (1, 4.0)]
    """
    from unseam.objectives import hyperparameters

    hyper, known = hyperparameters(objective), [f.name for f in fields(objective)]  # type: ignore[arg-type]
    for name in settings:
        if name not in known:
            raise unknown(f"{objective.__name__}: hyperparameter", name, known or ["(none)"])
    grid = {name: _floats(name, settings.get(name, default)) for name, default in hyper.items()}
    static = {name: value for name, value in settings.items() if name not in hyper}
    whole, members = _seeds(seeds), []
    for values in product(*grid.values()):
        combination = dict(zip(grid, values, strict=True))
        one = objective(**combination, **static)
        one.check()
        members += [Member(seed, combination, one.kl_weight()) for seed in whole]
    return tuple(members), static


def _seeds(seeds: Sequence[int]) -> list[int]:
    """Whole numbers that a row can hold, each once: a member is its seed and its hyperparameters."""
    if not len(seeds):
        raise BadInput("seeds is empty; give at least one, for instance 0..4")
    strange = [s for s in seeds if not isinstance(s, Integral) or not -(2**63) <= s < 2**63]
    if strange:
        raise BadInput(f"seeds: {strange[0]!r} is not an integer of at most 63 bits; write 0, 0,1,5 or 0..9")
    if twins := [s for s, count in Counter(seeds).items() if count > 1]:
        raise BadInput(f"seeds: {twins[0]} is repeated; name each seed once")
    return [int(s) for s in seeds]


def _floats(name: str, value: Any) -> list[float]:
    values = value if isinstance(value, (list, tuple)) else [value]
    try:
        return [float(v) for v in values]
    except (TypeError, ValueError):
        raise BadInput(f"{name}={value!r} must be a number or a list of numbers") from None


@lru_cache(maxsize=2)  # a permutation of all rows, which a diagnosis asks for a dozen times
def split(size: int, holdout: float) -> tuple[Tensor, Tensor]:
    """Rows 0..N-1 -> (training rows, held-out rows), the same for every member and run."""
    import torch

    order = torch.randperm(size, generator=generator(0, "split"), device="cpu")
    held = round(size * holdout)
    return order[held:].contiguous(), order[:held].contiguous()
