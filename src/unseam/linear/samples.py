"""I_m of samples, so that it is a score for the codes of any model."""

from typing import Any, Literal, get_args

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput, unknown
from unseam.linear.information import Tables, few, gaussian_tables
from unseam.linear.partition import Partition
from unseam.linear.search import best_partition
from unseam.rng import numpy_generator
from unseam.stats import ksg, normal_scores

InformationMethod = Literal["gaussian", "ksg"]


def partition_information(
    codes: Any,  # (N, m)
    factors: Any,  # (N, s)
    method: InformationMethod = "gaussian",
    *,
    budget: int = 3_000_000,
    k: int = 3,
    rows: int = 1000,
    seed: int = 0,
) -> Partition:
    """I_m of samples: the value, the groups, and the gap (0.0 when the search was exact).

    Parameters
    ----------
    codes : array of shape (N, m)
        Codes.
    factors : array of shape (N, s)
        The factors of the same rows.
    method : {"gaussian", "ksg"}, default="gaussian"
        How information is estimated from samples.
    budget : int, default=3,000,000
        Partial partitions that are searched at most.
    k : int, default=3
        Neighbours, for estimators that count them.
    rows : int, default=1000
        Rows that such estimators use at most.
    seed : int, default=0
        Of the random draws.

    Returns
    -------
    Partition
        The value, the groups and the gap.

    Examples
    --------
    >>> v = np.random.default_rng(0).normal(size=(1000, 3))
    >>> x = np.stack([v[:, 0] + v[:, 1], v[:, 2]], 1) + 0.1 * np.random.default_rng(1).normal(size=(1000, 2))
    >>> partition_information(x, v).groups
    ((0, 1), (2,))
    """
    return best_partition(sample_tables(codes, factors, method, k=k, rows=rows, seed=seed), budget)


def sample_tables(
    codes: Any, factors: Any, method: InformationMethod = "gaussian", *, k: int = 3, rows: int = 1000, seed: int = 0
) -> Tables:
    """Information of every latent about every set of factors: `gaussian` plugs in the sample covariance, `ksg` counts
    neighbours in `rows` of the rows.

    The Gaussian plug-in sees linear dependence only; a non-linear code needs ksg, which is limited to 6 factors.

    >>> v = np.random.default_rng(0).normal(size=(1000, 2))
    >>> sample_tables(v + 1.0, v).gain.round(1)  # a perfect code: 10.4 nats is the most that is counted
    array([[ 0. , 10.4,  0. , 10.4],
           [ 0. ,  0. , 10.4, 10.4]])
    """
    x, v = np.asarray(codes, np.float64), np.asarray(factors, np.float64)
    _check_samples(x, v)
    if method == "ksg":
        keep = numpy_generator(seed, "partition", "rows").permutation(len(x))[:rows]
        return ksg_tables(x[keep], v[keep], k, seed)
    if method != "gaussian":
        raise unknown("method", method, get_args(InformationMethod))
    m = x.shape[1]
    S = np.cov(np.hstack([x, v]).T, bias=True)
    return gaussian_tables(S[m:, m:], np.diag(S)[:m], S[:m, m:])


def _check_samples(x: Array, v: Array) -> None:
    if x.ndim != 2 or v.ndim != 2 or len(x) != len(v) or not x.shape[1] or not v.shape[1]:
        raise BadInput(f"codes {x.shape} and factors {v.shape} must be tables (N, m) and (N, s) with the same N rows")
    if len(x) <= v.shape[1] + 1:
        raise BadInput(f"{len(x)} rows cannot show how {v.shape[1]} factors depend on each other; give more")
    if not (np.isfinite(x).all() and np.isfinite(v).all()):
        raise BadInput("codes or factors hold values that are not finite; remove those rows")
    constant = np.flatnonzero(np.ptp(v, axis=0) == 0)
    if constant.size:
        raise BadInput(f"factor {constant[0]} is constant; leave it out, nothing can be learned about it")


# The tables of information by counting neighbours, for codes and factors that are not Gaussian.
#
# Columns are first replaced by their normal scores, which changes no information: a monotone map of each column, and
# for repeated values a random order that is independent of the rest.


_MOST_FACTORS = 6  # each of the 2^s sets costs a neighbour search


def ksg_tables(codes: Array, factors: Array, k: int = 3, seed: int = 0) -> Tables:  # (N, m), (N, s)
    """The tables by nearest neighbours, for codes and factors that are not Gaussian; at most 6 factors.

    >>> v = np.random.default_rng(0).uniform(size=(400, 2))
    >>> ksg_tables(v**3, v).gain.argmax(1)  # latent 0 knows most about {0}, latent 1 about {1}
    array([1, 2])
    """
    s = few(factors.shape[1], _MOST_FACTORS, "neighbour searches")
    generator = np.random.default_rng(seed)
    x, v = normal_scores(codes, generator), normal_scores(factors, generator)
    sets = [np.flatnonzero([mask >> j & 1 for j in range(s)]) for mask in range(2**s)]
    gain = np.zeros((x.shape[1], 2**s))
    for mask in range(1, 2**s):
        gain[:, mask] = [ksg(x[:, i], v[:, sets[mask]], k) for i in range(x.shape[1])]
    pair = np.zeros((2**s, 2**s))
    for a in range(1, 2**s):
        for b in range(1, a):
            if not a & b:
                pair[a, b] = pair[b, a] = ksg(v[:, sets[a]], v[:, sets[b]], k)
    return Tables(gain, lambda a, b: pair[a, b], monotone=False)
