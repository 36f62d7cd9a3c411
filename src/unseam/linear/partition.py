"""I_m (Vu 2024, eq. 4-6): which group of factors does each latent hold?

Give each latent i a group S_i of the s factors (disjoint, together all of them, some possibly empty):

    I_m = max over the m^s assignments of   sum_i I(x_i; v_{S_i}) - sum_{i<j} I(v_{S_i}; v_{S_j}).

There are 27 assignments at (s, m) = (3, 3), 1,024 at (5, 4) and 10^10 at (10, 10): `brute_force` tries them all,
`unseam.linear.search` finds the same maximum without.

Partitions that differ by less than 1e-9 nats a group are tied, and the one with fewer groups wins.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.linear.information import Tables

TIE = 1e-9  # nats a group


@dataclass(frozen=True)
class Partition:
    """The best groups found, one per latent (empty for a latent without factors); `gap` 0.0 means proved best.

    Parameters
    ----------
    value : float
        I_m in nats.
    groups : tuple of tuple of int
        The factors of each of the m latents.
    gap : float, default=0.0
        The maximum is at most value + gap.
    nodes : int, default=0
        Partial partitions that were searched.

    Examples
    --------
    >>> Partition(0.7, ((0, 1), (2,))).gap
    0.0
    """

    value: float  # nats
    groups: tuple[tuple[int, ...], ...]  # m of them
    gap: float = 0.0  # the maximum is at most value + gap
    nodes: int = 0  # partial partitions that are searched

    @property
    def blocks(self) -> frozenset[frozenset[int]]:
        """The partition as a set of groups, whichever latents hold them."""
        return frozenset(frozenset(g) for g in self.groups if g)


def partition_value(tables: Tables, masks: Array) -> Array:  # (Q, m) -> (Q,)
    """sum_i I(x_i; v_{S_i}) - sum_{i<j} I(v_{S_i}; v_{S_j}), the groups given as one bit mask per latent.

    Parameters
    ----------
    tables : Tables
        The information between latents and groups of factors, as `gaussian_tables` gives it.
    masks : array of int, of shape (Q, m)
        The group of each latent as bits: bit j is factor j.

    Returns
    -------
    array of shape (Q,)
        The value of each partition, in nats.

    Examples
    --------
    >>> from unseam.linear.information import gaussian_tables
    >>> t = gaussian_tables(np.eye(2), [2.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> partition_value(t, np.array([[1, 2], [2, 1], [3, 0]])).round(4)
    array([0.6931, 0.    , 0.3466])
    """
    return _gains(tables.gain, masks) - penalty(tables, masks)


def penalty(tables: Tables, masks: Array) -> Array:  # (Q, m) -> (Q,)
    """sum_{i<j} I(v_{S_i}; v_{S_j})."""
    total = np.zeros(len(masks))
    for i in range(1, masks.shape[1]):
        for j in range(i):
            total += tables.between(masks[:, i], masks[:, j])
    return total


def _gains(gain: Array, masks: Array) -> Array:  # (..., m, 2^s), (Q, m) -> (..., Q)
    return sum((gain[..., i, masks[:, i]] for i in range(1, masks.shape[1])), start=gain[..., 0, masks[:, 0]])


def brute_force(tables: Tables) -> tuple[Array, Array]:  # -> values (...), labels (..., s)
    """All m^s assignments, for any number of codes of the same factors at once; labels[j] is the latent of factor j.

    Parameters
    ----------
    tables : Tables
        The information between latents and groups of factors, as `gaussian_tables` gives it.

    Returns
    -------
    array of shape (...), array of shape (..., s)
        The best value, and the latent of each factor.

    Examples
    --------
    >>> from unseam.linear.information import gaussian_tables
    >>> t = gaussian_tables(np.eye(2), [2.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> value, labels = brute_force(t)
    >>> round(float(value), 4), labels
    (0.6931, array([0, 1]))
    """
    shape = tables.gain.shape[:-2]
    best, label = np.full(shape, -np.inf), np.zeros((*shape, tables.s), int)
    for labels in _assignments(tables.m, tables.s, 1 << 16 >> int(np.prod(shape, dtype=int)).bit_length()):
        masks = assignment_masks(labels, tables.m)
        cost = penalty(tables, masks) + TIE * (masks > 0).sum(1)
        values = _gains(tables.gain, masks) - cost
        top = values.argmax(-1)
        value = np.take_along_axis(values, top[..., None], -1)[..., 0]
        label = np.where((value > best)[..., None], labels[top], label)
        best = np.maximum(best, value)
    groups = (np.diff(np.sort(label, -1), axis=-1) > 0).sum(-1) + 1
    return best + TIE * groups, label


def _assignments(m: int, s: int, chunk: int) -> Iterator[Array]:  # (Q, s)
    if m**s > 50_000_000:
        raise BadInput(f"{m}^{s} assignments are too many to try them all; use best_partition")
    for first in range(0, m**s, max(chunk, 64)):
        index = np.arange(first, min(first + max(chunk, 64), m**s))
        yield index[:, None] // m ** np.arange(s) % m


def assignment_masks(labels: Array, m: int) -> Array:  # (Q, s) -> (Q, m)
    """The latent of each factor -> the factors of each latent."""
    bits = 1 << np.arange(labels.shape[1])
    return np.stack([((labels == i) * bits).sum(1) for i in range(m)], axis=1)


def as_partition(value: float, masks: Array, s: int) -> Partition:  # (m,)
    """Bit masks, one per latent -> groups."""
    return Partition(value, tuple(tuple(j for j in range(s) if mask >> j & 1) for mask in masks))


def tie_broken_value(p: Partition) -> float:
    """The value with ties broken: what the maximum is taken of."""
    return p.value - TIE * len(p.blocks)
