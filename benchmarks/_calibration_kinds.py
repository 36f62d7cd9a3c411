"""Simulated tables for `find_calibration.py`: each kind is a small function (rng, rows) -> Simulated.

Three answers are possible:
"none"      no axis can be known from such a table (Gaussian factors with dense loadings, independent columns, ...):
            every factor graded *found* is wrong;
"possible"  an axis may be known, but nobody asks for it: factors graded *found* are compared with the truth, power is
            not reported;
"known"     the axes can be known: factors graded *found* are compared with the truth, and power is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

Rng = np.random.Generator
Array = np.ndarray


@dataclass(frozen=True)
class Simulated:
    """A table and what it was made of."""

    table: pd.DataFrame
    count: int | None  # the true number of factors; None where the question has no answer
    family: str
    factors: Array | None = None  # (N, F); None where no factor exists
    loadings: Array | None = None  # (columns, F), standardised; only where the structure is simple
    knowable: Array | None = None  # (F,) of bool: which factors have an axis that can be known; None means all
    linear: bool = True  # whether the best guess of a factor is linear in the columns (for its determinacy)


class Kind(NamedTuple):
    """How to make a table, with how many rows, and what may be known about it."""

    make: Callable[[Rng, int], Simulated]
    answer: Literal["none", "possible", "known"]
    rows: tuple[int, ...] = (400, 700, 1000, 1500)
    network: bool = False  # whether `find` may train networks on it


def frame(x: Array) -> pd.DataFrame:
    return pd.DataFrame(x, columns=[f"v{i + 1}" for i in range(x.shape[1])])


def choice(g: Rng, *options):
    return options[int(g.integers(len(options)))]


def between(g: Rng, low: int, high: int) -> int:
    """A whole number, both ends included."""
    return int(g.integers(low, high + 1))


def standard(x: Array) -> Array:
    return (x - x.mean(0)) / x.std(0)


# --- building blocks -------------------------------------------------------------------------------------------------


def dense(g: Rng, rows: int, columns: int = 12, positive: bool = False) -> tuple[Array, Array, int]:
    """Gaussian factors with dense loadings and noise: unit-variance signal columns, their factors and how many."""
    k, n = between(g, 2, 4), between(g, 8, columns)
    z = g.standard_normal((rows, k))
    A = g.uniform(0.3, 1.0, (k, n)) if positive else g.standard_normal((k, n))
    A /= np.linalg.norm(A, axis=0)
    noise = g.uniform(0.3, 0.8, n)
    x = z @ A * np.sqrt(1 - noise**2) + noise * g.standard_normal((rows, n))
    return x, z, k


class Items(NamedTuple):
    x: Array  # (N, n), each of about unit variance
    z: Array  # (N, k)
    loadings: Array  # (n, k)


def items(g: Rng, rows: int, correlation: float = 0.0, most: int = 5) -> Items:
    """Gaussian factors, four to seven items each, small cross loadings, noise of each item's own."""
    k = between(g, 2, most)
    sizes = g.integers(4, 8, k)
    n = int(sizes.sum())
    R = np.full((k, k), correlation) + (1 - correlation) * np.eye(k)
    z = g.multivariate_normal(np.zeros(k), R, rows)
    L = 0.08 * g.standard_normal((n, k))
    own = np.repeat(np.arange(k), sizes)
    L[np.arange(n), own] = g.uniform(0.5, 0.85, n) * g.choice([-1, 1], n, p=[0.25, 0.75])
    L = L[g.permutation(n)]
    noise = np.sqrt(np.maximum(1 - np.einsum("ij,jk,ik->i", L, R, L), 0.1))
    return Items(z @ L.T + noise * g.standard_normal((rows, n)), z, L)


def with_minor_factors(g: Rng, x: Array) -> Array:
    """Fifty minor factors beside the few that a table is about, each weaker than the last, dense, 5 to 20 % of every
    column's variance in all: real tables have them (Tucker, Koopman and Linn 1969; MacCallum and Tucker 1991)."""
    (rows, n), many = x.shape, 50
    M = g.standard_normal((n, many)) * (1 - choice(g, 0.1, 0.2, 0.3)) ** np.arange(many)
    M *= np.sqrt(g.uniform(0.05, 0.2, n) / (M**2).sum(1))[:, None]
    own = np.sqrt((M**2).sum(1))
    return standard(x) * np.sqrt(1 - own**2) + g.standard_normal((rows, many)) @ M.T


def levels(g: Rng, x: Array, count: int) -> Array:
    """Cut each column into levels 1..count at thresholds of its own."""
    cuts = np.linspace(-1.3, 1.3, count - 1) if count > 2 else np.zeros(1)
    out = np.empty_like(x)
    for j in range(x.shape[1]):
        out[:, j] = 1 + np.searchsorted(cuts + g.uniform(-0.5, 0.5), x[:, j])
    return out


def shaped(g: Rng, rows: int, k: int) -> Array:
    """Independent non-Gaussian factors of unit variance: Laplace, uniform or exponential."""
    return np.stack(
        [
            choice(
                g,
                lambda: g.laplace(size=rows) / np.sqrt(2),
                lambda: g.uniform(-np.sqrt(3), np.sqrt(3), rows),
                lambda: g.exponential(size=rows) - 1,
            )()
            for _ in range(k)
        ],
        axis=1,
    )


# --- nothing, or no axis, can be known -------------------------------------------------------------------------------


def independent(g: Rng, rows: int) -> Simulated:
    n = between(g, 6, 14)
    draw = {
        "normal": lambda: g.standard_normal((rows, n)),
        "t 2.5": lambda: g.standard_t(2.5, (rows, n)),
        "log-normal": lambda: np.exp(g.standard_normal((rows, n))),
        "exponential": lambda: g.exponential(size=(rows, n)),
        "uniform": lambda: g.uniform(size=(rows, n)),
        "Poisson": lambda: g.poisson(3.0, (rows, n)).astype(float),
        "negative binomial": lambda: g.negative_binomial(2, 0.2, (rows, n)).astype(float),
        "five levels": lambda: g.integers(1, 6, (rows, n)).astype(float),
        "binary": lambda: g.integers(0, 2, (rows, n)).astype(float),
    }
    family = choice(g, *draw)
    return Simulated(frame(draw[family]()), 0, family)


def gaussian_dense(g: Rng, rows: int) -> Simulated:
    x, z, k = dense(g, rows)
    return Simulated(frame(x * np.exp(0.5 * g.standard_normal(x.shape[1]))), k, f"{k} factors", z)


def positive_dense(g: Rng, rows: int) -> Simulated:
    x, z, k = dense(g, rows, positive=True)
    return Simulated(frame(x), k, f"{k} factors", z)


def counts_dense(g: Rng, rows: int) -> Simulated:
    """Poisson counts of two or three programs that move every column: their sum is easily seen, they are not."""
    k, n = between(g, 2, 3), between(g, 8, 14)
    s = g.gamma(choice(g, 1.0, 3.0), size=(rows, k))
    W = g.uniform(0.2, 1.0, (k, n))
    return Simulated(frame(g.poisson(choice(g, 1.0, 3.0, 10.0) * s @ W).astype(float)), k, f"{k} programs", s)


def counts_lognormal(g: Rng, rows: int) -> Simulated:
    """Poisson counts with log-Gaussian rates of Gaussian factors and dense loadings."""
    x, z, k = dense(g, rows)
    return Simulated(frame(g.poisson(np.exp(1.0 + 0.7 * x)).astype(float)), k, f"{k} factors", z)


def likert_dense(g: Rng, rows: int) -> Simulated:
    x, z, k = dense(g, rows)
    count = choice(g, 3, 5, 7)
    return Simulated(frame(levels(g, x, count)), k, f"{count} levels", z)


def binary_dense(g: Rng, rows: int) -> Simulated:
    x, z, k = dense(g, rows)
    return Simulated(frame(levels(g, x, 2) - 1), k, f"{k} factors", z)


def elliptical(g: Rng, rows: int) -> Simulated:
    """Factors that share a random scale for each row: any rotation fits exactly as well."""
    k, n = between(g, 2, 4), between(g, 6, 12)
    family = choice(g, "t 4", "t 8", "t 12", "log-normal scale", "uniform in a ball")
    z = g.standard_normal((rows, k))
    if family.startswith("t "):
        df = int(family[2:])
        z *= np.sqrt(df / g.chisquare(df, (rows, 1)))
    elif family == "log-normal scale":
        z *= np.exp(0.4 * g.standard_normal((rows, 1)))
    else:
        z *= g.uniform(size=(rows, 1)) ** (1 / k) / np.linalg.norm(z, axis=1, keepdims=True) * np.sqrt(k + 2)
    x = z @ g.standard_normal((k, n)) + choice(g, 0.1, 0.5) * g.standard_normal((rows, n))
    return Simulated(frame(x), k, family, z)


def heavy_noise(g: Rng, rows: int) -> Simulated:
    """Gaussian factors, dense loadings, noise with heavy tails."""
    k, n, df = between(g, 2, 4), between(g, 8, 12), choice(g, 2.5, 3.0, 5.0)
    z = g.standard_normal((rows, k))
    x = z @ g.standard_normal((k, n)) + choice(g, 0.3, 0.7) * g.standard_t(df, (rows, n))
    return Simulated(frame(x), k, f"t {df:g} noise", z)


def saturated(g: Rng, rows: int) -> Simulated:
    """Gaussian factors, dense loadings, sensors that stop at a limit."""
    x, z, k = dense(g, rows)
    family = choice(g, "both ends", "upper end")
    high = g.uniform(0.5, 1.5, x.shape[1])
    low = -g.uniform(0.5, 1.5, x.shape[1]) if family == "both ends" else np.full(x.shape[1], -np.inf)
    return Simulated(frame(np.clip(x, low, high)), k, family, z)


def series(g: Rng, rows: int) -> Simulated:
    from scipy.signal import lfilter

    n = between(g, 6, 12)
    family = choice(g, "AR 0.9", "AR 0.8 Laplace", "random walk", "seasonal", "AR factors")
    if family == "AR 0.9":
        x = lfilter([1], [1, -0.9], g.standard_normal((rows, n)), axis=0)
    elif family == "AR 0.8 Laplace":
        x = lfilter([1], [1, -0.8], g.laplace(size=(rows, n)), axis=0)
    elif family == "random walk":
        x = g.standard_normal((rows, n)).cumsum(0)
    elif family == "seasonal":
        t = np.arange(rows)[:, None]
        period = g.uniform(10, 60, n) if g.uniform() < 0.5 else np.full(n, 24.0)
        x = np.sin(2 * np.pi * (t / period + g.uniform(size=n))) + 0.5 * g.standard_normal((rows, n))
    else:
        k = between(g, 2, 3)
        z = lfilter([1], [1, -0.9], g.standard_normal((rows, k)), axis=0)
        x = z @ g.standard_normal((k, n)) + g.standard_normal((rows, n))
    return Simulated(frame(np.asarray(x)), None, family)


def clusters(g: Rng, rows: int) -> Simulated:
    """Three or more round groups in two to four dimensions, seen through dense loadings."""
    family = choice(g, "triangle", "random centres", "many")
    if family == "triangle":
        angle = 2 * np.pi * np.arange(3) / 3
        centres = g.uniform(2, 3.5) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    else:
        centres = 2.5 * g.standard_normal((between(g, 5, 6) if family == "random centres" else 12, between(g, 3, 4)))
    d, n = centres.shape[1], between(g, 8, 12)
    z = centres[g.integers(len(centres), size=rows)] + 0.7 * g.standard_normal((rows, d))
    x = z @ g.standard_normal((d, n)) + 0.3 * g.standard_normal((rows, n))
    return Simulated(frame(x), None, family)


def missing(g: Rng, rows: int) -> Simulated:
    """Gaussian factors, dense loadings, 5 to 40 % of the cells missing."""
    x, z, k = dense(g, rows)
    share = choice(g, 0.05, 0.1, 0.2, 0.3, 0.4)
    gone = g.uniform(size=x.shape) < share
    if g.uniform() < 0.25:  # large values are missing more often
        gone = g.uniform(size=x.shape) < 2 * share / (1 + np.exp(-2 * x))
    return Simulated(frame(np.where(gone, np.nan, x)), k, f"{share:.0%} missing", z)


def exp_columns(g: Rng, rows: int) -> Simulated:
    """The exponential of Gaussian columns (incomes, concentrations)."""
    x, z, k = dense(g, rows)
    scale = choice(g, 0.5, 1.0)
    return Simulated(frame(np.exp(scale * x)), k, f"exp of {scale:g} x", z)


def compositions(g: Rng, rows: int) -> Simulated:
    """Shares that sum to 1."""
    n = between(g, 6, 12)
    family = choice(g, "Dirichlet", "logistic normal")
    if family == "Dirichlet":
        return Simulated(frame(g.dirichlet(g.uniform(0.5, 5.0, n), rows)), None, family)
    x, _, _ = dense(g, rows)
    parts = np.exp(0.7 * x)
    return Simulated(frame(parts / parts.sum(1, keepdims=True)), None, family)


def minor_dense(g: Rng, rows: int) -> Simulated:
    """Gaussian factors with dense loadings, and minor factors beside them."""
    x, z, k = dense(g, rows)
    return Simulated(frame(with_minor_factors(g, x)), k, f"{k} factors", z)


# --- an answer exists ------------------------------------------------------------------------------------------------


def questionnaire(g: Rng, rows: int) -> Simulated:
    """Continuous items with simple structure; some with noise that neighbouring items share (minor factors)."""
    made = items(g, rows)
    k, n = made.z.shape[1], made.x.shape[1]
    if g.uniform() < 0.3:
        shared = g.standard_normal((rows, n - 1)) * 0.25
        x = made.x.copy()
        x[:, 1:] += shared
        x[:, :-1] += shared
        return Simulated(frame(x), k, "neighbours share noise", made.z, made.loadings)
    return Simulated(frame(made.x * np.exp(0.5 * g.standard_normal(n))), k, "own noise", made.z, made.loadings)


def minor_items(g: Rng, rows: int) -> Simulated:
    """A questionnaire with minor factors."""
    made = items(g, rows, correlation=choice(g, 0.0, 0.3), most=4)
    x, k = with_minor_factors(g, made.x), made.z.shape[1]
    return Simulated(frame(levels(g, x, 5) if g.uniform() < 0.5 else x), k, f"{k} factors", made.z, made.loadings)


def likert(g: Rng, rows: int) -> Simulated:
    made = items(g, rows)
    count = choice(g, 5, 5, 7, 4)
    table = frame(levels(g, made.x, count))
    return Simulated(table, made.z.shape[1], f"{count} levels", made.z, made.loadings)


def binary(g: Rng, rows: int) -> Simulated:
    made = items(g, rows, most=4)
    return Simulated(frame(levels(g, made.x, 2) - 1), made.z.shape[1], "binary", made.z, made.loadings)


def oblique(g: Rng, rows: int) -> Simulated:
    """Simple structure of factors that correlate by 0.2 to 0.4."""
    r = float(g.uniform(0.2, 0.4))
    made = items(g, rows, correlation=r, most=4)
    ordinal = g.uniform() < 0.5
    table = frame(levels(g, made.x, 5) if ordinal else made.x)
    family = f"r {r:.1f}, {'five levels' if ordinal else 'continuous'}"
    return Simulated(table, made.z.shape[1], family, made.z, made.loadings)


def mixed(g: Rng, rows: int) -> Simulated:
    """Numbers, counts, two and five levels, a class, 5 % of the cells missing; simple structure."""
    made = items(g, rows, most=3)
    columns: dict[str, Array] = {}
    for j, column in enumerate(made.x.T):
        style = choice(g, "number", "number", "count", "binary", "levels")
        if style == "count":
            column = g.poisson(np.exp(1.2 + 0.6 * column)).astype(float)
        elif style == "binary":
            column = (column > 0).astype(float)
        elif style == "levels":
            column = levels(g, column[:, None], 5)[:, 0]
        else:
            column = 10 + 3 * column
        columns[f"{style}{j + 1}"] = np.where(g.uniform(size=rows) < 0.05, np.nan, column)
    table = pd.DataFrame(columns)
    table["group"] = np.array(["a", "b", "c"])[np.searchsorted([-0.5, 0.5], made.z[:, 0] + g.standard_normal(rows))]
    return Simulated(table, made.z.shape[1], "mixed", made.z, made.loadings)


def one_factor(g: Rng, rows: int) -> Simulated:
    """One Gaussian factor moves every column; a one-factor model explains all correlations."""
    n = between(g, 6, 12)
    z = g.standard_normal((rows, 1))
    L = g.uniform(0.4, 0.85, (n, 1)) * g.choice([-1, 1], (n, 1))
    x = z @ L.T + np.sqrt(1 - L[:, 0] ** 2) * g.standard_normal((rows, n))
    family = choice(g, "continuous", "five levels")
    return Simulated(frame(levels(g, x, 5) if family == "five levels" else x), 1, family, z, L)


def nongaussian(g: Rng, rows: int) -> Simulated:
    """Independent Laplace, uniform or exponential factors, dense loadings of both signs, little noise."""
    k, n = between(g, 2, 5), between(g, 8, 12)
    s = shaped(g, rows, k)
    noise = choice(g, 0.1, 0.3)
    x = s @ g.standard_normal((k, n)) + noise * g.standard_normal((rows, n))
    return Simulated(frame(x), k, f"noise {noise:g}", s)


def positive_nongaussian(g: Rng, rows: int) -> Simulated:
    """The same with positive loadings and much noise: their sum is easily seen, they are hardly."""
    k, n = between(g, 2, 3), between(g, 8, 12)
    s = shaped(g, rows, k)
    noise = choice(g, 0.3, 1.0)
    x = s @ g.uniform(0.3, 1.0, (k, n)) + noise * g.standard_normal((rows, n))
    return Simulated(frame(x), k, f"noise {noise:g}", s)


def half_gaussian(g: Rng, rows: int) -> Simulated:
    """Two non-Gaussian factors among two Gaussian ones, dense loadings: the Gaussian ones have no axes."""
    n = between(g, 8, 12)
    s = np.concatenate([shaped(g, rows, 2), g.standard_normal((rows, 2))], axis=1)
    x = s @ g.standard_normal((4, n)) + 0.1 * g.standard_normal((rows, n))
    return Simulated(frame(x), 4, "2 of 4", s, knowable=np.array([True, True, False, False]))


def parts(g: Rng, rows: int) -> Simulated:
    """Sparse non-negative amounts of sparse non-negative parts."""
    k, n = between(g, 2, 5), between(g, 10, 16)
    s = g.exponential(size=(rows, k)) * (g.uniform(size=(rows, k)) < choice(g, 0.7, 0.9))
    A = g.uniform(0.2, 1.0, (k, n)) * (g.uniform(size=(k, n)) < choice(g, 0.35, 0.5))
    A[np.arange(k), g.permutation(n)[:k]] = 1.0
    x = s @ A + np.abs(0.05 * g.standard_normal((rows, n)))
    return Simulated(frame(x), k, "amounts", s)


def counts(g: Rng, rows: int) -> Simulated:
    """Poisson counts of sparse programs; what a program contributes is the factor."""
    k, n = between(g, 2, 4), between(g, 12, 16)
    library = g.uniform() < 0.5
    s = g.gamma(1.0, size=(rows, k)) * (np.exp(0.5 * g.standard_normal((rows, 1))) if library else 1.0)
    W = g.dirichlet(np.full(n, 0.4), size=k)
    family = "library sizes vary" if library else "same library size"
    return Simulated(frame(g.poisson(choice(g, 50, 200) * s @ W).astype(float)), k, family, s)


def added(g: Rng, x: Array, s: Array, family: str) -> Simulated:
    """A curved table with a little noise, each column measured to 2 % of the whole spread."""
    x = x + 0.02 * x.std() * g.standard_normal(x.shape)
    return Simulated(frame(x), s.shape[1], family, s, linear=False)


def curves(g: Rng, rows: int) -> Simulated:
    """Each factor moves along a curve of its own that spans three dimensions; the curves are added."""
    k, n = between(g, 2, 3), between(g, 10, 12)
    s = g.uniform(-1, 1, (rows, k))
    family = choice(g, "parabola", "arc", "wave")
    bent = {
        "parabola": lambda t: np.stack([t, 0.8 * t**2, 0.4 * t**3], axis=1),
        "arc": lambda t: np.stack([np.sin(1.3 * t), np.cos(1.3 * t), 0.3 * t], axis=1),
        "wave": lambda t: np.stack([t, 0.4 * np.sin(3 * t), 0.3 * np.cos(3 * t)], axis=1),
    }[family]
    x = sum(bent(s[:, j]) @ np.linalg.qr(g.standard_normal((n, 3)))[0].T for j in range(k))
    return added(g, np.asarray(x), s, f"{family}, {k} factors")


def long_curves(g: Rng, rows: int) -> Simulated:
    """The same with curves that bend far: each factor alone fills several linear dimensions."""
    k, n = between(g, 2, 3), between(g, 10, 14)
    s = g.uniform(-1, 1, (rows, k)) if g.uniform() < 0.5 else np.clip(0.45 * g.standard_normal((rows, k)), -1.3, 1.3)
    family = choice(g, "helix", "polynomials", "waves")
    bent = {
        "helix": lambda t: np.stack([np.cos(2.4 * t), np.sin(2.4 * t), 0.6 * t], axis=1),
        "polynomials": lambda t: np.stack([t, 2 * t**2 - 1, 4 * t**3 - 3 * t, 0.5 * (8 * t**4 - 8 * t**2 + 1)], axis=1),
        "waves": lambda t: np.stack([t, 0.8 * np.sin(4 * t), 0.8 * np.cos(4 * t), 0.4 * np.sin(2 * t)], axis=1),
    }[family]
    d = bent(s[:, 0]).shape[1]
    x = sum(bent(s[:, j]) @ np.linalg.qr(g.standard_normal((n, d)))[0].T for j in range(k))
    return added(g, np.asarray(x), s, f"{family}, {k} factors")


def post_nonlinear(g: Rng, rows: int) -> Simulated:
    """Mixed linearly, then each column through a monotone function of its own."""
    k, n = between(g, 2, 3), between(g, 8, 12)
    s = shaped(g, rows, k) if g.uniform() < 0.5 else g.uniform(-np.sqrt(3), np.sqrt(3), (rows, k))
    x = s @ (g.standard_normal((k, n)) / np.sqrt(k))
    bends = (np.tanh, lambda v: v + 0.3 * v**3, lambda v: np.log1p(np.exp(2 * v)), np.arcsinh)
    return added(g, np.stack([choice(g, *bends)(v) for v in x.T], axis=1), s, f"{k} factors")


def rolls(g: Rng, rows: int) -> Simulated:
    """A swiss roll (angle and height), alone or with a third factor along a line; turned into more dimensions."""
    k, n = between(g, 2, 3), between(g, 6, 10)
    s = g.uniform(-1, 1, (rows, k))
    t = np.pi * (1.6 + 0.7 * s[:, 0])
    flat = [t * np.cos(t) / 3, t * np.sin(t) / 3, 1.5 * s[:, 1]] + ([1.2 * s[:, 2]] if k == 3 else [])
    Q = np.linalg.qr(g.standard_normal((n, len(flat))))[0]
    return added(g, np.stack(flat, axis=1) @ Q.T, s, f"{k} factors")


def caps(g: Rng, rows: int) -> Simulated:
    """Longitude and latitude on a part of a sphere, with a third factor on an arc for some."""
    k, n = between(g, 2, 3), between(g, 6, 10)
    s = g.uniform(-1, 1, (rows, k))
    long, lat = 1.1 * s[:, 0], 0.8 * s[:, 1]
    flat = [np.cos(lat) * np.cos(long), np.cos(lat) * np.sin(long), np.sin(lat)]
    flat += [np.cos(1.2 * s[:, 2]), np.sin(1.2 * s[:, 2])] if k == 3 else []
    Q = np.linalg.qr(g.standard_normal((n, len(flat))))[0]
    return added(g, np.stack(flat, axis=1) @ Q.T, s, f"{k} factors")


def smooth(g: Rng, rows: int) -> Simulated:
    """Uniform factors through one hidden layer of tanh with random weights."""
    k, n = between(g, 2, 3), 12
    s = g.uniform(-1, 1, (rows, k))
    x = np.tanh(s @ g.standard_normal((k, 8)) + 0.5 * g.standard_normal(8)) @ g.standard_normal((8, n))
    return added(g, x, s, f"{k} factors")


CURVED = (800, 1200)
KINDS: dict[str, Kind] = {
    "independent": Kind(independent, "none"),
    "gaussian-dense": Kind(gaussian_dense, "none"),
    "positive-dense": Kind(positive_dense, "none"),
    "counts-dense": Kind(counts_dense, "possible"),
    "counts-lognormal": Kind(counts_lognormal, "none"),
    "likert-dense": Kind(likert_dense, "none"),
    "binary-dense": Kind(binary_dense, "none"),
    "elliptical": Kind(elliptical, "none", (1000, 2000, 8000, 20000)),
    "heavy-noise": Kind(heavy_noise, "none"),
    "saturated": Kind(saturated, "none"),
    "series": Kind(series, "none"),
    "clusters": Kind(clusters, "none"),
    "missing": Kind(missing, "none"),
    "exp-columns": Kind(exp_columns, "none"),
    "compositions": Kind(compositions, "none"),
    "positive-nongaussian": Kind(positive_nongaussian, "possible"),
    "minor-dense": Kind(minor_dense, "none"),
    "items": Kind(questionnaire, "known"),
    "likert": Kind(likert, "known"),
    "binary": Kind(binary, "known", (700, 1000, 1500)),
    "oblique": Kind(oblique, "known"),
    "minor-items": Kind(minor_items, "known"),
    "mixed": Kind(mixed, "known"),
    "one-factor": Kind(one_factor, "known"),
    "nongaussian": Kind(nongaussian, "known"),
    "half-gaussian": Kind(half_gaussian, "known"),
    "parts": Kind(parts, "known"),
    "counts": Kind(counts, "known"),
    "curves": Kind(curves, "known", CURVED, network=True),
    "long-curves": Kind(long_curves, "known", CURVED, network=True),
    "post-nonlinear": Kind(post_nonlinear, "known", CURVED, network=True),
    "rolls": Kind(rolls, "known", CURVED, network=True),
    "caps": Kind(caps, "known", CURVED, network=True),
    "smooth": Kind(smooth, "known", CURVED, network=True),
}
