"""Representations whose quality is known by construction, to check and to calibrate a metric.

`z = Q g(W s) + noise`: standardised factors s are copied to latents, warped, rotated, blurred or dropped. What a
good metric should say of each is plain: perfect > noisy > pairs mixed > rotated > noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unseam.axes import Array
from unseam.errors import lookup
from unseam.rng import numpy_generator

Recipe = Callable[[Array, int, np.random.Generator], Array]  # s (N, F), K -> z (N, K)


def known(
    case: str, n: int = 2000, sizes: Sequence[int] = (3, 4, 8, 6), latents: int = 8, seed: int = 0
) -> tuple[Array, Array]:  # (N, K) float32, (N, F)
    """Codes of one case and the factors they were made from. The factors do not depend on the case.

    >>> codes, factors = known("perfect", 100)
    >>> codes.shape, factors.shape
    ((100, 8), (100, 4))
    """
    recipe = lookup(CASES, case, "case")
    factors = np.stack([numpy_generator(seed, "factor", f).integers(0, s, n) for f, s in enumerate(sizes)], axis=1)
    mean, std = np.array([(s - 1) / 2 for s in sizes]), np.array([np.sqrt((s * s - 1) / 12) for s in sizes])
    rng = numpy_generator(seed, "known", case)
    return recipe((factors - mean) / std, latents, rng).astype(np.float32), factors


def filled(s: Array, k: int, rng: np.random.Generator, scale: float = 1.0) -> Array:
    """The factors in the first latents, noise in the others."""
    return np.concatenate([s, scale * rng.normal(size=(len(s), k - s.shape[1]))], axis=1)


def noisy(amount: float) -> Recipe:
    return lambda s, k, rng: filled(s + amount * rng.normal(size=s.shape), k, rng)


def rotated(s: Array, k: int, rng: np.random.Generator) -> Array:
    q = np.linalg.qr(rng.normal(size=(k, k)))[0]
    return filled(s, k, rng) @ q.T


def pairs(degrees: float) -> Recipe:
    """Latents 2i and 2i + 1 are rotated into each other."""

    def recipe(s: Array, k: int, rng: np.random.Generator) -> Array:
        z, t = filled(s, k, rng), np.deg2rad(degrees)
        for i in range(0, k - 1, 2):
            z[:, i : i + 2] = z[:, i : i + 2] @ np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
        return z

    return recipe


def warped(s: Array, k: int, rng: np.random.Generator) -> Array:
    maps = (np.tanh, lambda x: x**3, np.expm1)
    return filled(np.stack([maps[f % 3](s[:, f]) for f in range(s.shape[1])], axis=1), k, rng)


def duplicated(s: Array, k: int, rng: np.random.Generator) -> Array:
    """A second, blurred copy of as many factors as fit."""
    copy = s + rng.normal(size=s.shape)
    return filled(np.concatenate([s, copy], axis=1)[:, :k], k, rng)


def partial(count: int) -> Recipe:
    """Only the first `count` factors are there."""
    return lambda s, k, rng: filled(s[:, :count], k, rng)


def dead(s: Array, k: int, rng: np.random.Generator) -> Array:
    return filled(s, k, rng, scale=1e-3)


def noise(s: Array, k: int, rng: np.random.Generator) -> Array:
    return rng.normal(size=(len(s), k))


CASES: dict[str, Recipe] = {
    "perfect": noisy(0.0),
    "noisy-0.1": noisy(0.1),
    "noisy-0.3": noisy(0.3),
    "noisy-1": noisy(1.0),
    "rotated": rotated,
    "pairs-10": pairs(10),
    "pairs-20": pairs(20),
    "pairs-45": pairs(45),
    "warped": warped,
    "duplicated": duplicated,
    "partial-1": partial(1),
    "partial-3": partial(3),
    "dead": dead,
    "noise": noise,
}
