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

from unseam.axes import Array
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, Observations, computed_once, require_few_classes
from unseam.metrics.registry import metric, public
from unseam.metrics.shared.parallel import factor_by_factor
from unseam.metrics.shared.predictors import Backend, FittedPredictor, fit_predictor
from unseam.rng import derive

_EASTWOOD = "Eastwood & Williams 2018, openreview By-7dz-AZ"
_TRAIN_ROWS = 2000  # training rows on which the training accuracy is measured; thousands of trees predict slowly
MOST = 200_000  # training rows of the trees, so that memory and time stay bounded; evenly spaced in a random order
_BLOCK = 100_000  # rows predicted at a time
_EPS = 1e-11  # added to the importances before the entropy, as in the reference


@dataclass(frozen=True)
class Importances:
    """R (F, K), how well each factor is predicted on the held-out rows (F,), and by which models."""

    matrix: Array
    test: Array
    models: tuple[FittedPredictor, ...]


@metric("dci-disentanglement", "Does each latent serve one factor?", _EASTWOOD, cheap=False, vectors=True)
def disentanglement(inputs: Inputs, backend: Backend = "lightgbm") -> Score:
    found = importances(inputs, backend)
    per_latent = concentration(found.matrix.T)
    value = weighted(per_latent, found.matrix.sum(axis=0))
    return Score(
        "dci-disentanglement", value, per_latent=per_latent, matrix=found.matrix, settings=_settings(inputs, backend),
        notes=_notes(inputs),
    )  # fmt: skip


@metric(
    "dci-completeness",
    "Does each factor need one latent only?",
    _EASTWOOD,
    cheap=False,
    vectors=True,
    counts="its entropy is in base K, the number of all latents",
)
def completeness(inputs: Inputs, backend: Backend = "lightgbm") -> Score:
    found = importances(inputs, backend)
    per_factor = concentration(found.matrix)
    value = weighted(per_factor, found.matrix.sum(axis=1))
    return Score(
        "dci-completeness", value, per_factor=per_factor, matrix=found.matrix, settings=_settings(inputs, backend),
        notes=_notes(inputs),
    )  # fmt: skip


@metric(
    "dci-informativeness",
    "How well do boosted trees predict the factors from the whole code?",
    _EASTWOOD,
    cheap=False,
    vectors=True,
)
def informativeness(inputs: Inputs, backend: Backend = "lightgbm") -> Score:
    found = importances(inputs, backend)
    return Score(
        "dci-informativeness",
        float(found.test.mean()),
        per_factor=found.test,
        matrix=found.matrix,
        settings=_settings(inputs, backend),
        notes=_notes(inputs),
        extra={"train": float(training_accuracy(inputs, backend).mean())},
    )


@public
def dci(inputs: Inputs, backend: Backend = "lightgbm") -> dict[str, Score]:
    """The three scores, from one set of models.

    >>> v = np.random.default_rng(0).integers(0, 3, (300, 2))
    >>> {name: round(score.value, 3) for name, score in dci(v.astype(float), v).items()}
    {'dci-disentanglement': 1.0, 'dci-completeness': 1.0, 'dci-informativeness': 1.0}
    """
    parts = (disentanglement, completeness, informativeness)
    return {score.name: score for score in (part.of(inputs, backend) for part in parts)}


def concentration(matrix: Array) -> Array:  # (A, B) -> (A,)
    """1 - entropy of each row in base B: 1 for a single entry, 0 for a flat row. One column: nothing to share.

    >>> np.round(concentration(np.array([[1.0, 0.0], [0.5, 0.5]])), 6)
    array([1., 0.])
    """
    if matrix.shape[1] < 2:
        return np.ones(len(matrix))
    return 1 - np.asarray(entropy(matrix.T + _EPS, base=matrix.shape[1]))


def weighted(values: Array, weights: Array) -> float:
    """The mean weighted by importance; plain when nothing is important."""
    total = weights.sum()
    return float((values * weights).sum() / total) if total > 0 else float(values.mean())


@computed_once
def importances(inputs: Inputs, backend: Backend) -> Importances:
    """Fit one model per factor, side by side."""
    require_few_classes(inputs, "dci")
    train, test = inputs.halves()
    train = _at_most(train, MOST)

    def one_factor(f: int) -> tuple[FittedPredictor, float]:
        model = fit_factor(inputs, train, f, backend)
        return model, correct(inputs, f, model, test)

    models, well = zip(*factor_by_factor(one_factor, inputs), strict=True)
    matrix = np.array([model.importances for model in models])
    return Importances(inputs.by_latent(matrix), np.array(well), models)


@computed_once
def training_accuracy(inputs: Inputs, backend: Backend) -> Array:  # (F,)
    """How well the same models predict some of the rows that they were fitted on."""
    models, train = importances(inputs, backend).models, _at_most(inputs.halves()[0], MOST)
    part = train.take(np.linspace(0, len(train) - 1, min(len(train), _TRAIN_ROWS)).astype(int))
    return np.array(factor_by_factor(lambda f: correct(inputs, f, models[f], part), inputs))


def _at_most(rows: Observations, most: int) -> Observations:
    """All rows, or `most` of them, evenly spaced: the order of a split is random."""
    return rows if len(rows) <= most else rows.take(np.linspace(0, len(rows) - 1, most).astype(int))


def fit_factor(inputs: Inputs, rows: Observations, f: int, backend: str, salt: str = "dci") -> FittedPredictor:
    """Trees of one factor; `salt` tells their random numbers from those of other metrics."""
    discrete = inputs.classes[f] > 0
    y = rows.labels[:, f] if discrete else rows.values[:, f]
    return fit_predictor(backend, rows.codes, y, discrete, derive(inputs.seed, salt, f) % 2**31)


def correct(inputs: Inputs, f: int, model: FittedPredictor, rows: Observations) -> float:
    """Accuracy of a discrete factor, max(0, R^2) of a continuous one."""
    blocks = np.array_split(rows.codes, max(1, -(-len(rows) // _BLOCK)))
    guess = np.concatenate([model.predict(block) for block in blocks])
    if inputs.classes[f]:
        return float((guess == rows.labels[:, f]).mean())
    y = rows.values[:, f]
    error, spread = ((y - guess) ** 2).mean(), y.var()
    return float(max(0.0, 1 - error / spread)) if spread > 0 else 0.0


def _settings(inputs: Inputs, backend: Backend) -> dict[str, Any]:
    train, test = inputs.halves()
    fitted = {"fitted": MOST} if len(train) > MOST else {}
    return {"backend": backend, "train": len(train), "test": len(test), "seed": inputs.seed, **fitted}


def _notes(inputs: Inputs) -> tuple[str, ...]:
    rows = len(inputs.halves()[0])
    return (f"DCI: models were fitted on {MOST:,} of the {rows:,} training rows",) if rows > MOST else ()
