"""The linear answer: independence (PPCA + ICA) and simplicity (factor analysis + varimax or promax) are both asked, and
the clue that decides more axes gives them; halves of the rows say whether they come back.

One factor cannot be turned; it is found if a one-factor model explains the correlations, in a table where a second
factor a fifth as strong would have been seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, normaltest, rankdata

from unseam.axes import Array
from unseam.finding import sentences
from unseam.finding.axes import Axes, fit_axes, independent
from unseam.finding.density import dependent, hsic, less_dependent
from unseam.finding.factor_analysis import (
    MOST_CORRELATED,
    FactorModel,
    Factors,
    correlation_matrix,
    explains,
    factors_of_rows,
    fit_factors,
    power_of_second,
)
from unseam.finding.factor_count import CLEAR
from unseam.finding.grades import SAME, TOO_CLOSE, Answer, Certificate, ClueTest, Unseen, join_groups
from unseam.finding.kinds import KNOWS
from unseam.finding.simplicity import SimpleStructure, congruences, promax, simple_structure
from unseam.finding.stability import (
    AGREES,
    Twice,
    agreement,
    congruence_agreement,
    group_congruence,
    group_correlation,
    halves,
    loadings_in_order,
    not_alone,
    separations,
)
from unseam.rng import numpy_generator
from unseam.stats import matched, matched_codes, normal_scores, rank_correlations

_FAINT = 0.02  # HSIC below which dependence may be chance (curved tables that the rules were tuned on: mostly above)
_SIZES = 0.02  # level of the test that sizes |u| of components are correlated
_SLIGHT = 0.025  # correlation of sizes up to which dependence is too slight for a cloud, whose is 0.03 or more
_STRICT = 4.0  # deviations of HSIC above shuffled columns: what ICA leaves of independent ones reaches 3
_SHAPE = 0.001  # level at which a component of normal scores is called non-Gaussian
_SPLITS = 10
_SOME = 4000  # rows that densities are compared on
_COPIES = 0.999  # correlation of normal scores from which two columns have the same ranks
_LEVELS = 7  # values up to which a column is levels: its shape is that of its thresholds
_FITS = 0.01  # p-value from which on as many factors explain the correlations
_LIMIT = 0.05  # share of rows at the least or the largest value from which on a column is stopped there
_ATOM = 0.2  # share of rows with any other one value from which on a column has no shape to ask for
_OBLIQUE = 0.15  # correlation of two factors from which on axes are not kept at right angles
_FAINT_COLUMN = 0.02  # communality of a column below which its direction is noise
_LEAST_COLUMNS = 2  # columns that a factor must move at least
_LARGE = 0.3  # loading from which on a column is moved
_FURTHER = 1 / 6  # size of a further factor, relative to the weakest direction, that would have to be seen
_ONE_FITS = 0.2  # p-value from which on one factor explains the correlations
_LEVEL = 0.05  # a second factor must be seen with probability 1 - LEVEL
_SIMPLE = "simple structure decides"
_NOT_SIMPLE = "simplest axes, but loadings that were drawn at random are as simple"
_PLANE = "simple structure as a whole, but not in the plane with others of its group"
_ONE = "one factor explains the correlations"
_SEVERAL = "one direction: one factor, or several that move together"
_ONE_ASSUMPTION = (
    "The axis is right if the columns share one factor: it explains their correlations, and a second would show "
    "unless it moves all columns in nearly the same proportions."
)


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
    independence = bool(shows and found[0] >= found[1])
    one, two = (free, simple) if independence else (simple, free)
    return replace(one, certificates=_with_both_clues(one, two, table.x[table.test], independence))


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
    """Whether a further factor, _FURTHER as strong as the weakest direction, could be there unseen.

    With loadings all alike, it is the weak directions that tell factors apart, L_d / s2 - 1 strong. A further one that
    is CLEAR would have been counted; one that is above the noise of n columns in N rows, 2 (n / N)^1/2, would show in
    the correlations that d factors leave unexplained.
    """
    N, n = x.shape
    strength = _FURTHER**2 * (float(axes.L.min()) / axes.s2 - 1)
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


# --- simplicity ----------------------------------------------------------------------------------------------------


class _RotatedFactors(NamedTuple):
    """A factor analysis in its simplest axes."""

    model: FactorModel
    structure: SimpleStructure
    factors: Factors


def simplicity_answer(
    x: Array, gaps: Array, rows: Array, train: Array, test: Array, k: int, seed: int
) -> Answer:  # (N, n), (N, n) bool
    """k factors of all rows in their simplest axes; halves of the rows say whether the loadings come back."""
    enough = len(rows) >= KNOWS
    whole = _fit_simple(x[rows], gaps[rows], k, seed)
    model, structure = whole.model, whole.structure
    L = model.loadings
    twice: list[Twice] = [
        (_again(x, gaps, one, whole, seed), _again(x, gaps, two, whole, seed))
        for one, two in halves(rows, _SPLITS if enough else 1, seed)
    ]
    back = congruence_agreement(L, twice)
    few = (np.abs(L) >= _LARGE).sum(0) < _LEAST_COLUMNS
    if k == 1:
        tests, identified, by, sentence = _one_factor(whole.factors, len(rows))
    else:
        scores = structure.simple and _fit_simple(_scores(x[rows], gaps[rows]), gaps[rows], k, seed)
        undecided = structure.undecided | (_undecided_of(scores, L) if scores else False)
        structure = scores.structure if scores and not scores.structure.simple else structure
        tests, identified, by, sentence = _several(structure, ~undecided.any(1) & ~few)
        ordered = loadings_in_order(L, twice)
        back = join_groups(back, undecided)
        back = not_alone(back, identified, lambda group: group_congruence(ordered, group))
    some = _fit_simple(x[train], gaps[train], k, seed, structure.rotation).model
    unseen = Unseen(some, train, test, (x[train], x[test]), float(some.log_likelihood(x[test]).mean()))
    certificates = tuple(
        Certificate("simplicity" if i else "none", (t,), sentence if i else "")
        for t, i in zip(tests, identified, strict=True)
    )
    Phi = model.correlations
    return Answer(
        "linear", model, model.W, model.nats(), np.ones(k), identified, by, back, unseen, certificates, L,
        Phi if not np.allclose(Phi, np.eye(k)) else None, model.determinacy,
    )  # fmt: skip


def _fit_simple(
    x: Array, gaps: Array, k: int, seed: int, start: Array | None = None, draws: int | None = None,
    oblique: bool | None = None,
) -> _RotatedFactors:  # fmt: skip
    """Maximum likelihood, then the simplest axes: orthogonal ones unless the structure is simple and two
    factors correlate by OBLIQUE or more."""
    n = x.shape[1]
    factors = fit_factors(correlation_matrix(x, gaps), k) if n <= MOST_CORRELATED else factors_of_rows(x, k)
    L = factors.loadings
    clear = (L**2).sum(1) >= max(_FAINT_COLUMN, 4 * k / len(x))
    size = {} if draws is None else {"draws": draws}
    structure = simple_structure(np.where(clear[:, None], L, 0.0), seed=seed, start=start, oblique=True, **size)
    turned, Phi = L @ structure.rotation, np.eye(k)
    if k > 1 and oblique is not False:
        pattern, between = promax(turned)
        if oblique or (structure.simple and np.abs(between - np.eye(k)).max() >= _OBLIQUE):
            turned, Phi = pattern, between
    order = np.argsort(-(turned**2).sum(0), kind="stable")
    sign = np.where(turned[np.abs(turned).argmax(0), np.arange(k)] < 0, -1.0, 1.0)
    turned, Phi = (turned * sign)[:, order], (Phi * np.outer(sign, sign))[np.ix_(order, order)]
    seen = ~gaps
    mean = np.array([c[s].mean() for c, s in zip(x.T, seen.T, strict=True)])
    scale = np.array([max(c[s].std(), 1e-12) for c, s in zip(x.T, seen.T, strict=True)])
    assert turned.shape == (n, k)
    planes = structure.planes[np.ix_(order, order)]
    structure = SimpleStructure(
        structure.rotation[:, order] * sign[order], structure.criterion, structure.null, structure.p_value, planes,
    )  # fmt: skip
    return _RotatedFactors(FactorModel(mean, scale, turned, Phi, factors.unique), structure, factors)


def _again(x: Array, gaps: Array, rows: Array, whole: _RotatedFactors, seed: int) -> Array:  # -> (n, k)
    """Loadings of some of the rows, turned by themselves."""
    k = len(whole.structure.rotation)
    slanted = not np.allclose(whole.model.correlations, np.eye(k))
    return _fit_simple(x[rows], gaps[rows], k, seed, draws=0, oblique=slanted).model.loadings


_Tested = tuple[list[ClueTest], Array, tuple[str, ...], str]


def _scores(x: Array, gaps: Array) -> Array:  # (N, n), (N, n) bool -> (N, n)
    """Columns as normal scores of their ranks, but for levels. Skewed columns (the exponential of Gaussian ones) can
    look simple: what correlates negatively then hardly correlates at all. Of two columns with the same ranks the second
    stays as it is, since copies have no noise of their own.

    >>> t = np.arange(10.0)
    >>> _scores(np.column_stack([t, t**2, t > 5]), np.zeros((10, 3), bool))[-1].round(2)
    array([ 1.64, 81.  ,  1.  ])
    """
    out = x.copy()
    for j, seen in enumerate(~gaps.T):
        column = x[seen, j]
        if len(np.unique(column)) > _LEVELS:
            out[seen, j] = norm.ppf((rankdata(column) - 0.5) / len(column))
    return np.where((np.abs(np.tril(correlation_matrix(out, gaps), -1)) > _COPIES).any(1), x, out)


def _undecided_of(other: _RotatedFactors, L: Array) -> Array:  # (n, k) -> (k, k) bool
    """Planes without axes in another analysis of the same columns, in the order of L's; the diagonal names the factors
    that it does not have."""
    near = matched(congruences(L, other.model.loadings))
    out = other.structure.undecided[np.ix_(near.columns, near.columns)]
    return np.asarray(out | np.diag(near.values < AGREES))


def _several(structure: SimpleStructure, identified: Array) -> _Tested:
    """The test of the structure, and what it says of each factor."""
    tests = [
        ClueTest("simplicity", bool(i), structure.criterion, structure.bar, structure.p_value, False,
                 "varimax criterion in oblique axes")
        for i in identified
    ]  # fmt: skip
    by = tuple(
        _SIMPLE if identified[j] else _PLANE if structure.simple else _NOT_SIMPLE for j in range(len(identified))
    )
    return tests, identified, by, ""


def _one_factor(factors: Factors, rows: int) -> _Tested:
    """Whether one factor explains the correlations, and a second one would have been seen."""
    from scipy.stats import chi2

    fit = explains(factors, rows)
    if np.isnan(fit.statistic):  # too many columns: the misfit was not computed
        return [ClueTest("simplicity", False)], np.array([False]), (_SEVERAL,), _ONE_ASSUMPTION
    limit = float(chi2.ppf(1 - _ONE_FITS, fit.freedom)) if fit.freedom > 0 else 0.0
    found = bool(fit.freedom > 0 and fit.p_value > _ONE_FITS and power_of_second(factors, rows, _ONE_FITS) > 1 - _LEVEL)
    test = ClueTest("simplicity", found, fit.statistic, limit, fit.p_value, False, "misfit of one factor, chi-squared")
    return [test], np.array([found]), (_ONE if found else _SEVERAL,), _ONE_ASSUMPTION
