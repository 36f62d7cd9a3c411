"""A run as the report sees it: every member diagnosed and scored, and one of them chosen without labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from unseam.errors import BadInput
from unseam.geometry import Diagnosis
from unseam.metrics import Score, score
from unseam.metrics.mig import normalised
from unseam.progress import bar
from unseam.runs.diagnose import explain
from unseam.runs.represent import represent, sample_rows, without_constants
from unseam.train import Run
from unseam.types import Array, Representation

SAMPLES = 10_000  # rows that are encoded and scored
POINTS = 400  # rows at which a member's decoder is differentiated


@dataclass(frozen=True, eq=False)  # one member is itself: arrays have no equality
class View:
    """One member: its row of the run's table, why it does what it does, and what it knows of the factors."""

    member: int
    seed: int
    hyper: Mapping[str, float]
    row: Mapping[str, Any]
    diagnosis: Diagnosis
    seen: Representation  # with the factors that vary
    mig: Score | None = None  # None when the data has no factors
    share: Array | None = None  # (F, K) mutual information as a share of each factor's entropy
    factors: tuple[str, ...] = ()  # names of the factors that vary
    run: int = 0  # which run of a page with several, from 1

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return f"run-{self.run}-member-{self.member}" if self.run else f"member-{self.member}"

    @property
    def name(self) -> str:
        """Member 3 (beta 2, seed 1)."""
        settings = [f"{name} {value:g}" for name, value in self.hyper.items()]
        return f"member {self.member} ({', '.join([*settings, f'seed {self.seed}'])})"

    @property
    def active(self) -> int:
        return self.diagnosis.active

    @property
    def relative_dto(self) -> float:
        """DtO over its chance level: 0 = orthogonal, 1 = random axes. One active latent has no axes to mix: 1."""
        d = self.diagnosis
        return d.dto / d.dto_haar if d.dto is not None and d.dto_haar else 1.0

    @property
    def cost(self) -> float:
        """The entanglement cost in nats of KL: the loss pays beta times this."""
        return self.diagnosis.entanglement_cost / self.diagnosis.beta

    def order(self) -> list[int]:
        """Latents from the most to the least informative: by KL, or by how far they move the output."""
        latents = self.diagnosis.latents
        weight = [z.mu_std * z.jacobian_norm if z.kl is None else z.kl for z in latents]
        return [int(k) for k in np.argsort(weight, kind="stable")[::-1]]

    def best_factor(self, latent: int) -> tuple[str, float] | None:
        """The factor a latent knows most about, and which share of that factor's entropy it holds."""
        if self.share is None:
            return None
        f = int(self.share[:, latent].argmax())
        return self.factors[f], float(self.share[f, latent])


def look(run: Run, members: Iterable[int] | None = None, points: int = POINTS, show: bool | None = None) -> list[View]:
    """Diagnose and score the members that finished."""
    rows = records(run)
    wanted = set(range(len(run.members)) if members is None else members)
    finished = [row for row in rows if row["status"] == "finished" and row["member"] in wanted]
    if not finished:
        state = "; ".join(f"member {row['member']} {row['status']}: {row['note']}" for row in rows if row["note"])
        remedy = state or f"go on with: unseam train --resume {run.folder}"
        raise BadInput(f"run={str(run.folder)!r} has no finished member ({remedy})")
    diagnoses = explain(run, [row["member"] for row in finished], points, show=show)
    index = sample_rows(len(run.data), SAMPLES)
    with bar("scoring", len(finished), show) as advance:
        views = []
        for row in finished:
            member = int(row["member"])
            seen = without_constants(represent(run.model(member), run.data, index))
            found = scored(seen) if seen.space is not None else {}
            hyper = dict(run.members[member].hyper)
            views.append(View(member, int(row["seed"]), hyper, row, diagnoses[member], seen, **found))
            advance()
    return views


def records(run: Run) -> list[dict[str, Any]]:
    """The run's table, one dictionary a member."""
    return [{str(name): value for name, value in row.items()} for row in run.table().to_dict("records")]


def scored(seen: Representation, ci: bool = False) -> dict[str, Any]:
    """MIG, with an interval and the chance level when asked for."""
    scores = score(seen.codes, seen.factors, seen.space, metrics="mig", ci=ci, chance=ci)
    found = scores["mig"]
    assert found.matrix is not None
    return {"mig": found, "share": normalised(scores.table, found.matrix), "factors": scores.table.space.names}


@lru_cache(maxsize=4)
def dci(view: View) -> Mapping[str, Score]:
    """DCI of a member by its parts (disentanglement, completeness, informativeness); none where it is not defined."""
    seen = view.seen
    if seen.space is None:
        return {}
    try:
        found = score(seen.codes, seen.factors, seen.space, metrics="dci")
        return {name.removeprefix("dci-"): s for name, s in found.items()}
    except BadInput:  # too few rows of a class, too many classes: the report does without
        return {}


def stable_active(views: Sequence[View]) -> int:
    """The largest number of active latents on which all seeds of some setting agree; if none agree, the usual one."""
    settings: dict[tuple[Any, ...], set[int]] = {}
    for view in views:
        settings.setdefault(tuple(sorted(view.hyper.items())), set()).add(view.active)
    agreed = [next(iter(counts)) for counts in settings.values() if len(counts) == 1]
    usual = Counter(view.active for view in views)
    return max(agreed) if agreed else max(usual, key=lambda count: (usual[count], count))


def choose(views: Sequence[View]) -> tuple[View, View | None]:
    """Without labels: among members that keep the stable number of active latents, the one with the lowest DtO.

    The second is the one it is compared with: the highest DtO among them. None when it is alone, or when fewer than
    two latents are active: then there are no axes to compare, and the first has the lowest entanglement cost.
    """
    kept = stable_active(views)
    ordered = sorted((v for v in views if v.active == kept), key=lambda v: (v.relative_dto, v.cost, v.member))
    return ordered[0], ordered[-1] if kept > 1 and len(ordered) > 1 else None


@dataclass(frozen=True)
class Findings:
    """What a report says of a run, before it is put on a page."""

    run: Run
    views: list[View]
    chosen: View
    other: View | None  # the one it is compared with
    by_hand: bool  # the user named the member


def find(run: Run, member: int | None = None, show: bool | None = None, number: int = 0) -> Findings:
    """Diagnose, score and choose; `number` is the run's place on a page with several."""
    views = [replace(view, run=number) for view in look(run, show=show)]
    chosen, other = choose(views)
    if member is None or member == chosen.member:
        return Findings(run, views, chosen, other, member is not None)
    named = next((view for view in views if view.member == member), None)
    if named is None:
        known = ", ".join(str(view.member) for view in views)
        raise BadInput(f"member={member} is not a finished member of this run; choose one of {known}")
    return Findings(run, views, named, chosen, True)
