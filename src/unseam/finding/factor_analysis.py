"""Factor analysis: x = mean + L f + e, cov(f) = Phi, cov(e) = diag(psi), by maximum likelihood of the correlations.

With Phi = I and R the correlations of the columns, and l, U the eigenvalues and -vectors of psi^-1/2 R psi^-1/2
(Joreskog 1967, Lawley & Maxwell 1971):

    L = psi^1/2 U_k (l_k - 1)^1/2
    F(psi) = sum_{j > k} (l_j - log l_j - 1),      dF / d psi_i = (L L' + psi - R)_ii / psi_i^2

(N - 1 - (2 n + 5) / 6 - 2 k / 3) F is chi-squared with ((n - k)^2 - n - k) / 2 degrees of freedom if k factors
explain the correlations. A factor is given by the columns as f^ = Phi L' (L Phi L' + psi)^-1 (x - mean); the squared
multiple correlation of f with the columns, var(f^), is its determinacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unseam.axes import Array

_LEAST_UNIQUE = 1e-5  # of a column's variance
MOST_CORRELATED = 200  # columns up to which the likelihood is maximised; above, the noise is the same for all


class Factors(NamedTuple):
    """Loadings (n, k) of standardised columns, the variance (n,) that each has for itself, the discrepancy F, and
    whether its minimum was reached."""

    loadings: Array
    unique: Array
    discrepancy: float
    converged: bool = True


_SECOND = 1 / 5  # size of a second factor that one must not hide; two with loadings from 0.3 to 1 make it 0.22
_CONSTANT = 1e-9  # of the largest spread: less is rounding


def standardised_columns(x: Array) -> Array:  # (N, n) -> (N, n)
    """Columns of mean 0 and variance 1; a column that is constant in these rows is 0.

    >>> standardised_columns(np.array([[1.0, 0.1], [3.0, 0.1], [5.0, 0.1]])).round(3) + 0.0
    array([[-1.225,  0.   ],
           [ 0.   ,  0.   ],
           [ 1.225,  0.   ]])
    """
    z = x - x.mean(0)
    spread = z.std(0)
    return np.asarray(z / np.where(spread > _CONSTANT * spread.max(initial=0.0), spread, np.inf))


def correlation_matrix(x: Array, gaps: Array | None = None) -> Array:  # (N, n), (N, n) bool -> (n, n)
    """Of columns; with gaps, each entry by the rows that have both cells, the whole brought back to a positive matrix.

    >>> x = np.array([[0.0, 0.0, 9.0], [1.0, 2.0, 9.0], [2.0, 4.0, 7.0], [3.0, 6.0, 1.0]])
    >>> float(correlation_matrix(x, np.isnan(x))[0, 1])
    1.0
    """
    if gaps is None or not gaps.any():
        z = standardised_columns(x)
        R = np.asarray(z.T @ z / len(z))
        np.fill_diagonal(R, 1.0)
        return R
    seen = (~gaps).astype(float)
    mean = np.where(gaps, 0.0, x).sum(0) / np.maximum(seen.sum(0), 1)
    z = np.where(gaps, 0.0, x - mean)
    count = np.maximum(seen.T @ seen, 2)
    products, squares = z.T @ z, (z**2).T @ seen  # sum x_i x_j, sum x_i^2 over rows that have both
    sums = z.T @ seen
    covariance = products - sums * sums.T / count
    spread = squares - sums**2 / count
    spread = np.where(spread > _CONSTANT**2 * spread.max(initial=0.0), spread, np.inf)
    R = covariance / np.sqrt(spread * spread.T)
    np.fill_diagonal(R, 1.0)
    return positive_definite(np.clip(R, -1.0, 1.0))


def positive_definite(R: Array, least: float = 1e-4) -> Array:  # (n, n) -> (n, n)
    """The nearest matrix with eigenvalues of at least `least`, with a diagonal of 1."""
    l, U = np.linalg.eigh(R)
    if l[0] >= least:
        return R
    R = (U * np.maximum(l, least)) @ U.T
    scale = np.sqrt(np.diag(R))
    return np.asarray(R / np.outer(scale, scale))


def fit_factors(R: Array, k: int) -> Factors:  # (n, n)
    """Maximum likelihood of k orthogonal factors, unrotated.

    >>> l = np.array([0.9, 0.8, 0.7, 0.6])
    >>> found = fit_factors(np.outer(l, l) + np.diag(1 - l**2), 1)
    >>> np.abs(found.loadings[:, 0]).round(3), bool(found.discrepancy < 1e-6)
    (array([0.9, 0.8, 0.7, 0.6]), True)
    """
    n = len(R)
    k = min(k, n)
    if not k:
        return Factors(np.zeros((n, 0)), np.ones(n), 0.0)
    from scipy.optimize import minimize

    def discrepancy(log_unique: Array) -> tuple[float, Array]:
        unique = np.exp(log_unique)
        l, L = _loadings(R, unique, k)
        rest = np.maximum(l[k:], 1e-12)
        gradient = ((L**2).sum(1) + unique - 1.0) / unique
        return float((rest - np.log(rest) - 1).sum()), gradient

    start = np.clip((1 - 0.5 * k / n) / np.diag(np.linalg.inv(R + 1e-6 * np.eye(n))), 0.02, 0.98)
    bounds = [(np.log(_LEAST_UNIQUE), 0.0)] * n
    found = minimize(discrepancy, np.log(start), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500})
    unique = np.exp(found.x)
    return Factors(_loadings(R, unique, k)[1], unique, float(found.fun), bool(found.success))


def factors_of_rows(x: Array, k: int) -> Factors:  # (N, n)
    """The same for more than MOST columns, with one noise for all: by the rows, without a matrix (n, n). Its misfit is
    not known (NaN)."""
    from unseam.linear.ppca import axes_of_rows

    l, U = axes_of_rows(standardised_columns(x))
    k = min(k, U.shape[1])
    noise = float(max(l[k:].mean(), _LEAST_UNIQUE)) if k < len(l) else _LEAST_UNIQUE
    L = U[:, :k] * np.sqrt(np.maximum(l[:k] - noise, 0))
    return Factors(L, np.maximum(1 - (L**2).sum(1), _LEAST_UNIQUE), float("nan"))


def canonical_directions(R: Array, unique: Array) -> tuple[Array, Array]:  # (n, n), (n,) -> (n,), (n, n)
    """Eigenvalues, largest first, and eigenvectors of psi^-1/2 R psi^-1/2."""
    root = np.sqrt(unique)
    l, U = np.linalg.eigh(R / np.outer(root, root))
    return l[::-1], U[:, ::-1]


def _loadings(R: Array, unique: Array, k: int) -> tuple[Array, Array]:  # -> (n,), (n, k)
    l, U = canonical_directions(R, unique)
    return l, np.sqrt(unique)[:, None] * U[:, :k] * np.sqrt(np.maximum(l[:k] - 1, 0))


class _Fit(NamedTuple):
    """Whether k factors explain the correlations: the likelihood ratio, its degrees of freedom and its p-value."""

    statistic: float
    freedom: int
    p_value: float


def explains(found: Factors, rows: float) -> _Fit:
    """The test that no more factors are needed; p is 1 where there are no degrees of freedom left."""
    from scipy.stats import chi2

    n, k = found.loadings.shape
    freedom = ((n - k) ** 2 - n - k) // 2
    statistic = max(rows - 1 - (2 * n + 5) / 6 - 2 * k / 3, 1.0) * found.discrepancy
    return _Fit(float(statistic), freedom, float(chi2.sf(statistic, freedom)) if freedom > 0 else 1.0)


def power_of_second(factors: Factors, rows: int, level: float) -> float:
    """The probability that the test of one factor would have failed, at p = `level`, if a second one were there,
    _SECOND as strong: the loadings of the first, with signs that alternate in order of size."""
    from scipy.stats import chi2, ncx2

    first = factors.loadings[:, 0]
    n = len(first)
    signs = np.where(np.argsort(np.argsort(np.abs(first))) % 2 == 0, 1.0, -1.0)
    second = _SECOND * np.abs(first) * signs
    R = np.outer(first, first) + np.outer(second, second)
    np.fill_diagonal(R, 1.0)
    other = explains(fit_factors(R, 1), rows)
    if other.freedom <= 0 or n < 4:
        return 0.0
    return float(ncx2.sf(chi2.ppf(1 - level, other.freedom), other.freedom, max(other.statistic, 1e-9)))


def approximation_error(found: Factors, rows: float) -> float:
    """RMSEA (Steiger 1990), ((F - m / N) / m)^1/2 with m degrees of freedom, of what k factors leave unexplained beyond
    what chance does; 0 where there are no degrees of freedom left.

    >>> l = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    >>> one = fit_factors(np.outer(l, l) + np.diag(1 - l**2), 1)
    >>> approximation_error(one, 500), round(approximation_error(one._replace(discrepancy=0.11), 500), 3)
    (0.0, 0.141)
    """
    n, k = found.loadings.shape
    m = ((n - k) ** 2 - n - k) // 2
    return float(np.sqrt(max(found.discrepancy - m / rows, 0.0) / m)) if m > 0 else 0.0


@dataclass(frozen=True)
class FactorModel:
    """Factor analysis in any axes, of rows in model units."""

    mean: Array  # (n,)
    scale: Array  # (n,) standard deviations of the columns
    loadings: Array  # (n, k) of standardised columns, in these axes
    correlations: Array  # (k, k) of the factors
    unique: Array  # (n,)

    @property
    def W(self) -> Array:  # (n, k)
        """What one standard deviation of each factor does to x."""
        return np.asarray(self.loadings * self.scale[:, None])

    @property
    def precision(self) -> Array:  # (k, k)
        """Of the factors given a row: Phi^-1 + L' psi^-1 L."""
        weighted = self.loadings / self.unique[:, None]
        return np.asarray(np.linalg.inv(self.correlations) + self.loadings.T @ weighted)

    @property
    def weights(self) -> Array:  # (n, k)
        """f^ = (x - mean) / scale @ weights, weights = psi^-1 L (Phi^-1 + L' psi^-1 L)^-1."""
        return np.asarray(np.linalg.solve(self.precision, (self.loadings / self.unique[:, None]).T).T)

    def encode(self, x: Array) -> Array:  # (N, n) -> (N, k)
        return np.asarray((x - self.mean) / self.scale @ self.weights)

    def decode(self, u: Array) -> Array:  # (N, k) -> (N, n)
        return np.asarray(self.mean + u @ self.W.T)

    @property
    def determinacy(self) -> Array:  # (k,)
        """Squared multiple correlation of each factor with the columns."""
        return np.clip((self.weights * (self.loadings @ self.correlations)).sum(0), 0.0, 1 - 1e-9)

    def nats(self) -> Array:  # (k,)
        """What the columns tell of each factor, -1/2 log(1 - determinacy)."""
        return np.asarray(-0.5 * np.log1p(-self.determinacy))

    def log_likelihood(self, x: Array) -> Array:  # (N, n) -> (N,)
        """log N(x; mean, scale (L Phi L' + psi) scale)."""
        z, M = (x - self.mean) / self.scale, self.precision
        inner = z @ (self.loadings / self.unique[:, None])
        square = (z**2 / self.unique).sum(1) - (inner * np.linalg.solve(M, inner.T).T).sum(1)
        volume = np.log(self.unique).sum() + np.linalg.slogdet(M)[1] + np.linalg.slogdet(self.correlations)[1]
        constant = len(self.unique) * np.log(2 * np.pi) + volume + 2 * np.log(self.scale).sum()
        return np.asarray(-0.5 * (constant + square))
