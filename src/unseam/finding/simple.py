"""The answer of simplicity: factor analysis, turned to simple structure, oblique where factors correlate.

One factor cannot be turned; it is found if a one-factor model explains the correlations, in a table where a second
factor SECOND as strong would have been seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.finding.certificates import Certificate, ClueTest
from unseam.finding.factor_analysis import (
    MOST_CORRELATED,
    FactorModel,
    Factors,
    correlation_matrix,
    explains,
    factors_of_rows,
    fit_factors,
)
from unseam.finding.grades import Answer, Unseen, join_groups
from unseam.finding.simplicity import SimpleStructure, promax, simple_structure
from unseam.finding.stability import (
    Agreement,
    Twice,
    congruence_agreement,
    group_congruence,
    halves,
    loadings_in_order,
    not_alone,
)
from unseam.finding.table_warnings import KNOWS

_OBLIQUE = 0.15  # correlation of two factors from which on axes are not kept at right angles
_FAINT = 0.02  # communality of a column below which its direction is noise
_COLUMNS = 2  # columns that a factor must move at least
_LARGE = 0.3  # loading from which on a column is moved
_SPLITS = 10
SECOND = 1 / 6  # size of a further factor, relative to one that is found, that would have to be seen
_FITS = 0.2  # p-value from which on one factor explains the correlations
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
    few = (np.abs(L) >= _LARGE).sum(0) < _COLUMNS
    tests, identified, by, sentence = (
        _one_factor(whole.factors, len(rows)) if k == 1 else _several(structure, few, back)
    )
    if k > 1:
        ordered = loadings_in_order(L, twice)
        back = join_groups(back, structure.undecided)
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
    clear = (L**2).sum(1) >= max(_FAINT, 4 * k / len(x))
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


def _several(structure: SimpleStructure, few: Array, back: Agreement) -> _Tested:
    """The test of the structure and of each factor's planes."""
    k = len(structure.rotation)
    linked = structure.undecided.any(1)
    identified = ~linked & ~few
    tests = [
        ClueTest("simplicity", bool(i), structure.criterion, structure.bar, structure.p_value, False,
                 "varimax criterion of unit rows in oblique axes")
        for i in identified
    ]  # fmt: skip
    by = tuple(_SIMPLE if identified[j] else _PLANE if structure.simple else _NOT_SIMPLE for j in range(k))
    return tests, identified, by, ""


def _one_factor(factors: Factors, rows: int) -> _Tested:
    """Whether one factor explains the correlations, and a second one would have been seen."""
    from scipy.stats import chi2

    fit = explains(factors, rows)
    if np.isnan(fit.statistic):  # too many columns: the misfit was not computed
        return [ClueTest("simplicity", False)], np.array([False]), (_SEVERAL,), _ONE_ASSUMPTION
    limit = float(chi2.ppf(1 - _FITS, fit.freedom)) if fit.freedom > 0 else 0.0
    found = bool(fit.freedom > 0 and fit.p_value > _FITS and power_of_second(factors, rows) > 1 - _LEVEL)
    test = ClueTest("simplicity", found, fit.statistic, limit, fit.p_value, False, "misfit of one factor, chi-squared")
    return [test], np.array([found]), (_ONE if found else _SEVERAL,), _ONE_ASSUMPTION


def power_of_second(factors: Factors, rows: int) -> float:
    """The probability that the test of one factor would have failed if a second one were there, SECOND as strong: the
    loadings of the first, with signs that alternate in order of size."""
    from scipy.stats import chi2, ncx2

    first = factors.loadings[:, 0]
    n = len(first)
    signs = np.where(np.argsort(np.argsort(np.abs(first))) % 2 == 0, 1.0, -1.0)
    second = SECOND * np.abs(first) * signs
    R = np.outer(first, first) + np.outer(second, second)
    np.fill_diagonal(R, 1.0)
    other = explains(fit_factors(R, 1), rows)
    if other.freedom <= 0 or n < 4:
        return 0.0
    return float(ncx2.sf(chi2.ppf(1 - _FITS, other.freedom), other.freedom, max(other.statistic, 1e-9)))
