"""A trained run, explained and repaired: members -> diagnoses and alignments. Here runs meet geometry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr
from torch import Tensor

from unseam.geometry import Alignment, Diagnosis, align, diagnose, dto, entanglement_cost, metrics
from unseam.geometry.regime import LatentStatistics, delta_kl
from unseam.metrics.registry import METRICS
from unseam.models import Autoencoder, Point, Posterior
from unseam.progress import bar
from unseam.rng import generator
from unseam.runs.choose import agreement, rank
from unseam.runs.represent import without_constants
from unseam.train import Run
from unseam.train.group import weights_path
from unseam.types import Array, Representation

SAMPLES = 2000
CHUNK = 512


class Seen(NamedTuple):
    """What a member says of some rows of its data."""

    x: Tensor  # (N, ...)
    posterior: Posterior
    factors: Array | None  # (N, F)


def chosen_members(run: Run, members: Iterable[int] | None) -> list[int]:
    return list(range(len(run.members)) if members is None else members)


@torch.no_grad()
def see(run: Run, model: Autoencoder, samples: int, seed: int) -> Seen:
    """Held-out rows through the encoder."""
    held_out = run.held_out()
    rows = held_out[torch.randperm(len(held_out), generator=generator(seed, "explain"))[:samples]]
    draw = generator(seed, "observe") if run.data.stochastic else None
    x = run.data.batch(rows, draw).to(next(model.parameters()).dtype)
    parts = [model.encode(part) for part in x.split(CHUNK)]
    kind: Any = type(parts[0])
    posterior = kind(*(torch.cat([getattr(p, f.name) for p in parts]) for f in fields(kind)))
    return Seen(x, posterior, run.data.factors(rows).numpy() if run.data.space is not None else None)


def explain(
    run: Run, members: Iterable[int] | None = None, points: int = 1000, seed: int = 0, show: bool | None = None
) -> dict[int, Diagnosis]:
    """The diagnosis of each member, at held-out rows."""
    out: dict[int, Diagnosis] = {}
    chosen = chosen_members(run, members)
    with bar("diagnosing", len(chosen), show) as advance:
        for member in chosen:
            model = run.model(member)
            seen = see(run, model, max(points, SAMPLES), seed)
            out[member] = diagnose(
                model,
                seen.posterior.mean,
                seen.posterior,
                data=seen.x,
                encoder=model.encode,
                beta=run.beta(member),
                points=points,
                factors=None if run.data.space is None else sum(f.size != 1 for f in run.data.space),
            )
            advance()
    return out


def repair(run: Run, member: int, points: int = SAMPLES, seed: int = 0) -> tuple[Alignment, dict[str, Array]]:
    """A member turned to its preferred axes; its codes before and after and, where known, the factors that vary."""
    model = run.model(member)
    seen = see(run, model, points, seed)
    found = align(
        model,
        seen.posterior.mean,
        seen.posterior,
        beta=run.beta(member),
        points=points,
        seed=seed,
        whiten=isinstance(seen.posterior, Point),  # no prior has fixed the scale of the codes
    )
    frame = {name: part.numpy() for name, part in found.frame._asdict().items()}
    codes = {"codes": found.codes, "codes_before": seen.posterior.mean.numpy(), "variances": found.variances, **frame}
    truth = without_constants(Representation(found.codes, factors=seen.factors, space=run.data.space))
    if truth.factors is None or truth.space is None:
        return found, codes
    return found, {**codes, "factors": truth.factors, "names": np.array(truth.space.names)}


def weakest_correlation(codes: Array, factors: Array) -> float:  # (N, K), (N, F)
    """Match factors to latents one to one by absolute rank correlation; the smallest of the matched ones.

    >>> t = np.arange(10.0)
    >>> weakest_correlation(np.stack([t, t % 2], 1), np.stack([t % 2, -t], 1))
    1.0
    """
    K = codes.shape[1]
    both = spearmanr(np.concatenate([codes, factors], axis=1)).statistic
    rho = np.nan_to_num(np.abs(np.atleast_2d(both)[:K, K:]))
    latent, factor = linear_sum_assignment(-rho)
    return round(float(rho[latent, factor].min()), 12)


class History(NamedTuple):
    """A member over training, from its logged rows and kept snapshots."""

    steps: Array  # (T,) at which latents were logged
    delta_kl: Array  # (T,)
    snapshot_steps: Array  # (U,) at which weights were kept; empty when none were
    cost: Array  # (U,) entanglement cost in nats
    dto: Array  # (U,)


def regime(run: Run, member: int) -> tuple[Array, Array]:  # (T,), (T,)
    """Steps at which latents were logged, and Delta_KL there; a point posterior has no KL and no rows."""
    rows = run.latents()
    rows = rows[rows["member"] == member].sort_values(["step", "latent"])
    steps = np.unique(rows["step"].to_numpy())
    names = ("mu2", "mu_std", "sigma2", "log_sigma2")
    columns = [rows[name].to_numpy(dtype=float).reshape(len(steps), -1) for name in names]
    if not len(steps) or not np.isfinite(columns).all() or not columns[2].any():
        return np.zeros(0), np.zeros(0)
    return steps, delta_kl(LatentStatistics(*columns))


def history(run: Run, member: int, points: int = 200, seed: int = 0) -> History:
    """Delta_KL over the logged steps; entanglement cost and DtO at the snapshots and at the end."""
    kept = kept_steps(run, member)
    moments = [*kept, None] if kept and kept[-1] < run.config.training.steps else kept
    found = [moment(run, member, step, points, seed) for step in moments]
    cost, distance = (np.array([pair[i] for pair in found]) for i in (0, 1))
    when = np.array([run.config.training.steps if step is None else step for step in moments])
    return History(*regime(run, member), when, cost, distance)


def kept_steps(run: Run, member: int) -> list[int]:
    """Steps at which this member's weights were kept; a run that is still training may have them for some only."""
    group = next(number for number, members in enumerate(run.config.groups) if member in members)
    return [step for step in run.snapshots() if weights_path(run.folder, group, step).exists()]


@torch.no_grad()
def moment(run: Run, member: int, step: int | None, points: int, seed: int) -> tuple[float, float]:
    """(entanglement cost, DtO) of a member at one step."""
    model = run.model(member, step)
    z = see(run, model, points, seed).posterior.mean
    M = metrics(model.decode, z, model.likelihood, dtype=torch.float64)
    return float(entanglement_cost(M.pullback, run.beta(member)).mean()), dto(M.gram)


def ranking(run: Run, found: Mapping[int, Diagnosis]) -> dict[str, Any]:
    """Members from best to worst without labels and, for scores that `evaluate` has stored, how far they agree."""
    order, members, stored = rank(list(found.values())), list(found), stored_scores(run)
    return {
        "order": [members[position] for position in order.order],
        "agreement": agreement(order, common([stored.get(m, {}) for m in members])) if len(members) > 2 else {},
    }


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
