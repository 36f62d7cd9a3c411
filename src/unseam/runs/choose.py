"""Which member of a cohort to trust when there are no labels, and how good that choice is when there are.

Members are ordered by how orthogonal they are: the mean of their ranks by entanglement cost over beta, DtO over chance,
and IMA contrast. A member that pruned away latents which most others use is orthogonal for a bad reason, so it comes
after those that kept them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata, spearmanr

from unseam.errors import BadInput
from unseam.geometry.diagnosis import Diagnosis
from unseam.types import Array


class Ranking(NamedTuple):
    """Members from best to worst, and each member's numbers."""

    order: list[int]  # positions of the members, best first
    rank: Array  # (S,) 0 = best
    criteria: dict[str, Array]  # name -> (S,), smaller is better


def rank(members: Sequence[Diagnosis]) -> Ranking:
    """Order trained members without labels.

    >>> import torch
    >>> from unseam.geometry import diagnose
    >>> codes = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    >>> sheared = diagnose(lambda z: torch.stack([2 * z[:, 0] + z[:, 1], z[:, 1]], 1), codes)
    >>> straight = diagnose(lambda z: torch.stack([2 * z[:, 0], z[:, 1]], 1), codes)
    >>> rank([sheared, straight]).order
    [1, 0]
    """
    if not members:
        raise BadInput("members is empty; give the diagnosis of at least one member")
    criteria = {
        "entanglement-cost": np.array([d.entanglement_cost / d.beta for d in members]),
        "dto": np.array([filled(d.dto, 1.0) / (d.dto_haar or 1.0) for d in members]),
        "ima-contrast": np.array([filled(d.ima_contrast, np.inf) for d in members]),
    }
    active = np.array([d.active for d in members])
    usual = np.bincount(active).argmax()
    pruned = np.maximum(usual - active, 0)  # latents that most members use and this one does not
    mean_rank = np.mean([rankdata(values) for values in criteria.values()], axis=0)
    order = np.lexsort((mean_rank, pruned)).tolist()
    return Ranking(order, np.argsort(order), {**criteria, "pruned": pruned})


def filled(value: float | None, missing: float) -> float:
    return missing if value is None else value


def agreement(ranking: Ranking, scores: Mapping[str, ArrayLike]) -> dict[str, dict[str, float | None]]:
    """Spearman's rank correlation of each label-free criterion with each score (higher = better), signed so that
    1 means the criterion picks as the score would.

    >>> ranking = Ranking([1, 0], np.array([1, 0]), {"dto": np.array([0.9, 0.1])})
    >>> agreement(ranking, {"mig": [0.2, 0.6]})
    {'dto': {'mig': 1.0}, 'rank': {'mig': 1.0}}
    """
    out: dict[str, dict[str, float | None]] = {}
    for name, values in {**ranking.criteria, "rank": ranking.rank}.items():
        out[name] = {score: correlate(-np.asarray(values, dtype=float), numbers) for score, numbers in scores.items()}
    return out


def correlate(a: Array, b: ArrayLike) -> float | None:
    """Spearman's rho; None where one side is constant."""
    b = np.asarray(b, dtype=float)
    if a.shape != b.shape:
        raise BadInput(f"scores have shape {b.shape} for {len(a)} members; give one score a member")
    if np.ptp(a) == 0 or np.ptp(b) == 0 or len(a) < 2:
        return None
    return round(float(spearmanr(a, b).statistic), 12)
