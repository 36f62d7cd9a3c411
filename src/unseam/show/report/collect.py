"""A run as the report sees it: every member diagnosed and scored, and one of them chosen without labels."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry import Diagnosis
from unseam.metrics import Score, score
from unseam.metrics.mig import normalised
from unseam.progress import bar
from unseam.run import Member, Run
from unseam.runs.cache import CachedResult, once
from unseam.runs.diagnose import diagnose, say_left_out
from unseam.runs.evaluate import rows_for
from unseam.runs.rank_members import (
    NOTHING,
    MemberAgreement,
    Ranking,
    agreement_columns,
    member_agreement,
    rank,
    relative_dto,
)
from unseam.runs.represent import EncodedRows, RowSample, represent, without_constants


@dataclass(frozen=True, eq=False)  # one member is itself: arrays have no equality
class View:
    """One member: its row of the run's table, why it does what it does, and what it knows of the factors."""

    member: int
    seed: int
    hyper: Mapping[str, float]
    row: Mapping[str, Any]
    diagnosis: Diagnosis
    codes: Array  # (N, K) of `rows`
    mig: Score | None = None  # None when the data has no factors
    share: Array | None = None  # (F, K) mutual information as a share of each factor's entropy
    factors: tuple[str, ...] = ()  # names of the factors that vary
    run: int = 0  # which run of a page with several, from 1
    seeds: MemberAgreement = NOTHING  # with other members

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return f"run-{self.run}-member-{self.member}" if self.run else f"member-{self.member}"

    @property
    def name(self) -> str:
        """Member 3 (beta 2, seed 1)."""
        return Member(self.seed, self.hyper).label(self.member)

    @property
    def active(self) -> int:
        return self.diagnosis.active

    @property
    def relative_dto(self) -> float:
        return relative_dto(self.diagnosis)

    @property
    def cost(self) -> float:
        """The entanglement cost in nats of loss per beta, so that members with different beta compare."""
        return self.diagnosis.entanglement_cost / self.diagnosis.beta

    @property
    def active_mig(self) -> float | None:
        """MIG with the active latents alone: a passive one can know a factor without the decoder hearing it."""
        active = [latent.index for latent in self.diagnosis.latents if latent.active]
        if self.share is None or not active:
            return None
        best = np.sort(np.pad(self.share[:, active], ((0, 0), (1, 0))), axis=1)
        return float((best[:, -1] - best[:, -2]).mean())

    def order(self) -> list[int]:
        """Latents from the most to the least informative: by KL, or by how far they move the output."""
        latents = self.diagnosis.latents
        weight = [z.mu_std * z.jacobian_norm if z.kl is None else z.kl for z in latents]
        return [int(k) for k in np.argsort(weight, kind="stable")[::-1]]

    def best_factor(self, latent: int) -> tuple[str, float] | None:
        """The factor a latent knows most about, and which share of that factor's entropy it holds; None if it knows
        nothing of any (a latent that is not in use)."""
        if self.share is None or not self.share[:, latent].any():
            return None
        f = int(self.share[:, latent].argmax())
        return self.factors[f], float(self.share[f, latent])


def _look(run: Run, members: Iterable[int] | None = None, show: bool | None = None) -> list[View]:
    """Diagnose and score the members that finished."""
    rows = records(run)
    wanted = set(range(len(run.members)) if members is None else members)
    done = wanted.intersection(run.finished_members())
    finished = [row for row in rows if row["member"] in done]
    if not finished:
        state = "; ".join(f"member {row['member']} {row['status']}: {row['note']}" for row in rows if row["note"])
        remedy = state or f"continue with: unseam train --resume {run.folder}"
        raise BadInput(f"run={str(run.folder)!r} has no finished member ({remedy})")
    diagnoses = diagnose(run, [row["member"] for row in finished], show=show)
    row_sample = rows_for(run)
    with bar("scoring", len(finished), show) as advance:
        views = []
        for row in finished:
            member = int(row["member"])
            m = run.members[member]
            views.append(View(member, m.seed, dict(m.hyper), row, diagnoses[member], **scored(run, member, row_sample)))
            advance()
    agreed = member_agreement(run, [view.member for view in views], show=show) if len(views) > 1 else {}
    return [replace(view, seeds=agreed.get(view.member, NOTHING)) for view in views]


def records(run: Run) -> list[dict[str, Any]]:
    """The run's table, one dictionary per member."""
    return [{str(name): value for name, value in row.items()} for row in run.table().to_dict("records")]


def encode_member(run: Run, member: int, row_sample: RowSample) -> EncodedRows:
    return without_constants(represent(run.model(member), run.data, row_sample.rows))


def scored(run: Run, member: int, row_sample: RowSample) -> dict[str, Any]:
    """Codes and, where there are factors, MIG and what each latent knows of each of them; computed once."""

    def make() -> CachedResult:
        encoded = encode_member(run, member, row_sample)
        if encoded.space is None:
            return CachedResult({}, {"codes": encoded.codes})
        found = score(encoded.codes, encoded.factors, encoded.space, active=encoded.active, metrics="mig")
        mig = found["mig"]
        assert mig.matrix is not None
        document = {"mig": mig.value, "settings": dict(mig.settings), "factors": list(found.inputs.space.names)}
        return CachedResult(document, {"codes": encoded.codes, "share": normalised(found.inputs, mig.matrix)})

    cached, arrays = once(run, "mig", member, {"rows": row_sample.to_json()}, make)
    if "mig" not in cached:
        return {"codes": arrays["codes"]}
    mig = Score("mig", cached["mig"], settings=cached["settings"])
    return {"codes": arrays["codes"], "mig": mig, "share": arrays["share"], "factors": tuple(cached["factors"])}


@dataclass(frozen=True)
class Detail:
    """What is worked out of the members shown in full: MIG's interval and chance level, and DCI."""

    chance: float
    ci: tuple[float, float] | None  # none where the rows are the whole of a finite data set
    dci: Mapping[str, float]  # disentanglement, completeness, informativeness; empty where DCI is not defined
    importance: Array | None  # (F, K)


def detail(run: Run, view: View) -> Detail | None:
    """The numbers of a member shown in full, computed once; None when the data has no factors."""
    if view.mig is None:
        return None
    row_sample = rows_for(run)
    sampled = not is_whole(run, row_sample)

    def make() -> CachedResult:
        encoded = encode_member(run, view.member, row_sample)
        mig = score(
            encoded.codes, encoded.factors, encoded.space, active=encoded.active, metrics="mig", ci=sampled, chance=True
        )["mig"]
        parts = _dci(encoded)
        matrix = parts["disentanglement"].matrix if parts else None
        document = {"chance": mig.chance, "ci": mig.ci, "dci": {name: s.value for name, s in parts.items()}}
        return CachedResult(document, {} if matrix is None else {"importance": matrix})

    cached, arrays = once(run, "detail", view.member, {"rows": row_sample.to_json(), "interval": sampled}, make)
    ci = None if cached["ci"] is None else (cached["ci"][0], cached["ci"][1])
    return Detail(cached["chance"], ci, cached["dci"], arrays.get("importance"))


def is_whole(run: Run, row_sample: RowSample) -> bool:
    """Whether the rows are every combination of the factors: then nothing was drawn, and there is no interval."""
    space = run.data.space
    return space is not None and space.discrete and len(row_sample.rows) == len(run.data) == space.count


def _dci(encoded: EncodedRows) -> Mapping[str, Score]:
    """DCI by its parts (disentanglement, completeness, informativeness); none where it is not defined."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of one factor the page shows no DCI
            found = score(encoded.codes, encoded.factors, encoded.space, active=encoded.active, metrics="dci")
        return {name.removeprefix("dci-"): s for name, s in found.items()}
    except BadInput:  # too few rows of a class, too many classes: the report does without
        return {}


def rank_views(views: Sequence[View]) -> Ranking:
    """The one label-free order (runs/rank_members.py), of one run or of several."""
    settings = [(v.run, Member(v.seed, v.hyper).setting) for v in views]
    return rank([v.diagnosis for v in views], settings, agreement_columns(v.seeds for v in views))


@dataclass(frozen=True)
class ReportData:
    """What a report says of a run, before it is put on a page."""

    run: Run
    views: list[View]
    shown: View  # the member that comes first
    other: View | None  # the one it is compared with
    chosen: View  # without labels
    stable: int  # active latents that it has

    @property
    def by_hand(self) -> bool:
        """The user named another member than the chosen one."""
        return self.shown is not self.chosen


def collect_report(run: Run, member: int | None = None, show: bool | None = None, number: int = 0) -> ReportData:
    """Diagnose, score and choose; `number` is the run's place on a page with several."""
    views = [replace(view, run=number) for view in _look(run, show=show)]
    if not number:
        say_left_out(run)
    ranking = rank_views(views)
    chosen = views[ranking.order[0]]
    compared = None if ranking.compared is None else views[ranking.compared]
    if member is None or member == chosen.member:
        return ReportData(run, views, chosen, compared, chosen, ranking.stable)
    named = next((view for view in views if view.member == member), None)
    if named is None:
        known = ", ".join(str(view.member) for view in views)
        raise BadInput(f"member={member} is not a finished member of this run; choose one of {known}")
    return ReportData(run, views, named, chosen, chosen, ranking.stable)
