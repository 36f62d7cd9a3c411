"""Correlations of columns of levels, against the normals that were cut and against SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal, norm

from unseam.axes import Array
from unseam.finding.columns import prepare
from unseam.finding.correlation import bivariate_cdf, latent_correlations, polychoric
from unseam.finding.read import read


def cut(N: int, cuts: list[float], seed: int = 0) -> tuple[Array, Array, Array]:
    """Normals of known correlation, and the same cut into levels."""
    g = np.random.default_rng(seed)
    W = np.array([[0.8, 0.0], [0.7, 0.0], [0.6, 0.3], [0.0, 0.8], [0.0, -0.7]])
    C = W @ W.T
    np.fill_diagonal(C, 1.0)
    y = g.multivariate_normal(np.zeros(5), C, size=N)
    return C, y, np.digitize(y, cuts)


@pytest.mark.parametrize("r", [-0.95, -0.4, 0.0, 0.3, 0.8, 0.97])
def test_bivariate_cdf_is_scipys(r: float) -> None:
    a = np.array([-1.3, 0.0, 0.4, 2.1])[:, None]
    b = np.array([-0.6, 0.2, 1.5])[None]
    ours = bivariate_cdf(a, b, np.array(r))
    theirs = multivariate_normal(np.zeros(2), [[1, r], [r, 1]])
    for i in range(4):
        for j in range(3):
            assert ours[i, j] == pytest.approx(theirs.cdf(np.array([a[i, 0], b[0, j]])), abs=1e-5)


@pytest.mark.parametrize("cuts", [[0.5], [-0.5, 1.2], [-1.5, -0.5, 0.3, 1.0, 1.8]])
def test_polychoric_correlations_are_those_of_the_normals(cuts: list[float]) -> None:
    C, _, x = cut(20_000, cuts)
    ours = polychoric(x.astype(float))
    assert np.abs(ours - C).max() < 0.045  # the standard error is below 0.012
    pearson = np.corrcoef(x.T)
    assert np.abs(pearson - C).max() > 2 * np.abs(ours - C).max()


def test_polychoric_maximises_the_likelihood_of_the_table_of_two_items() -> None:
    _, _, x = cut(400, [-0.5, 0.8], seed=3)
    table = np.array([[((x[:, 0] == l) & (x[:, 1] == m)).sum() for m in range(3)] for l in range(3)])
    a = np.array([-8, *norm.ppf(np.cumsum(table.sum(1))[:-1] / 400), 8])
    b = np.array([-8, *norm.ppf(np.cumsum(table.sum(0))[:-1] / 400), 8])

    def loss(r: float) -> float:
        both = multivariate_normal(np.zeros(2), [[1, r], [r, 1]])
        F = np.array([[both.cdf(np.array([u, v])) for v in b] for u in a])
        return -float((table * np.log(np.diff(np.diff(F, axis=0), axis=1))).sum())

    best = minimize_scalar(loss, bounds=(-0.95, 0.95), method="bounded", options={"xatol": 1e-5}).x
    assert polychoric(x.astype(float))[0, 1] == pytest.approx(best, abs=1e-3)


def test_ordinal_columns_beside_numbers_and_missing_cells() -> None:
    C, y, x = cut(12_000, [-1.0, 0.0, 0.7])
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": y[:, 2], "d": 10.0 * (x[:, 3] > 1), "e": y[:, 4]})
    frame.loc[::17, "a"] = np.nan
    made = prepare(read(frame).table)
    assert made.kinds == ("ordinal", "ordinal", "continuous", "binary", "continuous")
    ours = latent_correlations(made)
    assert np.abs(ours - C).max() < 0.06
    assert np.allclose(ours, ours.T)
    assert ours[2, 4] == pytest.approx(np.corrcoef(y[:, 2], y[:, 4])[0, 1])
    assert np.linalg.eigvalsh(latent_correlations(made, np.arange(30))).min() > 0


def test_items_that_no_row_has_both_of_are_uncorrelated() -> None:
    _, _, x = cut(2000, [-0.5, 0.8])
    two = x[:, :2].astype(float)
    two[:1000, 0] = two[1000:, 1] = np.nan
    assert polychoric(two)[0, 1] == 0
