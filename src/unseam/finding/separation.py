"""How far apart the singular values of two factors are: at 0 any rotation of their plane fits as well."""

import numpy as np

from unseam.axes import Array


def separations(gram: Array) -> Array:  # (p, k, k) -> (k,)
    """For each factor the smallest (s1 - s2) / s1 of its planes with the others; 0: no axis is preferred.

    s1 >= s2 are the singular values of columns i and j of J, by the 2 x 2 block of J'J; the lower median over points.
    (`geometry.degeneracy.plane_differences` is the same in torch; this one is for findings without a network.)

    Parameters
    ----------
    gram
        J'J at p points.

    Returns
    -------
    array
        One number a factor, 1 where it is the only one.

    >>> separations(np.diag([1.0, 0.81])[None]).round(3)
    array([0.1, 0.1])
    """
    k = gram.shape[-1]
    if k < 2:
        return np.ones(k)
    i, j = np.triu_indices(k, 1)
    a, b = gram[:, i, i], gram[:, j, j]
    middle, radius = (a + b) / 2, np.hypot((a - b) / 2, gram[:, i, j])
    s1, s2 = np.sqrt(middle + radius), np.sqrt(np.maximum(middle - radius, 0))
    difference = np.sort((s1 - s2) / np.maximum(s1, np.finfo(gram.dtype).tiny), axis=0)[(len(gram) - 1) // 2]
    return np.array([difference[(i == f) | (j == f)].min() for f in range(k)])
