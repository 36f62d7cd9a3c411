"""Interventional robustness score (IRS): does a latent stay put while all factors but its own change?

Suter, Miladinovic, Schoelkopf & Bauer 2019 (arXiv:1811.00007), as in the reference implementation. Sample that
share a value of factor f form a group; the deviation of latent j in a group is a high quantile of |z_j - mean|:

    IRS_fj = 1 - mean over the groups of f [ deviation_j ] / max_i |z_ij - mean z_j|

A latent scores max_f IRS_fj, and the value is their mean weighted by each latent's largest deviation. Factors
are first cut into 20 equal widths (a factor of 40 values becomes one of 20), which is the reference's setting.
The paper takes the maximum (quantile 1), the reference the 99 % quantile, which we follow.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, require_classes
from unseam.metrics.registry import metric
from unseam.stats import discretise


@metric(
    "irs",
    "Does a latent stay put while all factors but its own change?",
    "Suter et al. 2019, arXiv:1811.00007",
    ceiling="1 if every latent is a function of one factor; unused noisy latents lower it",
)
def irs(inputs: Inputs, quantile: float = 0.99, bins: int = 20) -> Score:
    """IRS of codes against factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(irs(v.astype(float), v).value, 6)
    1.0
    """
    require_classes(inputs, "irs", "it groups the rows that share a value of a factor")
    codes = inputs.rows.codes
    spread = np.abs(codes - codes.mean(axis=0)).max(axis=0)  # (K,)
    alive = np.ptp(codes, axis=0) > 0
    columns = np.ascontiguousarray(codes.T)  # (K, N)
    groups = [coarse(v, labels, bins) for v, labels in zip(inputs.rows.values.T, inputs.rows.labels.T, strict=True)]
    moved = np.stack([mean_deviation(columns, g, quantile) for g in groups])  # (F, K)
    matrix = np.where(alive, 1 - moved / np.where(alive, spread, 1.0), 0.0)
    per_latent = np.where(alive, matrix.max(axis=0), 0.0)
    value = float(np.average(per_latent[alive], weights=spread[alive])) if alive.any() else 0.0
    return Score(
        "irs",
        value,
        per_latent=per_latent,
        matrix=matrix,
        settings={"quantile": quantile, "factor_bins": bins, "rows": len(inputs)},
        extra={"parents": matrix.argmax(axis=0), "max_deviations": spread},
    )


def coarse(values: Array, labels: Array, bins: int) -> Array:  # (N,), (N,) -> (N,) small integers
    """The bin of each row's value; only the distinct values are looked up."""
    of_class = np.full(labels.max() + 1, values[0])
    of_class[labels] = values
    return discretise(of_class[:, None], bins)[:, 0].astype(np.int16)[labels]


def mean_deviation(columns: Array, group: Array, quantile: float) -> Array:  # (K, N), (N,) -> (K,)
    """Mean over the groups of the quantile of |z - group mean|."""
    order = np.argsort(group, kind="stable")
    cuts = np.cumsum(np.bincount(group))[:-1]
    parts = np.split(np.take(columns, order, axis=1), cuts, axis=1)
    return np.stack([deviation(z, quantile) for z in parts if z.shape[1]]).mean(axis=0, dtype=np.float64)


def deviation(z: Array, quantile: float) -> Array:  # (K, n) -> (K,), the linear-interpolation quantile
    far = np.abs(z - z.mean(axis=1, keepdims=True, dtype=np.float64).astype(z.dtype))
    place = quantile * (far.shape[1] - 1)
    low, high = int(np.floor(place)), int(np.ceil(place))
    far.sort(axis=1)  # vectorised, and quicker here than a partition
    return far[:, low] + (place - low) * (far[:, high] - far[:, low])
