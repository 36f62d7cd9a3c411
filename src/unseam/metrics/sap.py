"""Separated attribute predictability (SAP): how much better is the best latent than the second at each factor?

Kumar, Sattigeri & Balakrishnan 2018, section 3 (arXiv:1711.00848). For a discrete factor the entry of the
matrix is the held-out accuracy of a linear SVM on that one latent (C = 0.01, balanced classes, as in the
reference implementation); for a continuous one, and for every factor in `sap-r2`, the squared correlation.
The score is the mean over factors of the gap between the two best latents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.correlation import correlations, ordered_factors
from unseam.metrics.inputs import prepare
from unseam.metrics.linear_svm import SortedFeature
from unseam.metrics.mig import top_two_gap
from unseam.metrics.parallel import side_by_side
from unseam.metrics.table import Table, require_few_classes
from unseam.types import Array, FactorSpace


def sap(
    codes: Any,  # (N, K)
    factors: Any,  # (N, F)
    space: FactorSpace | None = None,
    *,
    test_codes: Any = None,
    test_factors: Any = None,
    c: float = 0.01,
    seed: int = 0,
) -> Score:
    """SAP by linear SVMs (discrete factors) and squared correlation (continuous ones).

    >>> v = np.random.default_rng(0).integers(0, 2, (300, 2))
    >>> round(sap(v - 0.5, v).value, 1)
    0.6
    """
    return compute_sap(prepare(codes, factors, space, test_codes=test_codes, test_factors=test_factors, seed=seed), c)


def sap_r2(codes: Any, factors: Any, space: FactorSpace | None = None) -> Score:
    """SAP by the squared correlation, for every factor that has an order.

    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(sap_r2(v.astype(float), v).value, 6)
    1.0
    """
    return compute_sap_r2(prepare(codes, factors, space))


def compute_sap(table: Table, c: float = 0.01) -> Score:
    require_few_classes(table, "sap")
    train, test = table.halves()
    discrete = [f for f, count in enumerate(table.classes) if count]

    def accuracies(j: int) -> Array:  # (F_discrete,)
        feature, z = SortedFeature(train.codes[:, j]), test.codes[:, j]
        found = [feature.predict(feature.fit(train.labels[:, f], table.classes[f], c), z) for f in discrete]
        return np.array([(p == test.labels[:, f]).mean() for p, f in zip(found, discrete, strict=True)])

    matrix = correlations(table, "pearson") ** 2
    if discrete:
        matrix[discrete] = np.stack(side_by_side(accuracies, range(matrix.shape[1]), table.workers), axis=1)
    gaps = top_two_gap(matrix)
    how = {f.name: "accuracy of a linear SVM" if f.discrete else "squared correlation" for f in table.space}
    settings = {"C": c, "class_weight": "balanced", "predictor": how, "train": len(train), "test": len(test)}
    return Score("sap", float(gaps.mean()), per_factor=gaps, matrix=matrix, settings=settings)


def compute_sap_r2(table: Table) -> Score:
    kept, notes = ordered_factors(table, "sap-r2")
    matrix = correlations(table, "pearson") ** 2
    gaps = np.where(kept, top_two_gap(matrix), np.nan)
    settings = {"predictor": "squared correlation (cyclic factor: with its cosine and sine)", "rows": len(table)}
    value = float(gaps[kept].mean())
    return Score("sap-r2", value, per_factor=gaps, matrix=matrix, settings=settings, notes=notes)
