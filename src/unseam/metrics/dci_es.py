"""DCI-ES: the E and S that Eastwood et al. 2023 (openreview 462z-gLgSht) add to DCI: how easy, and how large, is a
code?

Explicitness. Probes of rising capacity predict a factor from the whole code; l(c) is the smallest loss up to capacity
c:

    E_f = 1 - 2 int (l(c) - l*) dc / ((c_max - c_min) l_0)

l* the smallest loss of all, l_0 that of a constant guess; E is the mean over the factors. 1: the smallest probe, a
linear one, does as well as any. Size S = factors / latents.

The authors train MLPs, random forests or random Fourier features + a linear layer. Ours are the latter, with
closed-form ridge regression: the standardised code itself, then with 2^4 ... 2^9 random cosines beside it; capacity is
the logarithm of the number of inputs. Loss on held-out rows: 1 - accuracy of a categorical factor, 1 - R^2 of any
other (of a cyclic one's cosine and sine), as the authors have it.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, Observations, require_few_classes
from unseam.metrics.registry import metric
from unseam.rng import numpy_generator
from unseam.stats import standardise

_EASTWOOD = "Eastwood et al. 2023, openreview 462z-gLgSht"
COSINES = (0, 16, 32, 64, 128, 256, 512)
UNREAD = 0.95  # of the constant guess's loss: no probe has read anything to speak of
_RIDGE = 1e-3  # of the mean square of an input


@metric(
    "es-explicitness",
    "Do simple probes read the factors as well as complex ones?",
    _EASTWOOD,
    range=(-1.0, 1.0),
    ceiling="1; a code without any information has it too, for no probe helps",
    vectors=True,
)
def es_explicitness(inputs: Inputs) -> Score:
    """Explicitness of codes: the area above the loss-capacity curve.

    >>> v = np.random.default_rng(0).integers(0, 3, (600, 2))
    >>> round(es_explicitness(v.astype(float), v).value, 3), bool(es_explicitness(v == 1, v).value < 1)
    (1.0, True)
    """
    require_few_classes(inputs, "es-explicitness")
    train, test = inputs.halves()
    x, new = standardise(train.codes.astype(np.float64), test.codes.astype(np.float64))
    alive = np.ptp(x, axis=0) > 0
    x, new = features(x[:, alive], inputs.seed), features(new[:, alive], inputs.seed)
    sizes = [1 + int(alive.sum()) + m for m in COSINES]
    kinds = [factor.kind == "categorical" for factor in inputs.space]
    y = [(_targets(inputs, f, train), _targets(inputs, f, test), kind) for f, kind in enumerate(kinds)]
    losses = np.stack([losses_at(x[:, :m], new[:, :m], y) for m in sizes], axis=1)  # (F, C)
    guess = np.array([constant_loss(*one) for one in y])
    ease = np.array([explicit(np.log(sizes), l, g) for l, g in zip(losses, guess, strict=True)])
    settings = {"cosines": list(COSINES), "train": len(train), "test": len(test), "seed": inputs.seed}
    extra = {"losses": losses, "capacities": sizes}
    notes = unread([factor.name for factor in inputs.space], losses.min(axis=1), guess)
    return Score("es-explicitness", float(ease.mean()), per_factor=ease, settings=settings, extra=extra, notes=notes)


def unread(names: list[str], best: Array, guess: Array) -> tuple[str, ...]:  # F names, (F,), (F,)
    """Factors that no probe reads: their explicitness of about 1 says nothing good.

    >>> unread(["x", "y"], np.array([0.99, 0.5]), np.array([1.0, 1.0]))
    ('es-explicitness: no probe reads x much better than a constant guess; a value near 1 says nothing there',)
    """
    lost = [name for name, l, g in zip(names, best, guess, strict=True) if l > UNREAD * g]
    if not lost:
        return ()
    says = "a value near 1 says nothing there"
    return (f"es-explicitness: no probe reads {', '.join(lost)} much better than a constant guess; {says}",)


def features(x: Array, seed: int) -> Array:  # (N, K) -> (N, 1 + K + 512)
    """1, the code, and random cosines of it: frequencies N(0, 1/K), the same for any order of rows."""
    rng, k = numpy_generator(seed, "cosines"), max(x.shape[1], 1)
    directions = rng.normal(size=(COSINES[-1], k))[:, : x.shape[1]] / np.sqrt(k)
    phase = rng.uniform(0, 2 * np.pi, COSINES[-1])
    return np.hstack([np.ones((len(x), 1)), x, np.sqrt(2) * np.cos(x @ directions.T + phase)])


def _targets(inputs: Inputs, f: int, rows: Observations) -> Array:  # (N, C): one-hot, cosine and sine, or the value
    factor, labels = inputs.space[f], rows.labels[:, f]
    if factor.kind == "categorical":
        return np.eye(inputs.classes[f])[labels]
    if factor.kind == "cyclic":
        angle = 2 * np.pi * rows.values[:, f] / (factor.size or 1)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return rows.values[:, [f]]


def losses_at(x: Array, new: Array, y: list[tuple[Array, Array, bool]]) -> Array:  # (F,)
    """Held-out losses of ridge regression, all factors at once."""
    gram = x.T @ x
    every = np.hstack([one[0] for one in y])
    weights = np.linalg.solve(gram + _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram)), x.T @ every)
    cuts = np.cumsum([one[0].shape[1] for one in y])[:-1]
    guesses = np.split(new @ weights, cuts, axis=1)
    return np.array([error(guess, one[1], one[2]) for guess, one in zip(guesses, y, strict=True)])


def error(guess: Array, y: Array, classes: bool) -> float:
    """1 - accuracy of classes, 1 - R^2 of numbers."""
    if classes:
        return float((guess.argmax(axis=1) != y.argmax(axis=1)).mean())
    return float(((guess - y) ** 2).sum() / max(((y - y.mean(axis=0)) ** 2).sum(), 1e-300))


def constant_loss(y: Array, y_new: Array, classes: bool) -> float:
    return error(np.broadcast_to(y.mean(axis=0), y_new.shape), y_new, classes)


def explicit(capacity: Array, losses: Array, baseline: float) -> float:  # (C,), (C,)
    """E of one curve; losses above the constant guess are the constant guess.

    >>> c = np.arange(3.0)
    >>> explicit(c, np.array([0.0, 0.0, 0.0]), 0.5), explicit(c, np.array([0.5, 0.25, 0]), 0.5)
    (1.0, 0.0)
    """
    best = np.minimum.accumulate(np.minimum(losses, baseline))
    if baseline <= 0:
        return 1.0
    area = np.trapezoid(best - best[-1], capacity)
    return float(1 - 2 * area / ((capacity[-1] - capacity[0]) * baseline))


@metric(
    "es-size",
    "How many factors are there for each latent?",
    _EASTWOOD,
    range=(0.0, float("inf")),
    ceiling="1 with as many latents as factors",
    counts="it divides by the number of all latents",
)
def es_size(inputs: Inputs) -> Score:
    """Factors over latents.

    >>> es_size(np.zeros((5, 4)) + np.arange(5.0)[:, None], np.arange(5) % 2).value
    0.25
    """
    latents, factors = inputs.rows.codes.shape[1], len(inputs.space)
    return Score("es-size", factors / latents, settings={"factors": factors, "latents": latents})
