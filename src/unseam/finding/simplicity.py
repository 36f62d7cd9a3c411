"""Simple structure: axes in which each column is moved by few factors (Thurstone 1947), and whether that is chance.

Loadings L (n, k) are known up to a rotation R. Rows are brought to length 1 (Kaiser 1958); the criterion is varimax,

    V(R) = sum_j [ mean_i b_ij^4 - (mean_i b_ij^2)^2 ],    b_i = R' l_i / |l_i|

at its maximum over R. If no axes are special, rows point anywhere: the null distribution is that of the same maximum
for rows drawn uniformly on the sphere in R^k. In the plane of factors i and j with rows (x, y) the criterion is
(A0 + A cos 4(phi - phi0)) / 4n, and at the maximum

    A_ij = sum (u^2 - v^2) - [(sum u)^2 - (sum v)^2] / n,   u = x^2 - y^2,   v = 2 x y
    T_ij = A_ij / sqrt(sum (x^2 + y^2)^4)

is large if the rows cluster at the two axes: T^2 is Rayleigh's statistic of the fourfold angles, exp(-T^2) its p-value
if the plane's angles are uniform. A plane that is no clearer than that has no axes of its own, whatever the other
planes have. T is taken in oblique axes (promax): clusters of factors that correlate are less than 90 degrees apart.
For the same reason the whole is tested in oblique axes where they are allowed: V of the unit rows after promax, in the
table and in each draw.

A Jacobian that differs from point to point is a stack L (p, n, k): squares are then means over the points, and the
null turns each column's stack by a rotation of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.rng import numpy_generator

_DRAWS = (100, 2000)  # tables of the null distribution: few where loadings are large, many where they are small
_WORK = 2e5  # about draws n k^2
_STARTS = 2  # rotations that the maximisation begins with
_SWEEPS = 30  # over all planes, at most
_LEVEL = 0.01  # of the test of the whole structure
_PLANE_LEVEL = 0.2  # of the test of each plane, asked only where the whole is beyond chance
_POWER = 4  # of promax


@dataclass(frozen=True)
class SimpleStructure:
    """Loadings turned to simplicity, with the test of the whole and of each plane."""

    rotation: Array  # (k, k): loadings = L @ rotation
    criterion: float  # varimax, at its maximum
    null: Array  # (draws,) the same for rows without axes
    p_value: float
    planes: Array  # (k, k) T of each plane; 0 on the diagonal

    @property
    def bar(self) -> float:
        """The quantile 1 - LEVEL of the criterion in the null distribution."""
        return float(np.quantile(self.null, 1 - _LEVEL)) if len(self.null) else 0.0

    @property
    def simple(self) -> bool:
        """Whether the structure as a whole is beyond chance."""
        return self.p_value <= _LEVEL

    @property
    def undecided(self) -> Array:  # (k, k) bool
        """Planes without axes of their own; all of them where the whole is no simpler than chance."""
        k = len(self.rotation)
        out = (np.exp(-(np.maximum(self.planes, 0) ** 2)) > _PLANE_LEVEL) if self.simple else np.ones((k, k), bool)
        return np.asarray(out & ~np.eye(k, dtype=bool))


def simple_structure(
    loadings: Any, *, draws: int | None = None, starts: int = _STARTS, seed: int = 0, start: Array | None = None,
    oblique: bool = False,
) -> SimpleStructure:  # fmt: skip
    """Turn loadings to simple structure and test whether it is simpler than chance.

    Parameters
    ----------
    loadings : array (n, k) or (p, n, k)
        What each of k factors does to each of n columns, up to a rotation; or the same at p points (a Jacobian).
    draws : int, optional
        Tables of the null distribution, 100 to 2,000 by the size of the loadings; 0 leaves the test out.
    starts : int
        Random rotations that the maximisation begins with, beside the axes given.
    seed : int
        Of starts and draws.
    start : array (k, k), optional
        A rotation to begin with as well.
    oblique : bool
        Measure the criterion after promax, in the table and in the null alike: factors that correlate may be simple.

    Returns
    -------
    SimpleStructure
        Rotation, criterion, null draws, p-value and the statistic of each plane.

    Examples
    --------
    >>> g = np.random.default_rng(0)
    >>> sparse = np.kron(np.eye(3), np.ones((5, 1))) + 0.1 * g.normal(size=(15, 3))
    >>> turn = np.linalg.qr(g.normal(size=(3, 3)))[0]
    >>> found = simple_structure(sparse @ turn)
    >>> found.simple, bool((np.abs(turn @ found.rotation).max(0) > 0.98).all())
    (True, True)
    >>> simple_structure(g.normal(size=(15, 3))).simple
    False
    """
    L = np.asarray(loadings, np.float64)
    L = L[None] if L.ndim == 2 else L
    if L.ndim != 3 or 0 in L.shape or not np.isfinite(L).all():
        raise BadInput(f"loadings have shape {np.shape(loadings)}; give finite numbers, (n, k) or (p, n, k)")
    rows, k = _unit_rows(L), L.shape[2]
    draws = int(np.clip(_WORK / (L.size * k), *_DRAWS)) if draws is None else draws
    if k == 1:
        return SimpleStructure(np.eye(1), 0.0, np.zeros(0), 1.0, np.zeros((1, 1)))
    begin = [np.eye(k), *([] if start is None else [start]), *_rotations(numpy_generator(seed, "starts"), starts, k)]
    turned, R = _varimax(np.stack([rows @ r for r in begin]), np.stack(begin))
    values = criterion(turned)
    best = int(values.argmax())
    slanted = _slanted(turned[best : best + 1])
    value = float(criterion(slanted)[0] if oblique else values[best])
    null = _null(rows, draws, starts, seed, oblique)
    p = (1 + int((null >= value).sum())) / (1 + len(null)) if draws else 1.0
    return SimpleStructure(R[best], value, null, p, _planes(slanted)[0])


def _unit_rows(L: Array) -> Array:  # (p, n, k)
    """Each column's row, or stack of rows, at (mean square) length 1; rows of zeros stay."""
    length = np.sqrt((L**2).sum(2, keepdims=True).mean(0, keepdims=True))
    return np.asarray(np.divide(L, length, out=np.zeros_like(L), where=length > 1e-12))


def criterion(B: Array) -> Array:  # (D, p, n, k) -> (D,)
    """Varimax of a stack of unit-row loadings."""
    squares = (B**2).mean(1)
    return np.asarray((squares**2).mean(1).sum(1) - (squares.mean(1) ** 2).sum(1))


def _varimax(B: Array, R: Array, close: float = 1e-7) -> tuple[Array, Array]:  # (D, p, n, k), (D, k, k)
    """Every table turned to its next maximum, plane after plane in closed form; and R turned with it.

    In a plane phi = 1/4 atan2(2 sum u v - 2 sum u sum v / n, A_ij).
    """
    B, R, k = B.copy(), R.copy(), B.shape[-1]
    for _ in range(_SWEEPS):
        largest = 0.0
        for i in range(k):
            for j in range(i + 1, k):
                across, along = _fourfold(B[..., i], B[..., j])
                phi = np.arctan2(across, along) / 4
                largest = max(largest, float(np.abs(phi).max()))
                c, s = np.cos(phi), np.sin(phi)
                for M, shape in ((B, (-1, 1, 1)), (R, (-1, 1))):
                    x, y = M[..., i].copy(), M[..., j]
                    M[..., i], M[..., j] = (
                        c.reshape(shape) * x + s.reshape(shape) * y,
                        c.reshape(shape) * y - s.reshape(shape) * x,
                    )
        if largest < close**0.5:
            break
    return B, R


def _fourfold(x: Array, y: Array) -> tuple[Array, Array]:  # (D, p, n) twice -> (D,) twice
    """Sine and cosine part of the criterion's fourfold angle in a plane."""
    u, v, n = (x**2 - y**2).mean(1), (2 * x * y).mean(1), x.shape[-1]
    a, b = u.sum(1), v.sum(1)
    return 2 * (u * v).sum(1) - 2 * a * b / n, (u**2 - v**2).sum(1) - (a**2 - b**2) / n


def _planes(B: Array) -> Array:  # (D, p, n, k) -> (D, k, k)
    """T of each plane, in the axes as they are."""
    k = B.shape[-1]
    out = np.zeros((len(B), k, k))
    for i in range(k):
        for j in range(i + 1, k):
            radius = (B[..., i] ** 2 + B[..., j] ** 2).mean(1)
            scale = np.sqrt(np.maximum((radius**4).sum(1), 1e-300))
            out[:, i, j] = out[:, j, i] = _fourfold(B[..., i], B[..., j])[1] / scale
    return out


def _slanted(B: Array) -> Array:  # (D, p, n, k)
    """Promax of each table, its rows brought back to length 1.

    T = (B'B)^-1 B' sign(B) |B|^POWER, scaled so that the factors (T'T)^-1 have variance 1.
    """
    k = B.shape[-1]
    flat = B.reshape(len(B), -1, k)
    target = np.sign(flat) * np.abs(flat) ** _POWER
    T = np.linalg.solve(flat.mT @ flat + 1e-9 * np.eye(k), flat.mT @ target)
    scale = np.sqrt(np.diagonal(np.linalg.inv(T.mT @ T + 1e-12 * np.eye(k)), axis1=1, axis2=2))
    out = B @ (T * scale[:, None])[:, None]
    length = np.sqrt((out**2).sum(3, keepdims=True).mean(1, keepdims=True))
    return np.asarray(np.divide(out, length, out=np.zeros_like(out), where=length > 1e-12))


def _rotations(generator: np.random.Generator, count: int, k: int) -> Array:  # -> (count, k, k)
    """Uniform rotations (Haar): the Q of Gaussian matrices, with the signs that make it unique."""
    Q, R = np.linalg.qr(generator.standard_normal((count, k, k)))
    return np.asarray(Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None])


def _null(rows: Array, draws: int, starts: int, seed: int, oblique: bool) -> Array:  # (p, n, k) -> (draws,)
    """The criterion of tables without axes, maximised in the same way."""
    p, n, k = rows.shape
    if not draws:
        return np.zeros(0)
    if p == 1:
        return _sphere(int((np.abs(rows[0]).sum(1) > 0).sum()), k, draws, starts, seed, oblique)
    turns = _rotations(numpy_generator(seed, "null"), draws * n, k).reshape(draws, n, k, k)
    return _maximised(np.einsum("pna,dnab->dpnb", rows, turns), starts, seed, oblique)


@lru_cache(maxsize=64)
def _sphere(n: int, k: int, draws: int, starts: int, seed: int, oblique: bool) -> Array:
    rows = numpy_generator(seed, "null").standard_normal((draws, 1, n, k))
    return _maximised(rows / np.linalg.norm(rows, axis=3, keepdims=True), starts, seed, oblique)


def _maximised(rows: Array, starts: int, seed: int, oblique: bool) -> Array:  # (D, p, n, k) -> (D,)
    k = rows.shape[-1]
    begin = [np.eye(k), *_rotations(numpy_generator(seed, "starts"), starts, k)]
    own = np.tile(np.eye(k), (len(rows), 1, 1))
    turned = [_varimax(rows @ turn, own, 1e-4)[0] for turn in begin]
    values = np.stack([criterion(B) for B in turned])
    if not oblique:
        return np.asarray(values.max(0))
    slanted = np.stack([criterion(_slanted(B)) for B in turned])
    return np.asarray(np.take_along_axis(slanted, values.argmax(0)[None], axis=0)[0])


def promax(loadings: Array, power: int = _POWER) -> tuple[Array, Array]:  # (n, k) -> (n, k), (k, k)
    """Oblique axes (Hendrickson & White 1964): loadings P = L T nearest to a power of the orthogonal ones, and the
    correlations (T'T)^-1 of the factors, which keep P Phi P' = L L'.

    >>> P, Phi = promax(np.kron(np.eye(2), np.ones((3, 1))))
    >>> bool(np.allclose(Phi, np.eye(2))), bool(np.allclose(P, np.kron(np.eye(2), np.ones((3, 1)))))
    (True, True)
    """
    unit = _unit_rows(loadings[None])[0]
    target = np.sign(unit) * np.abs(unit) ** power
    T = np.linalg.lstsq(unit, target, rcond=None)[0]
    if np.linalg.matrix_rank(T, tol=1e-6) < len(T):  # fewer directions than factors
        return loadings, np.eye(len(T))
    T = T * np.sqrt(np.diag(np.linalg.inv(T.T @ T)))
    inverse = np.linalg.inv(T)
    return loadings @ T, inverse @ inverse.T


def congruences(a: Array, b: Array) -> Array:  # (n, A), (n, B) -> (A, B)
    """Tucker's congruence of columns, sum a b / sqrt(sum a^2 sum b^2), without its sign.

    >>> congruences(np.array([[1.0], [2.0]]), np.array([[-2.0, 2.0], [-4.0, -1.0]])).round(6)
    array([[1., 0.]])
    """
    scale = np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)
    return np.asarray(np.abs(a.T @ b) / np.where(scale > 0, scale, np.inf))
