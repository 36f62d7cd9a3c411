"""Modularity: does each latent depend on one factor only?

Ridgeway & Mozer 2018, section 3 (arXiv:1802.05312). With m_fj the mutual information of factor f and latent j
and m_j = max_f m_fj:

    modularity_j = 1 - sum_{f != f*} m_fj^2 / ( m_j^2 (F - 1) )

The mean runs over the latents that vary. One of them that knows nothing of any factor counts 0, as in the reference
implementation; a constant one (passive latents are made constant) is left out, where the reference counts it 0: then
the score of a run would be the share of its latents in use. Beware: a latent that knows a little about one factor and
nothing of the others is perfectly modular, so noise scores well above 0.
"""

from __future__ import annotations

import numpy as np

from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs
from unseam.metrics.registry import metric
from unseam.metrics.shared.information import Estimator, mi_matrix, mi_settings


@metric(
    "modularity",
    "Does each latent depend on one factor only?",
    "Ridgeway & Mozer 2018, arXiv:1802.05312",
    ceiling="1; noise scores about 0.7, so read it beside explicitness",
)
def modularity(inputs: Inputs, bins: int = 20, estimator: Estimator = "histogram") -> Score:
    """Modularity of codes against factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(modularity(v.astype(float), v).value, 6)
    1.0
    """
    matrix = mi_matrix(inputs, bins, estimator)  # (F, K)
    if len(matrix) < 2:
        raise BadInput("modularity compares factors and there is only 1; give at least 2 factors")
    squared = matrix**2
    best = squared.max(axis=0)
    rest = (squared.sum(axis=0) - best) / (len(matrix) - 1)
    per_latent = np.where(best > 0, 1 - rest / np.where(best > 0, best, 1.0), 0.0)
    varies = np.ptp(inputs.rows.codes, axis=0) > 0
    value = float(per_latent[varies].mean()) if varies.any() else 0.0
    settings = {**mi_settings(inputs, bins, estimator), "latents": int(varies.sum())}
    return Score("modularity", value, per_latent=per_latent, matrix=matrix, settings=settings)
