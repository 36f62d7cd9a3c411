"""The linear answer: PPCA's subspace, turned to axes by independence, as one density that can be compared.

    x = mean + W u + noise,   W = U L^{1/2} R,   u independent, each with its own density, variance 1
    log p(x) = sum_j log p_j(u_j) - 1/2 sum log L - |x - mean - U U'(x - mean)|^2 / (2 s2) - (n - d)/2 log(2 pi s2)

With Gaussian p_j this is PPCA's likelihood, whatever R is; with others it is that of linear ICA. Components that are
Gaussian on unseen rows have no axes of their own; theirs are turned to the principal axes of what they span, unless
they are none too surely Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, normaltest

from unseam.axes import Array
from unseam.finding.density import (
    Density,
    density,
    dependent,
    gain,
    gaussian_log,
    log_marginals,
    rotation_by_independence,
)
from unseam.finding.factor_count import FLOOR, MOST_ANALYSED, WHOLE, Start, by_columns, isotropic
from unseam.linear.ppca import axes_of_rows
from unseam.stats import matched, matched_codes

_CHANCE = 1e-5  # a test of normality below this says no: what bends a little looks a little non-Gaussian
_FAINT = 0.01  # the same for a component that keeps its axis, which is nevertheless not known
NETWORK_ROWS = 400  # rows below which no network is trained
_FEW = 2000  # rows up to which components are also tested together
_FAR = 4.0  # Anderson-Darling: 1.09 is passed by 1 % of Gaussian samples


@dataclass(frozen=True)
class Axes:
    """A linear model with axes."""

    mean: Array  # (n,)
    U: Array  # (n, d)
    L: Array  # (d,)
    s2: float
    R: Array  # (d, d)
    gaussian: Array  # (d,) bool: no axis by independence
    densities: tuple[Density, ...]
    likelier: bool = False  # Gaussian components keep the axes of independence: unseen rows are likelier in them
    turned: Array | None = None  # (d,) bool: those of `gaussian` that are turned to principal axes; None: all of them

    @property
    def cloud(self) -> bool:
        """Whether no axis is by independence."""
        return bool((self.gaussian if self.turned is None else self.turned).all()) and not self.likelier

    @property
    def W(self) -> Array:  # (n, d)
        """What one standard deviation of each factor does to x."""
        return (self.U * np.sqrt(self.L)) @ self.R

    def encode(self, x: Array) -> Array:  # (N, n) -> (N, d)
        return ((x - self.mean) @ self.U / np.sqrt(self.L)) @ self.R

    def decode(self, u: Array) -> Array:  # (N, d) -> (N, n)
        return self.mean + u @ self.W.T

    @property
    def determinacy(self) -> Array:  # (d,)
        """Squared multiple correlation of each factor with the columns: 1 - (I + V'V / s2)^-1_jj for PPCA's own
        V = U (L - s2)^1/2 R, which is 1 - sum_i R_ij^2 s2 / L_i."""
        return np.clip(1 - (self.R**2 * (self.s2 / self.L)[:, None]).sum(0), 0.0, 1 - 1e-9)

    def nats(self) -> Array:  # (d,)
        """What the columns tell of each factor, -1/2 log(1 - determinacy); of a principal axis 1/2 log(L / s2)."""
        return np.asarray(-0.5 * np.log1p(-self.determinacy))

    def log_likelihood(self, x: Array) -> Array:  # (N, n) -> (N,)
        u = self.encode(x)
        inside = [
            gaussian_log(c) if g else p.log(c) for c, g, p in zip(u.T, self.gaussian, self.densities, strict=True)
        ]
        return np.sum(inside, axis=0) - 0.5 * np.log(self.L).sum() + self._residual(x)

    def ppca_log_likelihood(self, x: Array) -> Array:  # (N, n) -> (N,)
        return gaussian_log(self.encode(x)).sum(1) - 0.5 * np.log(self.L).sum() + self._residual(x)

    def _residual(self, x: Array) -> Array:
        left = x.shape[1] - len(self.L)
        centred = x - self.mean
        square = np.maximum((centred**2).sum(1) - ((centred @ self.U) ** 2).sum(1), 0)
        return -square / (2 * self.s2) - left / 2 * np.log(2 * np.pi * self.s2)


def subspace(x: Array, d: int) -> tuple[Array, Array, Array, float]:  # (N, n) -> mean, U, L, s2
    """PPCA's maximum likelihood; with d = n nothing is left to tell the noise by: a hundredth of L_n stands for it."""
    l, U = axes_of_rows(x)
    l = np.maximum(l, FLOOR * l.mean())
    s2 = float(l[d:].mean()) if d < len(l) else float(l[-1]) / 100
    U = np.pad(U, ((0, 0), (0, max(0, d - U.shape[1]))))  # fewer rows than factors
    return x.mean(0), U[:, :d], l[:d], s2


def fit_axes(x: Array, d: int, seed: int = 0, like: Axes | None = None, principal: bool = False) -> Axes:  # (N, n)
    """The model with d factors, the strongest first, each with the sign of what it moves most.

    Which components are Gaussian is tested, or taken from a model of more rows that this one should be `like`; with
    `principal` none has an axis by independence.

    >>> g = np.random.default_rng(0)
    >>> s, A = g.uniform(-1, 1, (2000, 2)), g.standard_normal((2, 5))
    >>> u = fit_axes(s @ A + 0.01 * g.standard_normal((2000, 5)), 2).encode(s @ A)
    >>> bool((np.abs(np.corrcoef(s.T, u.T)[:2, 2:]).max(1) > 0.99).all())
    True
    """
    mean, U, L, s2 = subspace(x, d)
    white = (x - mean) @ U / np.sqrt(L)
    as_like = like is not None and like.cloud  # every start would give other axes
    cloud = principal or as_like
    R = np.eye(d) if cloud else rotation_by_independence(white, seed)
    flat, turned = (np.ones(d, bool),) * 2 if cloud else _flat(white, R, seed, like, x)
    likelier = not cloud and flat.sum() > 1 and (_likelier(white, seed) if like is None else like.likelier)
    R = R if likelier else _principal(R, L, turned)
    order = np.argsort(-(((U * np.sqrt(L)) @ R) ** 2).sum(0), kind="stable")
    R, flat, turned = R[:, order], flat[order], turned[order]
    R = R * np.where(_largest((U * np.sqrt(L)) @ R) < 0, -1.0, 1.0)
    densities = tuple(density(column) for column in (white @ R).T)
    return Axes(mean, U, L, s2, R, flat, densities, bool(likelier), turned)


def _flat(white: Array, R: Array, seed: int, like: Axes | None, x: Array) -> tuple[Array, Array]:  # -> (d,) bool twice
    if like is None:
        return _without_axes(white, R, seed)
    order = matched_codes(white @ R, like.encode(x)).columns
    return like.gaussian[order], (like.gaussian if like.turned is None else like.turned)[order]


def _largest(W: Array) -> Array:  # (n, d) -> (d,)
    return W[np.abs(W).argmax(0), np.arange(W.shape[1])]


def _without_axes(white: Array, R: Array, seed: int) -> tuple[Array, Array]:  # (N, d), (d, d) -> (d,) bool twice
    """Components that are Gaussian, and those that are surely no more than that: R found again on every other row, and
    tested on the rows between.

    Tested by skewness and kurtosis (D'Agostino & Pearson) and by Anderson and Darling's distance.
    """
    if len(white) < 100:
        return (np.ones(len(R), bool),) * 2
    half = rotation_by_independence(_white(white[::2]), seed, starts=1)
    unseen = _white(white[1::2]) @ half
    order = matched(np.abs(R.T @ half)).columns
    flat = ~np.array([not_gaussian(column) for column in unseen.T])[order]
    return flat, flat & (normaltest(unseen).pvalue > _FAINT)[order]


def _likelier(white: Array, seed: int, folds: int = 5) -> bool:  # (N, d)
    """Whether axes of independence make unseen rows likelier than principal ones, each by densities of its axes.

    Few rows that no component alone shows to be non-Gaussian may show it together.
    """
    if not 50 <= len(white) <= _FEW:
        return False
    fold, gained = np.arange(len(white)) % folds, []
    for f in range(folds):
        train, test = white[fold != f], white[fold == f]
        l, V = np.linalg.eigh(np.cov(train.T))
        T = (V / np.sqrt(np.maximum(l, 1e-9))) @ V.T  # symmetric, which turns no axis
        a, b = (train - train.mean(0)) @ T, (test - train.mean(0)) @ T
        R = rotation_by_independence(a, seed, starts=1)
        gained.append(log_marginals(a @ R, b @ R).sum(1) - log_marginals(a, b).sum(1))
    return gain(np.concatenate(gained)).sure()


def _white(u: Array) -> Array:
    return (u - u.mean(0)) / u.std(0)


def not_gaussian(u: Array) -> bool:  # (N,)
    """
    >>> g = np.random.default_rng(0)
    >>> not_gaussian(g.standard_normal(1000)), not_gaussian(g.laplace(size=1000)), not_gaussian(g.uniform(size=1000))
    (False, True, True)
    """
    if normaltest(u).pvalue < _CHANCE:
        return True
    z, i = np.sort((u - u.mean()) / u.std()), np.arange(1, len(u) + 1)
    logs = norm.logcdf(z) + norm.logsf(z[::-1])
    return bool(-len(u) - ((2 * i - 1) * logs).mean() > _FAR)


def _principal(R: Array, L: Array, flat: Array) -> Array:
    """Gaussian components, any rotation of which is as good, turned to the principal axes of what they span."""
    if flat.sum() < 2:
        return R
    W = (np.sqrt(L)[:, None] * R)[:, flat]
    turn = np.linalg.svd(W)[2].T
    out = R.copy()
    out[:, flat] = R[:, flat] @ turn
    return out


def begin(x: Array, seed: int = 0, smooth: Array | None = None) -> Start:  # (N, n), (n,) bool
    """How many factors a linear model has, and the noise of each column where they differ.

    Isotropic noise is believed (PPCA's evidence), unless all n components are non-Gaussian and come back, so that no
    dimension is noise, or factor analysis, whose columns have noise of their own, needs fewer. To factor analysis a
    factor that bends looks like the noise of its columns, so that it must leave nothing that bends (in columns that
    are `smooth`: the noise of counts and of two numbers always depends on their mean).
    """
    N, n = x.shape
    d = isotropic(x, seed)
    if d >= n - 1 and 20 * n <= N and (d == n or _no_noise(x, seed)):
        return Start(n)
    if d < 3 or n > MOST_ANALYSED or N < 100 or 2 * n >= N:
        return Start(d)
    most = n // 2 + 1  # more factors than that n columns with noise of their own cannot tell
    found = by_columns(x, min(d, most))
    if not 0 < found.d < min(d, most):
        return Start(d)
    if n <= WHOLE and N >= 0.8 * NETWORK_ROWS and bends(x, d, seed) and bends(x / found.noise, found.d, seed, smooth):
        return Start(d)
    return found


def _no_noise(x: Array, seed: int) -> bool:
    """Whether all n directions are non-Gaussian, and the same on two halves of the rows."""
    n = x.shape[1]
    mean, U, L, _ = subspace(x, n)
    white = (x - mean) @ U / np.sqrt(L)
    if _without_axes(white, rotation_by_independence(white, seed), seed)[0].any():
        return False
    whole = fit_axes(x, n, seed)
    one, two = (fit_axes(x[i::2], n, seed, whole).encode(x) for i in (0, 1))
    return bool(matched_codes(one, two).values.min() > 0.9)


def bends(x: Array, d: int, seed: int, smooth: Array | None = None) -> bool:  # (N, n), (n,) bool
    """Whether anything is left for a network: linear components, or what they leave over (of the columns that are
    `smooth`), that depend on each other."""
    mean, U, _, _ = subspace(x, d)
    left = x - mean - (x - mean) @ U @ U.T
    left = left if smooth is None else left[:, smooth]
    rest = axes_of_rows(left)[1][:, : max(0, min(d + 2, left.shape[1] - d))]
    return bool(dependent(np.concatenate([independent(x, d, seed), left @ rest], axis=1), seed).any())


def independent(x: Array, d: int, seed: int) -> Array:  # (N, n) -> (N, d)
    """The components by independence alone, also of those that a test takes for Gaussian."""
    mean, U, L, _ = subspace(x, d)
    white = (x - mean) @ U / np.sqrt(L)
    return np.asarray(white @ rotation_by_independence(white, seed))
