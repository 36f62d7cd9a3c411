"""A member over training: from its logged rows and its snapshots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from unseam.axes import Array
from unseam.geometry import dto, entanglement_cost, pullbacks
from unseam.geometry.polarized import LatentStatistics, delta_kl
from unseam.run import Run
from unseam.runs.cache import CachedResult, once
from unseam.runs.diagnose import kl_weight_of, rows_of
from unseam.runs.represent import represent


class History(NamedTuple):
    """A member over training, from its logged rows and its snapshots."""

    steps: Array  # (T,) at which latents were logged
    delta_kl: Array  # (T,)
    snapshot_steps: Array  # (U,) of the snapshots; empty when there are none
    cost: Array  # (U,) entanglement cost in nats
    dto: Array  # (U,)


def latent_columns(run: Run, member: int, *names: str) -> tuple[Array, list[Array]]:  # (T,), each (T, K)
    """Steps at which latents were logged, and some of their columns there.

    >>> import tempfile
    >>> from unseam.train import fit
    >>> run = fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 300},
    ...           out=tempfile.mkdtemp() + "/run", show=False)
    >>> steps, (kl,) = latent_columns(run, 0, "kl")
    >>> int(steps[-1]), kl.shape[1]
    (5, 2)
    """
    rows = run.latents()
    rows = rows[rows["member"] == member].sort_values(["step", "latent"])
    steps = np.unique(rows["step"].to_numpy())
    K = len(rows) // max(1, len(steps))
    return steps, [rows[name].to_numpy(dtype=float).reshape(len(steps), K) for name in names]


def regime(run: Run, member: int) -> tuple[Array, Array]:  # (T,), (T,)
    """Steps at which latents were logged, and Delta_KL there; a point posterior has no KL and no rows."""
    steps, columns = latent_columns(run, member, "mu2", "mu_std", "sigma2", "log_sigma2")
    if not len(steps) or not np.isfinite(columns).all() or not columns[2].any():
        return np.zeros(0), np.zeros(0)
    return steps, delta_kl(LatentStatistics(*columns))


def history(run: Run, member: int, points: int = 200, seed: int = 0) -> History:
    """Delta_KL over the logged steps; entanglement cost and DtO at the snapshots and at the end."""
    snapshots = run.snapshot_steps(member)
    last = run.config.training.steps
    moments = [*snapshots, None] if snapshots and snapshots[-1] < last else snapshots
    found = [cached_moment(run, member, step, points, seed) for step in moments]
    cost, distance = (np.array([pair[i] for pair in found]) for i in (0, 1))
    when = np.array([last if step is None else step for step in moments])
    return History(*regime(run, member), when, cost, distance)


def cached_moment(run: Run, member: int, step: int | None, points: int, seed: int) -> tuple[float, float]:
    def make() -> CachedResult:
        cost, distance = moment(run, member, step, points, seed)
        return CachedResult({"cost": cost, "dto": distance}, {})

    settings = {"rows": rows_of(run, points, seed).to_json(), "points": points, "seed": seed}
    found = once(run, "moment", member, settings, make, step).document
    return found["cost"], found["dto"]


@torch.no_grad()
def moment(run: Run, member: int, step: int | None, points: int, seed: int) -> tuple[float, float]:
    """(entanglement cost, DtO over all latents) of a member at one step."""
    model = run.model(member, step)
    z = represent(model, run.data, rows_of(run, points, seed).rows, seed).posterior.mean
    M = pullbacks(model.decode, z, model.likelihood, dtype=torch.float64)
    return float(entanglement_cost(M.pullback, kl_weight_of(run, member)).mean()), dto(M.pullback)
