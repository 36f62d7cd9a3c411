"""FactorVAE score: when one factor is held fixed, does the same latent always vary least?

Kim & Mnih 2018, section 4 (arXiv:1802.05983). A point is a batch of 64 observations that share the value of a
random factor f; it votes for the latent with the smallest variance relative to its variance over all data.
A majority-vote classifier (latent -> factor) is built from 10,000 votes and its accuracy measured on 5,000
others. Latents with no variance at all are pruned. Settings as in the reference implementation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.inputs import prepare
from unseam.metrics.interventions import Encode, Interventions, Sampled, chunks, from_table
from unseam.metrics.table import Table
from unseam.rng import numpy_generator
from unseam.types import Array, FactorSpace


def factor_vae(
    codes: Any = None,  # (N, K)
    factors: Any = None,  # (N, F)
    space: FactorSpace | None = None,
    *,
    sampler: Encode | None = None,
    test_codes: Any = None,
    test_factors: Any = None,
    batch: int = 64,
    train: int = 10_000,
    test: int = 5_000,
    seed: int = 0,
) -> Score:
    """FactorVAE score, from arrays or from a sampler `factors (B, F) -> codes (B, K)` with its space.

    >>> v = np.random.default_rng(0).integers(0, 4, (400, 2))
    >>> factor_vae(v.astype(float), v, train=200, test=100).value
    1.0
    """
    if sampler is not None and space is not None:
        return vote(Sampled(sampler, space), batch, train, test, seed)
    table = prepare(codes, factors, space, test_codes=test_codes, test_factors=test_factors, seed=seed)
    return compute_factor_vae(table, batch, train, test)


def compute_factor_vae(table: Table, batch: int = 64, train: int = 10_000, test: int = 5_000) -> Score:
    return vote(from_table(table, "factor-vae"), batch, train, test, table.seed)


def vote(source: Interventions, batch: int, train: int, test: int, seed: int) -> Score:
    rng = numpy_generator(seed, "factor-vae")
    z = source.free(10_000, rng)
    variance = z.var(axis=0, ddof=1)
    alive = np.flatnonzero((np.ptp(z, axis=0) > 0) & (variance > 0))
    settings = {"batch": batch, "train": train, "test": test, "seed": seed, "source": type(source).__name__.lower()}
    if not len(alive):
        return Score("factor-vae", 0.0, settings=settings, notes=("every latent is constant; factor-vae is 0",))
    votes = [ballot(source, n, batch, variance, alive, rng) for n in (train, test)]
    winner = votes[0].argmax(axis=0)
    right = [v[winner, np.arange(v.shape[1])].sum() / v.sum() for v in votes]
    share = votes[1] / np.maximum(votes[1].sum(axis=1, keepdims=True), 1)
    per_factor = np.where(winner == np.arange(source.count)[:, None], share, 0.0).sum(axis=1)
    error = float(np.sqrt(right[1] * (1 - right[1]) / test))
    return Score(
        "factor-vae",
        float(right[1]),
        per_factor=per_factor,
        matrix=share,
        settings=settings,
        extra={"train": float(right[0]), "standard_error": error},
    )


def ballot(
    source: Interventions, points: int, batch: int, variance: Array, alive: Array, rng: np.random.Generator
) -> Array:  # (F, K) how often a factor held fixed made a latent vary least
    votes = np.zeros((source.count, len(variance)), np.int64)
    for n in chunks(points, batch, len(variance)):
        which = rng.integers(0, source.count, n)
        local = source.fixed(which, batch, rng).var(axis=1, ddof=1)  # (P, K)
        least = alive[(local[:, alive] / variance[alive]).argmin(axis=1)]
        np.add.at(votes, (which, least), 1)
    return votes
