"""Correlation of every factor with every latent, for factors that have an order.

A cyclic factor (an angle) has no linear correlation worth the name: its entry is the multiple correlation of
the latent with the cosine and sine of the angle.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.stats import rankdata

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.inputs import Inputs, computed_once
from unseam.stats import correlations, multiple_correlation, rank_correlations

CorrelationMethod = Literal["pearson", "spearman"]


@computed_once
def factor_correlations(inputs: Inputs, method: CorrelationMethod) -> Array:  # (F, K) absolute values
    """|r| of every factor and latent; 0 where either is constant."""
    codes, values = inputs.rows.codes, inputs.rows.values
    out = np.abs((rank_correlations if method == "spearman" else correlations)(values, codes))
    for f, factor in enumerate(inputs.space):
        if factor.kind == "cyclic" and factor.size:
            angle = 2 * np.pi * inputs.rows.values[:, f] / factor.size
            out[f] = multiple_correlation(angle, rankdata(codes, axis=0) if method == "spearman" else codes)
    return out


def ordered_factors(inputs: Inputs, metric: str) -> tuple[Array, tuple[str, ...]]:
    """Which factors have an order (F,), and the note on those that do not."""
    is_ordered = np.array([f.kind != "categorical" for f in inputs.space])
    if not is_ordered.any():
        raise BadInput(f"{metric} needs factors with an order; all of {', '.join(inputs.space.names)} are categorical")
    left = [f.name for f in inputs.space if f.kind == "categorical"]
    return is_ordered, (
        f"{metric} leaves out categorical factor(s) without an order: {', '.join(left)}",
    ) if left else ()
