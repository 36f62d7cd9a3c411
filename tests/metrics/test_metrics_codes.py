"""Scores of codes alone, of two codes, of sets of models; MCC; the impossibility theorem."""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import kstest, laplace, spearmanr, uniform
from sklearn.linear_model import Lasso

from unseam.axes import Factor, FactorSpace
from unseam.errors import BadInput
from unseam.linear.impossibility import entangling_jacobian, reflection
from unseam.metrics import (
    code_mutual_information,
    entangle,
    gaussian_tc,
    gaussian_tc_sampled,
    mcc,
    score,
    two_codes,
    udr,
    wasserstein_dependency,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_total_correlation_of_two_gaussians(rho):
    x = RNG.normal(size=(4000, 2))
    x -= x.mean(axis=0)
    white = x @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T
    z = white @ np.linalg.cholesky(np.array([[1, rho], [rho, 1]])).T
    assert gaussian_tc(z).value == pytest.approx(-0.5 * np.log(1 - rho**2), abs=1e-9)


def test_total_correlation_of_a_copy_is_said_to_be_infinite():
    x = RNG.normal(size=(200, 1))
    result = gaussian_tc(np.hstack([x, 2 * x]))
    assert result.value > 10
    assert "infinite" in result.notes[0]


def test_total_correlation_of_sampled_codes_is_lower():
    x = RNG.normal(size=(5000, 1))
    z = np.hstack([x, x + 0.1 * RNG.normal(size=(5000, 1))])
    sampled = gaussian_tc_sampled(z, np.ones(z.shape)).value
    assert sampled == pytest.approx(-0.5 * np.log(1 - 0.25), abs=0.05)
    assert sampled < gaussian_tc(z).value


def test_wasserstein_is_the_matrix_square_root_form():
    z = RNG.normal(size=(300, 4)) @ RNG.normal(size=(4, 4))
    s = np.cov(z.T)
    d = np.diag(np.diag(s))
    expected = 2 * np.trace(s) - 2 * np.trace(sqrtm(d @ s)).real
    assert wasserstein_dependency(z).value == pytest.approx(expected, rel=1e-6)
    assert wasserstein_dependency(z, normalise=True).value == pytest.approx(expected / np.trace(s), rel=1e-6)


def test_mutual_information_of_a_pair_of_copies():
    x = np.repeat(np.arange(20.0), 5)[:, None]
    assert code_mutual_information(np.hstack([x, -x])).value == pytest.approx(np.log(20))


def test_mcc_finds_order_sign_and_scale():
    v = RNG.normal(size=(500, 3))
    z = np.column_stack([-2 * v[:, 2], RNG.normal(size=500), 5 + v[:, 0], 0.1 * v[:, 1]])
    result = mcc(z, v)
    assert result.value == pytest.approx(1.0)
    assert result.extra["latent_of"] == {"factor0": 2, "factor1": 3, "factor2": 0}


def test_mcc_assigns_one_to_one():
    # both factors correlate best with latent 0; only one of them may have it
    r = np.array([[0.9, 0.2], [0.8, 0.1]])
    cov = np.block([[np.eye(2), r], [r.T, np.eye(2)]])
    cov[2, 3] = cov[3, 2] = 0.18
    w, q = np.linalg.eigh(cov)
    x = RNG.normal(size=(4000, 4))
    x = (x - x.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T @ (q * np.sqrt(np.maximum(w, 0))).T
    found = np.abs(np.corrcoef(x.T)[:2, 2:])
    best = max(found[0, 0] + found[1, 1], found[0, 1] + found[1, 0]) / 2
    assert mcc(x[:, 2:], x[:, :2]).value == pytest.approx(best)


def test_spearman_forgives_a_monotone_warp():
    v = RNG.normal(size=(500, 2))
    assert mcc(np.exp(3 * v), v, method="spearman").value == pytest.approx(1.0)
    assert mcc(np.exp(3 * v), v).value < 0.8


def test_missing_latents_count_zero():
    v = RNG.normal(size=(500, 2))
    assert mcc(v[:, :1], v).value == pytest.approx(0.5)


def test_a_cyclic_factor_is_matched_as_an_angle():
    space = FactorSpace((Factor("angle", 40, "cyclic"), Factor("x", 7)))
    v = np.stack([RNG.integers(0, 40, 3000), RNG.integers(0, 7, 3000)], axis=1)
    z = np.column_stack([np.cos(2 * np.pi * v[:, 0] / 40 + 0.7), v[:, 1]])
    assert mcc(z, v, space).value == pytest.approx(1.0, abs=1e-3)


def test_categorical_factors_are_left_out_and_said_so():
    space = FactorSpace((Factor("shape", 3, "categorical"), Factor("x", 7)))
    v = np.stack([RNG.integers(0, 3, 300), RNG.integers(0, 7, 300)], axis=1)
    result = mcc(v.astype(float), v, space)
    assert np.isnan(result.per_factor[0])
    assert result.value == pytest.approx(1.0)
    assert "shape" in result.notes[0]
    with pytest.raises(BadInput, match="categorical"):
        mcc(v[:, :1].astype(float), v[:, :1], FactorSpace((Factor("shape", 3, "categorical"),)))


def naive_udr(models, strength):
    scaled = [(z - z.mean(0)) / z.std(0) for z in models]

    def pair(a, b):
        if strength == "lasso":
            r = np.abs(Lasso(alpha=0.1).fit(a, b).coef_).T
        else:
            r = np.array([[abs(spearmanr(x, y).statistic) for y in b.T] for x in a.T])
        with np.errstate(invalid="ignore"):
            ways = [np.nan_to_num(r.max(axis) ** 2 / r.sum(axis)).mean() for axis in (0, 1)]
        return sum(ways) / 2

    return [np.median([pair(scaled[j], scaled[i]) for j in range(len(models)) if j != i]) for i in range(len(models))]


@pytest.mark.parametrize("strength", ["lasso", "spearman"])
def test_udr_is_the_naive_one(strength):
    z = RNG.normal(size=(300, 3))
    q = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    models = [z, z[:, ::-1] + 0.3 * RNG.normal(size=z.shape), z @ q]
    ours = [s.value for s in udr(models, strength=strength)]
    assert ours == pytest.approx(naive_udr(models, strength), abs=1e-4)


def test_udr_ranks_agreeing_models_above_a_rotated_one():
    z = RNG.normal(size=(400, 4))
    q = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
    values = [s.value for s in udr([z, -z[:, ::-1], z @ q])]
    assert min(values[:2]) > values[2]


def test_udr_leaves_out_uninformative_latents():
    z = RNG.normal(size=(400, 3))
    noise = [np.hstack([z, RNG.normal(size=(400, 2))]) for _ in range(3)]
    kl = [np.array([1, 1, 1, 0, 0.0])] * 3
    assert udr(noise, kl, strength="spearman")[0].value > udr(noise, strength="spearman")[0].value + 0.1
    with pytest.raises(BadInput, match="no informative latent"):
        udr(noise, [np.zeros(5)] * 3)


def test_two_codes_of_different_size():
    z = RNG.normal(size=(300, 4))
    result = two_codes(z, z[:, :2])
    assert result.matrix.shape == (4, 2)
    with pytest.raises(BadInput, match="rows"):
        two_codes(z, z[:100])
    with pytest.raises(BadInput, match="at least 2"):
        udr([z])


@pytest.mark.parametrize(("marginal", "draw"), [(None, RNG.normal), (uniform, RNG.uniform), (laplace, RNG.laplace)])
def test_the_entangling_map_keeps_the_distribution(marginal, draw):
    u = draw(size=(4000, 3))
    f = entangle(u, marginal)
    for j in range(3):
        assert kstest(f[:, j], (marginal.cdf if marginal else "norm")).pvalue > 1e-3
    assert np.abs(np.corrcoef(f.T) - np.eye(3)).max() < 0.08
    assert entangle(f, marginal) == pytest.approx(u, abs=1e-6)


@pytest.mark.parametrize("marginal", [None, uniform, laplace])
def test_every_derivative_of_the_entangling_map_is_nonzero(marginal):
    u = RNG.uniform(0.05, 0.95, size=(50, 4))
    slopes = entangling_jacobian(u, marginal)
    assert np.abs(slopes).min() > 1e-4
    step = 1e-5
    for j in range(4):
        moved = (entangle(u + step * np.eye(4)[j], marginal) - entangle(u - step * np.eye(4)[j], marginal)) / (2 * step)
        assert slopes[:, :, j] == pytest.approx(moved, rel=1e-2, abs=1e-4)


def test_metrics_collapse_on_the_entangled_code():
    v = RNG.uniform(size=(3000, 3))
    before = score(v, v, metrics="mig,sap-r2,mcc,gaussian-tc")
    after = score(entangle(v, uniform), v, metrics="mig,sap-r2,mcc,gaussian-tc")
    assert before["mig"].value > 0.95
    assert after["mig"].value < 0.5
    assert after["sap-r2"].value < before["sap-r2"].value / 2
    assert after["mcc"].value < 0.9
    assert after["gaussian-tc"].value < 0.01


@pytest.mark.parametrize(("d", "a"), [(1, 0.2), (3, 0.0), (3, 0.5)])
def test_the_reflection_states_its_limits(d, a):
    with pytest.raises(BadInput, match="must"):
        reflection(d, a)
