"""Information of every factor and latent, in nats, shared by the metrics that are made of it.

A discrete factor and a continuous code: the code is cut into bins (20 equal widths, as in the reference; or
quantiles) and the plug-in estimate is taken, or Ross counts neighbours without bins. A continuous factor and a code:
KSG. The cost of the binned estimate is linear in the rows.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from unseam.axes import Array
from unseam.metrics.inputs import Inputs, computed_once
from unseam.stats import discrete_information, discretise, entropy, ksg, ross

Estimator = Literal["histogram", "quantile", "knn"]


@computed_once
def mi_matrix(inputs: Inputs, bins: int = 20, estimator: Estimator = "histogram", k: int = 3) -> Array:  # (F, K)
    """I(v_f; z_j) for every factor and latent; the estimator is for discrete factors, continuous take KSG.

    >>> from unseam.metrics.inputs import prepare_inputs
    >>> v = np.arange(8).reshape(-1, 1) % 2
    >>> np.round(mi_matrix(prepare_inputs(np.hstack([v, 0 * v]).astype(float), v)), 4)
    array([[0.6931, 0.    ]])
    """
    codes, labels, values = inputs.rows.codes, inputs.rows.labels, inputs.rows.values
    binned = codes if estimator == "knn" else discretise(codes, bins, estimator)
    out = np.zeros((len(inputs.classes), codes.shape[1]))
    for f, classes in enumerate(inputs.classes):
        for j in range(codes.shape[1]):
            if not classes:
                out[f, j] = ksg(values[:, f], codes[:, j], k)
            elif estimator == "knn":
                out[f, j] = ross(labels[:, f], codes[:, j], k)
            else:
                out[f, j] = discrete_information(labels[:, f], binned[:, j])
    return out


@computed_once
def entropies(inputs: Inputs) -> Array:  # (F,) nats; NaN for a continuous factor
    """H(v_f) of every discrete factor."""
    return np.array([entropy(v) if c else np.nan for v, c in zip(inputs.rows.labels.T, inputs.classes, strict=True)])


def normalised(inputs: Inputs, matrix: Array) -> Array:  # (F, K) in [0, 1]
    """I / H(v) for discrete factors (0 when H(v) = 0), 1 - exp(-2 I) for continuous ones."""
    h = entropies(inputs)[:, None]
    share = np.divide(matrix, h, out=np.zeros_like(matrix), where=h > 0)
    return np.where(np.isnan(h), 1 - np.exp(-2 * matrix), share)


def mi_settings(inputs: Inputs, bins: int, estimator: Estimator = "histogram") -> dict[str, Any]:
    """How mutual information was estimated, per factor."""
    names = {
        "histogram": f"{bins} equal-width bins",
        "quantile": f"{bins} equal-count bins",
        "knn": "Ross, 3 neighbours",
    }
    how = {f.name: names[estimator] if f.discrete else "KSG, 3 neighbours; 1 - exp(-2 I)" for f in inputs.space}
    return {"bins": bins, "estimator": how, "rows": len(inputs)}
