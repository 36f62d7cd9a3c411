"""What there is to know at one point of latent space: how each axis moves the output, and what mixing costs here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.geometry import cosines, entanglement_cost, pair_costs, pullbacks, singular, singular_curve
from unseam.geometry.curves import CROSSING
from unseam.geometry.jacobian import jacobian_slices, mean_and_weight
from unseam.show.explorer.member import Subject

_LENGTH, _STEP = 3.0, 0.1  # of a curve, in Z


@dataclass(frozen=True)
class PointView:
    """The geometry at z; matrices are over the latents in their own order."""

    columns: Tensor  # (K, n) J^T, or (J V)^T for the singular axes
    norms: Tensor  # (K,) lengths of the columns
    cosines: Tensor  # (K, K) between the columns of J
    pairs: Tensor  # (K, K) the cost shared out over pairs
    singular: Tensor  # (K,) largest first
    vectors: Tensor  # (K, K) right singular vectors, as columns
    cost: float  # nats


@torch.no_grad()
def geometry(subject: Subject, z: Tensor, along: str = "latents") -> PointView:  # (K,)
    """J = d xhat/dz and M = D^T A^2 D at z, in double precision.

    >>> from unseam.models.likelihood import Gaussian
    >>> W = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> two = Subject(lambda x: x, lambda z: z @ W.T, Gaussian(), 1.0, np.zeros((1, 2)), [])
    >>> point = geometry(two, torch.zeros(2))
    >>> point.singular.tolist(), abs(point.cost)
    ([3.0, 1.0], 0.0)
    """
    theta, D = next(jacobian_slices(subject.decode, z[None]))
    J, A2 = (t[0].double() for t in mean_and_weight(subject.likelihood, theta, D))
    D = D[0].double()
    gram, M = J.mT @ J, D.mT @ (A2.unsqueeze(-1) * D)
    s, V = singular(gram)
    columns = (J if along == "latents" else J @ V).mT
    cost = float(entanglement_cost(M, subject.beta).clamp(min=0))
    return PointView(columns, columns.norm(dim=1), cosines(gram), pair_costs(M, subject.beta), s, V, cost)


@torch.no_grad()
def follow_direction(subject: Subject, z: Tensor, component: int, sign: int) -> dict[str, Any]:  # (K,)
    """The integral curve of a singular vector from z, one way: points STEP apart, a first meeting, why it ends.

    Where two singular values meet, their vectors are not defined; the curve continues in the nearest direction.
    """
    curve = singular_curve(subject.mean, z[None], component, _LENGTH, _STEP, crossing=0.0, sign=sign)
    path = curve.z[0, : int(curve.steps[0])]
    return {
        "step": _STEP,
        "z": np.round(path.double().numpy(), 6).tolist(),
        "reason": curve.reason[0],
        "meets": first_meeting(subject, path),
    }


def first_meeting(subject: Subject, path: Tensor) -> int | None:  # (T, K)
    """The first point of a curve at which the followed singular value comes within 2 % of another."""
    if len(path) < 2 or path.shape[1] < 2:
        return None
    s, V = singular(pullbacks(subject.mean, path, dtype=torch.float64).gram)  # (T, K), (T, K, K)
    along = torch.gradient(path.double(), dim=0)[0]  # (T, K)
    own = (V * along.unsqueeze(-1)).sum(1).abs().argmax(1, keepdim=True)  # (T, 1)
    gap = (s - s.gather(1, own)).abs().scatter(1, own, torch.inf).min(1).values
    close = torch.nonzero(gap < CROSSING * s.gather(1, own).squeeze(1).clamp(min=1e-12))
    return int(close[0]) if len(close) else None
