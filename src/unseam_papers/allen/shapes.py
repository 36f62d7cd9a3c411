"""What A4, A5 and A11 share: small models trained on `manifolds`, where the true map and its Jacobian are known."""

import math
from typing import Any

import torch
from torch import Tensor

from unseam.axes import Array
from unseam.data.sets.manifolds import Manifolds
from unseam.geometry import align
from unseam.geometry.jacobian import Decoder
from unseam.run import Run
from unseam.runs.represent import represent
from unseam_papers.allen.setups import LARGER as LARGER
from unseam_papers.allen.setups import length, mlp
from unseam_papers.frame.exhibit import Work, beta_argument

_S2 = 0.5  # variance of the likelihood; with beta 0.03 a VAE of variance 0.015 (Theorem 3)
_BETA = 0.03
LR = 3e-3
LENGTH_RATIO = 1.5  # of the lengths of the two columns, unless stated otherwise
SHAPE = {"kind": "parabolic", "spread": 0.5, "size": 10_000}
_TRAINING = {"batch": 64, "latents": 2, "s2": _S2, **mlp(24, 24)}
CHOICES = (
    "The data: none is given. Ours: `manifolds`, w ~ N(0, I) in the plane, stretched (and sheared), bent by "
    "z -> (2 + z)^2 / 2, which keeps right angles, and embedded in 12 dimensions. Trial runs on the stronger log-polar "
    "bend had not settled after 6,000 steps, so the milder one was taken, at spread 0.5, not 0.7.",
    "The model: none is given. Ours: two hidden layers of 24 tanh units each way, Gaussian likelihood of variance 1/2, "
    "beta 0.03, Adam at 0.003, batches of 64.",
)


def train_on_shape(
    work: Work, objective: str, restarts: int, steps: int, lr: float = LR, **data_parameters: Any
) -> Run:
    """Restarts of one objective on one manifold, as one stack."""
    rows = {"lr": lr, "data_parameters": {**SHAPE, **data_parameters}}
    return work.train(
        "manifolds", objective, **_TRAINING, **rows, **length(restarts, steps), **beta_argument(objective, _BETA)
    )


def truth(data: Manifolds) -> Decoder:
    """The true decoder w -> x."""
    return lambda w: data.function(w.double())


def components(data: Manifolds, rows: Tensor) -> Array:  # (N,) -> (N, 2)
    """What the theory says a diagonal posterior finds: w in the axes that make the true decoder's columns orthogonal.

    For a conformal bend these are the right singular vectors of the linear part, the same everywhere.
    """
    return align(truth(data), data.factors(rows).double(), s2=_S2, beta=_BETA).codes


def worst_axes_cost(ratio: float) -> float:
    """What the worst axes cost more than the best, in nats, for column lengths 1 and r: log((r + 1/r) / 2).

    >>> worst_axes_cost(1.0), round(worst_axes_cost(2.0), 3)
    (0.0, 0.223)
    """
    return math.log((ratio + 1 / ratio) / 2)


def posterior_means(run: Run, rows: Tensor) -> list[Array]:  # (N,) -> one (N, 2) a member
    """Posterior means of every member."""
    return [represent(run.model(member), run.data, rows).codes for member in range(len(run.members))]


def means(run: Run, member: int) -> tuple[Decoder, Tensor]:
    """A member's decoder of the mean, in double precision, and its codes of held-out rows."""
    model = run.model(member).double()
    rows = run.held_out()[:1000]
    return model.mean, torch.as_tensor(represent(run.model(member), run.data, rows).codes).double()
