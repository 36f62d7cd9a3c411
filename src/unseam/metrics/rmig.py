"""RMIG and JEMMIG: the gap of MIG with the posterior's noise counted, and with the latent's own entropy.

Do & Tran 2020 (arXiv:1908.09961). A latent is cut into equal widths (20 as for MIG, between the extremes of the data;
the authors' scripts take 200 in [-4, 4], so values differ from theirs); when the posterior variances are known,
an observation is spread over the bins by its Gaussian q(z_j|x) (the robust part of RMIG), otherwise it falls
into one bin, and RMIG is MIG. With j* and j° the two best latents of factor f:

    RMIG_f   = [ I(v; z*) - I(v; z°) ] / H(v)
    JEMMIG_f = 1 - [ H(v, z*) - I(v; z*) + I(v; z°) ] / [ H(v) + log bins ]

JEMMIG also punishes a latent that holds more than its factor: noise in z* raises H(v, z*).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from unseam.axes import Array
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, computed_once, require_classes
from unseam.metrics.registry import metric
from unseam.metrics.shared.information import entropies
from unseam.stats import contingency, discretise, entropy_of_counts, top_two_gap

DO = "Do & Tran 2020, arXiv:1908.09961"
DIFFERENTIAL = "its entropy would be a differential one"


@metric(
    "rmig",
    "Is each factor held by exactly one latent, the posterior's noise counted?",
    DO,
    ceiling="as mig",
    halving=True,
)
def rmig(inputs: Inputs, bins: int = 20) -> Score:
    """RMIG of codes (and their posterior variances, if given) against discrete factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> sharp, blurred = rmig(v.astype(float), v), rmig(v.astype(float), v, variances=np.full(v.shape, 0.5))
    >>> round(sharp.value, 6), blurred.value < 0.5
    (1.0, True)
    """
    require_classes(inputs, "rmig", DIFFERENTIAL)
    h, (mi, _) = entropies(inputs), robust_information(inputs, bins)
    gaps = top_two_gap(mi) / np.where(h > 0, h, 1.0)
    return Score("rmig", float(gaps.mean()), per_factor=gaps, matrix=mi, settings=_settings(inputs, bins))


@metric("jemmig", "Is each factor held by one latent that holds nothing else?", DO, ceiling="as mig")
def jemmig(inputs: Inputs, bins: int = 20) -> Score:
    """JEMMIG of codes against discrete factors, normalised so that 1 is best.

    >>> v = np.stack(np.meshgrid(range(20), range(20)), -1).reshape(-1, 2)
    >>> round(jemmig(v.astype(float), v).value, 6)
    1.0
    """
    require_classes(inputs, "jemmig", DIFFERENTIAL)
    h, (mi, joint) = entropies(inputs), robust_information(inputs, bins)
    best = mi.argmax(axis=1)
    loss = joint[np.arange(len(mi)), best] - top_two_gap(mi)  # H(v, z*) - I(v; z*) + I(v; z°)
    per_factor = 1 - loss / (h + np.log(bins))
    return Score("jemmig", float(per_factor.mean()), per_factor=per_factor, matrix=mi, settings=_settings(inputs, bins))


@computed_once
def robust_information(inputs: Inputs, bins: int) -> tuple[Array, Array]:  # (F, K) twice
    """I(v; z) and H(v, z) of every pair, from counts that may be fractions."""
    labels, codes, variances = inputs.rows.labels, inputs.rows.codes, inputs.variances
    mi = np.zeros((labels.shape[1], codes.shape[1]))
    joint = np.zeros_like(mi)
    binned = discretise(codes, bins)
    for j in range(codes.shape[1]):
        spread = None if variances is None else bin_masses(codes[:, j], np.sqrt(variances[:, j]), bins)
        for f in range(labels.shape[1]):
            counts = contingency(labels[:, f], binned[:, j]) if spread is None else by_class(labels[:, f], spread)
            joint[f, j] = entropy_of_counts(counts.ravel())
            mi[f, j] = entropy_of_counts(counts.sum(0)) + entropy_of_counts(counts.sum(1)) - joint[f, j]
    return np.maximum(mi, 0.0), joint


def bin_masses(mean: Array, std: Array, bins: int) -> Array:  # (N,), (N,) -> (N, bins)
    """The mass of N(mean, std^2) in each of `bins` equal widths between min(mean - 2 std) and max(mean + 2 std).

    >>> bin_masses(np.array([-1.0, 1.0]), np.array([0.0, 0.0]), 2)
    array([[1., 0.],
           [0., 1.]])
    """
    edges = np.linspace((mean - 2 * std).min(), (mean + 2 * std).max(), bins + 1)
    if edges[0] == edges[-1]:
        return np.eye(1, bins).repeat(len(mean), axis=0)
    inner = (edges[1:-1] - mean[:, None]) / np.maximum(std, 1e-12 * (edges[-1] - edges[0]))[:, None]
    cumulative = np.concatenate([np.zeros((len(mean), 1)), ndtr(inner), np.ones((len(mean), 1))], axis=1)
    return np.diff(cumulative, axis=1)


def by_class(labels: Array, masses: Array) -> Array:  # (N,), (N, bins) -> (C, bins)
    return np.stack([np.bincount(labels, m) for m in masses.T], axis=1)


def _settings(inputs: Inputs, bins: int) -> dict[str, Any]:
    how = "one bin per observation" if inputs.variances is None else "Gaussian posterior spread over the bins"
    return {"bins": bins, "posterior": how, "rows": len(inputs)}
