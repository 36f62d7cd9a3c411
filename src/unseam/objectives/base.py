"""The contract of an objective. It is written for one member and one batch; `train` lifts it to cohorts.

An objective is a frozen dataclass. Its float fields are hyperparameters: any of them may differ between the members
of a cohort, and inside `__call__` each is this member's own number (a 0-d tensor). An objective never sees an
optimiser, a data set or another member.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_type_hints

from unseam.axes import Pass, Terms
from unseam.errors import BadInput, check_literals, refuse_annotations

if TYPE_CHECKING:  # a run's configuration holds an `Optimiser`, and can be read without torch
    from torch import Tensor, nn

    from unseam.data.pairs import Pairing
    from unseam.models import Autoencoder


@dataclass(frozen=True)
class Optimiser:
    """How parameters step: Adam by default; AdaGrad as in Zietlow 2022. Each field is documented below.

    Examples
    --------
    >>> Optimiser(lr=1e-4).b1
    0.9
    """

    name: Literal["adam", "adagrad", "sgd"] = "adam"
    """adam, adagrad or sgd"""
    lr: float = 1e-3
    """learning rate"""
    b1: float = 0.9
    """Adam's first-moment decay"""
    b2: float = 0.999
    """Adam's second-moment decay"""
    eps: float = 1e-8
    """Adam's epsilon; 0 makes it blind to the loss's scale (Allen 2024, Theorem 3)"""
    weight_decay: float = 0.0
    """decoupled weight decay, as in AdamW (Adam only); Hsu 2023 trains QLAE with 0.1"""

    def __post_init__(self) -> None:
        check_literals(self, {"name": "optimiser"})
        if not self.lr > 0:
            raise BadInput(f"lr={self.lr} must be positive")
        if not (0 <= self.b1 < 1 and 0 <= self.b2 < 1):
            raise BadInput(f"b1={self.b1} and b2={self.b2} must be at least 0 and below 1: they are Adam's memories")
        if not self.eps >= 0:
            raise BadInput(f"eps={self.eps} must be 0 or positive: it is added to the root of Adam's second moment")
        if self.weight_decay < 0 or (self.weight_decay and self.name != "adam"):
            raise BadInput(f"weight_decay={self.weight_decay} must be 0, or positive with name='adam'")


@dataclass(frozen=True)
class Player:
    """A group of parameters with its own optimiser (None: the run's).

    Examples
    --------
    >>> from torch import nn
    >>> Player(nn.Linear(2, 1), Optimiser(lr=1e-4)).optimiser.lr
    0.0001
    """

    module: nn.Module
    """its parameters"""
    optimiser: Optimiser | None = None
    """how they step; the run's optimiser by default"""


@dataclass(frozen=True)
class Context:
    """What an objective may need beside the forward pass.

    Examples
    --------
    >>> from unseam.models import Architecture, Autoencoder
    >>> Context(Autoencoder(Architecture("linear", 2, likelihood="gaussian"), (5,)), step=10, steps=100).steps
    100
    """

    model: Autoencoder
    """with this member's parameters: encode, decode, likelihood"""
    step: int | Tensor = 0
    """steps done so far (a 0-d tensor in training: the step is written out only once)"""
    steps: int = 1
    """steps of the whole run"""
    size: int = 1
    """N, how many samples the training set has"""
    modules: Mapping[str, nn.Module] = field(default_factory=dict)
    """other players' modules, by name"""
    noise: Mapping[str, Tensor] = field(default_factory=dict)
    """standard normal, of the shapes of `noise_shapes`"""
    second: Tensor | None = None
    """a second batch of x, for objectives with `batches = 2`: independent, or partners"""


class Objective(ABC):
    """One `__call__`: the forward pass -> named terms whose weighted sum is the loss.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Scaled(Objective):
    ...     scale: float = 1.0
    ...     formula, paper = "-scale log p(x|z)", "an example"
    ...
    ...     def __call__(self, pass_, context):
    ...         log_prob = context.model.likelihood.log_prob(pass_.theta, pass_.x)
    ...         return Terms({"reconstruction": -log_prob}, {"reconstruction": self.scale})
    >>> hyperparameters(Scaled)
    {'scale': 1.0}
    """

    formula: ClassVar[str]  # as people write it
    paper: ClassVar[str]
    posterior: ClassVar[str] = "diagonal"  # a family of models.posterior.POSTERIORS
    beta_is: ClassVar[float | str | None] = None  # the KL's weight in the loss, or the field that holds it
    has_beta: ClassVar[bool] = True  # False: the loss has no KL, so there is no beta to know, to estimate or to lower
    reads_theta: ClassVar[bool] = True  # False: theta = d(z) of the pass is not needed, and not computed
    decodes: ClassVar[bool] = True  # False: no decoder is trained, so there is nothing to reconstruct or differentiate
    cannot: ClassVar[str] = ""  # what of the library's numbers its models do not have, in one line
    learned_s2: ClassVar[bool] = False  # True: the decoder's variance is a parameter, so the likelihood is Gaussian
    batches: ClassVar[int] = 1  # independent batches a step needs
    smallest_batch: ClassVar[int] = 1  # below this the objective is not defined
    may_be_zero: ClassVar[tuple[str, ...]] = ()  # hyperparameters that may be 0; all others must be positive
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}  # what Locatello 2019 sweeps

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        refuse_annotations(cls, Objective.__annotations__)

    @abstractmethod
    def __call__(self, pass_: Pass, context: Context) -> Terms:
        """The model's terms."""

    def check(self) -> None:
        """Refuse settings that make no sense, before training starts: floats must be positive, Literals known."""
        check_literals(self)
        hints = get_type_hints(type(self))
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if hints[f.name] is float and not (0 < value < inf or (value == 0 and f.name in self.may_be_zero)):
                limit = "zero or positive" if f.name in self.may_be_zero else "positive"
                raise BadInput(
                    f"{f.name}={value} of {type(self).__name__} must be {limit} and finite: it is a strength"
                )

    def kl_weight(self) -> float | None:
        """The weight of KL(q(z|x) || p(z)) in the loss: the beta of the Sigma law; None where it is not known.

        It is None unless the objective says it (`beta_is`): a field called beta may weigh something else.
        """
        weight = getattr(self, self.beta_is) if isinstance(self.beta_is, str) else self.beta_is
        return None if weight is None else float(weight)

    def settled(self, pass_: Pass, context: Context) -> dict[str, Tensor]:
        """Parameters of the model to be set when training ends, by name, from one pass over many samples."""
        return {}

    def pairing(self) -> Pairing | None:
        """How the second batch follows from the first; None when it is an independent one."""
        return None

    def players(self, model: Autoencoder) -> dict[str, Player]:
        """Parameter groups by name; the first is the model."""
        return {"model": Player(model)}

    def losses(self) -> dict[str, Callable[[Pass, Context], Terms]]:
        """Each player's terms, by the names of `players`."""
        return {"model": self}

    def noise_shapes(self, batch: int, latents: int) -> dict[str, tuple[int, ...]]:
        """Standard normal draws this objective needs beside the posterior's."""
        return {}


def hyperparameters(objective: type[Objective]) -> dict[str, float]:
    """The float fields of an objective and their defaults, which may vary within a cohort.

    Parameters
    ----------
    objective : type of Objective
        A class, not an instance.

    Returns
    -------
    dict of float
        The default of each, by name.

    Examples
    --------
    >>> from unseam.objectives.elbo import BetaVAE
    >>> hyperparameters(BetaVAE)
    {'beta': 4.0}
    """
    return {f.name: f.default for f in fields(objective) if f.type in (float, "float")}  # type: ignore[arg-type, misc]
