"""Which member of a cohort to trust when there are no labels, and how good that choice is when there are.

The one rule, used by `diagnose`, `report` and `demo`:
1. Count active latents. The *stable* count is the largest on which all seeds of some setting agree (two seeds at
   least). To agree on all latents there are says nothing: an autoencoder does, and so does every setting too weak to
   prune; such settings count only when no others agree. Where none does, it is the commonest count. A member that
   pruned a latent is orthogonal for a bad reason, one that keeps an extra latent by chance is not to be trusted.
2. Among members with that many active latents, the lowest DtO over its chance level; ties by entanglement cost / beta.
The others follow: first those with more active latents, then those with fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.diagnosis import Diagnosis
from unseam.stats import spearman

RULE = (
    "the lowest DtO over chance among members with the stable number of active latents (the largest, short of all, on "
    "which all seeds of a setting agree; where none do, all or the commonest)"
)


RULE_WITHOUT_AXES = (
    "the lowest entanglement cost per beta among members with the stable number of active latents (fewer than two, so "
    "there are no axes to compare)"
)
# of the other models of the shipped study, %: measured by `unseam bench choose`, explained in docs/choose.md
SEEDS_BEATEN, SETTINGS_BEATEN, LABELS_BEAT = 54, 60, 68  # by this choice among seeds, among settings; by one metric
SUCCESS = (
    f"where we measured it, such a choice beats {SEEDS_BEATEN} % of the other seeds and {SETTINGS_BEATEN} % of the "
    f"other settings (chance 50 %; a choice by one labelled metric {LABELS_BEAT} %)"
)
COMPARABLE = 3  # members, for a rank correlation to say anything


class RankInput(NamedTuple):
    """The numbers of one member that the ranking reads; a `Diagnosis` has them all, a row of a study too."""

    dto: float | None
    dto_haar: float | None
    cost: float  # entanglement cost over beta, in nats
    ima_contrast: float | None
    active: int
    latents: int
    has_kl: bool = True  # whether the objective could have pruned a latent

    @classmethod
    def of(cls, d: Diagnosis) -> RankInput:
        """The numbers of a diagnosis."""
        has_kl = d.latents[0].kl is not None
        cost = d.entanglement_cost / d.beta
        return cls(d.dto, d.dto_haar, cost, d.ima_contrast, d.active, len(d.latents), has_kl)


class Ranking(NamedTuple):
    """Members from best to worst, and each member's numbers."""

    order: list[int]  # positions of the members, best first
    rank: Array  # (S,) 0 = best
    criteria: dict[str, Array]  # name -> (S,), smaller is better, NaN where it says nothing
    stable: int = 0  # the number of active latents that the best have
    compared: int | None = None  # position of the least orthogonal member with as many; None when there are no axes


def rank(
    members: Sequence[Diagnosis | RankInput],
    settings: Sequence[Hashable] | None = None,
    beside: Mapping[str, ArrayLike] | None = None,
) -> Ranking:
    """Order trained members without labels; those with equal `settings` differ in their seed only.

    `beside` are further label-free scores (higher = better): listed among the criteria, they do not change the order.

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
    inputs = [d if isinstance(d, RankInput) else RankInput.of(d) for d in members]
    stable = stable_active(inputs, settings if settings is not None else [()] * len(members))
    distance = np.array([relative_dto(d) for d in inputs])
    cost = np.array([d.cost for d in inputs])
    active = np.array([d.active for d in inputs])
    pruned = np.maximum(stable - active, 0)  # latents that it should use and does not
    order = np.lexsort((cost, distance, pruned, active != stable)).tolist()
    alike = [i for i in order if active[i] == stable]
    axes = np.where([bool(d.dto_haar) for d in inputs], distance, np.nan)  # one latent alone has no axes to judge
    criteria = {"entanglement-cost": cost, "dto": axes, "ima-contrast": contrasts(inputs), "pruned": pruned}
    criteria |= {name: -np.asarray(values, dtype=float) for name, values in (beside or {}).items()}
    return Ranking(order, np.argsort(order), criteria, stable, alike[-1] if stable > 1 and len(alike) > 1 else None)


def relative_dto(d: Diagnosis | RankInput) -> float:
    """DtO over its chance level: 0 = orthogonal, 1 = random axes. One active latent has no axes to mix: 1."""
    return d.dto / d.dto_haar if d.dto is not None and d.dto_haar else 1.0


def contrasts(members: Sequence[RankInput]) -> Array:  # (S,)
    return np.array([np.inf if d.ima_contrast is None else d.ima_contrast for d in members])


def stable_active(members: Sequence[RankInput], settings: Sequence[Hashable]) -> int:
    """The largest number of active latents, short of all, on which all seeds of some setting agree; if none agree, all
    latents where a setting that could prune keeps them, else the usual number."""
    by_setting: dict[Hashable, list[RankInput]] = {}
    for d, setting in zip(members, settings, strict=True):
        if d.has_kl:
            by_setting.setdefault(setting, []).append(d)
    agreed = [same[0] for same in by_setting.values() if len(same) > 1 and len({d.active for d in same}) == 1]
    chose = [d.active for d in agreed if d.active < d.latents] or [d.active for d in agreed]
    usual = Counter(d.active for d in members)
    return max(chose) if chose else max(usual, key=lambda count: (usual[count], count))


def criterion_agreement(ranking: Ranking, scores: Mapping[str, ArrayLike]) -> dict[str, dict[str, float | None]]:
    """Spearman's rank correlation of each label-free criterion with each score (higher = better), signed so that
    1 means the criterion picks as the score would.

    >>> ranking = Ranking([1, 2, 0], np.array([2, 0, 1]), {"dto": np.array([0.9, 0.1, 0.5])})
    >>> criterion_agreement(ranking, {"mig": [0.2, 0.6, 0.4]})
    {'dto': {'mig': 1.0}, 'rank': {'mig': 1.0}}
    """
    out: dict[str, dict[str, float | None]] = {}
    for name, values in {**ranking.criteria, "rank": ranking.rank}.items():
        out[name] = {score: correlate(-np.asarray(values, dtype=float), numbers) for score, numbers in scores.items()}
    return out


def correlate(a: Array, b: ArrayLike) -> float | None:
    """Spearman's rho over the members for which both are known; None where one side is constant or fewer than three
    are known (two are always in the same order or the opposite one: 1 or -1 in any case)."""
    other = np.asarray(b, dtype=float)
    if a.shape != other.shape:
        raise BadInput(f"scores have shape {other.shape} for {len(a)} members; give one score per member")
    known = np.isfinite(a + other)  # one latent in use has no contrast
    return spearman(a[known], other[known]) if known.sum() >= COMPARABLE else None
