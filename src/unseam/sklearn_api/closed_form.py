"""Estimators in closed form: probabilistic PCA and the linear VAE at its optimum."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.linear.linear_vae import learned_variance
from unseam.linear.ppca import best_dimension, principal_axes
from unseam.sklearn_api.base import DTYPES, Codes, plain_input

_FLOOR = 1e-9  # of the mean eigenvalue: a table without noise still has rounding


class PPCA(Codes):
    """Probabilistic PCA (Tipping & Bishop 1999) in closed form.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        How many latents; "auto" takes the number with the highest evidence (Minka 2000).

    Attributes
    ----------
    components_ : array (n_components_, n)
        Loadings.
    mean_ : array (n,)
        Of the columns.
    noise_variance_ : float
        s2, the variance of the noise.
    explained_information_ : array (n_components_,)
        Nats of each latent.
    n_components_ : int
        How many latents there are.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) @ np.eye(2, 5) * 3 + np.ones(5)
    >>> X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
    >>> PPCA().fit_transform(X).shape
    (200, 2)
    """

    def __init__(self, n_components: int | Literal["auto"] = "auto") -> None:
        self.n_components = n_components

    def _fit(self, X: Array) -> None:
        l, U = principal_axes(np.atleast_2d(np.cov(X.T, bias=True)))
        l = np.maximum(l, max(_FLOOR * float(l.mean()), 1e-300))
        d = dimension(self.n_components, l, X)
        s2 = float(l[d:].mean()) if d < len(l) else _FLOOR * float(l.mean())
        signs = np.where(U[np.abs(U).argmax(0), np.arange(len(l))] < 0, -1.0, 1.0)
        self.mean_, self.noise_variance_ = X.mean(0), s2
        self.components_ = ((U * signs)[:, :d] * np.sqrt(np.maximum(l[:d] - s2, 0))).T  # W' (d, n)
        self.explained_information_ = 0.5 * np.log(np.maximum(l[:d] / s2, 1.0))
        self.n_components_ = self._n_features_out = d

    def _encode(self, X: Array) -> Array:
        M = self.components_ @ self.components_.T + self.noise_variance_ * np.eye(len(self.components_))
        return np.asarray(np.linalg.solve(M, self.components_ @ (X - self.mean_).T).T)

    def _decode(self, u: Array) -> Array:
        return np.asarray(self.mean_ + u @ self.components_)

    def score_samples(self, X: Any) -> Array:  # (N, n) -> (N,)
        """log N(x; mean, W W' + s2 I) in nats, in closed form (Woodbury)."""
        check_is_fitted(self)
        X = validate_data(self, plain_input(X), dtype=DTYPES, reset=False).astype(np.float64) - self.mean_
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
    """The linear VAE at its optimum (Lucas et al. 2019), in closed form.

    It is PPCA with its noise, or beta times it, given or learned; its latents are the principal axes.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        How many latents; "auto" keeps those that are active at this noise.
    beta : float, default=1.0
        The weight of the KL.
    s2 : float or "learned", default="learned"
        The variance of the likelihood.

    Attributes
    ----------
    components_ : array (n_components_, n)
        Loadings.
    noise_variance_ : float
        beta s2.
    posterior_variance_ : array (n_components_,)
        Of each latent.
    explained_information_ : array (n_components_,)
        Nats of each latent.
    n_components_ : int
        How many latents there are.

    Examples
    --------
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
        l, U = principal_axes(np.atleast_2d(np.cov(X.T, bias=True)))
        noise = self.beta * (self._learned(l) if self.s2 == "learned" else self.s2)
        active = int(max(1, (l > noise).sum()))
        d = min(active, len(self.components_) if self.s2 == "learned" or self.n_components != "auto" else active)
        signs = np.where(U[np.abs(U).argmax(0), np.arange(len(l))] < 0, -1.0, 1.0)
        self.components_ = ((U * signs)[:, :d] * np.sqrt(np.maximum(l[:d] - noise, 0))).T
        self.noise_variance_ = max(float(noise), 1e-300)
        self.posterior_variance_ = self.noise_variance_ / np.maximum(l[:d], self.noise_variance_)
        self.explained_information_ = -0.5 * np.log(self.posterior_variance_)
        self.n_components_ = self._n_features_out = d

    def _learned(self, l: Array) -> float:  # (n,)
        """s2 at the optimum, PPCA's at beta 1; with a latent for every column there is no noise to learn."""
        if self.beta == 1 or len(self.components_) == len(l):
            return self.noise_variance_
        floor = max(_FLOOR * float(l.mean()), 1e-300)
        return max(learned_variance(np.maximum(l, floor), len(self.components_), self.beta), floor)


def dimension(wanted: int | str, l: Array, X: Array) -> int:
    """How many latents: as requested, or by evidence; between 1 and the number of columns."""
    n = len(l)
    if wanted != "auto":
        if not isinstance(wanted, (int, np.integer)) or not 1 <= wanted <= n:
            raise BadInput(f"n_components={wanted!r} must be 'auto' or between 1 and {n}, the number of columns")
        return int(wanted)
    return best_dimension(l, len(X)) if n > 1 else 1
