"""Codes of the same rows matched by |rank correlation|, with the chance level of random axes and of hard negatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.rng import numpy_generator
from unseam.stats import in_random_axes, matched, matched_codes, rank_correlations

_DRAWS = 20  # rotations behind the chance level
_ROWS = 20_000  # behind the chance level: more would not change it


class MatchedCodes(NamedTuple):
    """What is known of two codes of the same rows after the matching."""

    values: Array  # (A,) |rank correlation| with the partner; 0: no partner
    partners: Array  # (A,) -1: none
    edges: tuple[Array, Array, Array]  # latents of the first, of the second, and |rank correlation|
    random: Array  # values that random axes reach
    negatives: Array  # values that latents reach which are not partners


def match_codes(a: Array, b: Array, seed: int) -> MatchedCodes:  # (N, A), (N, B)
    """Match the latents of a with those of b one to one.

    Random axes: b whitened and rotated (a where b is one latent), 20 times, at 20,000 of the rows at most.

    >>> t = np.arange(6.0)
    >>> match_codes(np.stack([t, t % 2], 1), np.stack([t % 2, -t], 1), seed=0).partners
    array([1, 0])
    """
    table = np.abs(rank_correlations(a, b))
    found = matched(table)
    rng = numpy_generator(seed, "chance")
    some = slice(None) if a.shape[0] <= _ROWS else np.sort(rng.choice(a.shape[0], _ROWS, replace=False))
    draws = [matched_codes(*both).values for both in in_random_axes(a[some], b[some], rng, _DRAWS)]
    i, j = np.indices(table.shape)
    others = table.copy()
    matched_rows = np.flatnonzero(found.columns >= 0)
    others[matched_rows, found.columns[matched_rows]] = -2
    negatives = matched(others).values
    edges = (i.ravel(), j.ravel(), table.ravel())
    return MatchedCodes(*found, edges, np.concatenate(draws), negatives[negatives > -2])
