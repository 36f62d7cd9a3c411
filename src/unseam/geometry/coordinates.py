"""Cartesian or polar? How a pair of latents writes down two factors (Zietlow 2022, section 4.3.6).

Cartesian: each latent is one factor. Polar: one factor is the angle around a centre, the other the distance from it.
Without labels the decoder tells: the frame in which its pull-back metric is diagonal is the same everywhere (cartesian)
or turns with the angle (polar). Each frame's excess is what a posterior aligned with it costs above the best, in nats.
With labels: each factor is explained by one of (z_i, z_j), or by one of (radius, angle), whichever gap is wider.
"""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.stats import discrete_information, discretise, entropy, top_two_gap, unique_values

DECIDED = 0.2  # a frame wins when its excess is at least this share below the other's
BINS = 20


class LatentCoordinates(NamedTuple):
    """The verdict on a pair: "cartesian", "polar" or "undecided", with what it rests on."""

    kind: str
    cartesian: float  # excess of the fixed frame in nats (label-free), or its gap (with labels)
    polar: float  # the same for the polar frame
    centre: tuple[float, float]  # of the polar frame
    turn: float  # angle of the fixed frame in degrees; 0 = the latents' own axes


def frame_terms(M: ArrayLike, beta: float) -> tuple[Array, Array]:  # (N, 2, 2) -> (N,), (N,)
    """u, v: a frame turned by t has cost beta/2 log(1 - (u cos 2t + v sin 2t)^2) + const (see diagonalise.py)."""
    M = np.asarray(M, dtype=float)
    a, b = (M[:, 0, 0] + M[:, 1, 1]) / 2, (M[:, 0, 0] - M[:, 1, 1]) / 2
    return b / (beta + a), M[:, 0, 1] / (beta + a)


def excess(u: Array, v: Array, t: Array | float, beta: float) -> float:
    """What the frame turned by t (per point) costs above each point's own best frame, in nats."""
    w2 = np.minimum((u * np.cos(2 * t) + v * np.sin(2 * t)) ** 2, 1 - 1e-12)
    best = np.minimum(u**2 + v**2, 1 - 1e-12)
    return float(beta / 2 * (np.log1p(-w2) - np.log1p(-best)).mean())


def pair_coordinates(z: ArrayLike, M: ArrayLike, beta: float = 1.0) -> LatentCoordinates:  # (N, 2), (N, 2, 2)
    """Tell cartesian from polar without labels, from the metric of the two latents at the points z.

    Parameters
    ----------
    z : array of shape (N, 2)
        Points of two latents.
    M : array of shape (N, 2, 2)
        The metric at each point, as `pullback` gives it.
    beta : float, default=1.0
        The weight of the KL in the loss.

    Returns
    -------
    LatentCoordinates
        The kind (cartesian, polar or undecided) and the numbers behind it.

    Examples
    --------
    >>> angle, radius = np.meshgrid(np.linspace(0, 6.2, 30), np.linspace(0.5, 2, 10))
    >>> z = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1, 2)
    >>> unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    >>> outwards = 9.0 * unit[:, :, None] * unit[:, None, :] + 0.1 * np.eye(2)  # only the radius matters
    >>> pair_coordinates(z, outwards).kind
    'polar'
    """
    z = np.asarray(z, dtype=float)
    if z.ndim != 2 or z.shape[1] != 2 or len(z) < 3:
        raise BadInput(f"z has shape {z.shape}; it must be (N, 2) with at least 3 points: the codes of two latents")
    u, v = frame_terms(M, beta)
    turns = np.linspace(-np.pi / 4, np.pi / 4, 91)
    fixed = [excess(u, v, t, beta) for t in turns]
    centre, polar = polar_centre(z, u, v, beta)
    turn, cartesian = float(turns[int(np.argmin(fixed))]), min(fixed)
    return LatentCoordinates(decide(cartesian, polar), cartesian, polar, centre, float(np.degrees(turn)))


def decide(cartesian: float, polar: float) -> str:
    """The frame with the clearly smaller excess."""
    low, high = sorted((cartesian, polar))
    if high <= 1e-9 or (high - low) < DECIDED * high:
        return "undecided"
    return "cartesian" if cartesian < polar else "polar"


def polar_centre(z: Array, u: Array, v: Array, beta: float) -> tuple[tuple[float, float], float]:
    """The centre, inside the codes' middle, whose polar frame has the smallest excess: a grid, then Nelder-Mead."""
    low, high = np.quantile(z, [0.1, 0.9], axis=0)

    def cost(centre: Array) -> float:
        outside = np.maximum(low - centre, 0) + np.maximum(centre - high, 0)  # far away, polar is cartesian
        turn = np.arctan2(z[:, 1] - centre[1], z[:, 0] - centre[0])
        return excess(u, v, turn, beta) + beta * float(outside.sum())

    grid = np.stack(np.meshgrid(*np.linspace(low, high, 5).T), -1).reshape(-1, 2)
    start = min(grid, key=cost)
    found = scipy.optimize.minimize(cost, start, method="Nelder-Mead", options={"maxiter": 60})
    best = found.x if found.fun < cost(start) else start
    return (float(best[0]), float(best[1])), cost(best)


def labelled_coordinates(
    z: ArrayLike,  # (N, 2)
    factors: ArrayLike,  # (N, F)
    centre: tuple[float, float] | None = None,
) -> LatentCoordinates:
    """Tell cartesian from polar with labels: in which coordinates does one of the two explain each factor alone?

    Each factor's gap is (I(best; v) - I(other; v)) / H(v), from 20-bin histograms; the mean over the two factors that
    the pair knows most about is compared. The centre is the codes' median unless given.

    Parameters
    ----------
    z : array of shape (N, 2)
        Codes of two latents.
    factors : array of shape (N, F)
        The true factors of the same rows.
    centre : (float, float), optional
        The origin of polar coordinates; the median of the codes by default.

    Returns
    -------
    LatentCoordinates
        The kind (cartesian, polar or undecided) and the numbers behind it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> hue, size = rng.integers(0, 12, 3000), rng.integers(1, 5, 3000)
    >>> z = np.stack([size * np.cos(hue * np.pi / 6), size * np.sin(hue * np.pi / 6)], -1)
    >>> labelled_coordinates(z, np.stack([hue, size], -1)).kind
    'polar'
    """
    z, v = np.asarray(z, dtype=float), np.asarray(factors)
    if z.ndim != 2 or z.shape[1] != 2 or v.ndim != 2 or len(z) != len(v):
        raise BadInput(f"z {z.shape} must be (N, 2) and factors {v.shape} (N, F), with the same N")
    middle = np.median(z, axis=0) if centre is None else np.asarray(centre)
    shifted = z - middle
    polar = np.stack([np.hypot(*shifted.T), np.arctan2(shifted[:, 1], shifted[:, 0])], -1)
    gaps = [factor_gaps(coordinates, v) for coordinates in (z, polar)]  # each (F, 2): gap, best information
    known = np.argsort(-np.maximum(gaps[0][:, 1], gaps[1][:, 1]))[:2]
    a, b = (float(g[known, 0].mean()) for g in gaps)
    return LatentCoordinates(decide(b, a), a, b, (float(middle[0]), float(middle[1])), 0.0)  # the wider gap wins


def factor_gaps(coordinates: Array, factors: Array) -> Array:  # (N, 2), (N, F) -> (F, 2)
    """Per factor: (I(best) - I(other)) / H and I(best) / H, from histograms."""
    binned = discretise(coordinates, BINS)
    labels = [as_labels(column) for column in factors.T]
    information = np.array([[discrete_information(b, v) for b in binned.T] for v in labels])
    h = np.maximum([entropy(v) for v in labels], 1e-12)
    return np.stack([top_two_gap(information) / h, information.max(1) / h], axis=1)


def as_labels(column: Array) -> Array:  # (N,) -> (N,)
    """The values themselves if they are few, else their bins."""
    found, labels = unique_values(column)
    return labels if len(found) <= 2 * BINS else discretise(column[:, None], BINS)[:, 0]
