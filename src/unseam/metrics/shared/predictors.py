"""Models that predict one factor from the whole code and say how much each latent matters.

Backends of DCI and of the downstream tasks. `lightgbm` (default): boosted trees of depth 3, 100 rounds, rate 0.1,
leaves of any size, importance by gain; these are the settings of scikit-learn's GradientBoosting, which is the
reference's choice and the backend `sklearn`. `quick`: 10 such rounds at rate 0.5, for studies of many models.
`forest`: random forest. `linear`: L1 logistic regression or lasso.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unseam.axes import Array
from unseam.errors import lookup
from unseam.stats import standardise

Backend = Literal["lightgbm", "quick", "sklearn", "forest", "linear"]
BOOSTING = {
    "learning_rate": 0.1,
    "max_depth": 3,
    "num_leaves": 8,
    "min_data_in_leaf": 1,
    "min_sum_hessian_in_leaf": 1e-6,
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
}


@dataclass(frozen=True)
class FittedPredictor:
    """What a model knows: importances (K,) that sum to 1 (0 if nothing matters), and its predictions."""

    importances: Array
    predict: Callable[[Array], Array]


def fit_predictor(backend: str, x: Array, y: Array, discrete: bool, seed: int) -> FittedPredictor:
    """Fit one factor y (N,), labels when discrete, from codes x (N, K).

    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> [int(fit_predictor(b, x, (x[:, 1] > 0).astype(int), True, 0).importances.argmax()) for b in BACKENDS]
    [1, 1, 1, 1, 1]
    """
    make = lookup(BACKENDS, backend, "backend")
    values, labels = np.unique(y, return_inverse=True) if discrete else (None, y)
    if values is not None and len(values) == 1:
        return FittedPredictor(np.zeros(x.shape[1]), lambda new: np.full(len(new), values[0]))
    model = make(x, labels, discrete, seed)
    total = model.importances.sum()
    shares = model.importances / total if total > 0 else np.zeros(x.shape[1])
    return FittedPredictor(shares, (lambda new: values[model.predict(new)]) if values is not None else model.predict)


def fit_lightgbm(x: Array, y: Array, discrete: bool, seed: int) -> FittedPredictor:
    return boosted(x, y, discrete, seed, 100, 0.1, 1023 if len(x) <= 2000 else 255)


def fit_quick(x: Array, y: Array, discrete: bool, seed: int) -> FittedPredictor:
    return boosted(x, y, discrete, seed, 10, 0.5, 63)


def boosted(x: Array, y: Array, discrete: bool, seed: int, rounds: int, rate: float, bins: int) -> FittedPredictor:
    import lightgbm

    classes = int(y.max()) + 1 if discrete else 0
    task: dict[str, Any] = {"objective": "multiclass", "num_class": classes} if classes > 2 else {}
    task = task or {"objective": "binary" if discrete else "regression"}
    grid = {"verbosity": -1, "min_data_in_bin": 1, "max_bin": bins}
    data = lightgbm.Dataset(x.astype(np.float64), y, params=grid)
    model = lightgbm.train({**BOOSTING, **task, "seed": seed, "learning_rate": rate}, data, rounds)

    def predict(new: Array) -> Array:
        out = np.asarray(model.predict(new.astype(np.float64), num_threads=1))
        return out if not discrete else out.argmax(axis=1) if classes > 2 else (out > 0.5).astype(int)

    return FittedPredictor(model.feature_importance("gain"), predict)


def fit_sklearn(x: Array, y: Array, discrete: bool, seed: int) -> FittedPredictor:
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    kind = GradientBoostingClassifier if discrete else GradientBoostingRegressor
    model = kind(random_state=seed % 2**32).fit(x, y)
    return FittedPredictor(model.feature_importances_, model.predict)


def fit_forest(x: Array, y: Array, discrete: bool, seed: int) -> FittedPredictor:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if discrete else RandomForestRegressor
    model = kind(100, max_features=1.0, random_state=seed % 2**32, n_jobs=1).fit(x, y)  # every latent may compete
    return FittedPredictor(model.feature_importances_, model.predict)


def fit_linear(x: Array, y: Array, discrete: bool, seed: int) -> FittedPredictor:
    """|weights| on standardised codes, summed over the classes: logistic regression with an L1 penalty, or lasso."""
    from sklearn.linear_model import LassoCV, LogisticRegression

    z = standardise(x)[0]
    mean, std = x.mean(axis=0), x.std(axis=0)
    if discrete:
        # one against the rest by coordinate descent: the exact zeros of L1, quickly
        from sklearn.multiclass import OneVsRestClassifier

        one = LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=seed % 2**32)
        model = OneVsRestClassifier(one).fit(z, y)
        weights = np.abs(np.stack([np.ravel(e.coef_) for e in model.estimators_])).sum(axis=0)
    else:
        model = LassoCV(cv=5, random_state=seed % 2**32).fit(z, (y - y.mean()) / y.std())
        weights = np.abs(model.coef_)
    safe = np.where(std > 0, std, 1.0)

    def predict(new: Array) -> Array:
        guess = model.predict((new - mean) / safe)
        return guess if discrete else guess * y.std() + y.mean()

    return FittedPredictor(weights, predict)


BACKENDS: dict[str, Callable[[Array, Array, bool, int], FittedPredictor]] = {
    "lightgbm": fit_lightgbm,
    "quick": fit_quick,
    "sklearn": fit_sklearn,
    "forest": fit_forest,
    "linear": fit_linear,
}
