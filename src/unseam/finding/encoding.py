"""Rows as a network is given them: y = onto(x), and back.

A table of at most COLUMNS columns keeps them, each with a likelihood of its kind (`models/mixed.py`); a wider one is
given by its leading principal axes with one variance; pictures are Bernoulli means in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from unseam.axes import Array
from unseam.finding.columns import Prepared
from unseam.linear.ppca import axes_of_rows
from unseam.rng import numpy_generator

if TYPE_CHECKING:
    from unseam.finding.network import RotatedModel

MOST_MIXED = 100  # up to which each column has its own likelihood
_SIMILAR = 5.0  # largest over smallest spread up to which columns may share a unit
_RESOLUTION = 0.05  # of the rows' spread: finer structure is not modelled, and tables without noise stay comparable


@dataclass(frozen=True)
class Mixing:
    """y = columns ordered by kind, each as its likelihood wants it, and behind them the mask if cells are missing."""

    prepared: Prepared  # without its rows
    order: Array  # (n,) which column of x stands where
    columns: tuple[str, ...]  # what `models.Mixed` is told
    low: Array  # (n,) of y: a column of two numbers is 0 at its low
    span: Array  # (n,) of y: what 1 is in units of x (continuous) or of the column (the others)
    centre: Array  # (n,) the mean of y

    @property
    def masked(self) -> bool:
        return self.columns[-1].startswith("seen")

    @property
    def plain(self) -> bool:
        """Whether every column is continuous and known, so that linear models have a density to compare."""
        return len(self.columns) == 1 and self.columns[0].startswith("gaussian")

    @property
    def bounded(self) -> Array:  # (n,) bool
        """Columns that are 0 or 1."""
        two = [name.startswith(("bernoulli", "categorical")) for name in self.columns]
        return np.repeat(two, [int(name.split(":")[1]) for name in self.columns])[: len(self.order)]

    @property
    def gaussian(self) -> int:
        kind, _, size = self.columns[0].partition(":")
        return int(size) if kind == "gaussian" else 0

    def __call__(self, x: Array, gaps: Array | None = None) -> Array:  # (N, n) -> (N, n or 2 n)
        k, raw = self.gaussian, self.prepared.raw(x)[:, self.order]
        y = np.concatenate([x[:, self.order[:k]], np.maximum(raw[:, k:] - self.low[k:], 0)], axis=1) / self.span
        y[:, self.bounded] = np.minimum(y[:, self.bounded], 1)
        if gaps is not None:  # to be trained on: logarithms leave 2.9999 of 3
            y[:, k:] = np.where(gaps[:, self.order[k:]], y[:, k:], np.round(y[:, k:]))
        seen = np.ones(y.shape) if gaps is None else 1.0 - gaps[:, self.order]
        return np.concatenate([y, seen], axis=1) if self.masked else y

    def back(self, y: Array) -> Array:  # (N, n or 2 n) -> (N, n)
        k, n = self.gaussian, len(self.order)
        scaled = y[:, :n] * self.span
        raw = np.zeros(scaled.shape)
        raw[:, self.order[k:]] = scaled[:, k:] + self.low[k:]
        x = self.prepared.scaled(raw)
        x[:, self.order[:k]] = scaled[:, :k]
        return x

    def moves(self, J: Array) -> Array:  # (n or 2 n, k) -> (n, k)
        """What a change of y, from the mean, is as a change of x."""
        J = J[: len(self.order)]
        return (self.back(self.centre + J.T) - self.back(self.centre[None])).T


_KIND = {"continuous": "gaussian", "whole": "gaussian", "ordinal": "gaussian", "binary": "bernoulli",
        "counts": "negative-binomial", "categorical": "categorical"}  # fmt: skip


def mix(prepared: Prepared, d: int) -> Mixing:
    """A likelihood for each column, by its kind; counts have a library size where the table is one of counts."""
    kinds = np.array([_KIND[prepared.kinds[i]] for i in prepared.used])
    twofold = np.bincount(prepared.used)[list(prepared.used)] == 1
    kinds[(kinds == "categorical") & twofold] = "bernoulli"  # a class of two is one column
    rank = [("gaussian", "bernoulli", "negative-binomial", "categorical").index(k) for k in kinds]
    order = np.argsort(rank, kind="stable")
    raw = np.where(prepared.gaps, np.nan, prepared.raw(prepared.x))[:, order]
    two = kinds[order] == "bernoulli"
    low = np.where(two, np.nanmin(raw, axis=0), 0.0)
    own = _own_units(prepared, kinds == "gaussian")
    spread = np.sqrt(np.linalg.eigvalsh(np.atleast_2d(np.cov((prepared.x * own).T)))[::-1][: max(d, 1)].mean())
    span = np.where(kinds[order] == "gaussian", spread / own[order], np.where(two, np.nanmax(raw, axis=0) - low, 1.0))
    columns = _columns(kinds[order], np.array(prepared.used)[order], prepared.poisson)
    columns += (f"seen:{len(order)}",) if prepared.gaps.any() else ()
    made = Mixing(prepared.one_row(), order, columns, low, span, np.zeros(len(order)))
    return replace(made, centre=made(prepared.x)[:, : len(order)].mean(0))


def _own_units(prepared: Prepared, numbers: Array) -> Array:  # (n,) bool -> (n,)
    """What standardised columns of numbers are multiplied with for a network: their own spreads, where these are so
    much alike that they may share a unit, else 1.

    A likelihood with a variance for each column has no unit, but training has: a curve that was stretched column by
    column crosses itself more closely, and networks with as few latents as it has factors then fail to unroll it.
    """
    own = np.where(numbers, prepared.unit, 1.0)
    standard = prepared.scale == "standard" and np.allclose(prepared.x.std(0)[numbers], 1, atol=0.2)
    if not standard or not numbers.any() or own[numbers].max() > _SIMILAR * own[numbers].min():
        return np.ones(len(own))
    return np.asarray(np.where(numbers, own / np.sqrt((own[numbers] ** 2).mean()), 1.0))


def _columns(kinds: Array, source: Array, library: bool) -> tuple[str, ...]:
    """Runs of one kind; classes of one column are a run."""
    words: list[list[Any]] = []
    for kind, i in zip(kinds, source, strict=True):
        name = "library" if kind == "negative-binomial" and library else str(kind)
        same = words and words[-1][0] == name and (name != "categorical" or words[-1][2] == i)
        words = [*words[:-1], [name, words[-1][1] + 1, i]] if same else [*words, [name, 1, i]]
    return tuple(f"{name}:{count}" for name, count, _ in words)


@dataclass(frozen=True)
class Projection:
    """y = (x - mean) U / c: leading principal axes, an isometry up to c, so that the geometry is that of x."""

    mean: Array  # (n,)
    U: Array  # (n, p)
    c: float
    plain: ClassVar[bool] = True

    def __call__(self, x: Array) -> Array:  # (N, n) -> (N, p)
        return (x - self.mean) @ self.U / self.c

    def back(self, y: Array) -> Array:  # (N, p) -> (N, n)
        return self.mean + self.c * y @ self.U.T

    def moves(self, J: Array) -> Array:  # (p, k) -> (n, k)
        """What a change of y is as a change of x."""
        return np.asarray(self.c * self.U @ J)


@dataclass(frozen=True)
class Pixels:
    """y = (x - low) / (high - low): pictures in [0, 1], as a Bernoulli likelihood wants them."""

    low: Array  # (n,) in units of x
    span: Array  # (n,)
    plain: ClassVar[bool] = False  # a linear model has no Bernoulli density

    def __call__(self, x: Array) -> Array:  # (N, n) -> (N, n)
        return np.asarray(np.clip((x - self.low) / self.span, 0, 1))

    def back(self, y: Array) -> Array:
        return np.asarray(self.low + y * self.span)

    def moves(self, J: Array) -> Array:  # (n, k) -> (n, k)
        return np.asarray(J * self.span[:, None])


def pixels(prepared: Prepared) -> Pixels:
    """From the darkest to the brightest value of all."""
    raw = prepared.raw(prepared.x)
    ends = np.full((2, raw.shape[1]), [[raw.min()], [raw.max()]])
    low, high = prepared.scaled(ends)
    return Pixels(low, high - low)


def project(x: Array, d: int) -> Projection:  # (N, n)
    """d dimensions for the factors and as many and two for curvature and noise."""
    l, U = axes_of_rows(x)
    p = min(x.shape[1], 2 * d + 2)
    return Projection(x.mean(0), U[:, :p], float(np.sqrt(l[: max(d, 1)].mean())))


def blurred(y: Array, seed: int, columns: int | None = None) -> Array:  # (N, p)
    """With noise of the size RESOLUTION on the first `columns`."""
    noise = _RESOLUTION * numpy_generator(seed, "resolution").standard_normal(y.shape)
    noise[:, y.shape[1] if columns is None else columns :] = 0
    return y + noise


@dataclass(frozen=True)
class Through:
    """A turned model of projected rows, as a model of the rows themselves."""

    onto: Mixing | Projection | Pixels
    turned: RotatedModel

    def encode(self, x: Array) -> Array:  # (N, n) -> (N, k)
        return self.turned.encode(self.onto(x))

    def decode(self, u: Array) -> Array:  # (N, k) -> (N, n)
        return self.onto.back(self.turned.decode(u))
