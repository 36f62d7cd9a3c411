"""A trained run, diagnosed at held-out rows, each member once: the result is kept. Here runs meet geometry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from unseam.errors import BadInput
from unseam.geometry import Diagnosis
from unseam.geometry import diagnose as diagnose_codes
from unseam.metrics.registry import METRICS
from unseam.models import Autoencoder
from unseam.objectives import OBJECTIVES
from unseam.progress import bar
from unseam.runs.choose import agreement, rank
from unseam.runs.kept import Parts, once
from unseam.runs.represent import Sample, Seen, represent, sample
from unseam.train import Run

POINTS = 1000  # rows at which a member's decoder is differentiated
SAMPLES = 2000  # rows that are encoded at least


def chosen_members(run: Run, members: Iterable[int] | None) -> list[int]:
    return list(range(len(run.members)) if members is None else members)


def rows_of(run: Run, count: int, seed: int = 0) -> Sample:
    """The rows of a diagnosis: held-out ones if there are more than latents, else any."""
    return sample(run, None, count, seed, "explain", enough=run.config.architecture.latents + 1)


def see(run: Run, model: Autoencoder, samples: int, seed: int) -> Seen:
    """The rows of a diagnosis through the encoder."""
    return represent(model, run.data, rows_of(run, samples, seed).rows, seed)


def diagnose(
    run: Run, members: Iterable[int] | None = None, points: int = POINTS, seed: int = 0, show: bool | None = None
) -> dict[int, Diagnosis]:
    """The diagnosis of each member, computed once.

    >>> import tempfile
    >>> from unseam.train import fit
    >>> run = fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 300},
    ...           out=tempfile.mkdtemp() + "/run", show=False)
    >>> diagnose(run, points=50)[0].points
    30
    """
    chosen = chosen_members(run, members)
    with bar("diagnosing", len(chosen), show) as advance:
        out = {}
        for member in chosen:
            out[member] = diagnosis(run, member, points, seed)
            advance()
    return out


def needs_decoder(run: Run) -> None:
    """Refuse runs whose objective trains no decoder: there is nothing to differentiate."""
    kind = OBJECTIVES.get(run.config.objective)
    if kind is not None and not kind.decodes:
        raise BadInput(
            f"{run.config.objective} trains no decoder, so there is no Jacobian to look at; "
            "`unseam evaluate` scores its codes"
        )


def diagnosis(run: Run, member: int, points: int, seed: int) -> Diagnosis:
    """A member's diagnosis, as it was kept or computed now."""
    needs_decoder(run)
    rows = rows_of(run, max(points, SAMPLES), seed)
    settings = {"rows": rows.to_json(), "points": points, "seed": seed}
    make = partial(fresh, run, member, rows, points, seed)
    return Diagnosis.from_parts(*once(run, "diagnosis", member, settings, lambda: Parts(*make().to_parts())))


def fresh(run: Run, member: int, rows: Sample, points: int, seed: int) -> Diagnosis:
    """A member's diagnosis, computed."""
    model = run.model(member)
    seen = represent(model, run.data, rows.rows, seed)
    return diagnose_codes(
        model,
        seen.posterior.mean,
        seen.posterior,
        data=seen.x,
        encoder=model.encode,
        beta=run.beta(member),
        points=points,
        factors=None if run.data.space is None else sum(f.size != 1 for f in run.data.space),
    )


def beta_of(run: Run, member: int) -> float:
    """The weight of the KL in a member's loss; where its objective has none, the diagnosis' estimate."""
    beta = run.beta(member)
    return beta if beta is not None else diagnose(run, [member], show=False)[member].beta


def ranking(run: Run, found: Mapping[int, Diagnosis]) -> dict[str, Any]:
    """Finished members from best to worst without labels, and how far scores that `evaluate` has stored agree.

    `chosen` is None unless every finished member was diagnosed.
    """
    done = finished(run)
    members = [m for m in found if m in done] or list(found)
    order, stored = rank([found[m] for m in members], [settings_of(run, m) for m in members]), stored_scores(run)
    return {
        "order": [members[position] for position in order.order],
        "chosen": members[order.order[0]] if set(done) <= set(members) else None,
        "agreement": agreement(order, common([stored.get(m, {}) for m in members])) if len(members) > 2 else {},
    }


def finished(run: Run) -> list[int]:
    """Members that trained to the end; all of them while the run has no rows yet."""
    table = run.table()
    return table["member"][table["status"] == "finished"].tolist() if len(table) else chosen_members(run, None)


def settings_of(run: Run, member: int) -> tuple[Any, ...]:
    """What the seeds of one setting share."""
    return tuple(sorted(run.members[member].hyper.items()))


def stored_scores(run: Run) -> dict[int, dict[str, float]]:
    """member -> metric -> what `evaluate` has written, with the sign that makes more better."""
    out: dict[int, dict[str, float]] = {}
    for row in run.rows.read("scores").dropna(subset="value").to_dict("records"):
        lower = row["name"] in METRICS and METRICS[row["name"]].direction == "lower"
        out.setdefault(int(row["member"]), {})[str(row["name"])] = -row["value"] if lower else row["value"]
    return out


def common(scores: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """One list a metric, for those that every member has.

    >>> common([{"mig": 0.5, "sap": 0.1}, {"mig": 0.2}])
    {'mig': [0.5, 0.2]}
    """
    return {name: [each[name] for each in scores] for name in scores[0] if all(name in each for each in scores)}
