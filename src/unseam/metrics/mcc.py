"""Mean correlation coefficient (MCC): are the factors the latents, up to order, sign and scale?

The score of the ICA community (Hyvarinen & Morioka 2016): match factors to latents one to one so that the sum
of absolute correlations is largest (linear assignment), and average the matched correlations. Pearson sees
linear recovery; Spearman forgives monotone warps. With fewer latents than factors the unmatched factors
count 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from unseam.metrics.base import Score
from unseam.metrics.correlation import Method, correlations, ordered_factors
from unseam.metrics.inputs import prepare
from unseam.metrics.table import Table
from unseam.types import FactorSpace


def mcc(codes: Any, factors: Any, space: FactorSpace | None = None, *, method: Method = "pearson") -> Score:
    """Mean correlation after the best one-to-one matching.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(mcc(-v[:, ::-1].astype(float), v).value, 6)
    1.0
    """
    return compute_mcc(prepare(codes, factors, space), method)


def compute_mcc(table: Table, method: Method = "pearson") -> Score:
    name = "mcc" if method == "pearson" else "mcc-spearman"
    kept, notes = ordered_factors(table, name)
    matrix = correlations(table, method)
    rows = np.flatnonzero(kept)
    matched, latents = linear_sum_assignment(matrix[rows], maximize=True)
    per_factor = np.where(kept, 0.0, np.nan)
    per_factor[rows[matched]] = matrix[rows[matched], latents]
    assigned = dict(zip((table.space[int(f)].name for f in rows[matched]), latents.tolist(), strict=True))
    return Score(
        name,
        float(per_factor[kept].mean()),
        per_factor=per_factor,
        matrix=matrix,
        settings={"correlation": method, "rows": len(table)},
        extra={"latent_of": assigned},
        notes=notes,
    )


def compute_mcc_spearman(table: Table) -> Score:
    return compute_mcc(table, "spearman")
