"""Restrictiveness and consistency: does changing a factor move its latent only, and keeping it keep its latent?

Shu et al. 2020 (arXiv:1910.09772). Each factor f has a latent m(f). Over pairs of observations

    consistency_f     = 1 - E |z_m(f) - z'_m(f)|^2 (pairs that share f)          / the same of unrelated pairs
    restrictiveness_f = 1 - E sum_{g != f} |z_m(g) - z'_m(g)|^2 (only f changes) / the same of unrelated pairs

and the value is the mean over the factors, no less than 0 (f is drawn anew, so it may stay: pairs that differ in it
count as often as that happens). The authors train with latent f for factor f; for codes whose latents have no owner, m
matches factors to latents one to one by the share of a latent's variance that lies between the values of a factor (its
consistency with endless pairs), and each latent is first brought to variance 1, so that its unit does not matter.
Latents that are left over are ignored.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, computed_once
from unseam.metrics.registry import metric
from unseam.metrics.shared.interventions import interventions, single_changes
from unseam.rng import numpy_generator
from unseam.stats import matched

SHU = "Shu et al. 2020, arXiv:1910.09772"


@metric("consistency", "Does a factor's latent stay put while everything else changes?", SHU)
def consistency(inputs: Inputs, pairs: int = 10_000) -> Score:
    """Consistency of codes, from rows that share a factor's value or from a sampler with its space.

    >>> v = np.random.default_rng(0).integers(0, 4, (400, 2))
    >>> consistency(v.astype(float), v).value
    1.0
    """
    source, rng = interventions(inputs, "consistency"), numpy_generator(inputs.seed, "consistency")
    latent, variance = owners(inputs), inputs.rows.codes.var(axis=0, dtype=np.float64)
    moved = np.full(len(latent), np.nan)
    for f, j in enumerate(latent):
        one, two = (source.codes(part) for part in source.pairs(np.full(1, f), pairs, rng))
        moved[f] = _share((one[0, :, [j]] - two[0, :, [j]]).T, variance[[j]]) if j >= 0 else 1.0
    return _as_score("consistency", 1 - moved, latent, pairs, inputs)


@metric("restrictiveness", "Do the other latents stay put while one factor changes?", SHU)
def restrictiveness(inputs: Inputs, pairs: int = 10_000) -> Score:
    """Restrictiveness of codes, from rows that differ in one factor or from a sampler with its space.

    >>> v = np.random.default_rng(0).integers(0, 4, (400, 2))
    >>> restrictiveness(v.astype(float), v).value
    1.0
    """
    if len(inputs.space) < 2:
        raise BadInput("restrictiveness needs at least 2 factors: with one, no other latent could move")
    source = single_changes(inputs, "restrictiveness", pairs)
    latent, variance = owners(inputs), inputs.rows.codes.var(axis=0, dtype=np.float64)
    moved = np.full(len(latent), np.nan)
    for f in range(len(latent)):
        one, two = source(f)
        others = [j for g, j in enumerate(latent) if g != f and j >= 0]
        moved[f] = source.differ(f) * _share(one[:, others] - two[:, others], variance[others]) if others else 1.0
    return _as_score("restrictiveness", 1 - moved, latent, pairs, inputs)


@computed_once
def owners(inputs: Inputs) -> Array:  # (F,)
    """The latent of each factor, one to one by variance explained; -1 where none is left, or none varies."""
    found = matched(np.stack([_explained(inputs.rows.codes, v) for v in inputs.rows.labels.T]))
    alive = np.ptp(inputs.rows.codes, axis=0) > 0
    return np.where((found.columns >= 0) & alive[found.columns], found.columns, -1)


def _explained(codes: Array, labels: Array) -> Array:  # (N, K), (N,) -> (K,)
    """Var E[z_j | v] / Var z_j, the correlation ratio; 0 for a constant latent.

    >>> _explained(np.array([[0.0, 1.0], [0.0, 3.0], [1.0, 1.0], [1.0, 3.0]]), np.array([0, 0, 1, 1]))
    array([1., 0.])
    """
    z = codes.astype(np.float64) - codes.mean(axis=0, dtype=np.float64)
    sums = np.stack([np.bincount(labels, column) for column in z.T], axis=1)  # (C, K)
    counts = np.maximum(np.bincount(labels), 1)[:, None]
    total = (z**2).sum(axis=0)
    return np.divide((sums**2 / counts).sum(axis=0), total, out=np.zeros(z.shape[1]), where=np.ptp(codes, axis=0) > 0)


def _share(difference: Array, variance: Array) -> float:  # (P, L), (L,)
    """E |z - z'|^2 over 2 sum_j variance_j with every latent at variance 1; unrelated pairs have 2 of each."""
    return float((difference.astype(np.float64) ** 2 / variance).mean(axis=0).sum() / (2 * len(variance)))


def _as_score(name: str, values: Array, latent: Array, pairs: int, inputs: Inputs) -> Score:
    clipped = np.clip(values, 0.0, 1.0)
    settings = {"pairs": pairs, "seed": inputs.seed}
    return Score(
        name, float(clipped.mean()), per_factor=clipped, settings=settings, extra={"latent_of": latent.tolist()}
    )
