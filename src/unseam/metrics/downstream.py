"""Downstream accuracy: how well do a few labels go with this code?

Locatello et al. 2019, section 5.5 (arXiv:1811.12359). A classifier is fitted on 10, 100, 1,000 and 10,000
labelled codes and tested on held-out ones, one factor at a time; a continuous factor is scored by max(0, R^2).
Statistical efficiency is the accuracy at 100 labels over that at 10,000. `logistic` is multinomial logistic
regression on standardised codes with C = 1 (the paper cross-validates C); `trees` are DCI's boosted trees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.dci import correct, fit_factor, importances
from unseam.metrics.inputs import Inputs, Observations, computed_once, require_few_classes
from unseam.metrics.registry import public, register
from unseam.metrics.shared.logistic import fit_softmax
from unseam.metrics.shared.parallel import factor_by_factor
from unseam.metrics.shared.predictors import FittedPredictor
from unseam.rng import numpy_generator
from unseam.stats import standardise

_Model = Literal["logistic", "trees"]
_SIZES = (10, 100, 1_000, 10_000)
_LOCATELLO = "Locatello et al. 2019, arXiv:1811.12359"


@public
def downstream(inputs: Inputs, model: _Model = "logistic", labels: int = 100) -> Score:
    """Held-out accuracy of a model fitted on `labels` rows.

    >>> v = np.random.default_rng(0).integers(0, 2, (300, 2))
    >>> downstream(v - 0.5, v, labels=100).value
    1.0
    """
    name = f"downstream-{model}-{labels}"
    require_few_classes(inputs, name)
    train, test = inputs.halves()
    if len(train) < labels:
        raise BadInput(f"{name} needs {labels} training rows, got {len(train)}; {remedy(inputs, labels)}")
    per_factor = accuracies(inputs, model, labels)
    settings = {"model": model, "labels": labels, "test": len(test), "seed": inputs.seed}
    return Score(name, float(per_factor.mean()), per_factor=per_factor, settings=settings)


def remedy(inputs: Inputs, labels: int) -> str:
    """What to do about too few training rows."""
    if inputs.held_out is not None:
        return "give more rows or choose a smaller size"
    wanted = -(-3 * labels // 2)
    return f"a third of the rows is held out: give at least {wanted} rows (unseam evaluate: --samples {wanted})"


def _efficiency(inputs: Inputs, model: _Model) -> Score:
    """Accuracy at 100 labels over accuracy at 10,000."""
    few, many = (downstream.of(inputs, model, labels) for labels in (100, 10_000))
    per_factor = accuracies(inputs, model, 100) / np.maximum(accuracies(inputs, model, 10_000), 1e-12)
    settings = {"model": model, "labels": "100 over 10000", "test": few.settings["test"], "seed": inputs.seed}
    return Score(f"efficiency-{model}", few.value / max(many.value, 1e-12), per_factor=per_factor, settings=settings)


def labelled(inputs: Inputs, labels: int) -> Observations:
    """So many of the training rows, drawn at random."""
    train, _ = inputs.halves()
    chosen = numpy_generator(inputs.seed, "labels", labels).choice(len(train), labels, replace=False)
    return train.take(np.sort(chosen))


@computed_once
def accuracies(inputs: Inputs, model: _Model, labels: int) -> Array:  # (F,)
    train, test = inputs.halves()
    if model == "trees" and labels == len(train):
        return importances(inputs, "lightgbm").test  # DCI's models, not fitted twice
    rows = labelled(inputs, labels)
    fit_one: Callable[[Inputs, Observations, int], FittedPredictor] = fit_logistic if model == "logistic" else fit_trees

    def one_factor(f: int) -> float:
        return correct(inputs, f, fit_one(inputs, rows, f), test)

    return np.array(factor_by_factor(one_factor, inputs))


def fit_trees(inputs: Inputs, rows: Observations, f: int) -> FittedPredictor:
    return fit_factor(inputs, rows, f, "lightgbm", "trees")


def fit_logistic(inputs: Inputs, rows: Observations, f: int) -> FittedPredictor:
    """Logistic regression, or ridge regression of a continuous factor, on standardised codes."""
    x = standardise(rows.codes)[0]
    nothing = np.zeros(x.shape[1])
    if inputs.classes[f]:
        model = fit_softmax(x, rows.labels[:, f], inputs.classes[f])
        return FittedPredictor(nothing, lambda new: model.predict(standardise(rows.codes, new)[1]))
    y = rows.values[:, f]
    weights = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ (y - y.mean()))
    return FittedPredictor(nothing, lambda new: standardise(rows.codes, new)[1] @ weights + y.mean())


_MODELS: tuple[tuple[_Model, str], ...] = (("logistic", "logistic regression"), ("trees", "a set of boosted trees"))
for model, about in _MODELS:
    for labels in _SIZES:
        register(
            f"downstream-{model}-{labels}",
            partial(downstream.of, model=model, labels=labels),
            f"How accurate is {about} fitted on {labels} labels?",
            _LOCATELLO,
            cheap=model == "logistic",
            vectors=True,
        )
for model, _ in _MODELS:
    register(
        f"efficiency-{model}",
        partial(_efficiency, model=model),
        "How much of the accuracy at 10,000 labels is there at 100?",
        _LOCATELLO,
        range=(0.0, float("inf")),
        ceiling="about 1",
        cheap=model == "logistic",
        vectors=True,
    )
