"""Codes and posteriors as people have them: pandas, torch.distributions, (mean, log-variance)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal

from unseam.errors import BadInput


def as_given(codes: Any, posterior: Any) -> tuple[Any, Any]:
    """(codes, posterior) of plain arrays: a distribution or (mean, log-variance) in place of either says both.

    >>> mean, variance = as_given((np.zeros((3, 2)), np.zeros((3, 2))), None)
    >>> variance.tolist()
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """
    if posterior is None and (isinstance(codes, Distribution) or is_pair(codes)):
        codes, posterior = mean_of(codes), codes
    return plain(codes), variance_of(posterior)


def is_pair(given: Any) -> bool:
    """(mean, log-variance): two tables of one shape, not two rows."""
    two = isinstance(given, (tuple, list)) and len(given) == 2
    return two and all(np.ndim(plain(part)) == 2 for part in given) and np.shape(given[0]) == np.shape(given[1])


def mean_of(given: Any) -> Any:
    return given.mean if isinstance(given, Distribution) else given[0]


def plain(given: Any) -> Any:
    """pandas becomes NumPy; everything else stays."""
    return given.to_numpy() if hasattr(given, "to_numpy") else given


def variance_of(given: Any) -> Any:
    """Variances (N, K) or covariances (N, K, K); numbers that can only be logarithms are refused by that name."""
    if isinstance(given, Distribution):
        inner = getattr(given, "base_dist", given)  # Independent(Normal)
        return (inner.covariance_matrix if isinstance(inner, MultivariateNormal) else inner.variance).detach()
    if is_pair(given):
        return np.exp(tensor(given[1]).double().numpy())
    given = plain(given)
    if isinstance(given, (Tensor, np.ndarray)) and np.ndim(given) == 2 and bool((tensor(given) < 0).any()):
        low = float(tensor(given).min())
        raise BadInput(
            f"posterior variances go down to {low:.3g}: these look like log-variances; give exp of them, or "
            "(mean, log-variance) in place of the codes"
        )
    return given


def tensor(given: Any) -> Tensor:
    if isinstance(given, Tensor):
        return given.detach().cpu()
    return torch.as_tensor(np.array(plain(given)))  # a copy: pandas' are read-only
