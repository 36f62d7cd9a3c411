"""Axes by independence of a network's codes: the rotation with the smallest sum of marginal entropies.

    TC(u R) = sum_j H(r_j'u) - H(u)              u white, R orthogonal: H(u) does not depend on R

H is estimated from the distances between every m-th of the sorted values (Vasicek 1976), and each plane of two axes is
turned to its best angle in turn (RADICAL: Learned-Miller & Fisher 2003). A network's prior squeezes its codes towards a
Gaussian, so that a fixed contrast such as FastICA's often prefers mixtures of them; an entropy has no shape in mind.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.finding.density import rotation_by_independence

_ROWS = 2000  # that entropies are estimated from
_ANGLES = 45  # of a quarter turn that are looked at in each plane; then the same between the best one's neighbours
_SWEEPS = 6  # through all planes, at most
_STILL = 1e-3  # radians: a sweep that turns no plane by more has ended


def _spacing_entropy(u: Array) -> Array:  # (..., N) -> (...)
    """Entropy in nats of each row of values: mean_i log((N + 1) (u_(i+m) - u_(i)) / m), m = sqrt(N).

    >>> u = np.random.default_rng(0).uniform(0, 2, 4000)
    >>> bool(abs(_spacing_entropy(u) - np.log(2)) < 0.05)
    True
    """
    u = np.sort(u, axis=-1)
    N = u.shape[-1]
    m = max(1, round(np.sqrt(N)))
    return np.asarray(np.log(np.maximum(u[..., m:] - u[..., :-m], 1e-12) * (N + 1) / m).mean(-1))


def rotation_by_entropy(u: Array, seed: int = 0) -> Array:  # (N, d) white -> (d, d)
    """The orthogonal R for which the columns of u R are least dependent: from no rotation and from FastICA's, the
    better end.

    >>> g = np.random.default_rng(0)
    >>> s = g.uniform(-1.7, 1.7, (1000, 2))
    >>> turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    >>> bool(np.allclose(np.sort(np.abs(rotation_by_entropy(s @ turn))), np.sort(np.abs(turn)), atol=0.1))
    True
    """
    u, d = u[:_ROWS], u.shape[1]
    if d < 2:
        return np.eye(d)
    ends = [_swept(u, start) for start in (np.eye(d), rotation_by_independence(u, seed))]
    return min(ends, key=lambda R: float(_spacing_entropy((u @ R).T).sum()))


def _swept(u: Array, R: Array) -> Array:  # (N, d), (d, d) -> (d, d)
    d, R = len(R), R.copy()
    for _ in range(_SWEEPS):
        largest = 0.0
        for i in range(d):
            for j in range(i):
                angle = _best_angle((u @ R[:, [i, j]]).T)
                c, s = np.cos(angle), np.sin(angle)
                R[:, [i, j]] = R[:, [i, j]] @ np.array([[c, -s], [s, c]])
                largest = max(largest, abs(angle))
        if largest < _STILL:
            break
    return R


def _best_angle(pair: Array) -> float:  # (2, N)
    """In [-pi / 4, pi / 4]; 0 unless another angle has a lower entropy."""
    step = np.pi / 2 / _ANGLES
    coarse = np.arange(_ANGLES) * step
    coarse = np.where(coarse > np.pi / 4, coarse - np.pi / 2, coarse)
    best = float(coarse[int(np.argmin(_entropies(pair, coarse)))])
    fine = np.array([0.0, *(best + step * np.linspace(-0.9, 0.9, 19))])
    return float(fine[int(np.argmin(_entropies(pair, fine)))])


def _entropies(pair: Array, angles: Array) -> Array:  # (2, N), (A,) -> (A,)
    c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
    turned = np.stack([c * pair[0] + s * pair[1], c * pair[1] - s * pair[0]], axis=1)  # (A, 2, N)
    return _spacing_entropy(turned).sum(1)
