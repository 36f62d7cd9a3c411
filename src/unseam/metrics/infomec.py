"""InfoM, InfoE, InfoC: modularity, explicitness and compactness as shares of information.

Hsu et al. 2023, section 5 (arXiv:2305.18378). With n_fj = I(v_f; z_j) / H(v_f), over the active latents:

    InfoM = ( mean_j max_f n_fj / sum_f n_fj - 1/F ) / (1 - 1/F)
    InfoC = ( mean_f max_j n_fj / sum_j n_fj - 1/K ) / (1 - 1/K)
    InfoE = mean_f [ H(v_f) - H_lin(v_f | z) ] / H(v_f)

H_lin is the cross-entropy of logistic regression without penalty, classes balanced (R^2 of linear regression for
a continuous factor). Mutual information by Ross with 10 neighbours (KSG for a continuous factor), a latent is
active when its range exceeds 1/20 of the largest. A quantised latent (at most 50 distinct values, each twice or more on
average) is a label, not a number: its information is the plug-in estimate, it is active when it varies, and the linear
model reads it one-hot. These are the settings of the authors' code, which knows the quantised latents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, computed_once, require_few_classes
from unseam.metrics.registry import metric, public
from unseam.metrics.shared.information import normalised
from unseam.metrics.shared.logistic import fit_softmax
from unseam.metrics.shared.parallel import factor_by_factor
from unseam.stats import discrete_information, ksg, ross, standardise, unique_values

HSU = "Hsu et al. 2023, arXiv:2305.18378"
_NEIGHBOURS = 10
CODE_LEVELS = 50  # a latent with more distinct values is not quantised


@metric("infom", "What share of a latent's information is about one factor?", HSU)
def infom(inputs: Inputs) -> Score:
    """InfoM of codes against factors: `infomec` gives all three.

    >>> v = np.random.default_rng(0).integers(0, 3, (500, 2))
    >>> round(infom(v.astype(float), v).value, 1)
    1.0
    """
    if len(inputs.space) < 2:
        raise BadInput("infom compares factors and there is only 1; give at least 2 factors")
    nmi, active = normalised_information(inputs)
    shares = np.where(active, largest_share(nmi.T), np.nan)
    per_latent = rescaled(shares, len(nmi))
    value = float(per_latent[active].mean())
    return Score("infom", value, per_latent=per_latent, matrix=nmi, settings=_settings(inputs, active))


@metric("infoe", "How much of each factor can a linear model read from the code?", HSU, vectors=True)
def infoe(inputs: Inputs) -> Score:
    """InfoE of codes against factors.

    >>> levels = np.random.default_rng(0).integers(0, 10, (500, 2))  # a latent may name its values in any order
    >>> round(infoe(levels / 10, levels % 5).value, 2)
    1.0
    """
    require_few_classes(inputs, "infoe")
    x = design(inputs)
    per_factor = np.array(factor_by_factor(lambda f: linear_information(inputs, x, f), inputs))
    how = {f.name: "logistic regression, no penalty, balanced" if f.discrete else "R^2" for f in inputs.space}
    about = {"predictor": how, "one_hot": sorted(quantised(inputs)), "rows": len(inputs)}
    return Score("infoe", float(per_factor.mean()), per_factor=per_factor, settings=about)


@metric("infoc", "What share of the information on a factor is in one latent?", HSU)
def infoc(inputs: Inputs) -> Score:
    """InfoC of codes against factors.

    >>> v = np.random.default_rng(0).integers(0, 3, (500, 2))
    >>> round(infoc(v.astype(float), v).value, 1)
    1.0
    """
    nmi, active = normalised_information(inputs)
    per_factor = rescaled(largest_share(nmi[:, active]), int(active.sum()))
    value = float(per_factor.mean())
    return Score("infoc", value, per_factor=per_factor, matrix=nmi, settings=_settings(inputs, active))


@public
def infomec(inputs: Inputs) -> dict[str, Score]:
    """The three scores of codes against factors.

    >>> v = np.random.default_rng(0).integers(0, 3, (500, 2))
    >>> {name: round(score.value, 1) for name, score in infomec(v.astype(float), v).items()}
    {'infom': 1.0, 'infoe': 1.0, 'infoc': 1.0}
    """
    return {score.name: score for score in (infom.of(inputs), infoe.of(inputs), infoc.of(inputs))}


@computed_once
def quantised(inputs: Inputs) -> dict[int, Array]:  # latent -> (N,) labels
    """The latents that take few values, as labels."""
    found = {j: unique_values(z) for j, z in enumerate(inputs.rows.codes.T)}
    return {j: labels for j, (levels, labels) in found.items() if len(levels) <= min(CODE_LEVELS, len(inputs) // 2)}


@computed_once
def normalised_information(inputs: Inputs) -> tuple[Array, Array]:  # (F, K), (K,) which latents are active
    """n_fj, and which latents are active."""
    levels, width = quantised(inputs), np.ptp(inputs.rows.codes, axis=0)
    active = np.array([w > 0 if j in levels else w > width.max() / 20 for j, w in enumerate(width)])
    if not active.any():
        raise BadInput("every latent is constant; infom and infoc need at least one that varies")
    mi = [[_information(inputs, f, j) for j in range(len(width))] for f in range(len(inputs.space))]
    return normalised(inputs, np.array(mi)), active


def _information(inputs: Inputs, f: int, j: int) -> float:
    """I(v_f; z_j), each side a label or a number."""
    v, z, level = inputs.rows.values[:, f], inputs.rows.codes[:, j], quantised(inputs).get(j)
    if inputs.classes[f]:
        label = inputs.rows.labels[:, f]
        return ross(label, z, _NEIGHBOURS) if level is None else discrete_information(label, level)
    return ksg(v, z, _NEIGHBOURS) if level is None else ross(level, v, _NEIGHBOURS)


def design(inputs: Inputs) -> Array:  # (N, columns)
    """What the linear model reads: standardised latents, one-hot where they are quantised."""
    levels, x = quantised(inputs), standardise(inputs.rows.codes)[0]
    return np.hstack([np.eye(levels[j].max() + 1)[levels[j]] if j in levels else x[:, [j]] for j in range(x.shape[1])])


def largest_share(matrix: Array) -> Array:  # (A, B) -> (A,) max / sum of each row; 1/B when the row is 0
    total = matrix.sum(axis=1)
    return np.where(total > 0, matrix.max(axis=1) / np.where(total > 0, total, 1.0), 1 / matrix.shape[1])


def rescaled(share: Array, count: int) -> Array:
    """(share - 1/count) / (1 - 1/count): 0 for an even split, 1 for a single one."""
    return (share - 1 / count) / (1 - 1 / count) if count > 1 else np.ones_like(share)


def linear_information(inputs: Inputs, x: Array, f: int) -> float:
    """[H(v) - H_lin(v|z)] / H(v) of one factor, or R^2."""
    if not inputs.classes[f]:
        y = inputs.rows.values[:, f]
        x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        guess = x @ np.linalg.lstsq(x, y, rcond=None)[0]
        return float(max(0.0, 1 - ((y - guess) ** 2).mean() / y.var()))
    labels = inputs.rows.labels[:, f]
    p = fit_softmax(x, labels, inputs.classes[f], penalty=0.0, balanced=True).probabilities(x)
    cross_entropy = -np.log(np.maximum(p[labels, np.arange(len(labels))], 1e-12)).mean()
    # a balanced classifier that sees nothing says 1/C to every row
    blind = np.log(len(np.unique(labels)))
    return float(max(0.0, (blind - cross_entropy) / blind)) if blind > 0 else 0.0


def _settings(inputs: Inputs, active: Array) -> dict[str, Any]:
    how = {f.name: "Ross" if f.discrete else "KSG; 1 - exp(-2 I)" for f in inputs.space}
    about = {"estimator": how, "neighbours": _NEIGHBOURS, "active": np.flatnonzero(active).tolist()}
    return {**about, "quantised": sorted(quantised(inputs)), "rows": len(inputs)}
