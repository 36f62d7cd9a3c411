"""Do the members of a cohort agree, without labels? UDR with its chance level, and ModelCentrality; computed once.

A member is compared with others of its own setting (they differ in the seed), or with all where it has none; with at
most six, those that follow it. Passive latents do not count. Chance is UDR against the other's codes in random axes (or
of the member's own, where the other has one latent).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import torch

from unseam.axes import Array
from unseam.metrics.centrality import Generative, model_centrality
from unseam.metrics.udr import udr_of_pair
from unseam.objectives import OBJECTIVES
from unseam.progress import bar
from unseam.rng import numpy_generator
from unseam.run import Run
from unseam.run.encode_decode import in_chunks
from unseam.runs.cache import CachedResult, once
from unseam.runs.represent import represent, sample_rows
from unseam.stats import in_random_axes, rank_correlations

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


def beside(found: Iterable[MemberAgreement]) -> dict[str, list[float]]:
    """The two scores as columns of the ranking, NaN where there is none.

    >>> beside([MemberAgreement(0.9, 0.4, None, None)])
    {'udr': [0.9], 'centrality': [nan]}
    """
    rows = list(found)
    columns = {"udr": [each.udr for each in rows], "centrality": [each.centrality for each in rows]}
    return {name: [np.nan if v is None else v for v in values] for name, values in columns.items() if values}


def seeds(run: Run, members: Iterable[int], seed: int = 0, show: bool | None = None) -> dict[int, MemberAgreement]:
    """The agreement of each of these members with others among them.

    >>> import tempfile
    >>> from unseam.train import fit
    >>> run = fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 300}, seeds=[0, 1],
    ...           out=tempfile.mkdtemp() + "/run", show=False)
    >>> sorted(seeds(run, [0, 1], show=False))
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
    """What was kept of a group, or is computed now: all of it depends on every member's weights."""
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
