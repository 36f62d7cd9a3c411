"""Entropy and mutual information against closed forms and scikit-learn."""

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.metrics import mutual_info_score

from unseam.errors import BadInput
from unseam.metrics.information import discrete_mi, discretise, entropy, mutual_information
from unseam.metrics.neighbours import ksg_mi, ross_mi

RNG = np.random.default_rng(0)


def test_entropy_of_a_fair_die_is_log_six():
    assert entropy(np.arange(60) % 6) == pytest.approx(np.log(6))


def test_entropy_of_one_class_is_zero():
    assert entropy(np.zeros(5, int)) == 0.0


@pytest.mark.parametrize("sizes", [(2, 3), (7, 20), (40, 20)])
def test_plug_in_estimate_is_scikit_learns(sizes):
    a, b = RNG.integers(0, sizes[0], 500), RNG.integers(0, sizes[1], 500)
    b = np.where(RNG.random(500) < 0.5, a % sizes[1], b)
    assert discrete_mi(a, b) == pytest.approx(mutual_info_score(a, b), abs=1e-12)


def test_a_hand_worked_table():
    # joint [[2, 1], [0, 1]] / 4: H(a) = H(3/4), H(b) = H(1/2), H(a, b) = H(1/2, 1/4, 1/4)
    a, b = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    h = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert discrete_mi(a, b) == pytest.approx(h + np.log(2) - 1.5 * np.log(2))


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
    assert ksg_mi(x, y, k) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("k", [3, 10])
def test_ross_is_scikit_learns(k):
    v = RNG.integers(0, 5, 1500)
    z = v + RNG.normal(size=1500)
    theirs = mutual_info_classif(z[:, None], v, n_neighbors=k, random_state=0)[0]
    assert ross_mi(v, z, k) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_ksg_of_gaussians_is_the_closed_form(rho):
    x, e = RNG.normal(size=(2, 5000))
    assert ksg_mi(x, rho * x + np.sqrt(1 - rho**2) * e) == pytest.approx(-0.5 * np.log(1 - rho**2), abs=0.05)


def test_neighbour_estimates_of_repeated_values_are_the_discrete_ones():
    v = RNG.integers(0, 4, 2000)
    for estimate in (ksg_mi(v.astype(float), v * 2.0), ross_mi(v, v * 2.0)):
        assert estimate == pytest.approx(entropy(v), abs=0.01)


def test_neighbour_estimates_do_not_see_scale_shift_or_sign():
    x = RNG.normal(size=800)
    y, v = x + RNG.normal(size=800), (x > 0).astype(int)
    assert ksg_mi(x, y) == pytest.approx(ksg_mi(-3 * x + 7, 1000 * y), abs=1e-3)
    assert ross_mi(v, y) == pytest.approx(ross_mi(v, -5 * y + 2), abs=1e-3)


def test_a_class_of_one_row_is_left_out():
    v = np.array([0, 0, 0, 1, 1, 1, 2])
    assert np.isfinite(ross_mi(v, np.arange(7.0)))
    assert ross_mi(np.arange(7), np.arange(7.0)) == 0.0


def test_the_matrix_takes_the_estimator_of_each_factor():
    v = np.stack([RNG.integers(0, 3, 400), np.full(400, -1)], axis=1)
    values = np.stack([v[:, 0], RNG.normal(size=400)], axis=1)
    z = values + 0.1 * RNG.normal(size=values.shape)
    m = mutual_information(z, v, values)
    assert m[0, 0] == pytest.approx(discrete_mi(v[:, 0], discretise(z[:, :1])[:, 0]))
    assert m[1, 1] == pytest.approx(ksg_mi(values[:, 1], z[:, 1]))
