"""ModelCentrality: which of several generative models do the others understand? No labels and no data.

Lin et al. 2020 (arXiv:1906.06034). Each model's own latents serve as the factors of what it generates:

    B_ij = FactorVAE score of encoder i on what decoder j generates with one of j's latents held fixed
    centrality_i = mean over j != i of (B_ij + B_ji) / 2

The premise is that disentangled models are alike and entangled ones differ each in its own way. Half of the points
elect the latent that stands for a factor, the other half are counted. Passive latents are neither factors nor vote.
What a decoder is given are its own model's codes, each latent shuffled by itself, where the authors draw from the
prior. Chance is the same with every encoder's codes in random axes (standardised, rotated): the FactorVAE score
forgives rotations (two latents almost all of them), and so does this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.factor_vae import majority
from unseam.rng import numpy_generator
from unseam.stats import standardise

_POINTS = 20  # for each latent that is held fixed
_BATCH = 16  # observations a point
_DRAWS = 5  # random axes behind a chance level


class Generative(NamedTuple):
    """A model as two functions, with codes of some data and which of its latents are in use."""

    encode: Callable[[Any], Array]  # observations -> (B, K)
    decode: Callable[[Array], Any]  # (B, K) -> observations
    codes: Array  # (N, K)
    active: Array  # (K,) bool


def model_centrality(models: Sequence[Generative], others: int | None = None, seed: int = 0) -> list[Score]:
    """One Score per model: `matrix` (1, S) holds B of its pairs (NaN where none was computed), `chance` random axes.

    With `others` a model is compared with so many that follow it in the list, which keeps the cost linear.

    Parameters
    ----------
    models : sequence of Generative
        Each model as two functions, with its codes and its active latents.
    others : int, optional
        Models that each is compared with, those that follow it in the list; all by default.
    seed : int, default=0
        Of the random draws.

    Returns
    -------
    list of Score
        One for each model.

    Examples
    --------
    >>> from scipy.linalg import hadamard
    >>> z, mixed = np.random.default_rng(0).normal(size=(500, 4)), hadamard(4) / 2
    >>> plain = Generative(lambda x: x[:, ::-1], lambda z: z[:, ::-1], z, np.ones(4, bool))
    >>> turned = Generative(lambda x: x @ mixed, lambda z: z @ mixed.T, z @ mixed, np.ones(4, bool))
    >>> found = [s.value for s in model_centrality([plain, plain, plain, turned])]
    >>> found[0] > found[3]
    True
    """
    S = len(models)
    if S < 2:
        raise BadInput(f"{S} model(s) given; ModelCentrality needs at least 2")
    reach = S - 1 if others is None else min(others, S - 1)
    pairs = {(i, (i + step) % S) for i in range(S) for step in range(1, reach + 1)}
    pairs |= {(j, i) for i, j in pairs}
    between = np.full((2, S, S), np.nan)  # as they are, and in random axes
    for j, model in enumerate(models):
        which, x = generated(model, numpy_generator(seed, "centrality", j))
        for i in range(S):
            if (i, j) in pairs:
                rng = numpy_generator(seed, "axes", i, j)
                between[:, i, j] = understood(models[i], which, x, rng) if len(which) else 0.0
    both, random = (between + between.transpose(0, 2, 1)) / 2
    settings = {"models": S, "compared": reach, "points_a_latent": _POINTS, "batch": _BATCH, "seed": seed}
    return [
        Score(
            "model-centrality", float(np.nanmean(row)), matrix=row[None], settings=settings, chance=float(np.nanmean(r))
        )
        for row, r in zip(both, random, strict=True)
    ]


def generated(model: Generative, rng: np.random.Generator) -> tuple[Array, Any]:  # (P,), observations (P * BATCH)
    """What a model draws when each active latent in turn is held fixed, in random order."""
    latents = np.flatnonzero(model.active)
    which = rng.permutation(np.repeat(np.arange(len(latents)), _POINTS))
    P, K = len(which), model.codes.shape[1]
    rows = rng.integers(0, len(model.codes), (P * _BATCH, K))
    z = np.take_along_axis(model.codes, rows, axis=0).reshape(P, _BATCH, K)
    place, fixed = np.arange(P), latents[which]
    z[place, :, fixed] = z[place, :1, fixed]
    return which, model.decode(z.reshape(-1, K)) if P else None


def understood(model: Generative, which: Array, x: Any, rng: np.random.Generator) -> tuple[float, float]:
    """The FactorVAE score of an encoder on generated observations, and of its codes in random axes."""
    voters = np.flatnonzero(model.active)
    if not len(voters):
        return 0.0, 0.0
    z = standardise(model.encode(x)[:, voters].astype(np.float64))[0]
    turns = (np.linalg.qr(rng.normal(size=(len(voters),) * 2))[0] for _ in range(_DRAWS))
    return elected(z, which), float(np.mean([elected(z @ turn, which) for turn in turns]))


def elected(z: Array, which: Array) -> float:  # (P * BATCH, K), (P,)
    """Half of the points elect, the other half are counted."""
    spread = z.var(axis=0)
    local = z.reshape(len(which), _BATCH, -1).var(axis=1)
    least = np.where(spread > 0, local / np.where(spread > 0, spread, 1.0), np.inf).argmin(axis=1)
    votes = np.zeros((2, int(which.max()) + 1, z.shape[1]), np.int64)
    np.add.at(votes, (np.arange(len(which)) % 2, which, least), 1)
    return majority(list(votes))[1][1]
