"""Separated attribute predictability (SAP): how much better is the best latent than the second at each factor?

Kumar, Sattigeri & Balakrishnan 2018, section 3 (arXiv:1711.00848). For a discrete factor the entry of the
matrix is the held-out accuracy of a linear SVM on that one latent (C = 0.01, balanced classes, as in the
reference implementation); for a continuous one, and for every factor in `sap-r2`, the squared correlation.
The score is the mean over factors of the gap between the two best latents.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, require_few_classes
from unseam.metrics.registry import metric
from unseam.metrics.shared.correlation import factor_correlations, ordered_factors
from unseam.metrics.shared.linear_svm import SortedFeature
from unseam.metrics.shared.parallel import side_by_side
from unseam.stats import top_two_gap

KUMAR = "Kumar et al. 2018, arXiv:1711.00848"


@metric(
    "sap",
    "How much better than the second is the best latent at predicting each factor?",
    KUMAR,
    ceiling="1 - chance for two classes; far less for many, which one line cannot separate",
)
def sap(inputs: Inputs, c: float = 0.01) -> Score:
    """SAP by linear SVMs (discrete factors) and squared correlation (continuous ones).

    >>> v = np.random.default_rng(0).integers(0, 2, (300, 2))
    >>> round(sap(v - 0.5, v).value, 1)
    0.6
    """
    require_few_classes(inputs, "sap")
    train, test = inputs.halves()
    discrete = [f for f, count in enumerate(inputs.classes) if count]

    def accuracies(j: int) -> Array:  # (F_discrete,)
        feature, z = SortedFeature(train.codes[:, j]), test.codes[:, j]
        found = [feature.predict(feature.fit(train.labels[:, f], inputs.classes[f], c), z) for f in discrete]
        return np.array([(p == test.labels[:, f]).mean() for p, f in zip(found, discrete, strict=True)])

    matrix = factor_correlations(inputs, "pearson") ** 2
    if discrete:
        matrix[discrete] = np.stack(side_by_side(accuracies, range(matrix.shape[1]), inputs.workers), axis=1)
    gaps = top_two_gap(matrix)
    how = {f.name: "accuracy of a linear SVM" if f.discrete else "squared correlation" for f in inputs.space}
    settings = {"C": c, "class_weight": "balanced", "predictor": how, "train": len(train), "test": len(test)}
    return Score("sap", float(gaps.mean()), per_factor=gaps, matrix=matrix, settings=settings)


@metric(
    "sap-r2",
    "The same by squared correlation, for factors with an order.",
    KUMAR,
    ceiling="1 if the code is linear in the factor",
    halving=True,
)
def sap_r2(inputs: Inputs) -> Score:
    """SAP by the squared correlation, for every factor that has an order.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(sap_r2(v.astype(float), v).value, 6)
    1.0
    """
    ordered, notes = ordered_factors(inputs, "sap-r2")
    matrix = factor_correlations(inputs, "pearson") ** 2
    gaps = np.where(ordered, top_two_gap(matrix), np.nan)
    settings = {"predictor": "squared correlation (cyclic factor: with its cosine and sine)", "rows": len(inputs)}
    value = float(gaps[ordered].mean())
    return Score("sap-r2", value, per_factor=gaps, matrix=matrix, settings=settings, notes=notes)
