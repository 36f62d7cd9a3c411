"""Logistic regression, AUC, DCI, downstream tasks, DS, InfoMEC: against scikit-learn and by hand."""

from importlib import import_module

import numpy as np
import pytest
from _known import known
from scipy.stats import spearmanr
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, mutual_info_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import OneHotEncoder, StandardScaler, label_binarize
from threadpoolctl import threadpool_info, threadpool_limits

from unseam.errors import BadInput
from unseam.metrics import dci, downstream, ds, explicitness, infomec, score
from unseam.metrics.dci import concentration, weighted
from unseam.metrics.explicitness import mean_auc
from unseam.metrics.infomec import infoe
from unseam.metrics.inputs import prepare_inputs
from unseam.metrics.shared import logistic
from unseam.metrics.shared.logistic import fit_softmax
from unseam.metrics.shared.predictors import BACKENDS

RNG = np.random.default_rng(0)


def test_a_small_fit_asks_no_second_thread_for_help(monkeypatch):
    """On a busy machine each of its hundreds of calls of BLAS waited for the other core: 5 s in place of 0.05 s."""
    seen, real = [], logistic.log_partition

    def watched(*arguments):
        seen.append({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
        return real(*arguments)

    monkeypatch.setattr(logistic, "log_partition", watched)
    with threadpool_limits(2, user_api="blas"):
        before = threadpool_info()
        fit_softmax(RNG.normal(size=(50, 2)), RNG.integers(0, 2, 50), 2, iterations=3)
        assert threadpool_info() == before
    assert seen
    assert all(threads <= {1} for threads in seen)


@pytest.mark.parametrize("classes", [2, 3, 8])
@pytest.mark.parametrize(("penalty", "balanced"), [(1.0, False), (1.0, True), (100.0, False)])
def test_softmax_is_scikit_learns(classes, penalty, balanced):
    y = RNG.integers(0, classes, 600)
    x = RNG.normal(size=(600, 3)) + np.stack([y, y % 2, 0 * y], axis=1)
    theirs = LogisticRegression(
        C=1 / penalty, class_weight="balanced" if balanced else None, tol=1e-8, max_iter=2000
    ).fit(x, y)
    ours = fit_softmax(x, y, classes, penalty, balanced, tolerance=1e-8, iterations=2000, precision=np.float64)
    assert np.abs(ours.probabilities(x).T - theirs.predict_proba(x)).max() < 1e-4


def test_auc_is_scikit_learns_with_ties():
    y = RNG.integers(0, 4, 300)
    scores = np.round(RNG.random((4, 300)) + 0.5 * (np.arange(4)[:, None] == y), 1)
    theirs = roc_auc_score(label_binarize(y, classes=range(4)), scores.T)
    assert mean_auc(scores, y) == pytest.approx(theirs)


def test_auc_leaves_out_classes_that_do_not_occur():
    assert mean_auc(np.array([[0.9, 0.1], [0.1, 0.9], [0.0, 0.0]]), np.array([0, 1])) == 1.0


def test_explicitness_is_the_straightforward_one():
    z, v = known("noisy-0.3", 900)
    train, test = slice(0, 600), slice(600, 900)
    score = explicitness(z[train], v[train], test_codes=z[test], test_factors=v[test])
    scaler = StandardScaler().fit(z[train])
    for f, ours in enumerate(score.per_factor):
        model = LogisticRegression().fit(scaler.transform(z[train]), v[train, f])
        y = label_binarize(v[test, f], classes=model.classes_)
        assert ours == pytest.approx(roc_auc_score(y, model.predict_proba(scaler.transform(z[test]))), abs=1e-3)


def test_explicitness_of_a_rotated_code_is_that_of_the_perfect_one():
    z, v = known("perfect", 900)
    q = np.linalg.qr(RNG.normal(size=(8, 8)))[0]
    assert explicitness(z @ q, v).value == pytest.approx(explicitness(z, v).value, abs=0.01)


def test_dci_entropies_by_hand():
    r = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    h = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    assert concentration(r) == pytest.approx([1.0, 0.0, 1 - h], abs=1e-8)
    assert weighted(np.array([1.0, 0.0]), np.array([3.0, 1.0])) == 0.75
    assert weighted(np.array([1.0, 0.0]), np.zeros(2)) == 0.5


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("continuous", [False, True])
def test_every_backend_finds_a_perfect_code(backend, continuous):
    v = RNG.integers(0, 3, (300, 2))
    kinds = ["continuous", "continuous"] if continuous else None
    table = prepare_inputs(v + 0.01 * RNG.normal(size=v.shape), v, kinds=kinds)
    from unseam.metrics.dci import completeness, disentanglement, informativeness

    for part in (disentanglement, completeness, informativeness):
        assert part.of(table, backend).value > (0.85 if backend == "quick" else 0.9)  # ten rounds say it less well


def test_a_constant_latent_has_no_importance():
    v = RNG.integers(0, 3, (300, 2))
    z = np.hstack([v, np.ones((300, 1))]).astype(float)
    assert dci(z, v)["dci-disentanglement"].matrix[:, 2].max() == 0.0


def test_an_unknown_backend_is_named():
    with pytest.raises(BadInput, match="did you mean 'lightgbm'"):
        dci(np.ones((10, 2)) * np.arange(10)[:, None], np.arange(10) % 2, backend="lightgb")


# Disentanglement, completeness, informativeness by scikit-learn 1.9's GradientBoostingClassifier (the reference's model
# and settings) on known(case, 600, (2, 3, 4), 5), 400 rows for training and 200 for testing.
REFERENCE = {
    "perfect": (1.0000, 1.0000, 1.0000),
    "noisy-0.1": (1.0000, 1.0000, 1.0000),
    "noisy-0.3": (0.9390, 0.9156, 0.9450),
    "noisy-1": (0.3058, 0.2775, 0.6117),
    "rotated": (0.2328, 0.1685, 0.9617),
    "pairs-10": (1.0000, 0.9821, 0.9983),
    "pairs-20": (0.9975, 0.8820, 0.9900),
    "pairs-45": (0.5769, 0.5643, 0.9967),
    "warped": (1.0000, 1.0000, 1.0000),
    "duplicated": (1.0000, 1.0000, 1.0000),
    "partial-1": (0.5586, 0.4142, 0.5267),
    "partial-3": (1.0000, 1.0000, 1.0000),
    "dead": (1.0000, 1.0000, 1.0000),
    "noise": (0.0068, 0.0098, 0.3317),
}


def three(case, backend):
    z, v = known(case, 600, (2, 3, 4), 5)
    scores = dci(z[:400], v[:400], test_codes=z[400:], test_factors=v[400:], backend=backend)
    return [s.value for s in scores.values()]


def test_lightgbm_ranks_like_the_reference():
    ours = np.round([three(case, "lightgbm") for case in REFERENCE], 3)
    theirs = np.round(list(REFERENCE.values()), 3)
    for column in range(3):
        assert spearmanr(ours[:, column], theirs[:, column]).statistic >= 0.95
    plain = [list(REFERENCE).index(case) for case in ("perfect", "noise")]
    assert np.abs(ours - theirs)[plain].max() <= 0.05


@pytest.mark.parametrize("case", ["pairs-20", "noisy-1"])
def test_the_scikit_learn_backend_is_the_reference(case):
    assert three(case, "sklearn") == pytest.approx(REFERENCE[case], abs=0.02)


@pytest.mark.parametrize("model", ["logistic", "trees"])
def test_downstream_accuracy_rises_with_labels(model):
    z, v = known("noisy-0.1", 1500, (2, 3, 4), 5)
    values = [downstream(z, v, model=model, labels=n).value for n in (10, 100, 900)]
    assert values[0] < values[1] < values[2] + 0.02
    assert values[2] > 0.9


def test_downstream_of_a_continuous_factor_is_r2():
    v = RNG.normal(size=(600, 1))
    for model in ("logistic", "trees"):
        assert downstream(v, v, model=model, labels=300).value > 0.95


def test_downstream_needs_the_labels_it_is_named_for():
    z, v = known("perfect", 200)
    with pytest.raises(BadInput, match="needs 1000 training rows, got 133"):
        downstream(z, v, labels=1000)


def test_ds_is_the_straightforward_one():
    v = np.stack([RNG.normal(size=1000), RNG.integers(0, 3, 1000)], axis=1)
    z = v + 0.3 * RNG.normal(size=v.shape)
    train, test = slice(0, 800), slice(800, 1000)
    score = ds(z[train], v[train], test_codes=z[test], test_factors=v[test])
    for j in range(2):
        guess = KNeighborsRegressor(5).fit(z[train, j : j + 1], v[train, 0]).predict(z[test, j : j + 1])
        a = v[test, 0].std() - np.sqrt(np.mean((guess - v[test, 0]) ** 2))
        assert score.matrix[0, j] == pytest.approx(max(a, 0), abs=1e-9)
        label = KNeighborsClassifier(5).fit(z[train, j : j + 1], v[train, 1]).predict(z[test, j : j + 1])
        assert score.matrix[1, j] == pytest.approx(np.mean(label == v[test, 1]), abs=1e-9)
    constant = np.bincount(v[test, 1].astype(int)).max() / 200
    top = np.sort(score.matrix, axis=1)
    assert score.per_factor[1] == pytest.approx((top[1, 1] - top[1, 0]) / constant)


def test_ds_of_a_perfect_code_is_one_and_of_classes_more_as_printed():
    v = RNG.uniform(size=(2000, 2))
    assert ds(v, v).value == pytest.approx(1.0, abs=0.02)
    c = RNG.integers(0, 5, (2000, 2))
    score = ds(c + 0.01 * RNG.normal(size=c.shape), c)
    assert score.value > 3
    assert score.extra["bounded"] == pytest.approx(1.0, abs=0.1)


def test_infomec_is_the_straightforward_one():
    z, v = known("noisy-0.3", 800, (2, 3, 4), 5)
    scores = infomec(z, v)
    x = StandardScaler().fit_transform(z.astype(float))
    h = np.array([-(p * np.log(p)).sum() for p in (np.bincount(c) / 800 for c in v.T)])
    nmi = np.array([mutual_info_classif(x, c, n_neighbors=10, random_state=0) for c in v.T]) / h[:, None]
    assert scores["infom"].matrix == pytest.approx(nmi, abs=1e-4)
    share = np.divide(nmi.max(0), nmi.sum(0), out=np.full(5, 1 / 3), where=nmi.sum(0) > 0)
    assert scores["infom"].value == pytest.approx((share.mean() - 1 / 3) / (1 - 1 / 3), abs=1e-3)
    assert scores["infoc"].value == pytest.approx((np.mean(nmi.max(1) / nmi.sum(1)) - 1 / 5) / (1 - 1 / 5), abs=1e-3)
    for f, ours in enumerate(scores["infoe"].per_factor):
        model = LogisticRegression(C=np.inf, class_weight="balanced", max_iter=100).fit(x, v[:, f])
        blind = np.log(len(model.classes_))
        assert ours == pytest.approx((blind - log_loss(v[:, f], model.predict_proba(x))) / blind, abs=5e-3)


def test_infoe_of_a_continuous_factor_is_r2():
    v = RNG.normal(size=(500, 1))
    z = np.hstack([v + RNG.normal(size=(500, 1)), RNG.normal(size=(500, 1))])
    design = np.column_stack([z, np.ones(500)])
    residual = v[:, 0] - design @ np.linalg.lstsq(design, v[:, 0], rcond=None)[0]
    assert infoe(z, v).value == pytest.approx(1 - residual.var() / v.var())


def test_infomec_of_quantised_codes_is_the_authors():
    """Ten levels that name five values in an odd order: a one-hot linear model reads them, a line cannot."""
    levels = np.random.default_rng(0).integers(0, 10, (2000, 2))
    z, v = np.linspace(-0.5, 0.5, 10)[levels], levels % 5
    one_hot = OneHotEncoder().fit_transform(z)
    model = [LogisticRegression(C=np.inf, class_weight="balanced", max_iter=100).fit(one_hot, c) for c in v.T]
    theirs = [1 - log_loss(c, m.predict_proba(one_hot)) / np.log(5) for m, c in zip(model, v.T, strict=True)]
    found = infomec(z, v)
    assert found["infoe"].per_factor == pytest.approx(theirs, abs=2e-3)
    assert found["infoe"].value > 0.99
    h = [mutual_info_score(c, c) for c in v.T]
    nmi = [[mutual_info_score(c, level) / e for level in levels.T] for c, e in zip(v.T, h, strict=True)]
    assert found["infom"].matrix == pytest.approx(np.array(nmi), abs=1e-9)
    assert found["infom"].settings["quantised"] == [0, 1]


def test_a_small_quantised_latent_is_active():
    levels = np.random.default_rng(0).integers(0, 4, (800, 2))
    assert infomec(levels * [1.0, 1e-3], levels)["infoc"].settings["active"] == [0, 1]
    blurred = levels * [1.0, 1e-3] + 1e-5 * RNG.normal(size=(800, 2))
    assert infomec(blurred, levels)["infoc"].settings["active"] == [0]


def test_dci_of_many_rows_is_fitted_on_some_of_them_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    g = np.random.default_rng(0)
    v = g.integers(0, 3, (900, 2))
    z = v + 0.01 * g.normal(size=v.shape)
    whole = score(z, v, metrics="dci-disentanglement,dci-informativeness", workers=1)
    assert not whole["dci-disentanglement"].notes
    module = import_module("unseam.metrics.dci")  # the name in the package is the function
    monkeypatch.setattr(module, "MOST", 200)
    monkeypatch.setattr(module, "_BLOCK", 70)
    some = score(z, v, metrics="dci-disentanglement,dci-informativeness", workers=1)
    assert some["dci-disentanglement"].notes == ("DCI: models were fitted on 200 of the 600 training rows",)
    assert some["dci-disentanglement"].settings["fitted"] == 200
    assert some["dci-disentanglement"].value == pytest.approx(whole["dci-disentanglement"].value, abs=0.01)
    assert some["dci-informativeness"].value == 1.0  # all 300 held-out rows, in blocks
