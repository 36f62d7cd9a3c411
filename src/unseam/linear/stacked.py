"""Thousands of small matrices at once, the problem axis last: (i, j, P).

LAPACK called once a 4 x 4 matrix spends its time in the call. With the problems in the last axis each elementary
operation is one pass over contiguous memory, and an inverse of P matrices costs n such passes.
"""

import numpy as np

from unseam.types import Array


def stack(a: Array, shape: tuple[int, ...]) -> Array:  # (..., i, j) -> (i, j, P)
    """Broadcast the leading axes to `shape`, flatten them to P problems and put them last.

    >>> stack(np.eye(2), (3, 4)).shape
    (2, 2, 12)
    """
    full = np.broadcast_to(a, (*shape, *a.shape[-2:]))
    return np.ascontiguousarray(np.moveaxis(full.reshape(-1, *a.shape[-2:]), 0, -1))


def unstack(a: Array, shape: tuple[int, ...]) -> Array:  # (i, j, P) -> (..., i, j)
    """The inverse of `stack`.

    >>> unstack(stack(np.eye(2), (3, 4)), (3, 4)).shape
    (3, 4, 2, 2)
    """
    return np.moveaxis(a, -1, 0).reshape(*shape, *a.shape[:-1])


def mm(a: Array, b: Array) -> Array:  # (i, j, P), (j, k, P) -> (i, k, P)
    """The product of each pair of matrices.

    >>> mm(stack(np.eye(2), (1,)), stack(np.ones((2, 1)), (1,)))[..., 0]
    array([[1.],
           [1.]])
    """
    return np.einsum("ijp,jkp->ikp", a, b)


def t(a: Array) -> Array:  # (i, j, P) -> (j, i, P)
    """The transpose of each matrix."""
    return a.swapaxes(0, 1)


def trace(a: Array) -> Array:  # (i, i, P) -> (P,)
    """The trace of each matrix."""
    return np.einsum("iip->p", a)


def inverse(a: Array) -> tuple[Array, Array]:  # (i, i, P) -> (i, i, P), pivots (i, P)
    """Inverses of symmetric matrices by the sweep operator, and their pivots.

    The pivots are the squared diagonal of the Cholesky factor: all positive iff the matrix is positive definite,
    and log det = sum log pivot. No pivoting is needed for positive definite matrices.

    >>> inv, pivots = inverse(stack(np.array([[2.0, 1.0], [1.0, 2.0]]), (1,)))
    >>> inv[..., 0].round(3), pivots[:, 0]
    (array([[ 0.667, -0.333],
           [-0.333,  0.667]]), array([2. , 1.5]))
    """
    a = a.copy()
    pivots = np.empty(a.shape[1:])
    for k in range(len(a)):
        pivots[k] = a[k, k]
        row = a[k] / pivots[k]
        a -= a[:, k, None] * row
        a[k] = a[:, k] = row
        a[k, k] = -1 / pivots[k]
    return -a, pivots
