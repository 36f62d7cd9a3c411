"""`unseam.find` as an estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from unseam.axes import Array
from unseam.finding.columns import prepare
from unseam.finding.findings import Findings
from unseam.finding.search import examine
from unseam.readers import Columns
from unseam.sklearn_api.base import Codes, seed_of


class FactorFinder(Codes):
    """`unseam.find` as a transformer: as many columns out as factors were found, each graded.

    `n_components="auto"` decides by evidence. `network=True` also trains VAEs where a linear model does not suffice.
    Data without factors keep one column, of the strongest direction, graded unstable.

    >>> g = np.random.default_rng(0)
    >>> X = g.uniform(size=(300, 2)) @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(300, 6))
    >>> finder = FactorFinder().fit(X)
    >>> finder.transform(X).shape, finder.grades_
    ((300, 2), ['found', 'found'])
    """

    def __init__(
        self, n_components: int | Literal["auto"] = "auto", *, network: bool = False, effort: str = "normal",
        scale: Literal["auto", "standard", "common", "none"] = "auto", random_state: Any = 0,
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.network = network
        self.effort = effort
        self.scale = scale
        self.random_state = random_state

    def _fit(self, X: Array) -> None:
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
        table = Columns([str(name) for name in names], list(X.T))
        prepared, self.mean_ = prepare(table, self.scale, least=2), X.mean(0)
        latents = None if self.n_components == "auto" else self.n_components
        how: dict[str, Any] = {
            "network": self.network,
            "effort": self.effort,
            "seed": seed_of(self.random_state),
            "with_rivals": False,
            "show": False,
        }
        found = examine(prepared, latents=latents, **how)
        self.findings_: Findings = found if found.count else _one(found, examine(prepared, latents=1, **how))
        self.count_ = found.count
        self.grades_ = [f.grade for f in self.findings_.factors]
        self.explained_information_ = np.array([f.nats for f in self.findings_.factors])
        self._n_features_out = self.findings_.count

    def _encode(self, X: Array) -> Array:
        return self.findings_.transform(X)

    def _decode(self, u: Array) -> Array:
        """Rows of all columns; those that the findings left out are given their mean."""
        rows = np.repeat(self.mean_[None], len(u), axis=0)
        rows[:, list(self.findings_.prepared.used)] = self.findings_.inverse_transform(u)
        return rows


def _one(nothing: Findings, direction: Findings) -> Findings:
    """The strongest direction of data without factors, since a transformer needs one, with the sentence of none."""
    kept = "A transformer must give a column: that of the strongest direction is kept, and is no factor."
    factors = tuple(replace(factor, grade="unstable") for factor in direction.factors)
    return replace(direction, factors=factors, sentence=f"{nothing.sentence} {kept}")
