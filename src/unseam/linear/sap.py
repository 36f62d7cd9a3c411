"""What SAP sees, in closed form (Kumar et al. 2018 as in Vu 2024, eq. 7, 8): squared correlations, and who is best."""

from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput


def squared_correlations(Sx: Any, Sv: Any, Sxv: Any) -> Array:  # (..., m, m), (s, s), (..., m, s) -> (..., m, s)
    """S_ij = cov(x_i, v_j)^2 / (var x_i var v_j); 0 for a latent without variance.

    Parameters
    ----------
    Sx : array of shape (..., m, m)
        Covariance of the latents.
    Sv : array of shape (s, s)
        Covariance of the factors.
    Sxv : array of shape (..., m, s)
        Their covariances.

    Returns
    -------
    array of shape (..., m, s)
        R squared of each latent and factor.

    Examples
    --------
    >>> squared_correlations(np.diag([2.0, 0.0]), np.eye(1), [[1.0], [0.0]])
    array([[0.5],
           [0. ]])
    """
    Sxv = np.asarray(Sxv, np.float64)
    x, v = np.diagonal(Sx, axis1=-2, axis2=-1), np.diagonal(Sv)
    if (v <= 0).any():
        raise BadInput(f"factor {int(np.argmin(v))} has no variance; leave it out")
    scale = x[..., :, None] * v
    return np.divide(Sxv**2, scale, out=np.zeros_like(Sxv), where=scale > 0)


def best_latents(S: Array) -> Array:  # (..., m, s) -> (..., s)
    """i(j) of eq. 8, the latent that knows most about each factor: the partition of the factors that SAP sees.

    Parameters
    ----------
    S : array of shape (..., m, s)
        What each latent knows about each factor.

    Returns
    -------
    array of int, of shape (..., s)
        The latent of each factor.

    Examples
    --------
    >>> best_latents(np.array([[0.9, 0.1], [0.2, 0.8]]))
    array([0, 1])
    """
    return S.argmax(-2)


def same_groups(labels: Array, groups: tuple[tuple[int, ...], ...]) -> Array:  # (..., s) -> (...)
    """Do the labels put the factors into exactly these groups, regardless of the names of the labels?

    Parameters
    ----------
    labels : array of int, of shape (..., s)
        The latent of each factor.
    groups : tuple of tuple of int
        The true groups of factors.

    Returns
    -------
    array of bool, of shape (...)
        Whether they are the same.

    Examples
    --------
    >>> same_groups(np.array([[2, 2, 0], [0, 1, 1]]), ((0, 1), (2,)))
    array([ True, False])
    """
    truth = np.empty(labels.shape[-1], int)
    for g, group in enumerate(groups):
        truth[list(group)] = g
    together = labels[..., :, None] == labels[..., None, :]
    return (together == (truth[:, None] == truth)).all((-1, -2))
