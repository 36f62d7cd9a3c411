"""DCIMIG (3CharM): does each factor have a latent of its own that holds it alone?

Sepliarskaia, Kiseleva & de Rijke 2020 (arXiv:1910.05587). Each latent keeps only its gap between the best and the
second factor, credited to the best; each factor takes its best credited latent:

    DCIMIG = sum_f max_{j: f is j's best} [ I(v_f; z_j) - I(v_second; z_j) ] / sum_f H(v_f)
"""

from __future__ import annotations

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, require_classes
from unseam.metrics.registry import metric
from unseam.metrics.shared.information import entropies, mi_matrix, mi_settings
from unseam.stats import top_two_gap


@metric(
    "dcimig",
    "Does each factor have a latent of its own that holds it alone?",
    "Sepliarskaia et al. 2020, arXiv:1910.05587",
    ceiling="as mig",
    halving=True,
)
def dcimig(inputs: Inputs, bins: int = 20) -> Score:
    """DCIMIG of codes against discrete factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(dcimig(v.astype(float), v).value, 6)
    1.0
    """
    require_classes(inputs, "dcimig", "the sum of entropies that normalises it would hold a differential one")
    matrix = mi_matrix(inputs, bins)  # (F, K)
    gaps = top_two_gap(matrix.T)  # (K,)
    credit = np.where(matrix.argmax(axis=0) == np.arange(len(matrix))[:, None], gaps, 0.0)  # (F, K)
    best, h = credit.max(axis=1), entropies(inputs)
    value = float(best.sum() / h.sum()) if h.sum() > 0 else 0.0
    return Score(
        "dcimig",
        value,
        per_factor=best / np.where(h > 0, h, 1.0),
        per_latent=gaps,
        matrix=matrix,
        settings=mi_settings(inputs, bins),
    )
