"""DCI: disentanglement, completeness and informativeness from the importance of each latent for each factor.

Eastwood & Williams 2018 (ICLR; openreview By-7dz-AZ), as in the reference implementation. A model predicts each
factor from the whole code; R_fj is the importance of latent j for factor f (the importances of a factor sum to 1).

    disentanglement D = sum_j rho_j (1 - H_F(R_.j)),  H_F the entropy over the F factors in base F,
    completeness    C = sum_f rho_f (1 - H_K(R_f.)),  H_K the entropy over the K latents in base K,
    informativeness I = mean over factors of the held-out accuracy (R^2 for a continuous factor),

rho the share of all importance. D asks whether a latent serves one factor, C whether a factor needs one latent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import entropy

from unseam.metrics.base import Score
from unseam.metrics.inputs import prepare
from unseam.metrics.parallel import factor_by_factor
from unseam.metrics.predictors import Backend, Fitted, fit
from unseam.metrics.table import Rows, Table, require_few_classes
from unseam.rng import derive
from unseam.types import Array, FactorSpace

SEEN = 2000  # training rows on which the training accuracy is measured; thousands of trees predict slowly
EPS = 1e-11  # added to the importances before the entropy, as in the reference


@dataclass(frozen=True)
class Importances:
    """R (F, K), and how well each factor is predicted on the training and the held-out rows (F,)."""

    matrix: Array
    train: Array
    test: Array


def dci(
    codes: Any,  # (N, K)
    factors: Any,  # (N, F)
    space: FactorSpace | None = None,
    *,
    test_codes: Any = None,
    test_factors: Any = None,
    backend: Backend = "lightgbm",
    seed: int = 0,
    workers: int | None = None,
) -> dict[str, Score]:
    """The three scores, from one set of models.

    >>> v = np.random.default_rng(0).integers(0, 3, (300, 2))
    >>> {name: round(score.value, 3) for name, score in dci(v.astype(float), v).items()}
    {'dci-disentanglement': 1.0, 'dci-completeness': 1.0, 'dci-informativeness': 1.0}
    """
    table = prepare(codes, factors, space, test_codes=test_codes, test_factors=test_factors, seed=seed, workers=workers)
    scores = (compute_disentanglement, compute_completeness, compute_informativeness)
    return {s.name: s for s in (compute(table, backend) for compute in scores)}


def compute_disentanglement(table: Table, backend: Backend = "lightgbm") -> Score:
    found = importances(table, backend)
    per_latent = concentration(found.matrix.T)
    value = weighted(per_latent, found.matrix.sum(axis=0))
    return Score(
        "dci-disentanglement", value, per_latent=per_latent, matrix=found.matrix, settings=settings(table, backend)
    )


def compute_completeness(table: Table, backend: Backend = "lightgbm") -> Score:
    found = importances(table, backend)
    per_factor = concentration(found.matrix)
    value = weighted(per_factor, found.matrix.sum(axis=1))
    return Score(
        "dci-completeness", value, per_factor=per_factor, matrix=found.matrix, settings=settings(table, backend)
    )


def compute_informativeness(table: Table, backend: Backend = "lightgbm") -> Score:
    found = importances(table, backend)
    return Score(
        "dci-informativeness",
        float(found.test.mean()),
        per_factor=found.test,
        matrix=found.matrix,
        settings=settings(table, backend),
        extra={"train": float(found.train.mean())},
    )


def concentration(matrix: Array) -> Array:  # (A, B) -> (A,)
    """1 - entropy of each row in base B: 1 for a single entry, 0 for a flat row. One column: nothing to share.

    >>> np.round(concentration(np.array([[1.0, 0.0], [0.5, 0.5]])), 6)
    array([1., 0.])
    """
    if matrix.shape[1] < 2:
        return np.ones(len(matrix))
    return 1 - np.asarray(entropy(matrix.T + EPS, base=matrix.shape[1]))


def weighted(values: Array, weights: Array) -> float:
    """The mean weighted by importance; plain when nothing is important."""
    total = weights.sum()
    return float((values * weights).sum() / total) if total > 0 else float(values.mean())


def importances(table: Table, backend: Backend) -> Importances:
    """Fit one model a factor, side by side; computed once a table."""
    require_few_classes(table, "dci")
    return table.once(("importances", backend), lambda: fit_all(table, backend))


def fit_all(table: Table, backend: Backend) -> Importances:
    train, test = table.halves()
    seen = train.take(np.linspace(0, len(train) - 1, min(len(train), SEEN)).astype(int))

    def one_factor(f: int) -> tuple[Array, float, float]:
        model = fit_factor(table, train, f, backend)
        return model.importances, correct(table, f, model, seen), correct(table, f, model, test)

    rows = factor_by_factor(one_factor, table)
    return Importances(*(np.array(column) for column in zip(*rows, strict=True)))


def fit_factor(table: Table, rows: Rows, f: int, backend: str) -> Fitted:
    discrete = table.classes[f] > 0
    y = rows.labels[:, f] if discrete else rows.values[:, f]
    return fit(backend, rows.codes, y, discrete, derive(table.seed, "dci", f) % 2**31)


def correct(table: Table, f: int, model: Fitted, rows: Rows) -> float:
    """Accuracy of a discrete factor, max(0, R^2) of a continuous one."""
    guess = model.predict(rows.codes)
    if table.classes[f]:
        return float((guess == rows.labels[:, f]).mean())
    y = rows.values[:, f]
    error, spread = ((y - guess) ** 2).mean(), y.var()
    return float(max(0.0, 1 - error / spread)) if spread > 0 else 0.0


def settings(table: Table, backend: Backend) -> dict[str, Any]:
    train, test = table.halves()
    return {"backend": backend, "train": len(train), "test": len(test), "seed": table.seed}
