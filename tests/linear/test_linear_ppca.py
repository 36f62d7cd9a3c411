"""PPCA against numerical optimisation, scikit-learn, SciPy, and its own EM."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA
from sklearn.decomposition._pca import _assess_dimension

from unseam.errors import BadInput
from unseam.linear import ppca

RNG = np.random.default_rng(0)
S = (lambda X: X.T @ X / 40)(RNG.normal(size=(40, 5)) * [3, 2, 1.5, 1, 0.5])
TURN = np.linalg.qr(RNG.normal(size=(2, 2)))[0]


def test_closed_form_is_the_numerical_maximum():
    n, d = 5, 2
    model = ppca.closed_form(S, d)

    def negative(p):
        return -ppca.PPCA(p[:-1].reshape(n, d), np.exp(p[-1]), np.zeros(n)).expected_log_likelihood(S)

    best = minimize(negative, np.append(RNG.normal(size=n * d), 0), method="BFGS", options={"gtol": 1e-9})
    assert model.expected_log_likelihood(S) == pytest.approx(-best.fun, abs=1e-9)
    W = best.x[:-1].reshape(n, d)
    assert np.allclose(W @ W.T, model.W @ model.W.T, atol=1e-6)
    assert np.exp(best.x[-1]) == pytest.approx(model.s2, abs=1e-6)


def test_rotation_is_explicit_and_the_likelihood_does_not_see_it():
    plain, turned = ppca.closed_form(S, 2), ppca.closed_form(S, 2, R=TURN)
    assert turned.expected_log_likelihood(S) == pytest.approx(plain.expected_log_likelihood(S), abs=1e-12)
    assert np.allclose(ppca.rotation_of(turned.W, S, turned.s2), TURN, atol=1e-12)


def test_em_climbs_to_the_closed_form():
    model, trace = ppca.em(S, RNG.normal(size=(5, 2)), steps=5000)
    assert (np.diff(trace) >= -1e-12).all()
    assert trace[-1] == pytest.approx(ppca.closed_form(S, 2).expected_log_likelihood(S), abs=1e-9)
    assert np.allclose(model.covariance, ppca.closed_form(S, 2).covariance, atol=1e-5)


def test_likelihood_and_posterior_against_scipy_and_bayes():
    model = ppca.fit(RNG.multivariate_normal(np.arange(5), S, size=200), d=2)
    x = RNG.normal(size=(7, 5))
    assert np.allclose(model.log_likelihood(x), multivariate_normal(model.mean, model.covariance).logpdf(x))
    mean, cov = model.posterior(x)
    gain = model.W.T @ np.linalg.inv(model.covariance)
    assert np.allclose(mean, (x - model.mean) @ gain.T)
    assert np.allclose(cov, np.eye(2) - gain @ model.W)


def test_fit_and_log_likelihood_agree_with_scikit_learn():
    x = RNG.multivariate_normal(np.zeros(5), S, size=300)
    model, theirs = ppca.fit(x, d=2), PCA(2).fit(x)
    ratio = 300 / 299  # scikit-learn divides by N - 1
    assert model.s2 * ratio == pytest.approx(theirs.noise_variance_)
    assert np.allclose(model.covariance * ratio, theirs.get_covariance())


def test_samples_have_the_model_s_covariance():
    model = ppca.closed_form(S, 2)
    x, z = model.sample(200_000, np.random.default_rng(1))
    assert np.allclose(np.cov(x.T), model.covariance, atol=0.1)
    assert np.allclose(x.T @ z / len(z), model.W, atol=0.05)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_evidence_agrees_with_scikit_learn(d):
    l = np.linalg.eigvalsh(S)[::-1]
    assert ppca.log_evidence(l, d, 100) == pytest.approx(_assess_dimension(l, d, 100), abs=1e-9)


@pytest.mark.parametrize("d", [1, 3, 6])
def test_evidence_finds_the_dimension(d):
    W = np.linalg.qr(np.random.default_rng(d).normal(size=(10, d)))[0] * 3
    x, _ = ppca.PPCA(W, 0.5, np.zeros(10)).sample(1000, np.random.default_rng(2))
    assert ppca.fit(x).W.shape == (10, d)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ppca.closed_form(np.eye(3), 3), "d=3 must be at least 1 and smaller than n=3"),
        (lambda: ppca.closed_form(np.eye(3), 0), "d=0"),
        (lambda: ppca.closed_form(np.ones((3, 3)), 1), "singular"),
        (lambda: ppca.closed_form([[1.0, 0.5], [0.2, 1.0]], 1), "not symmetric"),
        (lambda: ppca.closed_form([[1.0, 2.0], [2.0, 1.0]], 1), "negative eigenvalue"),
        (lambda: ppca.closed_form(np.full((2, 2), np.nan), 1), "not finite"),
        (lambda: ppca.closed_form(np.ones((2, 3)), 1), "square"),
        (lambda: ppca.closed_form(S, 2, s2=-1.0), "s2=-1 must be positive"),
        (lambda: ppca.closed_form(S, 2, R=np.ones((2, 2))), "orthogonal"),
        (lambda: ppca.em(S, np.ones((4, 2))), "start has shape"),
        (lambda: ppca.rotation_of(np.ones((5, 2)), S, s2=100.0), "collapsed"),
        (lambda: ppca.fit(np.ones(3)), "x has shape"),
        (lambda: ppca.best_dimension([1.0, -1.0], 10), "eigenvalues=-1"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(BadInput, match=says):
        call()
