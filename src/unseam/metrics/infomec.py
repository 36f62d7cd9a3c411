"""InfoM, InfoE, InfoC: modularity, explicitness and compactness as shares of information.

Hsu et al. 2023, section 5 (arXiv:2305.18378). With n_fj = I(v_f; z_j) / H(v_f), over the active latents:

    InfoM = ( mean_j max_f n_fj / sum_f n_fj - 1/F ) / (1 - 1/F)
    InfoC = ( mean_f max_j n_fj / sum_j n_fj - 1/K ) / (1 - 1/K)
    InfoE = mean_f [ H(v_f) - H_lin(v_f | z) ] / H(v_f)

H_lin is the cross-entropy of logistic regression without penalty, classes balanced (R^2 of linear regression for
a continuous factor). Mutual information by Ross with 10 neighbours (KSG for a continuous factor), a latent is
active when its range exceeds 1/20 of the largest: the settings of the authors' code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.information import mutual_information
from unseam.metrics.inputs import prepare
from unseam.metrics.logistic import fit_softmax, standardise
from unseam.metrics.mig import normalised
from unseam.metrics.parallel import factor_by_factor
from unseam.metrics.table import Table, require_few_classes
from unseam.types import Array, FactorSpace

NEIGHBOURS = 10


def infomec(codes: Any, factors: Any, space: FactorSpace | None = None) -> dict[str, Score]:
    """The three scores of codes against factors.

    >>> v = np.random.default_rng(0).integers(0, 3, (500, 2))
    >>> {name: round(score.value, 1) for name, score in infomec(v.astype(float), v).items()}
    {'infom': 1.0, 'infoe': 1.0, 'infoc': 1.0}
    """
    table = prepare(codes, factors, space)
    return {s.name: s for s in (compute_infom(table), compute_infoe(table), compute_infoc(table))}


def compute_infom(table: Table) -> Score:
    if len(table.space) < 2:
        raise BadInput("infom compares factors and there is only 1; give at least 2 factors")
    nmi, active = normalised_information(table)
    shares = np.where(active, largest_share(nmi.T), np.nan)
    per_latent = rescaled(shares, len(nmi))
    value = float(per_latent[active].mean())
    return Score("infom", value, per_latent=per_latent, matrix=nmi, settings=settings(table, active))


def compute_infoc(table: Table) -> Score:
    nmi, active = normalised_information(table)
    per_factor = rescaled(largest_share(nmi[:, active]), int(active.sum()))
    value = float(per_factor.mean())
    return Score("infoc", value, per_factor=per_factor, matrix=nmi, settings=settings(table, active))


def compute_infoe(table: Table) -> Score:
    require_few_classes(table, "infoe")
    x = standardise(table.rows.codes)[0]
    per_factor = np.array(factor_by_factor(lambda f: linear_information(table, x, f), table))
    how = {f.name: "logistic regression, no penalty, balanced" if f.discrete else "R^2" for f in table.space}
    settings = {"predictor": how, "rows": len(table)}
    return Score("infoe", float(per_factor.mean()), per_factor=per_factor, settings=settings)


def normalised_information(table: Table) -> tuple[Array, Array]:  # (F, K), (K,) which latents are active
    """n_fj, and the latents whose range exceeds 1/20 of the largest. Computed once a table."""
    rows = table.rows
    width = np.ptp(rows.codes, axis=0)
    active = width > width.max() / 20
    if not active.any():
        raise BadInput("every latent is constant; infom and infoc need at least one that varies")
    mi = table.once(
        ("mi", "knn", NEIGHBOURS),
        lambda: mutual_information(rows.codes, rows.labels, rows.values, "knn", k=NEIGHBOURS),
    )
    return normalised(table, mi), active


def largest_share(matrix: Array) -> Array:  # (A, B) -> (A,) max / sum of each row; 1/B when the row is 0
    total = matrix.sum(axis=1)
    return np.where(total > 0, matrix.max(axis=1) / np.where(total > 0, total, 1.0), 1 / matrix.shape[1])


def rescaled(share: Array, count: int) -> Array:
    """(share - 1/count) / (1 - 1/count): 0 for an even split, 1 for a single one."""
    return (share - 1 / count) / (1 - 1 / count) if count > 1 else np.ones_like(share)


def linear_information(table: Table, x: Array, f: int) -> float:
    """[H(v) - H_lin(v|z)] / H(v) of one factor, or R^2."""
    if not table.classes[f]:
        y = table.rows.values[:, f]
        design = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        guess = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        return float(max(0.0, 1 - ((y - guess) ** 2).mean() / y.var()))
    labels = table.rows.labels[:, f]
    p = fit_softmax(x, labels, table.classes[f], penalty=0.0, balanced=True).probabilities(x)
    cross_entropy = -np.log(np.maximum(p[labels, np.arange(len(labels))], 1e-12)).mean()
    # a balanced classifier that sees nothing says 1/C to every row
    blind = np.log(len(np.unique(labels)))
    return float(max(0.0, (blind - cross_entropy) / blind)) if blind > 0 else 0.0


def settings(table: Table, active: Array) -> dict[str, Any]:
    how = {f.name: "Ross" if f.discrete else "KSG; 1 - exp(-2 I)" for f in table.space}
    return {"estimator": how, "neighbours": NEIGHBOURS, "active": np.flatnonzero(active).tolist(), "rows": len(table)}
