"""What every closed form asks of its input: a covariance that is one, numbers on the right side of zero."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput


def checked_covariance(name: str, value: Any) -> Array:  # (..., n, n) -> (..., n, n)
    """A symmetric positive definite matrix (or a stack of them) in float64, or an error that says which part fails.

    >>> checked_covariance("Sy", [[2, 1], [1, 2]])
    array([[2., 1.],
           [1., 2.]])
    >>> checked_covariance("Sy", [[1, 1], [1, 1]])
    Traceback (most recent call last):
    unseam.errors.BadInput: Sy is singular: its smallest eigenvalue 0 ... add noise to it or leave out ...
    """
    S = np.asarray(value, dtype=np.float64)
    if S.ndim < 2 or S.shape[-1] != S.shape[-2] or S.shape[-1] == 0:
        raise BadInput(f"{name} has shape {S.shape}; a covariance is square, (n, n)")
    if not np.isfinite(S).all():
        raise BadInput(f"{name} holds values that are not finite; remove the rows that cause them")
    if not np.allclose(S, np.swapaxes(S, -1, -2), rtol=1e-8, atol=1e-12 * np.abs(S).max()):
        raise BadInput(f"{name} is not symmetric; pass (S + S.T) / 2 if that is what you mean")
    low, high = (ends := np.linalg.eigvalsh(S))[..., 0].min(), ends[..., -1].max()
    if low < -1e-12 * abs(high):
        raise BadInput(f"{name} has a negative eigenvalue {low:.3g}; a covariance has none")
    if low <= 1e-12 * high:
        raise BadInput(
            f"{name} is singular: its smallest eigenvalue {abs(low):.3g} is lost beside its largest {high:.3g}; "
            "add noise to it or leave out the dimension that repeats the others"
        )
    return S


def positive(name: str, value: Any) -> Array:
    """Numbers above zero, as a float64 array.

    >>> positive("gamma", -1.0)
    Traceback (most recent call last):
    unseam.errors.BadInput: gamma=-1 must be positive and finite
    """
    array = np.asarray(value, dtype=np.float64)
    bad = array[~(np.isfinite(array) & (array > 0))]
    if bad.size:
        raise BadInput(f"{name}={bad.flat[0]:g} must be positive and finite")
    return array


def spectrum(name: str, value: Any) -> Array:  # (n,) -> (n,)
    """Eigenvalues of a covariance, largest first.

    >>> spectrum("eigenvalues", [1, 3, 2])
    array([3., 2., 1.])
    """
    l = np.sort(positive(name, value))[::-1]
    if l.ndim != 1 or not l.size:
        raise BadInput(f"{name} has shape {l.shape}; pass a list of eigenvalues")
    return l


def latent_dimension(d: int, n: int) -> int:
    """0 < d < n: a linear model with noise needs at least one dimension to see the noise in.

    >>> latent_dimension(3, 3)
    Traceback (most recent call last):
    unseam.errors.BadInput: d=3 must be at least 1 and smaller than n=3, or no dimension is left for the noise
    """
    if not 1 <= d < n:
        raise BadInput(f"d={d} must be at least 1 and smaller than n={n}, or no dimension is left for the noise")
    return int(d)


def partition(name: str, groups: Sequence[Sequence[int]], s: int) -> tuple[tuple[int, ...], ...]:
    """Groups of factors: none empty, each factor once.

    >>> partition("groups", [[0, 1], [2]], 3)
    ((0, 1), (2,))
    >>> partition("groups", [[0, 1], []], 2)
    Traceback (most recent call last):
    unseam.errors.BadInput: groups holds an empty group; leave it out
    """
    tuples = tuple(tuple(int(j) for j in group) for group in groups)
    if not all(tuples):
        raise BadInput(f"{name} holds an empty group; leave it out")
    if sorted(j for group in tuples for j in group) != list(range(s)):
        raise BadInput(f"{name}={tuples} must hold each of the factors 0..{s - 1} exactly once")
    return tuples
