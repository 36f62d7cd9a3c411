"""Mutual information gap (MIG): is each factor held by exactly one latent?

Chen, Li, Grosse & Duvenaud 2018, eq. 6 (arXiv:1802.04942):

    MIG = 1/F sum_f [ I(v_f; z_j*) - I(v_f; z_j°) ] / H(v_f)

with j* the latent that knows most about factor f and j° the second. Mutual information as in the reference
implementation: 20 equal-width bins a latent, the plug-in estimate. H of a continuous factor is a differential
entropy and normalises nothing; for such a factor the gap is taken between 1 - exp(-2 I) (Linfoot 1957: the
squared correlation of two Gaussians with that mutual information), with I by KSG.

MIG-sup (Li et al. 2020, arXiv:2002.10549) turns the question round: does each latent hold exactly one factor?
The gap of each latent between its two best factors, each normalised by H(v), averaged over the latents that vary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.information import Estimator, entropy, mutual_information
from unseam.metrics.inputs import prepare
from unseam.metrics.table import Table
from unseam.types import Array, FactorSpace


def mig(
    codes: Any,  # (N, K)
    factors: Any,  # (N, F)
    space: FactorSpace | None = None,
    *,
    bins: int = 20,
    estimator: Estimator = "histogram",
) -> Score:
    """MIG of codes against factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> score = mig(v.astype(float), v)
    >>> round(score.value, 6), np.round(score.per_factor, 6), score.matrix.shape
    (1.0, array([1., 1.]), (2, 2))
    """
    return compute_mig(prepare(codes, factors, space), bins, estimator)


def mig_sup(
    codes: Any,
    factors: Any,
    space: FactorSpace | None = None,
    *,
    bins: int = 20,
    estimator: Estimator = "histogram",
) -> Score:
    """MIG-sup of codes against factors: the gap of each latent between its two best factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(mig_sup(v.astype(float), v).value, 6)
    1.0
    """
    return compute_mig_sup(prepare(codes, factors, space), bins, estimator)


def compute_mig(table: Table, bins: int = 20, estimator: Estimator = "histogram") -> Score:
    matrix = mi_matrix(table, bins, estimator)
    gaps = top_two_gap(normalised(table, matrix))
    return Score(
        "mig",
        float(gaps.mean()),
        per_factor=gaps,
        matrix=matrix,
        settings=mi_settings(table, bins, estimator),
    )


def compute_mig_sup(table: Table, bins: int = 20, estimator: Estimator = "histogram") -> Score:
    matrix = mi_matrix(table, bins, estimator)
    alive = np.ptp(table.rows.codes, axis=0) > 0
    gaps = np.where(alive, top_two_gap(normalised(table, matrix).T), np.nan)
    value = float(gaps[alive].mean()) if alive.any() else 0.0
    settings = mi_settings(table, bins, estimator)
    return Score("mig-sup", value, per_latent=gaps, matrix=matrix, settings=settings)


def mi_matrix(table: Table, bins: int = 20, estimator: Estimator = "histogram") -> Array:  # (F, K) nats
    """The mutual information matrix, computed once a table."""
    rows = table.rows
    return table.once(
        ("mi", bins, estimator),
        lambda: mutual_information(rows.codes, rows.labels, rows.values, estimator, bins),
    )


def entropies(table: Table) -> Array:  # (F,) nats; NaN for a continuous factor
    """H(v_f) of every discrete factor."""
    labels = table.rows.labels
    found = [entropy(labels[:, f]) if c else np.nan for f, c in enumerate(table.classes)]
    return table.once("entropies", lambda: np.array(found))


def normalised(table: Table, matrix: Array) -> Array:  # (F, K) in [0, 1]
    """I / H(v) for discrete factors (0 when H(v) = 0), 1 - exp(-2 I) for continuous ones."""
    h = entropies(table)[:, None]
    share = np.divide(matrix, h, out=np.zeros_like(matrix), where=h > 0)
    return np.where(np.isnan(h), 1 - np.exp(-2 * matrix), share)


def top_two_gap(matrix: Array) -> Array:  # (A, B) -> (A,)
    """Largest minus second largest entry of each row; a row of one entry has the second 0."""
    ordered = np.sort(matrix, axis=1)[:, ::-1]
    return ordered[:, 0] - (ordered[:, 1] if ordered.shape[1] > 1 else 0.0)


def mi_settings(table: Table, bins: int, estimator: Estimator) -> dict[str, Any]:
    """How mutual information was estimated, per factor."""
    names = {
        "histogram": f"{bins} equal-width bins",
        "quantile": f"{bins} equal-count bins",
        "knn": "Ross, 3 neighbours",
    }
    how = {f.name: names[estimator] if f.discrete else "KSG, 3 neighbours; 1 - exp(-2 I)" for f in table.space}
    return {"bins": bins, "estimator": how, "rows": len(table)}
