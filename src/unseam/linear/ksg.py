"""Mutual information of groups of columns by counting neighbours, for codes and factors that are not Gaussian.

Kraskov, Stoegbauer & Grassberger 2004, estimator 1. Columns are first replaced by their normal scores, which changes
no information: a monotone map of each column, and for repeated values a random order that is independent of the rest.
The estimate is biased towards 0 when the groups are large and the rows few.
"""

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma, ndtri

from unseam.linear.information import Tables, few
from unseam.types import Array

MOST_FACTORS = 6  # each of the 2^s sets costs a neighbour search


def ksg_tables(codes: Array, factors: Array, k: int = 3, seed: int = 0) -> Tables:  # (N, m), (N, s)
    """The tables by nearest neighbours, for codes and factors that are not Gaussian; at most 6 factors.

    >>> v = np.random.default_rng(0).uniform(size=(400, 2))
    >>> ksg_tables(v**3, v).gain.argmax(1)  # latent 0 knows most about {0}, latent 1 about {1}
    array([1, 2])
    """
    s = few(factors.shape[1], MOST_FACTORS, "neighbour searches")
    generator = np.random.default_rng(seed)
    x, v = normal_scores(codes, generator), normal_scores(factors, generator)
    sets = [np.flatnonzero([mask >> j & 1 for j in range(s)]) for mask in range(2**s)]
    gain = np.zeros((x.shape[1], 2**s))
    for mask in range(1, 2**s):
        gain[:, mask] = [ksg_groups(x[:, [i]], v[:, sets[mask]], k) for i in range(x.shape[1])]
    pair = np.zeros((2**s, 2**s))
    for a in range(1, 2**s):
        for b in range(1, a):
            if not a & b:
                pair[a, b] = pair[b, a] = ksg_groups(v[:, sets[a]], v[:, sets[b]], k)
    return Tables(gain, lambda a, b: pair[a, b], monotone=False)


def ksg_groups(a: Array, b: Array, k: int = 3) -> float:  # (N, p), (N, q)
    """I(a; b) of two groups of continuous columns (Kraskov et al. 2004, estimator 1), at least 0.

    psi(N) + psi(k) - <psi(n_a + 1) + psi(n_b + 1)>, n the neighbours strictly nearer than the k-th in the joint space.

    >>> x = np.random.default_rng(1).normal(size=(2000, 3)) @ np.array([[1, 0.6, 0], [0, 0.8, 0], [0, 0, 1]])
    >>> print(f"{ksg_groups(x[:, :1], x[:, 1:]):.2f}, exactly {-0.5 * np.log(1 - 0.6**2):.2f}")
    0.25, exactly 0.22
    """
    both = np.hstack([a, b])
    radius = np.asarray(cKDTree(both).query(both, [k + 1], p=np.inf)[0])[:, 0]
    inside = np.nextafter(radius, 0)  # strictly nearer
    near = [cKDTree(y).query_ball_point(y, inside, p=np.inf, return_length=True) for y in (a, b)]  # itself included
    return float(max(digamma(len(a)) + digamma(k) - (digamma(near[0]) + digamma(near[1])).mean(), 0))


def normal_scores(x: Array, generator: np.random.Generator) -> Array:  # (N, p) -> (N, p)
    """Each column's ranks as normal quantiles, ties in random order: no information between columns is lost.

    >>> normal_scores(np.array([[1.0], [8.0], [2.0]]), np.random.default_rng(0)).round(2).ravel()
    array([-0.97,  0.97,  0.  ])
    """
    jitter = generator.random(x.shape)
    order = np.stack([np.lexsort((j, column)) for j, column in zip(jitter.T, np.asarray(x).T, strict=True)], axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(x))[:, None], axis=0)
    return np.asarray(ndtri((ranks + 0.5) / len(x)))
