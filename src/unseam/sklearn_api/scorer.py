"""Metrics of ours as scikit-learn's scoring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unseam.errors import lookup
from unseam.metrics import score
from unseam.metrics.registry import METRICS


@dataclass(frozen=True)
class Scorer:
    """A metric of ours as scikit-learn's scoring: larger is better, so that those of the other kind change sign."""

    name: str

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        metric = METRICS[self.name]
        codes = np.asarray(estimator.transform(X), np.float64)
        factors = None if not metric.supervised else np.asarray(y).reshape(len(codes), -1)
        value = score(codes, factors, metrics=self.name, workers=1)[self.name].value
        return value if metric.direction == "higher" else -value


def scorer(name: str) -> Scorer:
    """Make a metric of ours a scikit-learn scorer, for `GridSearchCV(scoring=...)`.

    Parameters
    ----------
    name : str
        The name of the metric. A supervised one takes the true factors as y; the others ignore y.

    Returns
    -------
    Scorer
        Called with (estimator, X, y). Larger is better, so metrics of which less is better change sign.

    Examples
    --------
    >>> from unseam.estimators import PPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 3)) * [4.0, 2.0, 1.0]
    >>> scorer("mcc")(PPCA(3).fit(X), X, X) > 0.9, scorer("gaussian-tc")(PPCA(2).fit(X), X) > -0.01
    (True, True)
    """
    lookup(METRICS, name, "metric")
    return Scorer(name)
