"""`@metric(...)` above a formula makes its public call and lists it in METRICS, there where the formula stands.

A formula is a function of checked `Inputs` and its own settings, whose defaults are those of the reference. The call
made of it takes arrays of any kind; `call.of` is the formula, for those that have `Inputs` already.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, cast

from unseam.axes import FactorSpace
from unseam.errors import BadInput, unknown
from unseam.metrics.base import Score
from unseam.metrics.docstrings import call_docstring
from unseam.metrics.inputs import Inputs, prepare_inputs
from unseam.metrics.shared.interventions import Encode, from_sampler

_P = ParamSpec("_P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class About(TypedDict, total=False):
    """Properties of a metric besides its name, question and paper."""

    range: tuple[float, float]
    direction: Literal["higher", "lower"]
    ceiling: str
    supervised: bool
    cheap: bool
    halving: bool
    vectors: bool
    counts: str


@dataclass(frozen=True)
class Metric:
    """One row of METRICS: what a metric is called, what it asks, how to read it, who proposed it.

    Parameters
    ----------
    name : str
        What it is called.
    compute : callable
        Takes checked inputs and returns a `Score`, with the default settings.
    question : str
        What it asks.
    paper : str
        Who proposed it.
    range : (float, float), default=(0.0, 1.0)
        The least and the largest value.
    direction : {"higher", "lower"}, default="higher"
        Which is better.
    ceiling : str, default="1"
        What a perfect code scores.
    supervised : bool, default=True
        Whether it needs factors.
    cheap : bool, default=True
        Whether it takes well under a second for 10,000 rows; decides the default number of bootstraps.
    halving : bool, default=False
        Whether its bias falls as 1/N, so that half-samples show it.
    vectors : bool, default=False
        Whether a latent may have several numbers (`groups=`).
    counts : str, default=""
        Where the number of all latents enters; empty if latents that are not in use change nothing.

    Examples
    --------
    >>> from unseam.metrics import METRICS
    >>> METRICS["mig"].direction
    'higher'
    """

    name: str
    compute: Callable[[Inputs], Score]  # with the default settings
    question: str
    paper: str
    range: tuple[float, float] = (0.0, 1.0)
    direction: Literal["higher", "lower"] = "higher"
    ceiling: str = "1"  # what a perfect code scores
    supervised: bool = True  # needs factors
    cheap: bool = True  # computes in well under a second at 10,000 rows; decides the default number of bootstraps
    halving: bool = False  # its bias falls as 1/N, so half-samples show it (measured: docs/metrics/uncertainty.md)
    vectors: bool = False  # knows latents of several numbers (`groups=` with more than one component)
    counts: str = ""  # where the number of all latents enters, of those not in use too; empty: they change nothing


METRICS: dict[str, Metric] = {}  # filled by `@metric` and `register`, in the order of unseam.metrics.__init__


class Call(Protocol[_P, R_co]):
    """The public call of a formula: arrays (or a sampler and its space) in, its own settings by keyword."""

    @property
    def of(self) -> Callable[Concatenate[Inputs, _P], R_co]: ...

    def __call__(
        self,
        codes: Any = None,  # (N, K)
        factors: Any = None,  # (N, F)
        space: FactorSpace | None = None,
        *,
        sampler: Encode | None = None,
        names: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        test_codes: Any = None,
        test_factors: Any = None,
        variances: Any = None,
        bin_continuous: int | None = None,
        prune: float = 0.0,
        active: Any = None,
        groups: str | Sequence[Sequence[int]] | None = None,
        components: int = 1,
        seed: int = 0,
        workers: int | None = None,
        **settings: Any,
    ) -> R_co: ...


DOOR = [p for p in inspect.signature(Call.__call__).parameters.values() if p.name not in ("self", "settings")]


def register(name: str, compute: Callable[[Inputs], Score], question: str, paper: str, **about: Unpack[About]) -> None:
    """List a metric in METRICS."""
    METRICS[name] = Metric(name, compute, question, paper, **about)


def knows_vectors(name: str, inputs: Inputs, vectors: bool) -> None:
    """Refuse latents of several numbers, for a metric that reads one number per latent."""
    if inputs.group is not None and not vectors:
        able = dict.fromkeys(
            re.sub(r"^(dci|downstream|efficiency)-.*", r"\1", m.name) for m in METRICS.values() if m.vectors
        )
        raise BadInput(f"{name} reads one number per latent; give components=1. Vectors are read by {', '.join(able)}")


def public(formula: Callable[Concatenate[Inputs, _P], R], vectors: bool = True) -> Call[_P, R]:
    """The formula as a function of arrays."""
    settings = list(inspect.signature(formula).parameters.values())[1:]
    known = {p.name for p in (*DOOR, *settings)}

    @wraps(formula)
    def call(codes: Any = None, factors: Any = None, space: FactorSpace | None = None, **options: Any) -> R:
        for option in options.keys() - known:
            raise unknown(f"setting of {formula.__name__}", option, sorted(known))
        own = {p.name: options.pop(p.name) for p in settings if p.name in options}
        sampler = options.pop("sampler", None)
        inputs = (
            from_sampler(sampler, space, **options) if sampler else prepare_inputs(codes, factors, space, **options)
        )
        knows_vectors(formula.__name__, inputs, vectors)
        return cast(Callable[..., R], formula)(inputs, **own)

    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in settings]
    call.__dict__.update(of=formula, __signature__=inspect.Signature([*DOOR, *own]))
    call.__doc__ = call_docstring(formula.__doc__, [*DOOR, *own])
    return cast(Call[_P, R], call)


def metric(
    name: str, question: str, paper: str, **about: Unpack[About]
) -> Callable[[Callable[Concatenate[Inputs, _P], Score]], Call[_P, Score]]:
    """Make the public call of the formula below, and list it."""

    def decorate(formula: Callable[Concatenate[Inputs, _P], Score]) -> Call[_P, Score]:
        register(name, cast(Callable[[Inputs], Score], formula), question, paper, **about)
        return public(formula, about.get("vectors", False))

    return decorate
