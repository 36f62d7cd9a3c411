"""BetaVAE score: can a linear classifier tell which factor two observations share?

Higgins et al. 2017, section 3 (openreview Sy2fzU9gl). A point is the mean of |z1 - z2| over 64 pairs that share
the value of a random factor f; logistic regression predicts f from 10,000 points and is tested on 5,000.
Settings as in the reference implementation. Beware: a representation that holds all factors but one still
reaches 100 %, because the classifier infers the missing factor from the others being different.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.inputs import prepare
from unseam.metrics.interventions import Encode, Interventions, Sampled, chunks, from_table
from unseam.metrics.logistic import fit_softmax
from unseam.metrics.table import Table
from unseam.rng import numpy_generator
from unseam.types import Array, FactorSpace


def beta_vae(
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
    """BetaVAE score, from arrays or from a sampler `factors (B, F) -> codes (B, K)` with its space.

    >>> v = np.random.default_rng(0).integers(0, 4, (400, 2))
    >>> beta_vae(v.astype(float), v, train=200, test=100).value
    1.0
    """
    if sampler is not None and space is not None:
        return classify(Sampled(sampler, space), batch, train, test, seed)
    table = prepare(codes, factors, space, test_codes=test_codes, test_factors=test_factors, seed=seed)
    return compute_beta_vae(table, batch, train, test)


def compute_beta_vae(table: Table, batch: int = 64, train: int = 10_000, test: int = 5_000) -> Score:
    return classify(from_table(table, "beta-vae"), batch, train, test, table.seed)


def classify(source: Interventions, batch: int, train: int, test: int, seed: int) -> Score:
    rng = numpy_generator(seed, "beta-vae")
    x, which = points(source, train, batch, rng)
    x_test, which_test = points(source, test, batch, rng)
    value, on_train, per_factor = accuracy(x, which, x_test, which_test, source.count)
    settings = {"batch": batch, "train": train, "test": test, "seed": seed, "source": type(source).__name__.lower()}
    error = float(np.sqrt(value * (1 - value) / test))
    extra = {"train": on_train, "standard_error": error}
    return Score("beta-vae", value, per_factor=per_factor, settings=settings, extra=extra)


def accuracy(x: Array, which: Array, x_test: Array, which_test: Array, factors: int) -> tuple[float, float, Array]:
    """Held-out accuracy, training accuracy, and held-out accuracy per factor of the classifier."""
    model = fit_softmax(x, which, factors)
    right = model.predict(x_test) == which_test
    counts = np.maximum(np.bincount(which_test, minlength=factors), 1)
    per_factor = np.bincount(which_test, right, factors) / counts
    return float(right.mean()), float((model.predict(x) == which).mean()), per_factor


def points(source: Interventions, n: int, batch: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Mean absolute differences (n, K) and the factor that each point held fixed (n,)."""
    latents = source.free(2, rng).shape[1]
    found, held = [], []
    for size in chunks(n, batch, latents):
        which = rng.integers(0, source.count, size)
        one, two = source.pairs(which, batch, rng)
        found.append(np.abs(one - two).mean(axis=1))
        held.append(which)
    return np.concatenate(found), np.concatenate(held)
