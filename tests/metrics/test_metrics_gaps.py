"""MIG and its relatives, SAP: hand-worked tables, closed forms and scikit-learn."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from unseam.axes import Factor, FactorSpace
from unseam.errors import BadInput
from unseam.metrics import dcimig, jemmig, mig, mig_sup, modularity, rmig, sap, sap_r2, score
from unseam.metrics.rmig import bin_masses
from unseam.metrics.shared.linear_svm import SortedFeature
from unseam.stats import entropy

GRID = np.stack(np.meshgrid(range(2), range(4), indexing="ij"), -1).reshape(-1, 2)  # all pairs of 2 x 4 values
RNG = np.random.default_rng(0)


def test_mig_of_a_code_that_holds_half_of_a_factor():
    # z0 = v0 (1 bit of 1), z1 = v1 // 2 (1 bit of 2), z2 = v1 % 2 (1 bit of 2): gaps 1 and 1/2 - 1/2
    z = np.stack([GRID[:, 0], GRID[:, 1] // 2, GRID[:, 1] % 2], axis=1).astype(float)
    score = mig(z, GRID)
    assert score.per_factor == pytest.approx([1.0, 0.0])
    assert score.matrix == pytest.approx(np.log(2) * np.array([[1, 0, 0], [0, 1, 1]]), abs=1e-12)
    assert score.value == pytest.approx(0.5)


def test_mig_sup_of_the_same_code():
    z = np.stack([GRID[:, 0], GRID[:, 1] // 2, GRID[:, 1] % 2], axis=1).astype(float)
    assert mig_sup(z, GRID).per_latent == pytest.approx([1.0, 0.5, 0.5])


def test_mig_sup_of_a_latent_that_holds_both_factors():
    z = (GRID[:, :1] + 2 * GRID[:, 1:]).astype(float)  # one latent: 1 of 1 bit of v0, 2 of 2 bits of v1
    assert mig_sup(z, GRID).per_latent == pytest.approx([0.0])
    assert mig(z, GRID).per_factor == pytest.approx([1.0, 1.0])  # MIG does not notice


def test_mig_sup_leaves_out_constant_latents():
    z = np.hstack([GRID, np.ones((8, 1))]).astype(float)
    score = mig_sup(z, GRID)
    assert score.value == pytest.approx(1.0)
    assert np.isnan(score.per_latent[2])


def test_dcimig_by_hand():
    # latent 0 holds v0; latent 1 holds both and is credited to v1 with the gap 2 - 1 bits
    z = np.stack([GRID[:, 0], GRID[:, 0] + 2 * GRID[:, 1]], axis=1).astype(float)
    assert dcimig(z, GRID).value == pytest.approx((1 + 1) / (1 + 2))


def test_jemmig_by_hand():
    # z0 = v0: H(v, z*) = I = 1 bit, the second knows nothing. z1, z2 = the two bits of v1: H = 2, I = 1 and 1 bits
    z = np.stack([GRID[:, 0], GRID[:, 1] // 2, GRID[:, 1] % 2], axis=1).astype(float)
    loss, h = np.log(2) * np.array([1 - 1 + 0, 2 - 1 + 1]), np.log([2, 4])
    assert jemmig(z, GRID, bins=10).per_factor == pytest.approx(1 - loss / (h + np.log(10)))


def test_jemmig_punishes_a_latent_that_holds_more_than_its_factor():
    both = np.stack([GRID[:, 0] + 2 * GRID[:, 1], 0 * GRID[:, 0]], axis=1).astype(float)
    factor = GRID[:, :1]
    # H(v, z*) = 3 bits, I = 1 bit
    assert jemmig(both, factor).value == pytest.approx(1 - 2 * np.log(2) / (np.log(2) + np.log(20)))
    assert mig(both, factor).value == pytest.approx(1.0)


def test_rmig_without_variances_is_mig_and_with_tiny_ones_too():
    v = RNG.integers(0, 5, (2000, 2))
    z = v + 0.3 * RNG.normal(size=v.shape)
    assert rmig(z, v).value == pytest.approx(mig(z, v).value, abs=1e-12)
    assert rmig(z, v, variances=np.full(z.shape, 1e-16)).value == pytest.approx(mig(z, v).value, abs=1e-3)


def test_rmig_falls_with_the_posterior_variance():
    v = RNG.integers(0, 5, (500, 2))
    values = [rmig(v.astype(float), v, variances=np.full(v.shape, s)).value for s in (0.0, 0.1, 1.0, 10.0)]
    assert all(a > b + 0.02 for a, b in pairwise(values))


def test_masses_of_a_posterior_sum_to_one():
    masses = bin_masses(RNG.normal(size=50), RNG.uniform(0, 2, 50), 20)
    assert masses.min() >= 0
    assert masses.sum(axis=1) == pytest.approx(np.ones(50))


def test_modularity_by_hand():
    # one latent with 1 bit on v0 and 1 of 2 bits on v1: 1 - 1 / (1 * (2 - 1)) = 0
    z = np.stack([GRID[:, 0] + 2 * (GRID[:, 1] % 2), GRID[:, 0]], axis=1).astype(float)
    score = modularity(z, GRID)
    assert score.per_latent == pytest.approx([0.0, 1.0], abs=1e-9)


def test_modularity_of_a_run_is_that_of_its_active_latents():
    """Passive latents were counted 0: with 2 of 10 in use a run printed 0.20 where its latents have 0.93."""
    rng, v = np.random.default_rng(0), np.repeat(GRID, 50, axis=0)
    z = np.hstack([v + rng.normal(scale=0.2, size=v.shape), rng.normal(size=(len(v), 8))])
    masked = score(z, v, metrics="modularity", active=np.arange(10) < 2)["modularity"]
    assert masked.value == pytest.approx(modularity(z[:, :2], v).value, abs=1e-12)
    assert masked.value > 0.9
    assert masked.settings["latents"] == 2
    still = modularity(np.hstack([z[:, :2], np.zeros((len(v), 3))]), v)
    assert still.value == pytest.approx(masked.value, abs=1e-12)
    assert modularity(np.zeros((len(v), 2)), v).value == 0


def test_modularity_needs_two_factors():
    with pytest.raises(BadInput, match="at least 2"):
        modularity(GRID.astype(float), GRID[:, :1])


def test_continuous_factors_are_not_binned():
    v = RNG.uniform(size=(2000, 2))
    space = FactorSpace((Factor("x", None, "continuous"), Factor("y", None, "continuous")))
    score = mig(v, v, space)
    assert score.value > 0.95
    assert all("KSG" in how for how in score.settings["estimator"].values())
    noise = mig(RNG.normal(size=(2000, 2)), v, space)
    assert noise.value < 0.05


@pytest.mark.parametrize("metric", [rmig, jemmig, dcimig])
def test_metrics_that_need_entropies_refuse_continuous_factors(metric):
    with pytest.raises(BadInput, match="continuous"):
        metric(RNG.normal(size=(50, 2)), RNG.uniform(size=(50, 2)))


@pytest.mark.parametrize("classes", [2, 3, 11])
@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
def test_the_one_feature_svm_is_liblinears(classes, scale):
    y = RNG.integers(0, classes, 700)
    x = scale * (y + 0.8 * RNG.normal(size=700))
    lines = SortedFeature(x).fit(y, classes)
    model = LinearSVC(C=0.01, class_weight="balanced", tol=1e-10, max_iter=1_000_000).fit(x[:, None], y)
    theirs = np.column_stack([model.coef_[:, 0], model.intercept_])
    assert lines[-len(theirs) :] == pytest.approx(theirs, abs=2e-4)
    assert np.array_equal(SortedFeature(x).predict(lines, x), model.predict(x[:, None]))


def test_the_svm_ends_at_the_optimum():
    """The gradient of the objective is 0 at the answer: the truth without another solver."""
    y, c = RNG.integers(0, 3, 400), 0.01
    x = y + RNG.normal(size=400)
    counts = np.bincount(y)
    for k, (w, b) in enumerate(SortedFeature(x).fit(y, 3, c)):
        sign = np.where(y == k, 1, -1)
        weight = np.where(y == k, c * 400 / (3 * counts[k]), c)
        slack = np.maximum(0, 1 - sign * (w * x + b))
        gradient = np.array([w, b]) - 2 * np.array([(weight * slack * sign * x).sum(), (weight * slack * sign).sum()])
        assert np.abs(gradient).max() < 1e-8


def test_sap_gap_by_hand():
    v = RNG.integers(0, 2, (3000, 1))
    z = np.hstack([v - 0.5, RNG.normal(size=(3000, 1))])
    score = sap(z, v)
    assert score.matrix[0, 0] == 1.0
    assert score.value == pytest.approx(0.5, abs=0.05)


def test_sap_takes_squared_correlation_for_a_continuous_factor():
    v = np.stack([RNG.integers(0, 2, 600), RNG.normal(size=600)], axis=1)
    space = FactorSpace((Factor("on", 2, "categorical"), Factor("x", None, "continuous")))
    score = sap(v, v, space)
    assert score.per_factor[1] == pytest.approx(1 - np.corrcoef(v.T)[0, 1] ** 2)


def test_sap_r2_is_the_gap_of_squared_correlations():
    v = RNG.integers(0, 9, (500, 2))
    z = v @ np.array([[1.0, 0.5], [0.2, 1.0]]) + RNG.normal(size=(500, 2))
    r2 = np.corrcoef(v.T, z.T)[:2, 2:] ** 2
    assert sap_r2(z, v).per_factor == pytest.approx(np.abs(r2[:, 0] - r2[:, 1]))


def test_entropy_of_the_factor_normalises():
    v = np.repeat([0, 0, 0, 1], 25)[:, None]
    assert mig(v.astype(float), v).matrix[0, 0] == pytest.approx(entropy(v[:, 0]))
    assert mig(v.astype(float), v).value == pytest.approx(1.0)
