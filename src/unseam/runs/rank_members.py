"""Which member of a cohort to trust when there are no labels, and how good that choice is when there are.

The one rule, used by `diagnose`, `report` and `demo`:
1. Count active latents. The *stable* count is the largest on which all seeds of some setting agree (two seeds at
   least). To agree on all latents there are says nothing: an autoencoder does, and so does every setting too weak to
   prune; such settings count only when no others agree. Where none does, it is the commonest count. A member that
   pruned a latent is orthogonal for a bad reason, one that keeps an extra latent by chance is not to be trusted.
2. Among members with that many active latents, the lowest DtO over its chance level; ties by entanglement cost / beta.
The others follow: first those with more active latents, then those with fewer.

Two more scores without labels stand beside the ranking and do not change it: how far a member agrees with the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.diagnosis import Diagnosis
from unseam.metrics.centrality import Generative, model_centrality
from unseam.metrics.udr import udr_of_pair
from unseam.objectives import OBJECTIVES
from unseam.progress import bar
from unseam.rng import numpy_generator
from unseam.run import Run
from unseam.run.encode_decode import in_chunks
from unseam.runs.cache import CachedResult, once
from unseam.runs.represent import represent, sample_rows
from unseam.stats import in_random_axes, rank_correlations, spearman

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


# Agreement of members: UDR with its chance level, and ModelCentrality; computed once and cached with the run.
#
# A member is compared with others of its own setting (they differ in the seed), or with all where it has none; with at
# most six, those that follow it. Passive latents do not count. Chance is UDR against the other's codes in random axes
# (or of the member's own, where the other has one latent).


_ROWS = 1000  # encoded by every member
OTHERS = 6  # members that one is compared with
_DRAWS = 5  # random axes behind a chance level


class MemberAgreement(NamedTuple):
    """How far a member agrees with its neighbours; None where there is nothing to compare."""

    udr: float | None
    udr_chance: float | None  # the same against random axes
    centrality: float | None
    centrality_chance: float | None  # the same with encoders in random axes


NOTHING = MemberAgreement(None, None, None, None)


def agreement_columns(found: Iterable[MemberAgreement]) -> dict[str, list[float]]:
    """The two scores as columns of the ranking, NaN where there is none.

    >>> agreement_columns([MemberAgreement(0.9, 0.4, None, None)])
    {'udr': [0.9], 'centrality': [nan]}
    """
    rows = list(found)
    columns = {"udr": [each.udr for each in rows], "centrality": [each.centrality for each in rows]}
    return {name: [np.nan if v is None else v for v in values] for name, values in columns.items() if values}


def member_agreement(
    run: Run, members: Iterable[int], seed: int = 0, show: bool | None = None
) -> dict[int, MemberAgreement]:
    """The agreement of each of these members with others among them.

    >>> import tempfile
    >>> from unseam.train import fit
    >>> run = fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 300}, seeds=[0, 1],
    ...           out=tempfile.mkdtemp() + "/run", show=False)
    >>> sorted(member_agreement(run, [0, 1], show=False))
    [0, 1]
    """
    out: dict[int, MemberAgreement] = {}
    apart = comparable_groups(run, list(members))
    with bar("comparing seeds", sum(map(len, apart)), show) as advance:
        for group in apart:
            out |= _cached_agreement(run, group, seed)
            advance(len(group))
    return out


def comparable_groups(run: Run, members: list[int]) -> list[list[int]]:
    """Members of one setting together; all together where some setting has one member only."""
    groups = run.same_setting(members)
    return [members] if any(len(group) < 2 for group in groups) else groups


def _cached_agreement(run: Run, group: list[int], seed: int) -> dict[int, MemberAgreement]:
    """The cached agreement of a group, or a new one: all of it depends on every member's weights."""
    weights = [run.weights_digest(member, None) for member in group]
    rows = sample_rows(run, None, _ROWS, seed, "seeds")
    settings = {"rows": rows.to_json(), "seed": seed, "group": group, "with": weights}
    fresh: dict[int, MemberAgreement] = {}

    def make(member: int) -> CachedResult:
        if not fresh:
            fresh.update(compare_members(run, group, rows.rows, seed))
        return CachedResult(fresh[member]._asdict(), {})

    return {m: MemberAgreement(**once(run, "seeds", m, settings, lambda m=m: make(m)).document) for m in group}  # type: ignore[misc]


def compare_members(run: Run, group: list[int], rows: torch.Tensor, seed: int) -> dict[int, MemberAgreement]:
    """UDR and ModelCentrality of the members of a group that have an active latent."""
    encoded = {m: represent(run.model(m), run.data, rows, seed) for m in group}
    active = {m: s.in_use for m, s in encoded.items()}
    able = [m for m in group if active[m].any()]
    out = dict.fromkeys(group, NOTHING)
    if len(able) < 2:
        return out
    found = median_udr({m: encoded[m].codes[:, active[m]] for m in able}, seed)
    kind = OBJECTIVES.get(run.config.objective)
    central: dict[int, tuple[float | None, float | None]] = dict.fromkeys(able, (None, None))
    if kind is None or kind.decodes:
        models = [generative(run, m, encoded[m].codes, active[m]) for m in able]
        central = {m: (s.value, s.chance) for m, s in zip(able, model_centrality(models, OTHERS, seed), strict=True)}
    return out | {m: MemberAgreement(*found[m], *central[m]) for m in able}


def median_udr(codes: Mapping[int, Array], seed: int) -> dict[int, tuple[float, float]]:
    """Each member's median UDR (|rank correlation|) with those that follow it, and with them in random axes."""
    members, rng = list(codes), numpy_generator(seed, "seeds")
    out = {}
    for place, m in enumerate(members):
        others = [members[(place + step) % len(members)] for step in range(1, min(OTHERS, len(members) - 1) + 1)]
        real = [_alike(codes[m], codes[o]) for o in others]
        random = [_alike(*both) for o in others for both in in_random_axes(codes[m], codes[o], rng, _DRAWS)]
        out[m] = (float(np.median(real)), float(np.median(random)))
    return out


def _alike(a: Array, b: Array) -> float:  # (N, A), (N, B)
    return udr_of_pair(np.abs(rank_correlations(a, b)))


def generative(run: Run, member: int, codes: Array, active: Array) -> Generative:
    """A member as two functions."""
    model = run.model(member)
    return Generative(
        lambda x: in_chunks(lambda part: model.encode(part).mean, x, run.device).numpy(),
        lambda z: in_chunks(model.mean, torch.as_tensor(z).float(), run.device),
        codes,
        active,
    )
