"""Mean correlation coefficient (MCC): are the factors the latents, up to order, sign and scale?

The score of the ICA community (Hyvarinen & Morioka 2016): match factors to latents one to one so that the sum
of absolute correlations is largest (linear assignment), and average the matched correlations. Pearson sees
linear recovery; Spearman forgives monotone warps. With fewer latents than factors the unmatched factors
count 0.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs
from unseam.metrics.registry import metric, register
from unseam.metrics.shared.correlation import CorrelationMethod, factor_correlations, ordered_factors
from unseam.stats import matched

HYVARINEN = "Hyvarinen & Morioka 2016, arXiv:1605.06336"


@metric(
    "mcc",
    "Are the factors the latents, up to order, sign and scale?",
    HYVARINEN,
    ceiling="1 if the code is linear in the factors",
)
def mcc(inputs: Inputs, method: CorrelationMethod = "pearson") -> Score:
    """Mean correlation after the best one-to-one matching.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(mcc(-v[:, ::-1].astype(float), v).value, 6)
    1.0
    """
    name = "mcc" if method == "pearson" else "mcc-spearman"
    ordered, notes = ordered_factors(inputs, name)
    matrix = factor_correlations(inputs, method)
    found = matched(matrix[ordered])
    per_factor = np.full(len(ordered), np.nan)
    per_factor[ordered] = found.values
    names = np.array(inputs.space.names)[ordered].tolist()
    assigned = {name: j for name, j in zip(names, found.columns.tolist(), strict=True) if j >= 0}
    return Score(
        name,
        float(per_factor[ordered].mean()),
        per_factor=per_factor,
        matrix=matrix,
        settings={"correlation": method, "rows": len(inputs)},
        extra={"latent_of": assigned},
        notes=notes,
    )


register(
    "mcc-spearman",
    partial(mcc.of, method="spearman"),
    "Are the factors the latents, up to order and monotone warps?",
    HYVARINEN,
)
