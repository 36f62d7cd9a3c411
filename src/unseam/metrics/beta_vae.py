"""BetaVAE score: can a linear classifier tell which factor two observations share?

Higgins et al. 2017, section 3 (openreview Sy2fzU9gl). A point is the mean of |z1 - z2| over 64 pairs that share
the value of a random factor f; logistic regression predicts f from 10,000 points and is tested on 5,000.
Settings as in the reference implementation. Beware: a representation that holds all factors but one still
reaches 100 %, because the classifier infers the missing factor from the others being different.
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
from unseam.metrics.shared.logistic import fit_softmax
from unseam.rng import numpy_generator


@metric(
    "beta-vae",
    "Can a linear classifier tell which factor two observations share?",
    "Higgins et al. 2017, openreview Sy2fzU9gl",
    ceiling="1, reached already when all factors but one are held",
    vectors=True,
)
def beta_vae(inputs: Inputs, batch: int = 64, train: int = 10_000, test: int = 5_000) -> Score:
    """BetaVAE score, from arrays or from a sampler `factors (B, F) -> codes (B, K)` with its space.

    >>> v = np.random.default_rng(0).integers(0, 4, (400, 2))
    >>> beta_vae(v.astype(float), v, train=200, test=100).value
    1.0
    """
    source = interventions(inputs, "beta-vae")
    sizes = batch, (train, test), inputs.rows.codes.shape[1], inputs.seed
    draws = drawn(inputs, ("beta-vae", *sizes), 2 * (train + test) * batch, lambda: _draws(source, *sizes))
    found = [(by_point(source, _mean_difference, one, two), which) for which, one, two in draws]
    x, which = map(np.concatenate, zip(*found, strict=True))
    value, on_train, per_factor = accuracy(x[:train], which[:train], x[train:], which[train:], source.count)
    settings = points_settings(source, batch, train, test, inputs.seed)
    extra = {"train": on_train, "test_standard_error": standard_error(value, test)}
    return Score("beta-vae", value, per_factor=per_factor, settings=settings, extra=extra)


def accuracy(x: Array, which: Array, x_test: Array, which_test: Array, factors: int) -> tuple[float, float, Array]:
    """Held-out accuracy, training accuracy, and held-out accuracy per factor of the classifier."""
    model = fit_softmax(x, which, factors)
    right = model.predict(x_test) == which_test
    counts = np.maximum(np.bincount(which_test, minlength=factors), 1)
    per_factor = np.bincount(which_test, right, factors) / counts
    return float(right.mean()), float((model.predict(x) == which).mean()), per_factor


def _draws(
    source: Interventions, batch: int, points: tuple[int, int], latents: int, seed: int
) -> Iterator[tuple[Array, ...]]:
    """Factors that points hold fixed (P,), and the places of their pairs, (P, L, ...) twice."""
    rng = numpy_generator(seed, "beta-vae")
    for n in points:
        source.free(2, rng)  # not used; without it all other draws would change
        for size in chunks(n, batch, latents):
            which = rng.integers(0, source.count, size)
            yield which, *source.pairs(which, batch, rng)


def _mean_difference(one: Array, two: Array) -> Array:  # (L, P, K) -> (P, K)
    return np.abs(one - two).mean(axis=0)
