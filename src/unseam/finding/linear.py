"""The linear answer: independence (PPCA + ICA) and simplicity (factor analysis + varimax or promax) are both asked, and
the clue that decides more axes gives them; halves of the rows say whether they come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, normaltest

from unseam.axes import Array
from unseam.finding import sentences
from unseam.finding.axes import Axes, fit_axes, independent
from unseam.finding.certificates import Certificate, ClueTest
from unseam.finding.density import less_dependent
from unseam.finding.dimension import dependent, hsic
from unseam.finding.factor_analysis import MOST_CORRELATED, correlation_matrix, explains, fit_factors
from unseam.finding.grades import SAME, TOO_CLOSE, Answer, Unseen, join_groups
from unseam.finding.number import CLEAR
from unseam.finding.separation import separations
from unseam.finding.simple import SECOND, simplicity_answer
from unseam.finding.stability import Twice, agreement, group_correlation, halves, not_alone
from unseam.finding.table_warnings import KNOWS
from unseam.rng import numpy_generator
from unseam.stats import matched_codes, normal_scores, rank_correlations

_FAINT = 0.02  # HSIC below which dependence may be chance (curved tables that the rules were tuned on: mostly above)
_SIZES = 0.02  # level of the test that sizes |u| of components are correlated
_SLIGHT = 0.025  # correlation of sizes up to which dependence is too slight for a cloud, whose is 0.03 or more
_STRICT = 4.0  # deviations of HSIC above shuffled columns: what ICA leaves of independent ones reaches 3
_SHAPE = 0.001  # level at which a component of normal scores is called non-Gaussian
_SPLITS = 10
_SOME = 4000  # rows that densities are compared on
_LEVELS = 7  # values up to which a column is levels: its shape is that of its thresholds
_FITS = 0.01  # p-value from which on as many factors explain the correlations
_LIMIT = 0.05  # share of rows at the least or the largest value from which on a column is stopped there
_ATOM = 0.2  # share of rows with any other one value from which on a column has no shape to ask for


class LinearInput(NamedTuple):
    """Rows in model units, those that are analysed, and which columns have a shape."""

    x: Array  # (N, n), missing cells filled
    gaps: Array  # (N, n) bool
    rows: Array
    train: Array
    test: Array
    shaped: Array  # (n,) bool

    @property
    def enough(self) -> bool:
        return len(self.rows) >= KNOWS


def shaped_columns(x: Array, gaps: Array) -> Array:  # (N, n) -> (n,) bool
    """Columns whose distribution is their own: neither levels (2 to 7 values) nor stopped at a limit. A value in the
    middle that many rows have is rounding.

    >>> t = np.arange(100.0)
    >>> x = np.column_stack([t % 5, t, np.minimum(t, 80), np.round(4 * np.arctanh(t / 50 - 0.99))])
    >>> shaped_columns(x, np.zeros(x.shape, bool))
    array([False,  True, False,  True])
    """
    out = []
    for column, gone in zip(x.T, gaps.T, strict=True):
        _, counts = np.unique(column[~gone], return_counts=True)
        total = counts.sum()
        stops = max(counts[:1].max(initial=0), counts[-1:].max(initial=0)) > max(_LIMIT * total, 2)
        out.append(bool(len(counts) > _LEVELS and not stops and counts.max() <= max(_ATOM * total, 2)))
    return np.array(out)


def linear_answer(
    table: LinearInput, k: int, orthogonal: bool, seed: int, pictures: bool = False, fewer: Sequence[int] = ()
) -> Answer:
    """Both clues' answers with k factors, and the one of them that is given; of pictures only that of independence.

    Where rules of the number of factors differ, the simplest axes are also asked with `fewer` factors: a number with
    which more are found, and all of them but one, is taken.
    """
    free = independence_answer(table, k, orthogonal, seed)
    if orthogonal or pictures:
        return free
    simple = simplicity_answer(table.x, table.gaps, table.rows, table.train, table.test, k, seed)
    found = [sum(g == "found" for g in answer.grades(table.enough)) for answer in (free, simple)]
    most, best = max(found), None
    for other in fewer if most < k else ():
        answer = simplicity_answer(table.x, table.gaps, table.rows, table.train, table.test, other, seed)
        own = sum(g == "found" for g in answer.grades(table.enough))
        if most < own and own >= other - 1:  # all of them but one
            most, best = own, answer
    if best is not None:
        return replace(best, certificates=_with_both_clues(best, free, table.x[table.test], False))
    model = free.model
    shows = isinstance(model, Axes) and k > 1 and (model.likelier or not model.gaussian.all())
    kept = bool(shows and found[0] >= found[1])
    one, two = (free, simple) if kept else (simple, free)
    return replace(one, certificates=_with_both_clues(one, two, table.x[table.test], kept))


def _with_both_clues(one: Answer, two: Answer, x: Array, independence: bool) -> tuple[Certificate, ...]:
    """Certificates with the tests of the other clue beside their own: which of its axes is nearest, and whether that
    is another one."""
    near = matched_codes(one.model.encode(x), two.model.encode(x))
    out = []
    for j, own in enumerate(one.certificates):
        i = int(near.columns[j])
        other = two.certificates[i].tests if i >= 0 else ()
        tests = [replace(t, rotates=t.decides and bool(near.values[j] < SAME)) for t in other if t.clue != "geometry"]
        order = [*own.tests[:1], *tests, *own.tests[1:]] if independence else [*tests, *own.tests]
        out.append(replace(own, tests=tuple(order)))
    return tuple(out)


def independence_answer(table: LinearInput, d: int, orthogonal: bool, seed: int) -> Answer:
    """PPCA + ICA on all rows; halves of the training rows say whether its axes come back on the others.

    Where components depend on each other their non-Gaussianity may be the data's curvature: axes are then principal,
    unless the dependence is faint and independence gains by its own. Where most columns are levels, their shape
    is that of the thresholds, and independence is not asked. Where a further factor could hide in the noise, the
    components may be mixtures of those that are seen with it, and independence does not decide.
    """
    x, rows, train, test = table.x, table.rows, table.train, table.test
    asked = bool(2 * table.shaped.sum() > len(table.shaped))
    axes = fit_axes(x[rows], d, seed, principal=not asked)
    axes = fit_axes(x[rows], d, seed, principal=True) if orthogonal and axes.likelier else axes
    codes = independent(x[rows], d, seed)
    linked = depend(codes, seed) if table.enough else np.zeros((d, d), bool)
    if linked.any():
        principal = fit_axes(x[rows], d, seed, principal=True)
        less = less_dependent(codes[:_SOME], principal.encode(x[rows[:_SOME]]))
        faint = hsic(codes).max() < _FAINT and less.mean > -less.error
        axes = axes if faint and asked else principal
    splits = _SPLITS if table.enough and not linked.any() and not axes.gaussian.all() else 1
    own, twice = axes.encode(x[test]), _halves(x, axes, train, test, splits, seed)
    back = agreement(own, twice, seed)
    alone = axes.gaussian & (axes.gaussian.sum() > 1)
    if table.enough and d < x.shape[1] and not linked.any() and not axes.gaussian.all():
        alone = alone | _shape_of_columns(x[rows], axes, seed)
    back = join_groups(back, np.outer(alone, alone) | linked)
    W = axes.W
    apart = separations((W.T @ W)[None])
    same = matched_codes(own, (x[test] - axes.mean) @ axes.U).values
    by = tuple(
        sentences.FEW if a and axes.likelier else sentences.clue_sentence(not a, p > SAME, s > TOO_CLOSE)
        for a, p, s in zip(alone, same, apart, strict=True)
    )
    by = (sentences.DEPENDS,) * d if linked.any() else by
    hides = not alone.all() and _may_hide_another(x[rows], axes)
    by = tuple(sentences.HIDES if hides and not a else words for a, words in zip(alone, by, strict=True))
    alone = alone | hides
    identified = (~alone | (orthogonal & (apart > TOO_CLOSE))) & (not linked.any()) & (d > 1)
    back = not_alone(back, identified, lambda group: group_correlation(own, twice, group))
    some = fit_axes(x[train], d, seed, principal=axes.cloud)
    unseen = Unseen(some, train, test, (x[train], x[test]), float(some.log_likelihood(x[test]).mean()))
    certificates = tuple(
        Certificate(
            "independence" if not a and i else "geometry" if i else "none",
            (ClueTest("independence", bool(not a and i)),
             ClueTest("geometry", bool(orthogonal and s > TOO_CLOSE), float(s), TOO_CLOSE, None, bool(p < SAME),
                      "relative difference of singular values")),
        )
        for a, i, p, s in zip(alone, identified, same, apart, strict=True)
    )  # fmt: skip
    return Answer(
        "linear", axes, W, axes.nats(), apart, identified, by, back, unseen, certificates, known=axes.determinacy
    )


def _may_hide_another(x: Array, axes: Axes) -> bool:  # (N, n)
    """Whether a further factor, SECOND as strong as the weakest direction, could be there unseen.

    With loadings all alike, it is the weak directions that tell factors apart, L_d / s2 - 1 strong. A further one that
    is CLEAR would have been counted; one that is above the noise of n columns in N rows, 2 (n / N)^1/2, would show in
    the correlations that d factors leave unexplained.
    """
    N, n = x.shape
    strength = SECOND**2 * (float(axes.L.min()) / axes.s2 - 1)
    if strength >= CLEAR:
        return False
    if n > MOST_CORRELATED or strength < 2 * np.sqrt(n / N):
        return True
    return explains(fit_factors(correlation_matrix(x), len(axes.L)), N).p_value < _FITS


def _shape_of_columns(x: Array, axes: Axes, seed: int) -> Array:  # (N, n) -> (d,) bool
    """Components whose shape is no more than that of single columns: Gaussian once every column is given normal scores
    (the exponential of Gaussian columns has shapes, but no axes). One of two is as little known as the other."""
    y, u = normal_scores(x, numpy_generator(seed, "scores")), axes.encode(x)
    again = y @ np.linalg.lstsq(y, u - u.mean(0), rcond=None)[0]
    flat = ~axes.gaussian & (normaltest(again).pvalue > _SHAPE)
    return np.asarray(flat | (flat.any() & (len(flat) == 2)))


def depend(u: Array, seed: int) -> Array:  # (N, d) -> (d, d) bool
    """Which components depend on each other, tested on the same rows as their shapes: by HSIC, and by the correlation
    of their sizes |u|, which all rotations of one cloud share (a row's common scale); of ranks, so that tails do no
    harm. The mean over pairs tells a common scale best. In many rows a correlation below SLIGHT is significant at times
    without being a common scale.

    >>> g = np.random.default_rng(0)
    >>> cloud, scale = g.normal(size=(2000, 3)), g.gamma(4.0, size=(2000, 1)) ** -0.5
    >>> bool(depend(cloud, 0).any()), depend(cloud * scale, 0).any(axis=0).tolist()
    (False, [True, True, True])
    """
    N, d = u.shape
    if d < 2:
        return np.zeros((d, d), bool)
    i, j = np.triu_indices(d, 1)
    sizes, error = rank_correlations(np.abs(u), np.abs(u)), 1 / np.sqrt(N)
    pairs = np.abs(sizes) > max(norm.isf(_SIZES / (2 * len(i))) * error, _SLIGHT)
    common = sizes[i, j].mean() > max(norm.isf(_SIZES) * error / np.sqrt(len(i)), _SLIGHT)
    return np.asarray((pairs | common | dependent(u, seed, sure=_STRICT)) & ~np.eye(d, dtype=bool))


def _halves(x: Array, axes: Axes, train: Array, test: Array, splits: int, seed: int) -> list[Twice]:
    def codes(rows: Array, split: int) -> Array:
        return fit_axes(x[rows], len(axes.L), seed + split, axes).encode(x[test])

    return [(codes(one, split), codes(two, split)) for split, (one, two) in enumerate(halves(train, splits, seed))]
