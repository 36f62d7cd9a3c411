"""The matrix of a linear decoder against the axes it should find: the common part of A1 and Z10."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from unseam.axes import Array
from unseam.geometry import jacobian
from unseam.run import Run


def decoder(run: Run, member: int, step: int | None = None) -> Array:  # (n, d)
    """W of a linear decoder x = W z + b."""
    model = run.model(member, step)
    with torch.no_grad():
        return jacobian(model.decode, torch.zeros(1, model.latents))[0].double().numpy()


def recovery(turn: float) -> float:
    """Rank correlation of a Gaussian component with the nearer of two axes turned by this many radians.

    >>> round(recovery(0.0), 6), round(recovery(np.pi / 4), 3)
    (1.0, 0.69)
    """
    return float(6 / np.pi * np.arcsin(max(abs(np.cos(turn)), abs(np.sin(turn))) / 2))


def average_snapshots(matrices: Sequence[Array], share: float = 0.5) -> Array:  # (T, n, d) -> (n, d)
    """The mean over the last share of the snapshots: at a constant learning rate one snapshot is the optimum + noise.

    >>> average_snapshots([np.zeros((1, 1)), np.ones((1, 1)), np.full((1, 1), 3.0)])
    array([[2.]])
    """
    kept = max(1, round(len(matrices) * share))
    return np.mean(matrices[-kept:], axis=0)


def angles(W: Array, U: Array) -> Array:  # (n, d), (n, d) -> (d,)
    """Degrees between each column of U and the column of W matched to it, whatever their order, sign and length.

    >>> angles(np.array([[0.0, -2.0], [1.0, 2.0]]), np.eye(2))
    array([45.,  0.])
    """
    lengths = np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
    cosine = np.abs(U.T @ (W / lengths))
    rows, columns = linear_sum_assignment(cosine, maximize=True)
    return np.degrees(np.arccos(np.minimum(cosine[rows, columns], 1))).round(9)
