"""Scores of a set of models, without factors: do models trained from different seeds find the same latents?

Unsupervised disentanglement ranking, UDR (Duan et al. 2020, arXiv:1905.12614). For each pair of models, R_ab is
the strength with which latent a of one predicts latent b of the other: lasso weights (alpha 0.1, standardised
codes) or |Spearman|. Over the informative latents (KL > 0.01 nats, when KL is known):

    UDR_pair = 1/2 ( mean_b [ max_a R_ab^2 / sum_a R_ab ] + mean_a [ max_b R_ab^2 / sum_b R_ab ] )

and a model scores the median over its pairs. The same for any two codes of the same data is `two_codes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.stats import rankdata

from unseam.axes import Array
from unseam.errors import BadInput, unknown
from unseam.metrics.base import Score
from unseam.metrics.inputs.prepare import check_codes, plain_array
from unseam.metrics.shared.parallel import side_by_side
from unseam.stats import correlations, standardise

Strength = Literal["lasso", "spearman"]
INFORMATIVE = 0.01  # nats


def udr(
    codes: Sequence[Any],  # S arrays (N, K)
    kl: Sequence[Any] | None = None,  # S arrays (K,)
    *,
    strength: Strength = "lasso",
    workers: int | None = None,
) -> list[Score]:
    """One Score per model; `per_latent` is None and `matrix` (1, S) holds its pairwise scores.

    Parameters
    ----------
    codes : sequence of array of shape (N, K)
        The codes of at least two models, of the same rows.
    kl : sequence of array of shape (K,), optional
        The KL of each latent, which leaves out passive ones.
    strength : {"lasso", "spearman"}, default="lasso"
        How strongly one latent follows another.
    workers : int, optional
        Threads; one for each core by default.

    Returns
    -------
    list of Score
        One for each model.

    Examples
    --------
    >>> z = np.random.default_rng(0).normal(size=(500, 3))
    >>> [round(s.value, 2) for s in udr([z, z[:, ::-1], -z], strength="spearman")]
    [0.98, 0.98, 0.98]
    """
    models, active = check_models(codes, kl)
    pairs = [(i, j) for i in range(len(models)) for j in range(len(models)) if i != j]
    prepared = [rankdata(z, axis=0) if strength == "spearman" else z for z in models]

    def pair(ij: tuple[int, int]) -> float:
        i, j = ij
        return udr_of_pair(_strengths(prepared[i], prepared[j], strength)[active[i]][:, active[j]])

    between = np.full((len(models), len(models)), np.nan)
    for (i, j), value in zip(pairs, side_by_side(pair, pairs, workers), strict=True):
        between[i, j] = value
    settings = {"strength": strength, "models": len(models), "rows": len(models[0])}
    name = f"udr-{strength}"
    return [
        Score(name, float(np.nanmedian(between[:, i])), matrix=between[:, i][None], settings=settings)
        for i in range(len(models))
    ]


def two_codes(one: Any, two: Any, kl: Sequence[Any] | None = None, *, strength: Strength = "lasso") -> Score:
    """How far two codes of the same data agree latent by latent; `matrix` (K1, K2) holds the strengths.

    Parameters
    ----------
    one : array of shape (N, K1)
        A code.
    two : array of shape (N, K2)
        Another code of the same rows.
    kl : sequence of array, optional
        The KL of each latent of both, which leaves out passive ones.
    strength : {"lasso", "spearman"}, default="lasso"
        How strongly one latent follows another.

    Returns
    -------
    Score
        Between 0 and 1.

    Examples
    --------
    >>> z = np.random.default_rng(0).normal(size=(500, 3))
    >>> round(two_codes(z, -z[:, ::-1], strength="spearman").value, 2)
    0.98
    """
    models, active = check_models([one, two], kl)
    prepared = [rankdata(z, axis=0) if strength == "spearman" else z for z in models]
    matrix = _strengths(prepared[0], prepared[1], strength)
    value = udr_of_pair(matrix[active[0]][:, active[1]])
    settings = {"strength": strength, "rows": len(models[0])}
    return Score(f"two-codes-{strength}", value, matrix=matrix, settings=settings)


def check_models(codes: Sequence[Any], kl: Sequence[Any] | None) -> tuple[list[Array], list[Array]]:
    """Standardised codes of every model, and which of their latents are informative."""
    if len(codes) < 2:
        raise BadInput(f"{len(codes)} model(s) given; a score of agreement needs at least 2")
    models = [check_codes(z, f"codes[{i}]", []).astype(np.float64) for i, z in enumerate(codes)]
    if len({len(z) for z in models}) > 1:
        raise BadInput(f"the models have {sorted({len(z) for z in models})} rows; encode the same data with each")
    if kl is not None and len(kl) != len(codes):
        raise BadInput(f"{len(kl)} KL vectors for {len(codes)} models; give one per model")
    alive = [np.ptp(z, axis=0) > 0 for z in models]
    if kl is not None:
        alive = [a & (plain_array(d) > INFORMATIVE) for a, d in zip(alive, kl, strict=True)]
    for i, a in enumerate(alive):
        if not a.any():
            raise BadInput(f"model {i} has no informative latent (KL > {INFORMATIVE}); leave it out")
    return [standardise(z)[0] for z in models], alive


def _strengths(one: Array, two: Array, strength: str) -> Array:  # (N, K1), (N, K2) -> (K1, K2)
    """R_ab: how strongly latent a of `one` predicts latent b of `two`."""
    if strength == "spearman":
        return np.abs(correlations(one, two))
    if strength != "lasso":
        raise unknown("strength", strength, ("lasso", "spearman"))
    from sklearn.linear_model import Lasso

    model = Lasso(alpha=0.1, precompute=True).fit(one, two)
    return np.abs(np.atleast_2d(model.coef_)).T


def udr_of_pair(r: Array) -> float:
    """UDR_pair of a matrix of strengths; a latent that nothing predicts counts 0.

    >>> udr_of_pair(np.eye(3)), udr_of_pair(np.ones((2, 2)))
    (1.0, 0.5)
    """

    def one_way(axis: int) -> float:
        total, best = r.sum(axis=axis), r.max(axis=axis) ** 2
        return float(np.divide(best, total, out=np.zeros_like(total), where=total > 0).mean())

    return (one_way(0) + one_way(1)) / 2
