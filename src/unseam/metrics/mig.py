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

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs
from unseam.metrics.registry import metric
from unseam.metrics.shared.information import Estimator, mi_matrix, mi_settings, normalised
from unseam.stats import top_two_gap


@metric(
    "mig",
    "Is each factor held by exactly one latent?",
    "Chen et al. 2018, arXiv:1802.04942",
    ceiling="1; less for a factor with more values than bins (20)",
    halving=True,
)
def mig(inputs: Inputs, bins: int = 20, estimator: Estimator = "histogram") -> Score:
    """MIG of codes against factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> score = mig(v.astype(float), v)
    >>> round(score.value, 6), np.round(score.per_factor, 6), score.matrix.shape
    (1.0, array([1., 1.]), (2, 2))
    """
    matrix = mi_matrix(inputs, bins, estimator)
    gaps = top_two_gap(normalised(inputs, matrix))
    settings = mi_settings(inputs, bins, estimator)
    return Score("mig", float(gaps.mean()), per_factor=gaps, matrix=matrix, settings=settings)


@metric(
    "mig-sup",
    "Does each latent hold exactly one factor?",
    "Li et al. 2020, arXiv:2002.10549",
    ceiling="the share of latents that hold a factor (a latent without one counts 0)",
    halving=True,
)
def mig_sup(inputs: Inputs, bins: int = 20, estimator: Estimator = "histogram") -> Score:
    """MIG-sup of codes against factors: the gap of each latent between its two best factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(mig_sup(v.astype(float), v).value, 6)
    1.0
    """
    matrix = mi_matrix(inputs, bins, estimator)
    alive = np.ptp(inputs.rows.codes, axis=0) > 0
    gaps = np.where(alive, top_two_gap(normalised(inputs, matrix).T), np.nan)
    value = float(gaps[alive].mean()) if alive.any() else 0.0
    settings = mi_settings(inputs, bins, estimator)
    return Score("mig-sup", value, per_latent=gaps, matrix=matrix, settings=settings)
