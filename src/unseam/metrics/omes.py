"""OMES: when one factor alone changes, which latents change with it, and is that one latent, and its only factor?

Dapueto, Noceti & Odone 2024 (arXiv:2409.18017). Over pairs of observations that differ in factor f alone:

    S_fd = P_f (1 - corr(z_d(x1), z_d(x2)))                    1: latent d follows factor f; 0: it does not notice
    O_fd = 1 - mean_f' |[f' = f] - S_f'd|                      overlap: latent d follows f alone
    M_fd = 1 - mean_d' |[d' = d] - S_fd'|                      multiple encoding: d alone follows f
    OMES = mean_f [ sum_d S_fd^2 (alpha O_fd + (1 - alpha) M_fd) / sum_d S_fd ]

P_f is how often two random values of f differ. The authors' code has 1 - |corr|. The two values of f in a pair differ,
so a perfect latent of a factor with n even values has the correlation -1/(n - 1): with two values -1, which |corr|
takes for blindness. Times P_f = (n - 1)/n the same latent has S = 1 for every n: S is Sobol's total index, E Var(z_d |
other factors) / Var z_d.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs
from unseam.metrics.registry import metric
from unseam.metrics.shared.interventions import single_changes
from unseam.stats import correlations


@metric(
    "omes",
    "Does one latent alone follow each factor, and follow it alone?",
    "Dapueto et al. 2024, arXiv:2409.18017",
    ceiling="1 without unused latents; one that is noise follows every factor",
)
def omes(inputs: Inputs, alpha: float = 0.5, pairs: int = 10_000) -> Score:
    """OMES of codes, from rows that differ in one factor or from a sampler with its space.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(omes(v.astype(float), v).value, 6)
    1.0
    """
    if not 0 <= alpha <= 1:
        raise BadInput(f"alpha={alpha} must be between 0 (multiple encoding) and 1 (overlap)")
    source = single_changes(inputs, "omes", pairs)
    matrix = np.stack([follows(*source(f), source.differ(f)) for f in range(len(inputs.space))])  # (F, K)
    alive = source.spread > max(inputs.prune, 0.0)
    s = matrix[:, alive]
    per_factor = _scores(s, alpha) if alive.any() else np.zeros(len(s))
    settings = {"alpha": alpha, "pairs": pairs, "pruned": np.flatnonzero(~alive).tolist(), "seed": inputs.seed}
    return Score("omes", float(per_factor.mean()), per_factor=per_factor, matrix=matrix, settings=settings)


def follows(one: Array, two: Array, differ: float) -> Array:  # (P, K), (P, K) -> (K,)
    """S of one factor; a constant latent follows nothing."""
    r = np.array([correlations(a[:, None], b[:, None])[0, 0] for a, b in zip(one.T, two.T, strict=True)])
    return np.where(np.ptp(one, axis=0) + np.ptp(two, axis=0) > 0, np.clip(differ * (1 - r), 0.0, 1.0), 0.0)


def _scores(s: Array, alpha: float) -> Array:  # (F, K) -> (F,)
    """Each factor's score.

    >>> _scores(np.eye(2), 0.5), _scores(np.ones((2, 2)), 0.5)
    (array([1., 1.]), array([0.5, 0.5]))
    """
    F, K = s.shape
    off = s.sum(axis=0) - s  # of the other factors, (F, K)
    overlap = 1 - (1 - s + off) / F
    multiple = 1 - (1 - s + s.sum(axis=1, keepdims=True) - s) / K
    total = s.sum(axis=1)
    inside = (s**2 * (alpha * overlap + (1 - alpha) * multiple)).sum(axis=1)
    return np.divide(inside, total, out=np.zeros(F), where=total > 0)
