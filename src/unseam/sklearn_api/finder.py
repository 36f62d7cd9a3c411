"""`unseam.find` as an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted, validate_data

from unseam.axes import Array
from unseam.errors import unknown
from unseam.finding.columns import names_of, prepare
from unseam.finding.findings import Findings
from unseam.finding.read import read
from unseam.finding.search import EFFORT_NAMES, examine
from unseam.sklearn_api.base import DTYPES, Codes, plain_input, seed_of


class FactorFinder(Codes):
    """`unseam.find` as a transformer: as many columns out as factors were found, each graded.

    It takes what `find` takes: tables with words, dates and missing cells, or arrays. Data without factors keep one
    column, of the strongest direction, graded unstable.

    Parameters
    ----------
    n_components : int or "auto"
        How many factors; "auto" decides.
    network : bool
        Whether VAEs are trained as well where a linear model does not suffice.
    effort : "quick", "normal" or "thorough"
        How much is spent on them.
    scale : "auto", "standard", "common" or "none"
        What columns are divided by; "common" says that they share a unit.
    kinds : dict, optional
        What columns are where recognition is wrong, {"age": "continuous"}.
    leave_out, keep : str or list of str
        Columns to leave out, and to use although they look like identifiers or labels.
    random_state : int, RandomState or None
        Of everything random.

    Attributes
    ----------
    findings_ : Findings
        All that `unseam.find` returns.
    n_components_ : int
        Columns of `transform`.
    components_ : array (n_components_, n)
        Loadings of the columns on each factor; 0 for columns that were left out.
    loadings_ : DataFrame
        The same, used columns x factors.
    count_ : int
        Factors; 0 if there are none.
    grades_ : list of str
    explained_information_ : array (n_components_,)
        Nats of each factor.

    Examples
    --------
    >>> g = np.random.default_rng(0)
    >>> X = g.uniform(size=(300, 2)) @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(300, 6))
    >>> finder = FactorFinder().fit(X)
    >>> finder.transform(X).shape, finder.grades_
    ((300, 2), ['found', 'found'])
    """

    def __init__(
        self, n_components: int | Literal["auto"] = "auto", *, network: bool = False, effort: str = "normal",
        scale: Literal["auto", "standard", "common", "none"] = "auto", kinds: Mapping[str, str] | None = None,
        leave_out: str | Sequence[str] = (), keep: str | Sequence[str] = (), random_state: Any = 0,
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.network = network
        self.effort = effort
        self.scale = scale
        self.kinds = kinds
        self.leave_out = leave_out
        self.keep = keep
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> FactorFinder:
        """Find the factors of a table or array X (N, n); y is ignored."""
        if self.effort not in EFFORT_NAMES:
            raise unknown("effort", self.effort, EFFORT_NAMES)
        table = self._table(X, reset=True)
        self.n_iter_ = 1
        prepared = prepare(
            read(table).table, self.scale, names_of(self.leave_out), least=2, kinds=self.kinds, keep=self.keep
        )
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
        self.loadings_ = self.findings_.loadings
        self.components_ = self._components()
        self.mean_ = np.array([_mean(table[name]) for name in table])
        self.n_components_ = self._n_features_out = self.findings_.count
        return self

    def transform(self, X: Any) -> Array:  # (N, n) -> (N, n_components_)
        """Codes of a table with the same columns or an array with as many; cells may be missing."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        single = all(kind == np.float32 for kind in table.dtypes)
        return np.asarray(self.findings_.transform(table), np.float32 if single else np.float64)

    def inverse_transform(self, X: Any) -> Array:  # (N, n_components_) -> (N, n)
        """Rows of all columns from codes. Columns that were left out have their mean, or NaN if they are words; columns
        of two words are 1 for the second."""
        check_is_fitted(self)
        u = np.asarray(X, np.float64)
        frame = self.findings_.inverse_transform(u)
        prepared = self.findings_.prepared
        rows = np.repeat(self.mean_[None], len(u), axis=0)
        for j, i in enumerate(prepared.used):
            if prepared.kinds[i] != "categorical":
                rows[:, self._names.index(prepared.names[i])] = frame[:, j]
        return rows

    def _components(self) -> Array:  # (n_components_, n)
        """Loadings in the columns of X; of classes, that of the class with the largest."""
        prepared, values = self.findings_.prepared, self.loadings_.to_numpy()
        out = np.zeros((values.shape[1], self.n_features_in_))
        for row, i in zip(values, prepared.used, strict=True):
            j = self._names.index(prepared.names[i])
            out[:, j] = np.where(np.abs(row) > np.abs(out[:, j]), row, out[:, j])
        return out

    @property
    def _names(self) -> list[str]:
        own = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if own is None else [str(name) for name in own]

    def _table(self, X: Any, reset: bool) -> pd.DataFrame:
        """The input as a table: pandas' as it is, an array by its columns, checked by scikit-learn."""
        X = plain_input(X)
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return pd.DataFrame(X)
        if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OU" and _has_words(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return pd.DataFrame({name: _as_numbers(cells) for name, cells in zip(self._names, X.T, strict=True)})
        values = validate_data(
            self, X, dtype=DTYPES, reset=reset, ensure_all_finite="allow-nan", ensure_min_samples=2 if reset else 1
        )
        return pd.DataFrame(values, columns=self._names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _has_words(cells: Array) -> bool:
    return any(isinstance(cell, str) for cell in cells.flat)


def _as_numbers(cells: Array) -> Array:  # (N,) objects
    """A column of numbers as such; one with words stays."""
    return cells if _has_words(cells) else np.asarray([np.nan if c is None else c for c in cells], np.float64)


def _mean(column: pd.Series) -> float:
    return float(column.mean()) if pd.api.types.is_numeric_dtype(column) else float("nan")


def _one(nothing: Findings, direction: Findings) -> Findings:
    """The strongest direction of data without factors, since a transformer needs one, with the sentence of none."""
    note = "A transformer must give a column: that of the strongest direction is kept, although it is not a factor."
    factors = tuple(replace(factor, grade="unstable") for factor in direction.factors)
    return replace(direction, factors=factors, sentence=f"{nothing.sentence} {note}")
