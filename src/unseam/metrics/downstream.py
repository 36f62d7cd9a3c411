"""Downstream accuracy: how well do a few labels go with this code?

Locatello et al. 2019, section 5.5 (arXiv:1811.12359). A classifier is fitted on 10, 100, 1,000 and 10,000
labelled codes and tested on held-out ones, one factor at a time; a continuous factor is scored by max(0, R^2).
Statistical efficiency is the accuracy at 100 labels over that at 10,000. `logistic` is multinomial logistic
regression on standardised codes with C = 1 (the paper cross-validates C); `trees` are DCI's boosted trees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.dci import correct, importances
from unseam.metrics.inputs import prepare
from unseam.metrics.logistic import fit_softmax, standardise
from unseam.metrics.parallel import factor_by_factor
from unseam.metrics.predictors import Fitted, fit
from unseam.metrics.table import Rows, Table, require_few_classes
from unseam.rng import derive, numpy_generator
from unseam.types import Array, FactorSpace

Model = Literal["logistic", "trees"]
SIZES = (10, 100, 1_000, 10_000)


def downstream(
    codes: Any,  # (N, K)
    factors: Any,  # (N, F)
    space: FactorSpace | None = None,
    *,
    model: Model = "logistic",
    labels: int = 100,
    test_codes: Any = None,
    test_factors: Any = None,
    seed: int = 0,
) -> Score:
    """Held-out accuracy of a model fitted on `labels` rows.

    >>> v = np.random.default_rng(0).integers(0, 2, (300, 2))
    >>> downstream(v - 0.5, v, labels=100).value
    1.0
    """
    table = prepare(codes, factors, space, test_codes=test_codes, test_factors=test_factors, seed=seed)
    return compute_downstream(table, model, labels)


def compute_downstream(table: Table, model: Model, labels: int) -> Score:
    name = f"downstream-{model}-{labels}"
    require_few_classes(table, name)
    train, test = table.halves()
    if len(train) < labels:
        raise BadInput(f"{name} needs {labels} training rows, got {len(train)}; give more rows or a smaller size")
    per_factor = table.once((name,), lambda: accuracies(table, train, test, model, labels))
    settings = {"model": model, "labels": labels, "test": len(test), "seed": table.seed}
    return Score(name, float(per_factor.mean()), per_factor=per_factor, settings=settings)


def compute_efficiency(table: Table, model: Model) -> Score:
    few, many = compute_downstream(table, model, 100), compute_downstream(table, model, 10_000)
    assert few.per_factor is not None
    assert many.per_factor is not None
    per_factor = few.per_factor / np.maximum(many.per_factor, 1e-12)
    value = few.value / max(many.value, 1e-12)
    settings = {"model": model, "labels": "100 over 10000", "test": few.settings["test"], "seed": table.seed}
    return Score(f"efficiency-{model}", value, per_factor=per_factor, settings=settings)


def accuracies(table: Table, train: Rows, test: Rows, model: Model, labels: int) -> Array:  # (F,)
    if model == "trees" and labels == len(train):
        return importances(table, "lightgbm").test  # DCI's models, not fitted twice
    chosen = numpy_generator(table.seed, "labels", labels).choice(len(train), labels, replace=False)
    rows = train.take(np.sort(chosen))
    fit_one: Callable[[Table, Rows, int], Fitted] = fit_logistic if model == "logistic" else fit_trees

    def one_factor(f: int) -> float:
        return correct(table, f, fit_one(table, rows, f), test)

    return np.array(factor_by_factor(one_factor, table))


def fit_trees(table: Table, rows: Rows, f: int) -> Fitted:
    discrete = table.classes[f] > 0
    y = rows.labels[:, f] if discrete else rows.values[:, f]
    return fit("lightgbm", rows.codes, y, discrete, derive(table.seed, "trees", f) % 2**31)


def fit_logistic(table: Table, rows: Rows, f: int) -> Fitted:
    """Logistic regression, or ridge regression of a continuous factor, on standardised codes."""
    x = standardise(rows.codes)[0]
    nothing = np.zeros(x.shape[1])
    if table.classes[f]:
        model = fit_softmax(x, rows.labels[:, f], table.classes[f])
        return Fitted(nothing, lambda new: model.predict(standardise(rows.codes, new)[1]))
    y = rows.values[:, f]
    weights = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ (y - y.mean()))
    return Fitted(nothing, lambda new: standardise(rows.codes, new)[1] @ weights + y.mean())
