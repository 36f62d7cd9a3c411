"""The linear answer: PPCA + ICA, with its axes checked on halves of the rows."""

from __future__ import annotations

import numpy as np

from unseam.axes import Array
from unseam.finding import sentences
from unseam.finding.axes import Axes, fit_axes, independent
from unseam.finding.density import less_dependent
from unseam.finding.dimension import TESTED, dependent, hsic
from unseam.finding.grades import SAME, TOO_CLOSE, Answer, Unseen, together
from unseam.finding.separation import separations
from unseam.finding.stability import Twice, agreement, halves
from unseam.finding.table_warnings import KNOWS
from unseam.stats import matched_codes

FAINT = 0.02  # HSIC below which dependence may be chance (curved tables that the rules were tuned on: mostly above)
MUCH = 0.1  # nats of total correlation (those below FAINT: 0.04 at most)


def linear_answer(
    x: Array, d: int, rows: Array, train: Array, test: Array, orthogonal: bool, seed: int, splits: int = 5
) -> Answer:
    """PPCA + ICA on all rows; halves of the training rows say whether its axes come back on the others.

    Where components depend on each other their non-Gaussianity may be the data's curvature: axes are then principal,
    unless the dependence is faint and independence gains much by its own.
    """
    axes = fit_axes(x[rows], d, seed)
    axes = fit_axes(x[rows], d, seed, principal=True) if orthogonal and axes.likelier else axes
    enough, codes = len(rows) >= KNOWS, independent(x[rows], d, seed)
    linked = dependent(codes, seed) if enough else np.zeros((d, d), bool)
    if linked.any():
        principal = fit_axes(x[rows], d, seed, principal=True)
        faint = hsic(codes[:TESTED]).max() < FAINT and less_dependent(codes, principal.encode(x[rows])).sure(MUCH)
        axes = axes if faint else principal
    back = agreement(axes.encode(x[test]), _halves(x, axes, train, test, splits if enough else 1, seed), seed)
    alone = axes.gaussian & (axes.gaussian.sum() > 1)
    back = together(back, np.outer(alone, alone) | linked)
    W = axes.W
    apart = separations((W.T @ W)[None])
    same = matched_codes(axes.encode(x[test]), (x[test] - axes.mean) @ axes.U).values
    by = tuple(
        sentences.FEW if a and axes.likelier else sentences.clue(not a, p > SAME, s > TOO_CLOSE)
        for a, p, s in zip(alone, same, apart, strict=True)
    )
    by = (sentences.DEPENDS,) * d if linked.any() else by
    identified = (~alone | (orthogonal & (apart > TOO_CLOSE))) & (not linked.any())
    some = fit_axes(x[train], d, seed, principal=bool(axes.gaussian.all()) and not axes.likelier)
    unseen = Unseen(some, train, test, (x[train], x[test]), float(some.log_likelihood(x[test]).mean()))
    return Answer("linear", axes, W, axes.nats(), apart, identified, by, back, unseen)


def _halves(x: Array, axes: Axes, train: Array, test: Array, splits: int, seed: int) -> list[Twice]:
    def codes(rows: Array, split: int) -> Array:
        return fit_axes(x[rows], len(axes.L), seed + split, axes).encode(x[test])

    return [(codes(one, split), codes(two, split)) for split, (one, two) in enumerate(halves(train, splits, seed))]
