"""Where no axis is preferred: latents whose singular values cannot be distinguished (Zietlow 2022, 3.3.4).

If two singular values are equal, every rotation of their plane has orthogonal columns and the same cost, so the
data cannot say which axes are right. Two numbers tell how close a pair is to that:
`plane_differences`, how much the two singular values of the pair's own plane differ, and
`axis_preferences`, how many nats the worst rotation of the plane costs more than the best.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

TOO_CLOSE_VALUES = 0.1  # thesis Table 3.4: at a ratio of 1.2 restarts still differ, at 1.5 no longer
_ANGLES = 24


def pairs_of(K: int) -> tuple[Tensor, Tensor]:
    """All pairs i < j, as two index tensors (P,)."""
    i, j = torch.triu_indices(K, K, 1, device="cpu")
    return i, j


def plane_differences(gram: Tensor, i: Tensor, j: Tensor) -> Tensor:  # (N, K, K), (P,), (P,) -> (P,)
    """(s1 - s2) / s1 of the columns i and j of J, the median over points: 0 = degenerate, 1 = far apart.

    >>> plane_differences(torch.diag(torch.tensor([1.0, 0.81]))[None], *pairs_of(2))
    tensor([0.1000])
    """
    a, b = gram[:, i, i], gram[:, j, j]
    middle, radius = (a + b) / 2, torch.hypot((a - b) / 2, gram[:, i, j])
    s1, s2 = (middle + radius).sqrt(), (middle - radius).clamp(min=0).sqrt()
    tiny = torch.finfo(gram.dtype).tiny
    return ((s1 - s2) / s1.clamp(min=tiny)).median(0).values


class Turns(NamedTuple):
    """What rotating the plane of a pair does to the mean cost, in nats."""

    preference: Tensor  # (P,) worst rotation minus best: 0 when no axis is preferred
    saving: Tensor  # (P,) the axes as they are minus best: 0 when they cannot be improved


def axis_preferences(M: Tensor, i: Tensor, j: Tensor, beta: float = 1.0) -> Turns:  # (N, K, K), (P,), (P,)
    """How much the choice of axes matters in the plane of each pair.

    >>> axis_preferences(4 * torch.eye(2)[None], *pairs_of(2)).preference
    tensor([0.])
    """
    a, b = (M[:, i, i] + M[:, j, j]) / 2, (M[:, i, i] - M[:, j, j]) / 2
    u, v = b / (beta + a), M[:, i, j] / (beta + a)
    turns = [k * math.pi / _ANGLES for k in range(_ANGLES)]  # 2t; the cost has period pi/2 in t
    costs = [torch.log1p(-((u * math.cos(t) + v * math.sin(t)) ** 2).clamp(max=1 - 1e-12)).mean(0) for t in turns]
    stacked = beta / 2 * torch.stack(costs)
    best = stacked.min(0).values
    return Turns(stacked.max(0).values - best, stacked[0] - best)
