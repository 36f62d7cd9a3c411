"""How many factors to start with: PPCA's evidence, checked against the same table with its columns shuffled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from unseam.axes import Array
from unseam.finding.density import gain, gaussian_log
from unseam.finding.factor_analysis import FactorModel, correlation_matrix, fit_factors
from unseam.linear.ppca import log_evidence
from unseam.rng import numpy_generator

FLOOR = 1e-6  # smallest share of the mean eigenvalue: a noise-free table still has rounding
SURE = 4.0  # standard deviations above the shuffled tables
_LEAST_NOISE = 0.01  # of a column's variance, when each has its own
MOST_ANALYSED = 100  # columns up to which factor analysis is tried
WHOLE = 12  # columns up to which structure beyond the covariance is looked for
_LEAST = 0.005  # of HSIC, from which on dependence is called one: less is what ICA leaves of its own error
_DEPENDS = 2.5  # standard deviations above shuffled columns that count as dependence (tuned: 1.6 without, 3.5 with)
TESTED = 2000  # rows of the shuffled tables


def _eigenvalues(x: Array) -> Array:  # (N, n) -> (n,), largest first
    x = x - x.mean(0)
    wide = x.shape[1] > len(x)  # then X X' has the same ones, but for zeros
    l = np.linalg.eigvalsh(x @ x.T if wide else x.T @ x)[::-1] / len(x)
    l = np.pad(l, (0, x.shape[1] - len(l)))
    return np.maximum(l, FLOOR * l.mean())


def _shuffled(x: Array, generator: np.random.Generator) -> Array:
    """Every column in an order of its own: the same columns with nothing shared."""
    return generator.permuted(x, axis=0)


def _by_evidence(l: Array, N: int, most: int = 60) -> int:  # (n,)
    """The d in 0..n-1 with the highest evidence; d = 0 is one variance for all.

    >>> _by_evidence(np.array([5.0, 3.0, 1.02, 1.0, 0.98]), 200)
    2
    """
    zero = -N * len(l) / 2 * np.log(l.mean())
    return int(np.argmax([zero, *(log_evidence(l, d, N) for d in range(1, min(len(l), most + 1)))]))


def _above_shuffled(x: Array, seed: int, tables: int = 10) -> int:  # (N, n)
    """Horn's parallel analysis: leading eigenvalues further above those of shuffled tables than SURE deviations."""
    generator = numpy_generator(seed, "shuffled")
    null = np.stack([_eigenvalues(_shuffled(x, generator)) for _ in range(tables)])
    above = _eigenvalues(x) > null.mean(0) + SURE * null.std(0) + 1e-9
    return int(np.argmin(above)) if not above.all() else len(above)


def _shared_beyond_covariance(x: Array, seed: int) -> bool:  # (N, n)
    """Whether any two columns without correlation still depend on each other."""
    return bool(dependent(x, seed, least=0.0, sure=1.5 * SURE).any())


def dependent(x: Array, seed: int, least: float = _LEAST, sure: float = _DEPENDS) -> Array:  # (N, n) -> (n, n) bool
    """Which columns depend on each other in any way, by HSIC, where it is `least` at least and further above the
    largest of shuffled tables than `sure` deviations.

    >>> t = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> dependent(np.stack([t[:, 0], t[:, 0] ** 2, t[:, 1]], axis=1), 0)
    array([[False,  True, False],
           [ True, False, False],
           [False, False, False]])
    """
    generator = numpy_generator(seed, "beyond")
    some, few = x[:TESTED], min(1.0, TESTED / len(x))  # without dependence HSIC falls as 1 / N
    null = [few * hsic(_shuffled(some, generator)).max() for _ in range(20 if x.shape[1] <= 16 else 8)]
    return np.asarray(hsic(x) > max(float(np.mean(null) + sure * np.std(null)), few * least))


def hsic(x: Array) -> Array:  # (N, n) -> (n, n)
    """|C_ij|^2 / (|C_ii| |C_jj|), C the covariance of Fourier features of x_i at frequencies spread as a Gaussian's
    quantiles, which stand for a Gaussian kernel (Gretton 2005, Rahimi 2007).

    0 without any dependence, 1 for copies; features are bounded, so that tails and atoms do no harm.
    """
    N, n = x.shape
    m = 12 if n <= 16 else 4
    w = norm.ppf(0.5 + (np.arange(m) + 0.5) / (2 * m))
    angles = ((x - x.mean(0)) / (x.std(0) + 1e-12))[:, :, None] * w
    f = np.concatenate([np.cos(angles), np.sin(angles)], axis=2).reshape(N, 2 * n * m)
    f -= f.mean(0)
    squares = ((f.T @ f / N) ** 2).reshape(n, 2 * m, n, 2 * m).sum((1, 3))
    own = np.sqrt(np.maximum(np.diag(squares), 1e-300))
    out = squares / np.outer(own, own)
    np.fill_diagonal(out, 0)
    return np.asarray(out)


class Start(NamedTuple):
    """How many linear dimensions the rows share, and the noise of each column, if the columns differ in it."""

    d: int
    noise: Array | None = None  # (n,) standard deviations


def by_columns(x: Array, most: int) -> Start:  # (N, n)
    """Factor analysis, where every column has a noise of its own: d grows while unseen rows become likelier."""
    unseen = np.arange(len(x)) % 4 == 0
    train, test = x[~unseen], x[unseen]
    R, mean, scale = correlation_matrix(train), train.mean(0), np.maximum(train.std(0), 1e-12)
    noises: list[Array] = []
    scores = [_alone(train, test)]
    for d in range(1, most + 1):
        found = fit_factors(R, d)
        noises.append(scale * np.sqrt(np.maximum(found.unique, _LEAST_NOISE)))
        scores.append(FactorModel(mean, scale, found.loadings, np.eye(d), found.unique).log_likelihood(test))
        if d >= 2 and not any(gain(scores[-k] - scores[-3]).sure() for k in (1, 2)):
            break
    best = 0
    for d in range(1, len(scores)):
        if gain(scores[d] - scores[best]).sure():
            best = d
    return Start(best, noises[best - 1] if best else None)


def _alone(train: Array, test: Array) -> Array:  # -> (M,)
    """log p of unseen rows when every column is a Gaussian of its own."""
    mean, spread = train.mean(0), train.std(0)
    return np.asarray((gaussian_log((test - mean) / spread) - np.log(spread)).sum(1))


def isotropic(x: Array, seed: int = 0) -> int:  # (N, n)
    """The number of factors if all columns had the same noise; 0 when nothing is shared.

    >>> from unseam.rng import numpy_generator
    >>> g = numpy_generator(0, "doctest")
    >>> isotropic(g.standard_normal((500, 6))), isotropic(g.standard_normal((500, 2)) @ g.standard_normal((2, 6)))
    (0, 2)
    """
    N, n = x.shape
    above = _above_shuffled(x, seed)
    if not above:
        return n if n <= WHOLE and N >= 100 and _shared_beyond_covariance(x, seed) else 0
    return max(1, _by_evidence(_eigenvalues(x), N)) if 2 * n < N else above
