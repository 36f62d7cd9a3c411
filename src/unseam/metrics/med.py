"""MED and its top-k form: DCI's disentanglement, of mutual information instead of a fitted model's importances.

Cao et al. 2022 (arXiv:2206.04756). With I(v_f; z_j) as in MIG (20 equal-width bins, plug-in):

    R_fj = I(v_f; z_j) / sum_j' I(v_f; z_j'),      MED = sum_j rho_j (1 - H_F(R_.j)),      rho_j the share of all R

Top-k, for representations of many latents: each latent belongs to the factor it matters most for; a factor keeps its k
purest latents, and MED is taken of those alone. Nothing is fitted, so it is quick with hundreds of latents.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.dci import concentration, weighted
from unseam.metrics.inputs import Inputs
from unseam.metrics.registry import metric
from unseam.metrics.shared.information import mi_matrix, mi_settings

CAO = "Cao et al. 2022, arXiv:2206.04756"


@metric("med", "Does each latent inform about one factor?", CAO)
def med(inputs: Inputs, bins: int = 20) -> Score:
    """MED of codes against factors.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(med(v.astype(float), v).value, 6)
    1.0
    """
    matrix = shares(mi_matrix(inputs, bins))
    pure = concentration(matrix.T)
    value = weighted(pure, matrix.sum(axis=0))
    return Score("med", value, per_latent=pure, matrix=matrix, settings=mi_settings(inputs, bins))


@metric("med-topk", "Does each factor have latents that inform about it alone?", CAO)
def med_topk(inputs: Inputs, k: int = 2, bins: int = 20) -> Score:
    """MED of the k purest latents of each factor.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> mixed = v @ [[1.0], [2.5]]
    >>> med_topk(np.hstack([v, mixed]), v, k=1).extra["kept"], round(med(np.hstack([v, mixed]), v).value, 3)
    ([0, 1], 0.5)
    """
    if k < 1:
        raise BadInput(f"k={k} must be at least 1: the latents that a factor keeps")
    matrix = shares(mi_matrix(inputs, bins))
    latents = purest(matrix, k)
    pure = concentration(matrix.T)
    value = weighted(pure[latents], matrix[:, latents].sum(axis=0))
    settings = {**mi_settings(inputs, bins), "k": k}
    return Score("med-topk", value, per_latent=pure, matrix=matrix, settings=settings, extra={"kept": latents})


def shares(matrix: Array) -> Array:  # (F, K) -> (F, K)
    """Each factor's information as shares of the latents; none where nothing is known of it."""
    total = matrix.sum(axis=1, keepdims=True)
    return np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)


def purest(matrix: Array, k: int) -> list[int]:  # (F, K) -> latents
    """The k latents of each factor that hold the least of others, of those that hold it above all."""
    order = np.argsort(-concentration(matrix.T), kind="stable")
    owner = matrix.argmax(axis=0)
    return sorted(int(j) for f in range(len(matrix)) for j in order[owner[order] == f][:k])
