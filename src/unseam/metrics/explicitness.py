"""Explicitness: can a linear classifier read every value of each factor from the code?

Ridgeway & Mozer 2018, section 3 (arXiv:1802.05312), computed as the reference implementation does: multinomial
logistic regression on standardised codes, one ROC AUC a class on held-out rows, averaged over the classes of a
factor and then over the factors. 0.5 is chance, 1 the ceiling. It says nothing of how the code is arranged: a
rotated code is as explicit as a perfect one.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, require_classes, require_few_classes
from unseam.metrics.registry import metric
from unseam.metrics.shared.logistic import fit_softmax
from unseam.metrics.shared.parallel import factor_by_factor
from unseam.stats import standardise


@metric(
    "explicitness",
    "Can a linear classifier read each value of each factor from the code?",
    "Ridgeway & Mozer 2018, arXiv:1802.05312",
    ceiling="1; 0.5 is chance",
    vectors=True,
)
def explicitness(inputs: Inputs, penalty: float = 1.0) -> Score:
    """Explicitness of codes against factors.

    >>> v = np.random.default_rng(0).integers(0, 2, (300, 2))
    >>> round(explicitness(v - 0.5, v).value, 6)
    1.0
    """
    require_classes(inputs, "explicitness", "a ROC AUC needs classes (use infoe, which takes R^2)")
    require_few_classes(inputs, "explicitness")
    train, test = inputs.halves()
    z, z_test = standardise(train.codes, test.codes)

    def one_factor(f: int) -> tuple[float, float]:
        model = fit_softmax(z, train.labels[:, f], inputs.classes[f], penalty)
        on_train = mean_auc(model.probabilities(z), train.labels[:, f])
        return on_train, mean_auc(model.probabilities(z_test), test.labels[:, f])

    found = np.array(factor_by_factor(one_factor, inputs))
    settings = {"classifier": "multinomial logistic regression, C=1", "train": len(train), "test": len(test)}
    per_factor = found[:, 1]
    extra = {"train": float(found[:, 0].mean())}
    return Score("explicitness", float(per_factor.mean()), per_factor=per_factor, settings=settings, extra=extra)


def mean_auc(scores: Array, labels: Array) -> float:  # (C, N), (N,)
    """Mean over the classes that occur (and do not fill the rows) of the area under the ROC curve.

    AUC = ( sum of the ranks of the positives - n1 (n1 + 1) / 2 ) / (n1 n0), ties at their mean rank.

    >>> mean_auc(np.array([[0.1, 0.4, 0.35, 0.8], [0.9, 0.6, 0.65, 0.2]]), np.array([1, 1, 0, 0]))
    0.75
    """
    counts = np.bincount(labels, minlength=len(scores))
    found = [auc(scores[c], scores[c][labels == c]) for c in np.flatnonzero((counts > 0) & (counts < len(labels)))]
    return float(np.mean(found)) if found else 0.5


def auc(scores: Array, positives: Array) -> float:
    line, n1 = np.sort(scores), len(positives)
    ranks = np.searchsorted(line, positives, "left") + np.searchsorted(line, positives, "right") + 1
    return float((ranks.sum() / 2 - n1 * (n1 + 1) / 2) / (n1 * (len(line) - n1)))
