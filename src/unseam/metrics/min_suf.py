"""Minimality and sufficiency: does a latent hold one factor and nothing else; does one latent hold all of a factor?

Almudevar, Hernandez-Lobato & Ortega 2024 (arXiv:2408.07016), who allow factors that depend on each other:

    minimality  = mean_j max_f I(v_f; z_j) / H(z_j),      sufficiency = mean_f max_j I(v_f; z_j) / H(v_f)

with every latent cut into 15 equal widths, as in the authors' code, and plug-in estimates. Constant latents hold
nothing and are left out of the mean.
"""

from __future__ import annotations

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, require_classes
from unseam.metrics.registry import metric
from unseam.metrics.shared.information import entropies, mi_matrix
from unseam.stats import discretise, entropy

ALMUDEVAR = "Almudevar et al. 2024, arXiv:2408.07016"


@metric(
    "minimality",
    "What share of a latent is about one factor?",
    ALMUDEVAR,
    ceiling="1 if every latent takes as many values as its factor; noise in a latent, and unused latents, lower it",
)
def minimality(inputs: Inputs, bins: int = 15) -> Score:
    """Minimality of codes against factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(minimality(v.astype(float), v).value, 6)
    1.0
    """
    require_classes(inputs, "minimality", "it divides by the entropy of binned latents")
    matrix = mi_matrix(inputs, bins)
    h = np.array([entropy(z) for z in discretise(inputs.rows.codes, bins).T])
    share = np.divide(matrix.max(axis=0), h, out=np.full_like(h, np.nan), where=h > 0)
    value = 0.0 if np.isnan(share).all() else float(np.nanmean(share))
    return Score("minimality", value, per_latent=share, matrix=matrix, settings={"bins": bins, "rows": len(inputs)})


@metric(
    "sufficiency",
    "What share of a factor is in one latent?",
    ALMUDEVAR,
    ceiling="1; less for a factor with more values than bins (15)",
)
def sufficiency(inputs: Inputs, bins: int = 15) -> Score:
    """Sufficiency of codes against factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(sufficiency(v.astype(float), v).value, 6)
    1.0
    """
    require_classes(inputs, "sufficiency", "a continuous factor has no entropy to take a share of")
    matrix = mi_matrix(inputs, bins)
    share = matrix.max(axis=1) / entropies(inputs)
    settings = {"bins": bins, "rows": len(inputs)}
    return Score("sufficiency", float(share.mean()), per_factor=share, matrix=matrix, settings=settings)
