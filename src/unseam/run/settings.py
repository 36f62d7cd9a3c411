"""The settings of `unseam.fit`: their names and types, listed once for Python, the command line, studies and reports.

A setting is a field of `Architecture`, `Training` or `Optimiser`, or a hyperparameter of an objective. `fit` takes the
objects themselves (`training=Training(steps=5000)`) or the short form (`steps=5000`), which `Settings` declares so
that editors complete it and type checkers check it. A test compares it with the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, TypeVar, get_type_hints

from unseam.errors import BadInput, lookup, unknown
from unseam.from_json import as_type
from unseam.models import Architecture
from unseam.objectives import OBJECTIVES, Objective, Optimiser, hyperparameters
from unseam.run.config import Training

OptimiserName = Literal["adam", "adagrad", "sgd"]
Swept = float | Sequence[float]  # a hyperparameter: one value, or several to train one member for each of them


class Settings(TypedDict, total=False):
    """The short form of `fit`'s settings. Hyperparameters exist where the objective has them (`unseam objectives`)."""

    # Architecture
    network: Literal["auto", "mlp", "conv", "linear", "own"]
    latents: int
    small_kernels: bool
    encoder: tuple[int, ...]
    decoder: tuple[int, ...]
    encoder_activation: str
    decoder_activation: str
    likelihood: Literal["auto", "bernoulli", "gaussian", "poisson", "negative-binomial", "categorical", "mixed"]
    columns: tuple[str, ...]
    s2: float
    learned_s2: bool
    levels: int
    # Training
    steps: int
    batch: int
    holdout: float
    log_every: int
    watch: int
    checkpoint_seconds: float
    checkpoint_steps: int
    snapshots: int
    patience: int
    how: Literal["auto", "stacked", "side-by-side"]
    workers: int
    device: str
    precision: Literal["auto", "float32", "bfloat16", "float64"]
    engine: Literal["auto", "eager", "written-out", "xla"]
    # Optimiser (its name is the parameter `optimiser`)
    lr: float
    b1: float
    b2: float
    eps: float
    weight_decay: float
    # hyperparameters of objectives
    beta: Swept
    gamma: Swept
    alpha: Swept
    c_max: Swept
    ramp: Swept
    lambda_od: Swept
    ratio: Swept
    quantise: Swept
    commit: Swept
    lam: Swept
    rate: Swept
    mi: Swept
    delta: Swept
    hessian: Literal["gauss-newton", "exact"] | Swept
    schedule: Literal["constant", "warm-up", "cyclical"]
    estimator: Literal["weighted", "stratified"]
    variance: Literal["learned", "optimal"]
    kernel: Literal["rbf", "imq"]
    width: int
    depth: int
    points: int
    pairs: str
    change: int


NOT_A_FLAG = ("posterior", "aligned")  # fields that the objective or `align` decides
FLAGS = ("optimiser", *Settings.__annotations__)  # each is a flag of `unseam train` too


@dataclass(frozen=True)
class Choices:
    """What a run is made of, besides its data and seeds; `hyperparameters` may be lists."""

    name: str
    kind: type[Objective]
    hyperparameters: Mapping[str, Any]
    architecture: Architecture
    training: Training
    optimiser: Optimiser


def objective_type(objective: str | type[Objective] | Objective) -> tuple[str, type[Objective], dict[str, Any]]:
    """Its name, its type, and the hyperparameters of an instance that are not their defaults.

    >>> from unseam.objectives.elbo import BetaVAE
    >>> objective_type(BetaVAE(beta=2.0))
    ('beta-vae', <class 'unseam.objectives.elbo.BetaVAE'>, {'beta': 2.0})
    """
    if isinstance(objective, str):
        return objective, lookup(OBJECTIVES, objective, "objective"), {}
    kind = objective if isinstance(objective, type) else type(objective)
    name = next((name for name, known in OBJECTIVES.items() if known is kind), kind.__name__)
    if isinstance(objective, type):
        return name, kind, {}
    values = {f.name: getattr(objective, f.name) for f in fields(objective)}  # type: ignore[arg-type]
    return name, kind, {n: v for n, v in values.items() if v != kind.__dataclass_fields__[n].default}  # type: ignore[attr-defined]


def resolve_settings(
    objective: str | type[Objective] | Objective,
    settings: Mapping[str, Any],
    architecture: Architecture | None = None,
    training: Training | None = None,
    optimiser: Optimiser | OptimiserName | None = None,
    hyper: Mapping[str, Any] | None = None,
) -> Choices:
    """Objects and short settings -> what a run is made of; a setting given both ways is refused.

    >>> made = resolve_settings("beta-vae", {"beta": [1, 4], "latents": 3}, training=Training(steps=10))
    >>> made.hyperparameters, made.architecture.latents, made.training.steps
    ({'beta': [1, 4]}, 3, 10)
    """
    name, kind, own = objective_type(objective)
    unknown_settings(kind, settings)
    if own and hyper:
        raise BadInput(f"objective={objective!r} has its own hyperparameters; leave out hyperparameters={hyper!r}")
    strengths = _together("objective" if own else "hyperparameters", own or dict(hyper or {}), _of(kind, settings))
    if isinstance(optimiser, str):
        optimiser, settings = None, {**settings, "name": optimiser}
    return Choices(
        name,
        kind,
        strengths,
        _with("architecture", architecture, Architecture, settings, NOT_A_FLAG + _names(kind)),
        _with("training", training, Training, settings, _names(kind)),
        _with("optimiser", optimiser, Optimiser, settings, _names(kind)),
    )


def _names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def _of(kind: type, settings: Mapping[str, Any], but: tuple[str, ...] = ()) -> dict[str, Any]:
    return {name: settings[name] for name in _names(kind) if name in settings and name not in but}


Part = TypeVar("Part", Architecture, Training, Optimiser)


def _with(
    what: str, whole: Part | None, kind: type[Part], settings: Mapping[str, Any], but: tuple[str, ...] = ()
) -> Part:
    """The object, made from short settings where it was not given."""
    short = _of(kind, settings, but)
    if whole is not None and short:
        raise _twice(what, next(iter(short)), next(iter(short.values())))
    return whole if whole is not None else replace(kind(), **short)


def _together(what: str, whole: dict[str, Any], short: dict[str, Any]) -> dict[str, Any]:
    if both := whole.keys() & short.keys():
        raise _twice(what, min(both), short[min(both)])
    return {**whole, **short}


def _twice(what: str, name: str, value: Any) -> BadInput:
    return BadInput(f"{name}={value!r} belongs to {what}=, which is given as well; set it there")


def unknown_settings(kind: type[Objective], settings: Mapping[str, Any]) -> None:
    """Refuse a setting that neither the objective nor the three parts have, with a hint."""
    known = [n for k in (kind, Architecture, Training, Optimiser) for n in _names(k) if n not in (*NOT_A_FLAG, "name")]
    for name in settings:
        if name not in known:
            raise unknown("setting", name, ["optimiser", *known])


def typed_settings(kind: type[Objective], settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings as a file gives them, each checked against the type that it has; `optimiser` is the optimiser's name."""
    unknown_settings(kind, {name: value for name, value in settings.items() if name != "optimiser"})
    hints: dict[str, Any] = {"optimiser": OptimiserName}
    for part in (Optimiser, Training, Architecture, kind):
        hints |= {name: hint for name, hint in get_type_hints(part).items() if name in _names(part)}
    return {name: as_type(hints[name], value, f"{where}: {name}") for name, value in settings.items()}


def _swept(kind: type[Objective]) -> tuple[str, ...]:
    """The hyperparameters that may be lists."""
    return tuple(hyperparameters(kind))
