"""FactorVAE score: when one factor is held fixed, does the same latent always vary least?

Kim & Mnih 2018, section 4 (arXiv:1802.05983). A point is a batch of 64 observations that share the value of a
random factor f; it votes for the latent with the smallest variance relative to its variance over all data.
A majority-vote classifier (latent -> factor) is built from 10,000 votes and its accuracy measured on 5,000
others. The division makes a latent of any size count, so a collapsed one (posterior means of standard deviation
0.001) votes as loudly as the others. `prune` leaves out latents whose standard deviation is below it: 0 for arrays,
whose unit is unknown (only constant latents go), 0.05 for codes of a run, which is the setting of Locatello et al.'s
study (the default of their library is 0). All other settings are those of the study.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseam.axes import Array
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs
from unseam.metrics.registry import metric
from unseam.metrics.shared.interventions import (
    Interventions,
    by_point,
    chunks,
    drawn,
    interventions,
    points_settings,
    standard_error,
)
from unseam.rng import numpy_generator


@metric(
    "factor-vae",
    "When one factor is held fixed, does the same latent always vary least?",
    "Kim & Mnih 2018, arXiv:1802.05983",
)
def factor_vae(inputs: Inputs, batch: int = 64, train: int = 10_000, test: int = 5_000) -> Score:
    """FactorVAE score, from arrays or from a sampler `factors (B, F) -> codes (B, K)` with its space.

    >>> v = np.random.default_rng(0).integers(0, 4, (400, 2))
    >>> factor_vae(v.astype(float), v, train=200, test=100).value
    1.0
    """
    source = interventions(inputs, "factor-vae")
    sizes = batch, (train, test), inputs.rows.codes.shape[1], inputs.seed
    draws = iter(drawn(inputs, ("factor-vae", *sizes), (train + test) * batch, lambda: _draws(source, *sizes)))
    (free,) = next(draws)
    z = source.codes(free)
    variance = z.var(axis=0, ddof=1)
    alive = np.flatnonzero((np.ptp(z, axis=0) > 0) & (variance > 0) & (variance >= inputs.prune**2))
    pruned = sorted(set(range(z.shape[1])) - set(alive.tolist()))
    settings = {**points_settings(source, batch, train, test, inputs.seed), "prune": inputs.prune, "pruned": pruned}
    if not len(alive):
        return Score("factor-vae", 0.0, settings=settings, notes=("every latent is pruned; factor-vae is 0",))
    votes = [np.zeros((source.count, len(variance)), np.int64) for _ in range(2)]
    for half, which, places in draws:
        local = by_point(source, _variance, places)
        least = alive[(local[:, alive] / variance[alive]).argmin(axis=1)]
        np.add.at(votes[int(half)], (which, least), 1)
    winner, right = majority(votes)
    share = votes[1] / np.maximum(votes[1].sum(axis=1, keepdims=True), 1)
    per_factor = np.where(winner == np.arange(source.count)[:, None], share, 0.0).sum(axis=1)
    extra = {"train": float(right[0]), "test_standard_error": standard_error(right[1], test)}
    return Score("factor-vae", float(right[1]), per_factor=per_factor, matrix=share, settings=settings, extra=extra)


def majority(votes: list[Array]) -> tuple[Array, list[float]]:  # (F, K) each -> (K,), one share each
    """The factor that each latent stands for by the first votes, and the share of each set of votes that says so.

    >>> majority([np.array([[3, 0], [1, 2]]), np.array([[1, 1], [0, 2]])])
    (array([0, 1]), [0.8333333333333334, 0.75])
    """
    winner = votes[0].argmax(axis=0)
    return winner, [float(v[winner, np.arange(v.shape[1])].sum() / v.sum()) for v in votes]


def _draws(
    source: Interventions, batch: int, points: tuple[int, int], latents: int, seed: int
) -> Iterator[tuple[Array, ...]]:
    """Places of free observations; then 0 or 1 for training or test, factors held fixed (P,), places (P, L, ...)."""
    rng = numpy_generator(seed, "factor-vae")
    yield (source.free(10_000, rng),)
    for half, n in enumerate(points):
        for size in chunks(n, batch, latents):
            which = rng.integers(0, source.count, size)
            yield np.array(half), which, source.fixed(which, batch, rng)


def _variance(codes: Array) -> Array:  # (L, P, K) -> (P, K)
    variance: Array = codes.var(axis=0, ddof=1)
    return variance
