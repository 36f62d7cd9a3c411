"""The estimators keep scikit-learn's contract and agree with closed forms."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from unseam.estimators import PPCA, FactorFinder, LinearVAE
from unseam.statistics import matched, rank_correlations

SKIPPED = {"check_array_api_input"}  # scikit-learn's own skip: it asks for an environment variable


@pytest.mark.parametrize("estimator", [PPCA(), LinearVAE(), FactorFinder()], ids=lambda e: type(e).__name__)
def test_check_estimator(estimator: Any) -> None:
    rows = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {row["check_name"]: row["exception"] for row in rows if row["status"] == "failed"}
    assert failed == {}
    assert {row["check_name"] for row in rows if row["status"] == "skipped"} <= SKIPPED
    assert sum(row["status"] == "passed" for row in rows) >= 40


def test_ppca_has_scikit_learns_likelihood() -> None:
    X = np.random.default_rng(0).normal(size=(300, 6)) @ np.random.default_rng(1).normal(size=(6, 6))
    ours, theirs = PPCA(3).fit(X), PCA(3).fit(X * 1.0)
    theirs.explained_variance_ *= 299 / 300  # theirs divides by N - 1
    theirs.noise_variance_ *= 299 / 300
    assert np.allclose(ours.score_samples(X), theirs.score_samples(X))
    assert np.allclose(np.abs(rank_correlations(ours.transform(X), theirs.transform(X)).diagonal()), 1)


def test_linear_vae_is_ppca_and_drops_what_has_collapsed() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 5)) * [4.0, 3.0, 2.0, 1.0, 1.0]
    assert np.allclose(LinearVAE(3).fit(X).transform(X), PPCA(3).fit(X).transform(X))
    few = LinearVAE(s2=1.0, beta=6.0).fit(X)
    assert few.transform(X).shape == (2000, 2)  # variances 16 and 9 are above 6, 4 is not
    assert np.allclose(few.posterior_variance_, 6 / X.var(0)[:2], rtol=0.05)


def test_finder_in_a_pipeline_pickled_cloned_and_searched() -> None:
    g = np.random.default_rng(0)
    s = g.laplace(size=(400, 2))
    X = s @ g.normal(size=(2, 6)) + 0.05 * g.normal(size=(400, 6))
    pipe = make_pipeline(StandardScaler(), FactorFinder()).fit(X)
    codes = pipe.transform(X)
    assert matched(np.abs(rank_correlations(s, codes))).values.min() > 0.95
    assert np.array_equal(pickle.loads(pickle.dumps(pipe)).transform(X), codes)
    assert np.allclose(clone(pipe).fit(X).transform(X), codes)
    named = FactorFinder().set_output(transform="pandas").fit(X).transform(X)
    assert list(named.columns) == ["factorfinder0", "factorfinder1"]
    search = GridSearchCV(PPCA(), {"n_components": [1, 2, 3]}).fit(X)
    assert search.best_params_["n_components"] == 2
