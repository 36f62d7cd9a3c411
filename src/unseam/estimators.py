"""The scikit-learn face: PPCA, LinearVAE and FactorFinder as transformers.

They keep scikit-learn's contract (`check_estimator` runs in the tests): `__init__` only stores, `transform` is
deterministic and row by row, output has the input's dtype, latents come sorted by information.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from unseam.errors import BadInput
from unseam.find.columns import prepare
from unseam.find.findings import Findings
from unseam.find.search import examine
from unseam.linear.evidence import best_dimension
from unseam.linear.ppca import principal_axes
from unseam.read import Columns
from unseam.types import Array

DTYPES = [np.float64, np.float32]
FLOOR = 1e-9  # of the mean eigenvalue: a table without noise still has rounding


class _Codes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What the three share: checked input, output of the input's dtype, names of the output."""

    def fit(self, X: Any, y: Any = None) -> _Codes:
        """Fit to rows X (N, n); y is not looked at."""
        X = validate_data(self, X, dtype=DTYPES, ensure_min_samples=2)
        self._fit(X.astype(np.float64))
        self.n_iter_ = 1
        return self

    def transform(self, X: Any) -> Array:  # (N, n) -> (N, K)
        """Codes: posterior means, the most informative latent first."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=DTYPES, reset=False)
        return np.asarray(self._encode(X.astype(np.float64)), X.dtype)

    def inverse_transform(self, X: Any) -> Array:  # (N, K) -> (N, n)
        """Rows from codes."""
        check_is_fitted(self)
        return np.asarray(self._decode(np.asarray(X, np.float64)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _fit(self, X: Array) -> None:
        raise NotImplementedError

    def _encode(self, X: Array) -> Array:
        raise NotImplementedError

    def _decode(self, u: Array) -> Array:
        raise NotImplementedError


class PPCA(_Codes):
    """Probabilistic PCA (Tipping & Bishop 1999) in closed form; "auto" takes the dimension of highest evidence.

    >>> X = np.random.default_rng(0).normal(size=(200, 2)) @ np.eye(2, 5) * 3 + np.ones(5)
    >>> X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
    >>> PPCA().fit_transform(X).shape
    (200, 2)
    """

    def __init__(self, n_components: int | Literal["auto"] = "auto") -> None:
        self.n_components = n_components

    def _fit(self, X: Array) -> None:
        l, U = principal_axes(np.atleast_2d(np.cov(X.T, bias=True)))
        l = np.maximum(l, max(FLOOR * float(l.mean()), 1e-300))
        d = dimension(self.n_components, l, X)
        s2 = float(l[d:].mean()) if d < len(l) else FLOOR * float(l.mean())
        signs = np.where(U[np.abs(U).argmax(0), np.arange(len(l))] < 0, -1.0, 1.0)
        self.mean_, self.noise_variance_ = X.mean(0), s2
        self.components_ = ((U * signs)[:, :d] * np.sqrt(np.maximum(l[:d] - s2, 0))).T  # W' (d, n)
        self.explained_information_ = 0.5 * np.log(np.maximum(l[:d] / s2, 1.0))
        self._n_features_out = d

    def _encode(self, X: Array) -> Array:
        M = self.components_ @ self.components_.T + self.noise_variance_ * np.eye(len(self.components_))
        return np.asarray(np.linalg.solve(M, self.components_ @ (X - self.mean_).T).T)

    def _decode(self, u: Array) -> Array:
        return np.asarray(self.mean_ + u @ self.components_)

    def score_samples(self, X: Any) -> Array:  # (N, n) -> (N,)
        """log N(x; mean, W W' + s2 I) in nats, in closed form (Woodbury)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=DTYPES, reset=False).astype(np.float64) - self.mean_
        W, s2 = self.components_, self.noise_variance_
        n, d = X.shape[1], len(W)
        M = W @ W.T + s2 * np.eye(d)
        projected = X @ W.T
        square = ((X**2).sum(1) - (projected * np.linalg.solve(M, projected.T).T).sum(1)) / s2
        return np.asarray(-0.5 * (n * np.log(2 * np.pi) + np.linalg.slogdet(M)[1] + (n - d) * np.log(s2) + square))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood a row."""
        return float(self.score_samples(X).mean())


class LinearVAE(PPCA):
    """The linear VAE at its optimum (Lucas et al. 2019): PPCA with the noise, or beta times it, given or learned.

    Directions whose eigenvalue is not above beta s2 have collapsed; "auto" keeps the others.

    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3.0, 2.0, 0.5, 0.5]
    >>> LinearVAE(s2=0.5).fit(X).posterior_variance_.round(2)
    array([0.06, 0.14])
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        beta: float = 1.0,
        s2: float | Literal["learned"] = "learned",
    ) -> None:
        self.n_components = n_components
        self.beta = beta
        self.s2 = s2

    def _fit(self, X: Array) -> None:
        super()._fit(X)
        if not self.beta > 0 or (self.s2 != "learned" and not self.s2 > 0):
            raise BadInput(f"beta={self.beta} and s2={self.s2} must be positive")
        noise = (self.noise_variance_ if self.s2 == "learned" else self.s2) * self.beta
        l, U = principal_axes(np.atleast_2d(np.cov(X.T, bias=True)))
        active = int(max(1, (l > noise).sum()))
        d = min(active, len(self.components_) if self.s2 == "learned" or self.n_components != "auto" else active)
        signs = np.where(U[np.abs(U).argmax(0), np.arange(len(l))] < 0, -1.0, 1.0)
        self.components_ = ((U * signs)[:, :d] * np.sqrt(np.maximum(l[:d] - noise, 0))).T
        self.noise_variance_ = max(float(noise), 1e-300)
        self.posterior_variance_ = self.noise_variance_ / np.maximum(l[:d], self.noise_variance_)
        self.explained_information_ = -0.5 * np.log(self.posterior_variance_)
        self._n_features_out = d


class FactorFinder(_Codes):
    """`unseam.find` as a transformer: as many columns out as factors were found, each graded.

    `n_components="auto"` decides by evidence. `network=True` also trains VAEs where a linear model does not suffice.
    Data without factors keep one column, of the strongest direction, graded unstable.

    >>> g = np.random.default_rng(0)
    >>> X = g.uniform(size=(300, 2)) @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(300, 6))
    >>> finder = FactorFinder().fit(X)
    >>> finder.transform(X).shape, finder.grades_
    ((300, 2), ['found', 'found'])
    """

    def __init__(
        self, n_components: int | Literal["auto"] = "auto", *, network: bool = False, effort: str = "normal",
        scale: Literal["auto", "standard", "common", "none"] = "auto", random_state: Any = 0,
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.network = network
        self.effort = effort
        self.scale = scale
        self.random_state = random_state

    def _fit(self, X: Array) -> None:
        seed = (
            self.random_state
            if isinstance(self.random_state, int)
            else int(check_random_state(self.random_state).randint(2**31 - 1))
        )
        table = Columns([f"x{i}" for i in range(X.shape[1])], list(X.T))
        prepared = prepare(table, self.scale, least=2)
        latents = None if self.n_components == "auto" else self.n_components
        how: dict[str, Any] = {
            "network": self.network,
            "effort": self.effort,
            "seed": seed,
            "with_rivals": False,
            "show": False,
        }
        found = examine(prepared, latents=latents, **how)
        self.findings_: Findings = found if found.count else examine(prepared, latents=1, **how)
        self.count_ = found.count
        self.grades_ = [f.grade for f in self.findings_.factors] if found.count else ["unstable"]
        self.explained_information_ = np.array([f.nats for f in self.findings_.factors])
        self._n_features_out = self.findings_.count

    def _encode(self, X: Array) -> Array:
        return self.findings_.transform(X)

    def _decode(self, u: Array) -> Array:
        """Rows of the columns that are used; the others are given their mean."""
        return self.findings_.inverse_transform(u)


def dimension(asked: int | str, l: Array, X: Array) -> int:
    """How many latents: what was asked, or by evidence; between 1 and the number of columns."""
    n = len(l)
    if asked != "auto":
        if not isinstance(asked, (int, np.integer)) or not 1 <= asked <= n:
            raise BadInput(f"n_components={asked!r} must be 'auto' or between 1 and {n}, the number of columns")
        return int(asked)
    return best_dimension(l, len(X)) if n > 1 else 1
