"""Are two components independent? Distance correlation with a permutation p-value (Szekely, Rizzo & Bakirov 2007)."""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.rng import numpy_generator

_POINTS = 500  # a random part of longer samples (every n-th row would alias with rows in grid order): cost N^2


class Dependence(NamedTuple):
    """Distance correlation in [0, 1], 0 iff independent, and how often chance gives as much."""

    correlation: float
    p_value: float


def centred_distances(x: Array) -> Array:  # (N, d) -> (N, N)
    """|x_a - x_b| with row, column and grand means taken out."""
    pairs = scipy.spatial.distance.pdist(x)
    distance = scipy.spatial.distance.squareform(pairs)
    return distance - distance.mean(0) - distance.mean(1)[:, None] + distance.mean()


def dependence(x: ArrayLike, y: ArrayLike, permutations: int = 199, seed: int = 0) -> Dependence:
    """Distance correlation of two samples (N,) or (N, d), and the p-value of independence.

    Parameters
    ----------
    x : array of shape (N,) or (N, d)
        One sample.
    y : array of shape (N,) or (N, d)
        The other, of the same rows.
    permutations : int, default=199
        Permutations behind the p-value.
    seed : int, default=0
        Of the random draws.

    Returns
    -------
    Dependence
        The distance correlation and the p-value.

    Examples
    --------
    >>> t = np.linspace(-1, 1, 101)
    >>> uncorrelated_but_dependent = dependence(t, t**2)
    >>> uncorrelated_but_dependent.p_value
    0.005
    """
    a, b = (np.asarray(s, dtype=float).reshape(len(np.asarray(s)), -1) for s in (x, y))
    if len(a) != len(b) or len(a) < 4:
        raise BadInput(f"samples have {len(a)} and {len(b)} rows; give two samples of the same length, at least 4")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise BadInput("samples hold NaN or infinite values; drop these rows")
    rng = numpy_generator(seed, "dependence")
    rows = rng.choice(len(a), _POINTS, replace=False) if len(a) > _POINTS else np.arange(len(a))
    A, B = centred_distances(a[rows]), centred_distances(b[rows])
    size = np.sqrt((A * A).mean() * (B * B).mean())
    if size == 0:
        return Dependence(0.0, 1.0)  # a constant depends on nothing
    orders = [rng.permutation(len(A)) for _ in range(permutations)]
    here = float((A * B).mean())
    chance = np.array([(A * B[np.ix_(order, order)]).mean() for order in orders])
    p_value = (1 + int((chance >= here).sum())) / (1 + permutations)
    return Dependence(float(np.sqrt(max(here, 0) / size)), p_value)
