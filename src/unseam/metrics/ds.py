"""Disentanglement score (DS) of the thesis: the gap between the two latents that predict a factor best.

Zietlow 2022, eq. 3.32-3.37. A 5-nearest-neighbour predictor of each factor from each single latent, fitted on
80 % of the rows and tested on 20 %:

    DS = 1/F sum_f ( A_f,best - A_f,second ) / M_f
    regression (continuous factor):      A = max(0, std(w) - rmse),  M = std(w)
    classification (discrete factor):    A = accuracy,               M = accuracy of the best constant guess

As printed, the classification part divides a gap of accuracies by the accuracy of a constant guess, so it can
exceed 1 (a perfect code of 10 equal classes scores (1 - 0.1) / 0.1 = 9). It is kept as printed; `extra` holds
`bounded`, where M = 1 - that accuracy, which has the ceiling 1. The floor at 0 of the regression part is not
printed, but without it a perfect code of continuous factors scores 1.1 (5 neighbours on noise are worse than the
mean), while the thesis states the range (0, 1) and reports 0.99; `extra` holds `without_floor`.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, Observations
from unseam.metrics.registry import metric
from unseam.metrics.shared.parallel import side_by_side
from unseam.stats import top_two_gap


@metric(
    "ds",
    "The gap between the two latents that predict a factor best, by nearest neighbours.",
    "Zietlow 2022, eq. 3.32-3.37",
    range=(0.0, float("inf")),
    ceiling="1 for continuous factors; C - 1 for C equally frequent classes, as printed",
)
def ds(inputs: Inputs, neighbours: int = 5) -> Score:
    """DS of codes against factors.

    >>> v = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> round(ds(v, v).value, 1)
    1.0
    """
    train, test = inputs.halves(0.8)
    k = min(neighbours, len(train))

    def column(j: int) -> Array:  # (F,)
        near = _nearest(train.codes[:, j], test.codes[:, j], k)
        return np.array([quality(inputs, f, near, train, test) for f in range(len(inputs.space))])

    raw = np.stack(side_by_side(column, range(train.codes.shape[1]), inputs.workers), axis=1)
    matrix = np.maximum(raw, 0.0)
    constant = np.array([baseline(inputs, f, test) for f in range(len(inputs.space))])
    gaps, safe = top_two_gap(matrix), np.where(constant > 0, constant, 1.0)
    per_factor = gaps / safe
    room = np.where(np.array(inputs.classes) > 0, 1 - constant, safe)
    return Score(
        "ds",
        float(per_factor.mean()),
        per_factor=per_factor,
        matrix=matrix,
        settings={"neighbours": k, "train": len(train), "test": len(test)},
        extra={
            "bounded": float((gaps / np.where(room > 0, room, 1.0)).mean()),
            "without_floor": float((top_two_gap(raw) / safe).mean()),
        },
    )


def _nearest(train: Array, test: Array, k: int) -> Array:  # (N,), (M,) -> (M, k) rows of train
    """The k nearest training rows on a line: they lie in a window of 2 k places of the sorted values.

    >>> _nearest(np.array([0.0, 1.0, 5.0]), np.array([4.0]), 1)
    array([[2]])
    """
    order = np.argsort(train, kind="stable")
    line = train[order]
    low = np.clip(np.searchsorted(line, test) - k, 0, max(len(line) - 2 * k, 0))
    window = np.minimum(low[:, None] + np.arange(min(2 * k, len(line))), len(line) - 1)
    best = np.argsort(np.abs(line[window] - test[:, None]), axis=1, kind="stable")[:, :k]
    return order[np.take_along_axis(window, best, axis=1)]


def quality(inputs: Inputs, f: int, near: Array, train: Observations, test: Observations) -> float:
    """A_fj: accuracy of the majority of the neighbours, or std - rmse of their mean."""
    if inputs.classes[f]:
        guess = _majority(train.labels[near, f])
        return float((guess == test.labels[:, f]).mean())
    error = test.values[:, f] - train.values[near, f].mean(axis=1)
    return float(test.values[:, f].std() - np.sqrt((error**2).mean()))


def _majority(labels: Array) -> Array:  # (M, k) -> (M,) the most frequent label, the smallest on a tie
    """
    >>> _majority(np.array([[2, 1, 2], [3, 1, 2]]))
    array([2, 1])
    """
    ordered = np.sort(labels, axis=1)
    count = (ordered[:, :, None] == ordered[:, None, :]).sum(axis=2)
    return np.take_along_axis(ordered, count.argmax(axis=1)[:, None], axis=1)[:, 0]


def baseline(inputs: Inputs, f: int, test: Observations) -> float:
    """M_f: accuracy of the best constant guess, or the standard deviation."""
    if inputs.classes[f]:
        return float(np.bincount(test.labels[:, f]).max() / len(test))
    return float(test.values[:, f].std())
