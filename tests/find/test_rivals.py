"""Numbers beside rivals, against scikit-learn's own on the same standardised rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import NMF, PCA, FactorAnalysis

import unseam
from unseam.axes import Array
from unseam.finding.rivals import promax_rival, sklearn_factor_analysis
from unseam.rng import numpy_generator

N = 500


def items(seed: int = 0) -> Array:
    """Two factors behind four columns each, whose units have nothing in common."""
    g = np.random.default_rng(seed)
    s = g.normal(size=(N, 2)) + 0.3 * g.normal(size=(N, 1))
    x = s @ np.kron(np.eye(2), np.ones(4)) * g.uniform(0.6, 1.2, 8) + 0.7 * g.normal(size=(N, 8))
    return x * 10.0 ** np.arange(-3, 5) + 7


def split_rows() -> tuple[Array, Array]:
    rows = numpy_generator(0, "rows").permutation(N)
    return rows[N // 5 :], rows[: N // 5]


def kept(z: Array, again: Array) -> float:
    train, test = split_rows()
    return float(1 - ((z[test] - again) ** 2).sum() / ((z[test] - z[train].mean(0)) ** 2).sum())


def test_likelihood_and_variance_are_scikit_learns_on_standardised_columns() -> None:
    x = items()
    found = unseam.find(x, network=False, latents=2)
    z, (train, test) = (x - x.mean(0)) / x.std(0), split_rows()
    pca = PCA(2).fit(z[train])
    assert found.rivals["PCA"]["log_likelihood"] == pytest.approx(pca.score(z[test]), abs=1e-6)
    again = pca.inverse_transform(pca.transform(z[test]))
    assert found.rivals["PCA"]["variance_kept"] == pytest.approx(kept(z, again), abs=1e-9)
    analysis = FactorAnalysis(2, rotation="varimax", svd_method="lapack", tol=1e-4).fit(z[train])
    for name in ("FA varimax", "FA promax"):
        assert found.rivals[name]["log_likelihood"] == pytest.approx(analysis.score(z[test]), abs=0.01)
    again = analysis.mean_ + analysis.transform(z[test]) @ analysis.components_
    assert found.rivals["FA varimax"]["variance_kept"] == pytest.approx(kept(z, again), abs=0.005)


def test_units_of_columns_do_not_change_a_number() -> None:
    x = items()
    one, two = (unseam.find(data, network=False, latents=2).rivals for data in (x, x * 1000.0 ** np.arange(8)))
    for name in one:
        for what in ("variance_kept", "stability", "log_likelihood"):
            assert one[name][what] == pytest.approx(two[name][what], abs=1e-4), (name, what)


def test_ours_is_in_the_units_of_the_others() -> None:
    """With Gaussian factors ours can be no likelier than the true model by much, nor less likely than PCA by much."""
    found = unseam.find(items(), network=False, latents=2).rivals
    assert abs(found["unseam"]["log_likelihood"] - found["FA varimax"]["log_likelihood"]) < 1
    assert abs(found["unseam"]["variance_kept"] - found["FA varimax"]["variance_kept"]) < 0.1


def test_variance_kept_by_nmf_is_of_the_same_columns_as_that_of_pca() -> None:
    """Counts are compared as logarithms: NMF's rows are taken there too."""
    g = np.random.default_rng(0)
    x = g.poisson(40 * g.gamma(1.0, size=(N, 2)) @ g.dirichlet(np.full(6, 0.5), size=2) + 1)
    frame = pd.DataFrame(x, columns=list("abcdef"))
    found = unseam.find(frame, network=False, latents=2, kinds=dict.fromkeys("abcdef", "counts"))
    logs, (train, test) = np.log1p(x), split_rows()
    amounts = x / x.std(0)
    model = NMF(2, init="nndsvda", max_iter=300, random_state=0).fit(amounts[train])
    again = np.log1p(model.inverse_transform(model.transform(amounts[test])) * x.std(0))
    mean, spread = logs.mean(0), logs.std(0)
    expected = kept((logs - mean) / spread, (again - mean) / spread)
    assert found.rivals["NMF"]["variance_kept"] == pytest.approx(expected, abs=1e-3)


def test_factor_analysis_needs_the_covariance_only() -> None:
    x = items(1)
    z = (x - x.mean(0)) / x.std(0)
    ours = sklearn_factor_analysis(z, 2, 0)
    theirs = FactorAnalysis(2, rotation="varimax", svd_method="lapack", tol=1e-5).fit(z)
    assert np.allclose(ours.noise_variance_, theirs.noise_variance_, atol=0.01)
    assert np.allclose(ours.components_ @ ours.components_.T, theirs.components_ @ theirs.components_.T, atol=0.05)


def test_promax_axes_follow_correlated_factors() -> None:
    g = np.random.default_rng(0)
    s = g.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=4000)
    x = s @ np.kron(np.eye(2), np.ones(5)) * g.uniform(0.5, 1.5, 10) + 0.5 * g.normal(size=(4000, 10))
    z = (x - x.mean(0)) / x.std(0)
    codes = promax_rival(z, 2, 0).encode(z)
    assert np.abs(np.corrcoef(codes.T, s.T)[:2, 2:]).max(1).min() > 0.95
    assert abs(np.corrcoef(codes.T)[0, 1]) == pytest.approx(0.55, abs=0.15)  # 0.5 of the factors; varimax: below 0.2
    again, true = promax_rival(z, 2, 0).decode(codes), s @ np.linalg.lstsq(s, z, rcond=None)[0]
    assert (again - true).std() < 0.3


def test_pixels_share_a_unit() -> None:
    g = np.random.default_rng(0)
    x = (g.normal(size=(N, 2)) @ g.normal(size=(2, 12)) * np.linspace(0.01, 3, 12)).reshape(N, 3, 4)
    x = x + 0.1 * g.normal(size=x.shape)
    found = unseam.find(x, network=False, latents=2)
    rows, (train, test) = x.reshape(N, 12), split_rows()
    pca = PCA(2).fit(rows[train])
    again = pca.inverse_transform(pca.transform(rows[test]))
    assert found.rivals["PCA"]["variance_kept"] == pytest.approx(kept(rows, again), abs=1e-9)
