"""What the usual methods make of the same rows with as many components, beside ours.

All are fitted on the same rows and scored on the same others, in standardised columns z (counts: of their logarithms;
pixels: all divided by one number):

    variance_kept    1 - |z - z^|^2 / |z - mean|^2, z^ decoded from the codes of unseen rows
    stability        rank correlation of the codes of unseen rows by fits to two halves of the rows, matched one to one
    log_likelihood   mean log p(z) of unseen rows in nats, where a method has a density (PCA: that of PPCA)
    mcc              mean matched rank correlation with the true factors, where they are known

A network's likelihood is a bound on that of rows blurred by a twentieth of their spread, and so are those beside it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.finding.axes import fit_axes
from unseam.finding.columns import Prepared
from unseam.finding.grades import Answer
from unseam.finding.stability import agreement
from unseam.stats import matched_codes

_Row = dict[str, float | None]
_ANALYSED = 100  # columns up to which factor analysis is one of them
_POWER = 4  # of promax


class _Fitted(NamedTuple):
    """A method, fitted to standardised rows."""

    encode: Callable[[Array], Array]  # (N, n) -> (N, d)
    decode: Callable[[Array], Array]  # (N, d) -> (N, n)
    score: Callable[[Array], float] | None = None  # mean log p of rows


_Method = Callable[[Array, int, int], _Fitted]  # standardised rows, number of components, seed


def _principal_components(z: Array, d: int, seed: int) -> _Fitted:
    from sklearn.decomposition import PCA

    model = PCA(d).fit(z)
    return _Fitted(model.transform, model.inverse_transform, model.score)


def _fast_ica(z: Array, d: int, seed: int) -> _Fitted:
    from sklearn.decomposition import FastICA

    model = FastICA(d, whiten="unit-variance", max_iter=300, random_state=seed).fit(z)

    def score(rows: Array) -> float:
        return float(fit_axes(z, d, seed).log_likelihood(rows).mean())

    return _Fitted(model.transform, model.inverse_transform, score)


def sklearn_factor_analysis(z: Array, d: int, seed: int) -> Any:
    """Scikit-learn's, with varimax, fitted to 2 n rows with the mean and covariance of all N: nothing else matters."""
    from sklearn.decomposition import FactorAnalysis

    N, n = z.shape
    l, U = np.linalg.eigh(np.cov(z.T, bias=True))
    root = np.sqrt(n * np.maximum(l, 0))[:, None] * U.T
    rows = z.mean(0) + np.concatenate([root, -root])
    tol = 1e-2 * 2 * n / N  # of the likelihood of all rows
    rotation = "varimax" if d > 1 else None
    return FactorAnalysis(d, rotation=rotation, svd_method="lapack", tol=tol, max_iter=1000).fit(rows)


def _varimax_rival(z: Array, d: int, seed: int) -> _Fitted:
    model = sklearn_factor_analysis(z, d, seed)
    return _Fitted(model.transform, lambda u: model.mean_ + u @ model.components_, model.score)


def promax_rival(z: Array, d: int, seed: int) -> _Fitted:
    """Oblique axes from the varimax ones (Hendrickson & White 1964): pattern P = L T nearest to L^4, the factors'
    correlations (T'T)^-1; codes are their expectation given the row."""
    model = sklearn_factor_analysis(z, d, seed)
    L = model.components_.T
    T = np.linalg.lstsq(L, np.sign(L) * np.abs(L) ** _POWER, rcond=None)[0]
    T = T * np.sqrt(np.diag(np.linalg.pinv(T.T @ T)))
    P, Phi = L @ T, np.linalg.pinv(T.T @ T)
    weights = np.linalg.solve(L @ L.T + np.diag(np.maximum(model.noise_variance_, 1e-9)), P @ Phi)
    return _Fitted(lambda rows: (rows - model.mean_) @ weights, lambda u: model.mean_ + u @ P.T, model.score)


def _non_negative(prepared: Prepared, spread: Array) -> _Method:
    """NMF of the columns in their own units, each divided by its spread; codes and rows are taken to and from z."""
    unit = np.maximum(prepared.raw(prepared.x).std(0), 1e-12)

    def to_amounts(z: Array) -> Array:
        return np.asarray(np.maximum(prepared.raw(z * spread), 0) / unit)

    def fit(z: Array, d: int, seed: int) -> _Fitted:
        from sklearn.decomposition import NMF

        model = NMF(d, init="nndsvda", max_iter=300, random_state=seed).fit(to_amounts(z))
        return _Fitted(
            lambda rows: model.transform(to_amounts(rows)),
            lambda u: prepared.scaled((u @ model.components_) * unit) / spread,
        )

    return fit


def compare_rivals(prepared: Prepared, best: Answer, k: int, truth: Array | None, seed: int) -> dict[str, _Row]:
    """Ours and the rivals with as many components."""
    x, own = prepared.x, best.unseen
    spread = _spread(x, prepared.shape is not None)
    z, train, test = x / spread, own.train, own.test
    given, others = own.given
    unit = _spread(np.concatenate([given, others]), prepared.shape is not None)
    same = given.shape[1] == x.shape[1]  # a wide table is given to networks by fewer axes: another density
    log = own.log_likelihood if same else None
    codes = own.model.encode(x[test])
    ours: _Row = {
        "variance_kept": _variance_kept(z, own.model.decode(codes) / spread, train, test),
        "stability": best.comes_back.mean, "mcc": _match_with_truth(codes, truth, test),
        "log_likelihood": None if log is None else log + float(np.log(unit).sum()),
    }  # fmt: skip
    rows = {"unseam": ours}
    if len(train) <= 2 * k:
        return rows
    methods: dict[str, _Method] = {"PCA": _principal_components, "FastICA": _fast_ica}
    if x.shape[1] <= _ANALYSED and len(train) > 2 * x.shape[1]:
        methods |= {"FA varimax": _varimax_rival, "FA promax": promax_rival}
    if prepared.shape is None and prepared.raw(x).min() >= 0:
        methods["NMF"] = _non_negative(prepared, spread)
    for name, fit in methods.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows[name] = _row(fit, z, min(k, x.shape[1]), train, test, truth, seed)
            model = fit(given / unit, min(k, x.shape[1]), seed) if same and name != "NMF" else None
            rows[name]["log_likelihood"] = _likelihood(model, others / unit)
    return rows


def _spread(x: Array, pixels: bool) -> Array:  # (N, n) -> (n,)
    """Standard deviations of the columns; one for all pixels, which share a unit."""
    own = np.maximum(x.std(0), 1e-12)
    return np.full(len(own), np.sqrt((own**2).mean())) if pixels else own


def _likelihood(model: _Fitted | None, x: Array) -> float | None:  # (M, n)
    """Mean log likelihood of rows; None where the model has no density of them (columns that depend exactly)."""
    if model is None or model.score is None:
        return None
    try:
        return float(model.score(x))
    except np.linalg.LinAlgError:
        return None


def _row(fit: _Method, z: Array, d: int, train: Array, test: Array, truth: Array | None, seed: int) -> _Row:
    model = fit(z[train], d, seed)
    halves = [fit(z[train[i::2]], d, seed + i).encode(z[test]) for i in (0, 1)]
    codes = model.encode(z[test])
    kept = _variance_kept(z, model.decode(codes), train, test)
    stable = agreement(codes, [(halves[0], halves[1])], seed).mean
    return {
        "variance_kept": kept,
        "stability": stable,
        "mcc": _match_with_truth(codes, truth, test),
        "log_likelihood": None,
    }


def _variance_kept(z: Array, decoded: Array, train: Array, test: Array) -> float:  # (N, n), (M, n)
    """The share of the variance of unseen rows around the mean of the others."""
    return 1 - float(((z[test] - decoded) ** 2).sum() / ((z[test] - z[train].mean(0)) ** 2).sum())


def _match_with_truth(codes: Array, truth: Array | None, rows: Array) -> float | None:  # (M, d), (N, F)
    """Mean matched rank correlation with the true factors, where they are known.

    >>> t = np.random.default_rng(0).normal(size=(50, 2))
    >>> _match_with_truth(-t[:, ::-1], t, np.arange(50))
    1.0
    """
    if truth is None:
        return None
    return round(float(matched_codes(truth[rows], codes).values.mean()), 12)
