"""What the usual methods make of the same rows with as many components, scored on unseen rows."""

from __future__ import annotations

import warnings
from typing import Any

from unseam.axes import Array
from unseam.finding.axes import fit_axes
from unseam.finding.grades import Unseen
from unseam.finding.stability import agreement
from unseam.stats import matched_codes

Row = dict[str, float | None]


def fitted(name: str, x: Array, d: int, seed: int) -> Any:
    """A rival of scikit-learn's, fitted."""
    from sklearn.decomposition import NMF, PCA, FastICA

    model: Any = {
        "PCA": lambda: PCA(d),
        "FastICA": lambda: FastICA(d, whiten="unit-variance", max_iter=300, random_state=seed),
        "NMF": lambda: NMF(d, init="nndsvda", max_iter=300, random_state=seed),
    }[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(x)


def rivals(x: Array, raw: Array, d: int, beside: Unseen, truth: Array | None, seed: int) -> dict[str, Row]:
    """PCA, PPCA, FastICA and, for numbers from 0, NMF, on the rows that ours has not seen: share of variance kept,
    stability, likelihood, MCC."""
    train, test, (given, others) = beside.train, beside.test, beside.given
    rows: dict[str, Row] = {}
    positive = raw.min() >= 0
    for name, data in {"PCA": x, "FastICA": x, **({"NMF": raw / raw.std(0)} if positive else {})}.items():
        rows[name] = _row(name, data, d, train, test, truth, seed)
    axes = fit_axes(given, d, seed)
    rows["PPCA"] = {**rows["PCA"], "log_likelihood": float(axes.ppca_log_likelihood(others).mean())}
    rows["FastICA"]["log_likelihood"] = float(axes.log_likelihood(others).mean())
    return rows


def _row(name: str, x: Array, d: int, train: Array, test: Array, truth: Array | None, seed: int) -> Row:
    model = fitted(name, x[train], d, seed)
    halves = [fitted(name, x[train[i::2]], d, seed + i).transform(x[test]) for i in (0, 1)]
    codes = model.transform(x[test])
    left = x[test] - model.inverse_transform(codes)
    kept = 1 - float((left**2).sum() / ((x[test] - x[train].mean(0)) ** 2).sum())
    stable = agreement(codes, [(halves[0], halves[1])], seed).mean
    return {"variance_kept": kept, "stability": stable, "mcc": mcc(codes, truth, test), "log_likelihood": None}


def mcc(codes: Array, truth: Array | None, rows: Array) -> float | None:  # (M, d), (N, F)
    """Mean matched rank correlation with the true factors, where they are known.

    >>> import numpy as np
    >>> t = np.random.default_rng(0).normal(size=(50, 2))
    >>> mcc(-t[:, ::-1], t, np.arange(50))
    1.0
    """
    if truth is None:
        return None
    return round(float(matched_codes(truth[rows], codes).values.mean()), 12)
