"""Entropy, information, correlation and matching against closed forms, SciPy, scikit-learn and brute force."""

from itertools import permutations

import numpy as np
import pytest
import scipy.stats
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.metrics import mutual_info_score

from unseam.errors import BadInput
from unseam.metrics.inputs import prepare_inputs
from unseam.metrics.shared.information import mi_matrix
from unseam.stats import (
    correlations,
    discrete_information,
    discretise,
    entropy,
    ksg,
    matched,
    normal_scores,
    pearson,
    rank_correlations,
    ross,
    spearman,
)

RNG = np.random.default_rng(0)


def test_entropy_of_a_fair_die_is_log_six():
    assert entropy(np.arange(60) % 6) == pytest.approx(np.log(6))


def test_entropy_of_one_class_is_zero():
    assert entropy(np.zeros(5, int)) == 0.0


@pytest.mark.parametrize("sizes", [(2, 3), (7, 20), (40, 20)])
def test_plug_in_estimate_is_scikit_learns(sizes):
    a, b = RNG.integers(0, sizes[0], 500), RNG.integers(0, sizes[1], 500)
    b = np.where(RNG.random(500) < 0.5, a % sizes[1], b)
    assert discrete_information(a, b) == pytest.approx(mutual_info_score(a, b), abs=1e-12)


def test_a_hand_worked_table():
    # joint [[2, 1], [0, 1]] / 4: H(a) = H(3/4), H(b) = H(1/2), H(a, b) = H(1/2, 1/4, 1/4)
    a, b = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    h = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert discrete_information(a, b) == pytest.approx(h + np.log(2) - 1.5 * np.log(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_are_those_of_the_reference(dtype):
    z = RNG.normal(size=(1000, 3)).astype(dtype)
    wide = z.astype(np.float64)
    expected = [np.digitize(c, np.histogram(c, 20)[1][:-1]) - 1 for c in wide.T]
    assert np.array_equal(discretise(z, 20), np.stack(expected, axis=1))


def test_quantile_bins_hold_equal_counts():
    counts = np.bincount(discretise(RNG.normal(size=(1000, 1)), 20, "quantile")[:, 0])
    assert counts.tolist() == [50] * 20


def test_a_constant_column_is_one_bin():
    assert len(np.unique(discretise(np.full((10, 1), 3.0), 20))) == 1


def test_a_column_too_narrow_for_the_bins_keeps_its_values_apart():
    z = np.array([[1.0], [np.nextafter(1.0, 2)], [1.0]])
    assert discretise(z, 20)[:, 0].tolist() == [0, 1, 0]


def test_fewer_than_two_bins_are_refused():
    with pytest.raises(BadInput, match="bins=1"):
        discretise(RNG.normal(size=(10, 1)), 1)


@pytest.mark.parametrize("k", [3, 10])
def test_ksg_is_scikit_learns(k):
    x = RNG.normal(size=1500)
    y = np.tanh(x) + 0.3 * RNG.normal(size=1500)
    theirs = mutual_info_regression(x[:, None], y, n_neighbors=k, random_state=0)[0]
    assert ksg(x, y, k) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("k", [3, 10])
def test_ross_is_scikit_learns(k):
    v = RNG.integers(0, 5, 1500)
    z = v + RNG.normal(size=1500)
    theirs = mutual_info_classif(z[:, None], v, n_neighbors=k, random_state=0)[0]
    assert ross(v, z, k) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_ksg_of_gaussians_is_the_closed_form(rho):
    x, e = RNG.normal(size=(2, 5000))
    assert ksg(x, rho * x + np.sqrt(1 - rho**2) * e) == pytest.approx(-0.5 * np.log(1 - rho**2), abs=0.05)


def test_neighbour_estimates_of_repeated_values_are_the_discrete_ones():
    v = RNG.integers(0, 4, 2000)
    for estimate in (ksg(v.astype(float), v * 2.0), ross(v, v * 2.0)):
        assert estimate == pytest.approx(entropy(v), abs=0.01)


def test_neighbour_estimates_do_not_see_scale_shift_or_sign():
    x = RNG.normal(size=800)
    y, v = x + RNG.normal(size=800), (x > 0).astype(int)
    assert ksg(x, y) == pytest.approx(ksg(-3 * x + 7, 1000 * y), abs=1e-3)
    assert ross(v, y) == pytest.approx(ross(v, -5 * y + 2), abs=1e-3)


def test_a_class_of_one_row_is_left_out():
    v = np.array([0, 0, 0, 1, 1, 1, 2])
    assert np.isfinite(ross(v, np.arange(7.0)))
    assert ross(np.arange(7), np.arange(7.0)) == 0.0


def test_the_matrix_takes_the_estimator_of_each_factor():
    v = np.stack([RNG.integers(0, 3, 400), RNG.normal(size=400)], axis=1)
    z = v + 0.1 * RNG.normal(size=v.shape)
    m = mi_matrix(prepare_inputs(z, v, kinds=["ordinal", "continuous"]))
    assert m[0, 0] == pytest.approx(discrete_information(v[:, 0].astype(int), discretise(z[:, :1])[:, 0]))
    assert m[1, 1] == pytest.approx(ksg(v[:, 1], z[:, 1]))


def brute_ksg(a, b, k):
    """Kraskov's estimator 1, point by point; a and b standardised columns without ties."""
    far = [np.abs(x[:, None] - x[None]).max(-1) for x in (a, b)]
    joint = np.maximum(*far)
    radius = np.sort(joint, axis=1)[:, k]  # the first is the point itself
    counts = [(d < radius[:, None]).sum(1) for d in far]  # strictly nearer, itself included
    return digamma(len(a)) + digamma(k) - (digamma(counts[0]) + digamma(counts[1])).mean()


@pytest.mark.parametrize(("p", "q"), [(1, 1), (1, 2), (2, 3)])
def test_ksg_of_groups_is_the_brute_force_one(p, q):
    x = RNG.normal(size=(300, p + q)) @ RNG.normal(size=(p + q, p + q))
    x = (x - x.mean(0)) / x.std(0)
    assert ksg(x[:, :p], x[:, p:], 4) == pytest.approx(max(brute_ksg(x[:, :p], x[:, p:], 4), 0), abs=1e-9)


def test_normal_scores_keep_the_order():
    x = np.random.default_rng(6).normal(size=(50, 2)) ** 3
    z = normal_scores(x, np.random.default_rng(0))
    assert (np.argsort(z, 0) == np.argsort(x, 0)).all()


def test_correlations_are_scipys():
    a, b = RNG.integers(0, 5, (60, 3)).astype(float), RNG.normal(size=(60, 2)) ** 3
    b[:, 0] += a[:, 0]
    for i in range(3):
        for j in range(2):
            assert spearman(a[:, i], b[:, j]) == pytest.approx(scipy.stats.spearmanr(a[:, i], b[:, j]).statistic)
            assert pearson(a[:, i], b[:, j]) == pytest.approx(scipy.stats.pearsonr(a[:, i], b[:, j]).statistic)
            assert rank_correlations(a, b)[i, j] == pytest.approx(spearman(a[:, i], b[:, j]))


def test_a_constant_correlates_with_nothing():
    t = np.arange(5.0)
    assert spearman(t, 0 * t) is None
    assert pearson(0 * t, t) is None
    assert spearman([1.0], [2.0]) is None
    assert rank_correlations(t[:, None], np.stack([0 * t, t], 1)).round(12).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(("a", "b"), [([1, 2, 3], [1, 2]), ([1, np.nan], [1, 2]), ([[1, 2]], [[1, 2]])])
def test_columns_that_cannot_be_correlated_are_refused(a, b):
    with pytest.raises(BadInput, match="cannot be correlated"):
        spearman(a, b)


def test_a_matching_is_the_best_of_all():
    for rows, columns in ((3, 3), (2, 4)):
        r = RNG.random((rows, columns))
        best = max(sum(r[i, j] for i, j in enumerate(p)) for p in permutations(range(columns), rows))
        found = matched(r)
        assert found.values.sum() == pytest.approx(best)
        assert np.array_equal(r[np.arange(rows), found.columns], found.values)


def test_whoever_finds_no_partner_counts_zero():
    """One latent that holds factor 0 and nothing of factor 1: the weakest factor is not held at all."""
    factors = RNG.normal(size=(200, 2))
    strengths = np.abs(rank_correlations(factors, factors[:, :1]))
    assert matched(strengths).values.min() == 0.0
    assert matched(strengths).columns.tolist() == [0, -1]


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e-7, 1e14])
def test_correlation_does_not_depend_on_scale(scale: float) -> None:
    t = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_allclose(correlations(scale * t + scale, t), correlations(t, t), atol=1e-12)
    assert (correlations(np.full((50, 1), 0.1 * scale), t) == 0).all()
