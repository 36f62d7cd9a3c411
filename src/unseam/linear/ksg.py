"""The tables of information by counting neighbours, for codes and factors that are not Gaussian.

Columns are first replaced by their normal scores, which changes no information: a monotone map of each column, and for
repeated values a random order that is independent of the rest.
"""

import numpy as np

from unseam.linear.information import Tables, few
from unseam.statistics import ksg, normal_scores
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
        gain[:, mask] = [ksg(x[:, i], v[:, sets[mask]], k) for i in range(x.shape[1])]
    pair = np.zeros((2**s, 2**s))
    for a in range(1, 2**s):
        for b in range(1, a):
            if not a & b:
                pair[a, b] = pair[b, a] = ksg(v[:, sets[a]], v[:, sets[b]], k)
    return Tables(gain, lambda a, b: pair[a, b], monotone=False)
