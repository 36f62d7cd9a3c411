"""What all estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from unseam.axes import Array
from unseam.readers import as_array

DTYPES = [np.float64, np.float32]


def plain_input(X: Any) -> Any:
    """Masked arrays with NaN, which scikit-learn then refuses or takes, and tensors as arrays; all else as it is."""
    masked = isinstance(X, np.ma.MaskedArray)
    return as_array(X, "X") if masked or hasattr(X, "detach") else X


class Codes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all share: checked input, output of the input's dtype, names of the output."""

    def fit(self, X: Any, y: Any = None) -> Codes:
        """Fit to rows X (N, n); y is ignored."""
        X = validate_data(self, plain_input(X), dtype=DTYPES, ensure_min_samples=2)
        self.n_iter_ = 1
        self._fit(X.astype(np.float64))
        return self

    def transform(self, X: Any) -> Array:  # (N, n) -> (N, K)
        """Codes: posterior means, the most informative latent first."""
        check_is_fitted(self)
        X = validate_data(self, plain_input(X), dtype=DTYPES, reset=False)
        return np.asarray(self._encode(X.astype(np.float64)), X.dtype)

    def inverse_transform(self, X: Any) -> Array:  # (N, K) -> (N, n)
        """Rows from codes."""
        check_is_fitted(self)
        return np.asarray(self._decode(np.asarray(X, np.float64)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _fit(self, X: Array) -> None:
        raise NotImplementedError

    def _encode(self, X: Array) -> Array:
        raise NotImplementedError

    def _decode(self, u: Array) -> Array:
        raise NotImplementedError


def seed_of(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
