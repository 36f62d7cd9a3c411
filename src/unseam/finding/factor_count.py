"""How many factors: the rules that practitioners use, side by side, and with how many to start (PPCA's evidence).

parallel   eigenvalues of the correlations above the 95 % quantile of those of shuffled columns (Horn 1965)
map        the m with the smallest mean squared partial correlation once m components are taken out (Velicer 1976)
gap        the place of the largest ratio l_m / l_{m+1} of neighbouring eigenvalues, of those above the noise
bic        factor analysis gains factors beyond those of parallel analysis while BIC falls and the weakest one is clear;
           of these the first that make the model fit closely are taken
evidence   directions that are not noise, by PPCA's evidence or the likelihood of unseen rows

Parallel analysis compares the second eigenvalue with that of a table in which nothing is shared, although a strong
first factor has taken most of the variance, and so it misses weak factors that move every column. Factor analysis that
has the strong ones already does not. Its weakest direction is as clear as the smallest eigenvalue of L' psi^-1 L says:
at 1 the columns determine the direction to a squared correlation of 1/2. It moves 1 / sum u_i^4 columns, u the unit
eigenvector of psi^-1/2 R psi^-1/2; what one or two columns have for themselves is not a factor.

Real tables have many minor factors, each weaker than the last, and BIC counts them one by one without an end. Where
parallel analysis missed a major one, a few more factors leave nothing: with them the model fits closely,

    RMSEA = ((F - m / N) / m)^1/2 <= 0.05,   m degrees of freedom

(Browne & Cudeck 1993; MacCallum & Tucker 1991). Factors beyond parallel analysis are major only up to the number that
fits closely; where no number that BIC allows does, they are minor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.finding.density import dependent, gain, gaussian_log
from unseam.finding.factor_analysis import (
    FactorModel,
    approximation_error,
    canonical_directions,
    correlation_matrix,
    fit_factors,
    standardised_columns,
)
from unseam.linear.ppca import log_evidence
from unseam.rng import numpy_generator

_QUANTILE = 0.95
_SHUFFLES = 60  # tables; fewer where they are large
_CELLS = 4e6  # of all shuffled tables together
CLEAR = 1.0  # smallest eigenvalue of L' psi^-1 L from which on a direction is more signal than noise
_COLUMNS = 2.5  # columns that a direction must move: more than two
_CLOSE = 0.05  # root mean square error of approximation (RMSEA) up to which a model fits closely
_GAP = 4.0  # ratio of neighbouring eigenvalues from which on a spectrum has a gap
WIDE = 300  # columns above which partial correlations are not looked at
FLOOR = 1e-6  # smallest share of the mean eigenvalue: a noise-free table still has rounding
SURE = 4.0  # standard deviations above the shuffled tables
_LEAST_NOISE = 0.01  # of a column's variance, when each has its own
MOST_ANALYSED = 100  # columns up to which factor analysis is tried
WHOLE = 12  # columns up to which structure beyond the covariance is looked for


@dataclass(frozen=True)
class FactorCounts:
    """The number of factors by each rule; `major` is the one that is used."""

    major: int
    parallel: int | None = None
    map: int | None = None
    gap: int | None = None
    bic: int | None = None
    evidence: int | None = None
    eigenvalues: Array = field(default_factory=lambda: np.zeros(0), repr=False)  # (n,) of the correlations
    null: Array = field(default_factory=lambda: np.zeros(0), repr=False)  # (n,) their 95 % quantile if shuffled

    def to_json(self) -> dict[str, Any]:
        return {
            "major": self.major, "parallel": self.parallel, "map": self.map, "gap": self.gap,
            "bic": self.bic, "evidence": self.evidence, "eigenvalues": [round(float(l), 6) for l in self.eigenvalues],
            "null": [round(float(l), 6) for l in self.null],
        }  # fmt: skip

    def disagreement(self) -> str | None:
        """One line where the rules differ, else None.

        >>> FactorCounts(5, parallel=6, map=5, evidence=8).disagreement()
        'number of factors: 5 (5 by MAP, 6 by parallel analysis, 8 by evidence)'
        >>> FactorCounts(2, 2, 2, 2, 2, 2).disagreement() is None
        True
        """
        rules = (("MAP", self.map), ("parallel analysis", self.parallel), ("the gap in the spectrum", self.gap),
                 ("BIC", self.bic), ("evidence", self.evidence))  # fmt: skip
        known = [(name, k) for name, k in rules if k is not None]
        if not known or all(k == self.major for _, k in known):
            return None
        return f"number of factors: {self.major} ({', '.join(f'{k} by {name}' for name, k in known)})"


def count_factors(x: Array, gaps: Array, evidence: int, seed: int = 0) -> FactorCounts:  # (N, n), (N, n) bool
    """The major factors: parallel analysis, or more where MAP and evidence agree on it, where clear factors beyond it
    make the model fit closely, or where the eigenvalues fall by GAP beyond it (little noise: even a weak factor stands
    out) and what lies between moves several columns.

    With missing cells BIC is not asked: correlations over different rows do not fit together where noise is small.

    >>> g = np.random.default_rng(0)
    >>> x = g.normal(size=(400, 3)) @ g.normal(size=(3, 10)) + 0.1 * g.normal(size=(400, 10))
    >>> count_factors(x, np.zeros(x.shape, bool), 3).major
    3
    """
    n = x.shape[1]
    found = parallel_analysis(x, gaps, seed)
    l, parallel = found.eigenvalues, found.number
    partial = minimum_partial(correlation_matrix(x, gaps)) if n <= WIDE else None
    asked = found.sure and n <= MOST_ANALYSED and not gaps.any()
    bic, close = clear_factors(x, parallel) if asked else (None, 0)
    place, ratio = _spectrum_gap(l, max(evidence, parallel))
    if not found.sure:
        major = evidence if evidence == n else 0  # nothing correlates; all columns where they depend on each other
    elif partial is not None and partial == evidence > max(parallel, close):
        major = partial
    elif parallel < place <= min(evidence, n - 2) and ratio >= _GAP and _moves_several(x, gaps, parallel, place):
        major = max(place, close)
    else:
        major = max(parallel, close, 1)
    return FactorCounts(major, parallel, partial, place, bic, max(evidence, major), l, found.null)


class _Parallel(NamedTuple):
    """Parallel analysis: how many, eigenvalues (n,) and their 95 % quantile (n,) in shuffled tables, and whether the
    first is beyond doubt."""

    number: int
    eigenvalues: Array
    null: Array
    sure: bool


def parallel_analysis(x: Array, gaps: Array | None = None, seed: int = 0) -> _Parallel:  # (N, n)
    """Horn's rule; missing cells are shuffled as such.

    >>> g = np.random.default_rng(0)
    >>> parallel_analysis(g.normal(size=(300, 2)) @ g.normal(size=(2, 8)) + g.normal(size=(300, 8))).number
    2
    """
    generator = numpy_generator(seed, "parallel")
    tables = int(np.clip(_CELLS / x.size, 10, _SHUFFLES))
    cells = x if gaps is None or not gaps.any() else np.where(gaps, np.nan, x)
    null = []
    for _ in range(tables):
        other = generator.permuted(cells, axis=0)
        null.append(_eigenvalues(other, None if cells is x else np.isnan(other)))
    l, bar = _eigenvalues(x, gaps), np.quantile(null, _QUANTILE, axis=0)
    above = l > bar + 1e-9
    first = np.array(null)[:, 0]
    sure = bool(l[0] > first.mean() + SURE * first.std() + 1e-9)
    return _Parallel(int(np.argmin(above)) if not above.all() else len(l), l, bar, sure)


def _eigenvalues(x: Array, gaps: Array | None) -> Array:  # -> (n,), largest first
    """Of the correlations; of a wide table by its rows."""
    N, n = x.shape
    if gaps is not None and gaps.any():
        return np.linalg.eigvalsh(correlation_matrix(x, gaps))[::-1]
    z = standardised_columns(x)
    l = np.linalg.eigvalsh(z @ z.T if n > N else z.T @ z)[::-1] / N
    return np.pad(np.maximum(l, 0), (0, max(0, n - len(l))))[:n]


def minimum_partial(R: Array) -> int | None:  # (n, n)
    """Velicer's MAP; None for more than WIDE columns.

    >>> L = np.kron(np.eye(2), np.full((4, 1), 0.8))
    >>> minimum_partial(L @ L.T + np.diag(np.full(8, 0.36)))
    2
    """
    n = len(R)
    if n > WIDE or n < 3:
        return None
    l, U = np.linalg.eigh(R)
    l, U = np.maximum(l[::-1], 0), U[:, ::-1]
    A = U * np.sqrt(l)
    left, best, least = R.copy(), 0, float(((R**2).sum() - n) / (n * (n - 1)))
    for m in range(1, n - 1):
        left = left - np.outer(A[:, m - 1], A[:, m - 1])
        own = np.diag(left)
        if own.min() < 1e-6:
            break
        partial = left / np.sqrt(np.outer(own, own))
        mean = float(((partial**2).sum() - n) / (n * (n - 1)))
        if mean < least:
            best, least = m, mean
    return best


class _Clear(NamedTuple):
    """Up to how many factors BIC falls, and with how many of them, from the first on, the model fits closely; the first
    where it never does."""

    bic: int
    close: int


def clear_factors(x: Array, first: int) -> _Clear:  # (N, n)
    """How many factors, from `first` on, while one more lowers BIC and its weakest direction is clear.

    BIC falls if N / eta (F_k - F_{k+1}) > (n - k) log N, F the discrepancy of factor analysis. eta is the relative
    kurtosis of the rows, by which heavy tails inflate F (Browne 1984); 1 for Gaussian rows.

    >>> g = np.random.default_rng(0)
    >>> x = g.normal(size=(600, 3)) @ [[1.5] * 9, [0.5, -0.5, 0] * 3, [0.4, 0.4, -0.8] * 3]
    >>> x = x + 0.4 * g.normal(size=(600, 9))
    >>> parallel_analysis(x).number, clear_factors(x, 1)
    (1, _Clear(bic=3, close=3))
    """
    R, n, k = correlation_matrix(x), x.shape[1], max(first, 1)
    rows = len(x) / max(relative_kurtosis(x), 1.0)
    found = fit_factors(R, k)
    close = k if approximation_error(found, rows) <= _CLOSE else None
    while (n - k - 1) ** 2 >= n + k + 1:  # a model with k + 1 factors has degrees of freedom left
        more = fit_factors(R, k + 1)
        l, U = canonical_directions(R, more.unique)
        clear = l[k] - 1 >= CLEAR and _columns_moved(U[:, k : k + 1])[0] >= _COLUMNS
        if not clear or rows * (found.discrepancy - more.discrepancy) <= (n - k) * np.log(len(x)):
            break
        found, k = more, k + 1
        if close is None and approximation_error(found, rows) <= _CLOSE:
            close = k
    return _Clear(k, max(first, 1) if close is None else close)


def _columns_moved(U: Array) -> Array:  # (n, k) unit vectors -> (k,)
    return np.asarray(1 / (U**4).sum(0))


def _moves_several(x: Array, gaps: Array, low: int, high: int) -> bool:  # (N, n)
    """Whether each of the principal directions low + 1 .. high moves more than two columns.

    >>> g = np.random.default_rng(0)
    >>> x = g.normal(size=(500, 2)) @ g.normal(size=(2, 6))
    >>> x = np.column_stack([x, x[:, 0] + g.normal(size=500)])
    >>> none = np.zeros(x.shape, bool)
    >>> _moves_several(x, none, 0, 2), _moves_several(x, none, 2, 3)
    (True, False)
    """
    if x.shape[1] > WIDE:
        return True
    U = np.linalg.eigh(correlation_matrix(x, gaps))[1][:, ::-1]
    return bool((_columns_moved(U[:, low:high]) >= _COLUMNS).all())


def relative_kurtosis(x: Array) -> float:  # (N, n)
    """Mardia's kurtosis E (z' C^-1 z)^2 over that of Gaussian rows, n (n + 2).

    >>> g = np.random.default_rng(0)
    >>> normal, heavy = (relative_kurtosis(draw(size=(5000, 4))) for draw in (g.normal, g.laplace))
    >>> abs(normal - 1) < 0.05 < heavy - 1
    True
    """
    n, z = x.shape[1], standardised_columns(x)
    square = np.einsum("ni,ni->n", z @ np.linalg.inv(z.T @ z / len(z) + 1e-9 * np.eye(n)), z)
    return float((square**2).mean() / (n * (n + 2)))


def _spectrum_gap(l: Array, most: int) -> tuple[int, float]:  # (n,)
    """The m in 1..most with the largest l_m / l_{m+1}, and that ratio; (0, 1) if there is none.

    >>> _spectrum_gap(np.array([3.0, 2.0, 0.1, 0.09]), 3)[0]
    2
    """
    most = min(most, len(l) - 1)
    if most < 1:
        return 0, 1.0
    ratios = l[:most] / np.maximum(l[1 : most + 1], 1e-9)
    return int(ratios.argmax()) + 1, float(ratios.max())


def _spectrum(x: Array) -> Array:  # (N, n) -> (n,), largest first
    x = x - x.mean(0)
    wide = x.shape[1] > len(x)  # then X X' has the same ones, but for zeros
    l = np.linalg.eigvalsh(x @ x.T if wide else x.T @ x)[::-1] / len(x)
    l = np.pad(l, (0, x.shape[1] - len(l)))
    return np.maximum(l, FLOOR * l.mean())


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
    null = np.stack([_spectrum(generator.permuted(x, axis=0)) for _ in range(tables)])
    above = _spectrum(x) > null.mean(0) + SURE * null.std(0) + 1e-9
    return int(np.argmin(above)) if not above.all() else len(above)


def _shared_beyond_covariance(x: Array, seed: int) -> bool:  # (N, n)
    """Whether any two columns without correlation still depend on each other."""
    return bool(dependent(x, seed, least=0.0, sure=1.5 * SURE).any())


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

    >>> g = numpy_generator(0, "doctest")
    >>> isotropic(g.standard_normal((500, 6))), isotropic(g.standard_normal((500, 2)) @ g.standard_normal((2, 6)))
    (0, 2)
    """
    N, n = x.shape
    above = _above_shuffled(x, seed)
    if not above:
        return n if n <= WHOLE and N >= 100 and _shared_beyond_covariance(x, seed) else 0
    return max(1, _by_evidence(_spectrum(x), N)) if 2 * n < N else above
