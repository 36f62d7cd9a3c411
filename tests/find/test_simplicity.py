"""Simple structure, factor analysis and the number of factors, each against another way to the same number."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import expon, multivariate_normal, norm
from sklearn.decomposition import FactorAnalysis

import unseam
from unseam.axes import Array
from unseam.errors import BadInput
from unseam.finding.axes import fit_axes
from unseam.finding.factor_analysis import FactorModel, correlation_matrix, explains, fit_factors, power_of_second
from unseam.finding.factor_count import FactorCounts, clear_factors, count_factors, minimum_partial, parallel_analysis
from unseam.finding.grades import Answer
from unseam.finding.linear import _RotatedFactors, _undecided_of, depend
from unseam.finding.simplicity import SimpleStructure, congruences, criterion, promax, simple_structure
from unseam.finding.stability import (
    Agreement,
    agreement,
    chance_quantile,
    congruence_agreement,
    group_correlation,
    not_alone,
)
from unseam.stats import matched, rank_correlations


def questionnaire(k: int = 3, each: int = 5, N: int = 800, r: float = 0.0, seed: int = 0) -> tuple[Array, Array, Array]:
    """Gaussian factors that move some items each: items, factors, loadings."""
    g = np.random.default_rng(seed)
    L = np.kron(np.eye(k), np.full((each, 1), 0.7)) + 0.05 * g.standard_normal((k * each, k))
    z = g.multivariate_normal(np.zeros(k), r + (1 - r) * np.eye(k), N)
    return z @ L.T + 0.7 * g.standard_normal((N, k * each)), z, L


def dense(k: int = 3, n: int = 10, N: int = 800, seed: int = 0) -> Array:
    g = np.random.default_rng(seed)
    return g.standard_normal((N, k)) @ g.standard_normal((k, n)) + g.standard_normal((N, n))


def test_the_simplest_rotation_is_the_best_of_all_angles() -> None:
    g = np.random.default_rng(0)
    L = g.standard_normal((12, 2))
    unit = L / np.linalg.norm(L, axis=1, keepdims=True)
    angles = np.linspace(0, np.pi / 2, 2001)
    turns = np.array([[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in angles])
    best = criterion((unit @ turns)[:, None]).max()
    found = simple_structure(L, draws=0)
    assert found.criterion == pytest.approx(best, abs=1e-6)
    assert criterion((unit @ found.rotation)[None, None])[0] == pytest.approx(best, abs=1e-6)
    assert np.allclose(found.rotation.T @ found.rotation, np.eye(2))


def test_sparse_loadings_are_beyond_chance_and_dense_ones_are_not() -> None:
    g = np.random.default_rng(1)
    sparse = np.kron(np.eye(3), np.ones((5, 1))) + 0.15 * g.standard_normal((15, 3))
    assert simple_structure(sparse @ np.linalg.qr(g.standard_normal((3, 3)))[0]).p_value < 0.01
    chances = [simple_structure(g.standard_normal((15, 3))).p_value for _ in range(40)]
    assert np.mean(np.array(chances) <= 0.05) < 0.2
    assert 0.2 < np.median(chances) < 0.8


def test_a_stack_of_equal_jacobians_is_one_matrix_of_loadings() -> None:
    L = np.random.default_rng(2).standard_normal((9, 3))
    one, many = simple_structure(L), simple_structure(np.stack([L] * 4), draws=100)
    assert one.criterion == pytest.approx(many.criterion, abs=1e-6)
    assert np.quantile(many.null, 0.5) == pytest.approx(np.quantile(one.null, 0.5), abs=0.05)
    with pytest.raises(BadInput, match=r"loadings have shape \(3,\)"):
        simple_structure(np.ones(3))


def test_a_plane_of_dense_factors_beside_sparse_ones_has_no_axes() -> None:
    g = np.random.default_rng(3)
    L = np.zeros((24, 4))
    L[:6, 0], L[6:12, 1] = 1, 1
    angle = np.linspace(0, np.pi, 12, endpoint=False)  # evenly: no direction is special
    L[12:, 2], L[12:, 3] = np.cos(angle), np.sin(angle)
    found = simple_structure(L + 0.02 * g.standard_normal(L.shape))
    order = matched(np.abs(found.rotation)).columns
    assert found.simple
    assert found.undecided[order[2], order[3]]
    assert not found.undecided[order[0], order[1]]


def test_factor_analysis_is_that_of_scikit_learn() -> None:
    x, _, _ = questionnaire()
    z = (x - x.mean(0)) / x.std(0)
    ours = fit_factors(correlation_matrix(x), 3)
    theirs = FactorAnalysis(3, tol=1e-8, max_iter=5000, svd_method="lapack").fit(z)
    assert np.allclose(ours.unique, theirs.noise_variance_, atol=2e-3)
    model = FactorModel(z.mean(0), np.ones(15), ours.loadings, np.eye(3), ours.unique)
    assert model.log_likelihood(z).mean() == pytest.approx(theirs.score(z), abs=1e-4)
    turn = np.linalg.lstsq(model.encode(z), theirs.transform(z), rcond=None)[0]
    assert np.allclose(model.encode(z) @ turn, theirs.transform(z), atol=0.02)


def test_an_oblique_model_is_a_density_and_knows_its_determinacy() -> None:
    _, _, L = questionnaire()
    Phi = np.full((3, 3), 0.3) + 0.7 * np.eye(3)
    unique, scale, mean = np.full(15, 0.5), np.linspace(0.5, 2, 15), np.arange(15.0)
    model = FactorModel(mean, scale, L, Phi, unique)
    C = (L @ Phi @ L.T + np.diag(unique)) * np.outer(scale, scale)
    x = np.random.default_rng(0).multivariate_normal(mean, C, 50)
    assert np.allclose(model.log_likelihood(x), multivariate_normal(mean, C).logpdf(x))
    W = L * scale[:, None]
    known = np.diag(Phi @ W.T @ np.linalg.solve(C, W @ Phi))
    assert np.allclose(model.determinacy, known)
    assert np.allclose(model.nats(), -0.5 * np.log(1 - known))
    assert np.allclose(model.encode(x), (x - mean) @ np.linalg.solve(C, W @ Phi))


def test_promax_keeps_what_the_loadings_explain() -> None:
    x, _, L = questionnaire(r=0.4, N=3000)
    ours = fit_factors(correlation_matrix(x), 3).loadings
    turned = ours @ simple_structure(ours, draws=0).rotation
    P, Phi = promax(turned)
    assert np.allclose(P @ Phi @ P.T, ours @ ours.T)
    assert np.allclose(np.diag(Phi), 1)
    assert matched(congruences(L, P)).values.min() > 0.98
    assert abs(np.abs(Phi[np.triu_indices(3, 1)]).mean() - 0.4) < 0.15


def test_correlations_with_gaps_are_those_of_pandas() -> None:
    x, _, _ = questionnaire(N=300)
    x[np.random.default_rng(0).uniform(size=x.shape) < 0.2] = np.nan
    assert np.allclose(correlation_matrix(x, np.isnan(x)), pd.DataFrame(x).corr().to_numpy(), atol=1e-10)


@pytest.mark.parametrize("seed", range(2))
def test_missing_cells_add_no_factors(seed: int) -> None:
    x = dense(3, 8, 500, seed)
    x[np.random.default_rng(seed + 10).uniform(size=x.shape) < 0.3] = np.nan
    found = unseam.find(x, network=False)
    assert found.count <= 3
    assert found.numbers.evidence <= 4
    assert not any(f.grade == "found" for f in found.factors)


def test_rules_of_the_number_agree_on_a_questionnaire_and_differ_where_there_is_little_noise() -> None:
    x, _, _ = questionnaire(4, N=600)
    none = np.zeros(x.shape, bool)
    assert (parallel_analysis(x).number, minimum_partial(correlation_matrix(x))) == (4, 4)
    assert count_factors(x, none, 4).major == 4
    noise = np.random.default_rng(0).standard_normal((500, 8))
    assert count_factors(noise, np.zeros(noise.shape, bool), 0).major == 0
    g = np.random.default_rng(5)
    weak = g.standard_normal((500, 4)) * [3, 1, 0.5, 0.3] @ g.standard_normal((4, 9))
    weak += 0.02 * g.standard_normal(weak.shape)
    few = count_factors(weak, np.zeros(weak.shape, bool), 4)
    assert few.parallel < 4 == few.major
    said = FactorCounts(5, parallel=6, map=5, evidence=8).disagreement()
    assert said == "number of factors: 5 (5 by MAP, 6 by parallel analysis, 8 by evidence)"


def test_chance_of_random_axes_in_a_plane_is_known_in_closed_form() -> None:
    """The best of |cos| and |sin| of an angle that is uniform in 45 degrees, at its 95 % quantile."""
    assert chance_quantile(2, 1) == pytest.approx(np.cos(np.pi / 4 * 0.05), abs=1e-3)
    assert chance_quantile(1, 10) == 0
    assert 0.95 < chance_quantile(2, 10) < 0.99


def test_congruence_knows_swaps_signs_and_planes() -> None:
    L = np.kron(np.eye(3), np.ones((4, 1)))
    turn = np.eye(3)
    turn[:2, :2] = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    back = congruence_agreement(L, [(L, (-L @ turn)[:, [2, 0, 1]])] * 3)
    assert back.alone[2] > 0.999
    assert back.alone[:2].max() < 0.8
    assert back.group[0] == back.group[1] != back.group[2]
    assert back.together.min() > 0.999


def test_a_cloud_with_one_scale_for_each_row_depends_however_many_rows() -> None:
    """Multivariate t with 12 degrees of freedom: any rotation fits as well."""
    g = np.random.default_rng(0)
    for N in (5000, 20_000):
        cloud = g.standard_normal((N, 3)) * np.sqrt(12 / g.chisquare(12, (N, 1)))
        assert depend(cloud, 0).any(axis=0).all()
    assert not depend(g.laplace(size=(5000, 3)), 0).any()


def test_questionnaires_are_found_by_simplicity(tmp_path: Path) -> None:
    x, z, L = questionnaire(3, N=1000, r=0.3)
    found = unseam.find(pd.DataFrame(x, columns=[f"item{i}" for i in range(15)]), network=False, out=tmp_path / "o")
    assert [(f.grade, f.clue) for f in found.factors] == [("found", "simplicity")] * 3
    assert matched(congruences(L, found.loadings.to_numpy())).values.min() > 0.97
    codes = np.abs(np.corrcoef(z.T, found.codes.to_numpy().T))[:3, 3:]
    roots = [f.determinacy_root for f in found.factors]
    assert np.allclose(np.sort(matched(codes).values), np.sort(roots), atol=0.04)
    document = json.loads((tmp_path / "o" / "findings.json").read_text())
    assert document["count"] == document["numbers"]["major"] == 3
    assert {"parallel", "map", "evidence", "gap"} <= set(document["numbers"])
    tests = document["factors"][0]["certificate"]["tests"]
    assert {test["clue"] for test in tests} == {"independence", "simplicity"}
    assert [test["decides"] for test in tests if test["clue"] == "simplicity"] == [True]
    assert pd.read_csv(document["loadings"], index_col=0).shape == (15, 3)
    assert np.shape(document["factor_correlations"]) == (3, 3)


@pytest.mark.parametrize("seed", range(2))
def test_levels_of_dense_factors_are_not_found(seed: int) -> None:
    """Rounding makes everything non-Gaussian: it is no reason to believe in axes."""
    found = unseam.find(np.clip(np.round(dense(2, 9, 900, seed)), -2, 2), network=False)
    assert found.count == 2
    assert not any(f.grade == "found" for f in found.factors)


@pytest.mark.parametrize("seed", [6, 13, 22])
def test_the_exponential_of_dense_columns_is_not_found(seed: int) -> None:
    """Skewed columns hardly correlate where they do so negatively, which looks simple; normal scores do not."""
    g = np.random.default_rng(seed)
    x = g.standard_normal((1000, 2)) @ g.standard_normal((2, 10)) + 0.5 * g.standard_normal((1000, 10))
    found = unseam.find(np.exp(x / x.std(0)), network=False)
    assert not any(f.grade == "found" for f in found.factors)
    tests = [test for f in found.factors for test in f.certificate.tests if test.clue == "simplicity"]
    assert all(test.statistic <= test.null for test in tests)  # what is shown is of the axes that failed


def test_planes_of_normal_scores_are_those_of_the_same_factors() -> None:
    """The factors of normal scores come in another order: the plane without axes is that of factors 0 and 1 here."""
    L = np.kron(np.eye(4), np.full((3, 1), 0.8))
    order = [2, 0, 3, 1]  # of the columns of L
    turned = L[:, order]
    planes = 9 * (1 - np.eye(4))  # clear, but for that of factors 0 and 1
    planes[1, 3] = planes[3, 1] = 0
    structure = SimpleStructure(np.eye(4), 1.0, np.zeros(9), 0.001, planes)
    model = FactorModel(np.zeros(12), np.ones(12), turned, np.eye(4), np.full(12, 0.36))
    found = _undecided_of(_RotatedFactors(model, structure, fit_factors(L @ L.T + 0.36 * np.eye(12), 4)), L)
    expected = np.zeros((4, 4), bool)
    expected[0, 1] = expected[1, 0] = True
    assert np.array_equal(found, expected)
    other = np.roll(L, 1, axis=0)  # no factor is the same one
    other[:, 3] = L[:, 3]
    model = FactorModel(np.zeros(12), np.ones(12), other, np.eye(4), np.full(12, 0.36))
    lost = _undecided_of(_RotatedFactors(model, structure, fit_factors(L @ L.T + 0.36 * np.eye(12), 4)), L)
    assert np.diag(lost).tolist() == [True, True, True, False]


def test_skewed_items_are_found() -> None:
    items, z, _ = questionnaire()
    found = unseam.find(np.exp(0.7 * items), network=False)
    assert [f.grade for f in found.factors] == ["found"] * 3
    assert matched(np.abs(rank_correlations(z, found.codes.to_numpy()))).values.min() > 0.85


def test_one_direction_is_found_only_if_one_factor_explains_the_correlations() -> None:
    g = np.random.default_rng(0)
    L = np.linspace(0.5, 0.85, 10)
    one = g.standard_normal((1500, 1)) * L + np.sqrt(1 - L**2) * g.standard_normal((1500, 10))
    found = unseam.find(one, network=False)
    assert [f.grade for f in found.factors] == ["found"]
    three = g.standard_normal((1500, 3)) @ g.uniform(0.3, 1.0, (3, 10)) + g.standard_normal((1500, 10))
    several = unseam.find(three, network=False)
    assert not any(f.grade == "found" for f in several.factors)
    few = fit_factors(correlation_matrix(one[:60]), 1)
    assert explains(few, 60).p_value > 0.001
    assert power_of_second(few, 60, 0.2) < 0.9 < power_of_second(few, 5000, 0.2)
    exact = fit_factors(np.outer(L, L) + np.diag(1 - L**2), 1)
    assert power_of_second(exact, 400, 0.2) < 0.95 < power_of_second(exact, 800, 0.2)


def test_shares_and_sums_are_never_found() -> None:
    g = np.random.default_rng(0)
    shares = unseam.find(g.dirichlet(np.linspace(0.5, 5, 6), 400), network=False)
    assert not any(f.grade == "found" for f in shares.factors)
    assert any("same sum" in note for note in shares.notes)
    counts = g.poisson(3 * g.gamma(1.0, size=(400, 2)) @ g.uniform(0.2, 1.0, (2, 8))).astype(float)
    assert not any(f.grade == "found" for f in unseam.find(counts, network=False).factors)


def test_a_grade_never_contradicts_the_number_it_rests_on() -> None:
    for x in (questionnaire()[0], dense(), dense(2, 8, 500, 1)):
        for f in unseam.find(x, network=False).factors:
            _, value, bar = f.rests_on
            assert (value >= bar) == (f.grade in ("found", "pair"))


def test_one_shared_direction_is_not_called_a_group() -> None:
    """Three factors that move all columns the same way look like one; the sentence says that it cannot tell."""
    g = np.random.default_rng(1)
    x = g.normal(size=(400, 3)) @ g.uniform(0.5, 1.0, (3, 8)) + g.normal(size=(400, 8))
    found = unseam.find(x, network=False, show=False)
    assert [factor.grade for factor in found.factors] == ["pair"]
    assert "share one direction" in found.sentence
    assert "together (their" not in found.sentence


@pytest.mark.parametrize("columns", [190, 210])
def test_one_direction_of_a_wide_table_is_not_found_without_a_test(columns: int) -> None:
    """Three factors, one asked for: below 200 columns the misfit shows, above it is not computed."""
    g = np.random.default_rng(0)
    x = g.normal(size=(600, 3)) @ g.uniform(0.5, 1.0, (3, columns)) + g.normal(size=(600, columns))
    (factor,) = unseam.find(x, network=False, latents=1, show=False).factors
    assert factor.grade != "found"


def test_weak_factors_that_move_every_column_are_counted() -> None:
    """Parallel analysis stops at the strong factor."""
    g = np.random.default_rng(5)
    signs = np.array([[1, 1, 1, 1, -1, -1, -1, -1], [1, 1, -1, -1, 1, 1, -1, -1]])
    L = np.concatenate([np.full((1, 8), 0.8), 0.3 * signs])
    x = g.standard_normal((1500, 3)) @ L + 0.4 * g.standard_normal((1500, 8))
    assert parallel_analysis(x).number == 1
    assert clear_factors(x, 1) == (3, 3)
    assert count_factors(x, np.zeros(x.shape, bool), 1).major == 3


def test_heavy_tails_make_bic_more_careful() -> None:
    """Rows that share a scale vary more in their covariance; without eta that would look like factors."""
    g = np.random.default_rng(6)
    x = g.standard_normal((1000, 1)) + g.standard_normal((1000, 10))
    x *= np.sqrt(5 / g.chisquare(5, (1000, 1)))
    assert clear_factors(x, 1) == (1, 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_component_that_may_be_two_factors_is_not_found(seed: int) -> None:
    """Two factors that move all columns in nearly the same proportions: noise makes them one direction, which is
    independent of the third factor and comes back, and is no factor."""
    g = np.random.default_rng(seed)
    first, second = g.standard_normal((2, 10))
    A = np.stack([first, second + 0.1 * g.standard_normal(10), second + 0.1 * g.standard_normal(10)])
    x = (g.exponential(size=(1500, 3)) - 1) @ A + 0.5 * g.standard_normal((1500, 10))
    found = unseam.find(x, network=False, show=False)
    assert found.count == 2
    assert not any(factor.grade == "found" for factor in found.factors)


def test_a_component_that_is_none_too_surely_gaussian_keeps_its_axis() -> None:
    """Few rows do not show it beyond doubt; principal axes would mix it with the Gaussian ones."""
    g = np.random.default_rng(1)
    s = np.column_stack([g.exponential(size=400) - 1, g.standard_normal((400, 2))])
    x = s @ g.standard_normal((3, 9)) + 0.05 * g.standard_normal((400, 9))
    axes = fit_axes(x, 3)
    assert axes.turned is not None
    assert axes.gaussian[~axes.turned].all() or not axes.gaussian.all()
    assert np.abs(np.corrcoef(axes.encode(x).T, s[:, 0])[-1, :3]).max() > 0.95


def with_minor_factors(g: np.random.Generator, strong: np.ndarray, rows: int) -> np.ndarray:
    """Three strong factors, and thirty weak ones of which each has 0.9 of the last one's strength."""
    k, n = strong.shape
    weak = 0.3 * g.standard_normal((30, n)) * 0.9 ** np.arange(30)[:, None]
    return np.asarray(g.standard_normal((rows, k)) @ strong + g.standard_normal((rows, 30)) @ weak)


def test_minor_factors_are_not_counted_although_bic_falls_with_them() -> None:
    """A real table has no number of factors that leaves nothing; weak ones that are left out were never major."""
    g = np.random.default_rng(3)
    x = with_minor_factors(g, 1.2 * g.standard_normal((3, 14)), 2000)
    x += 0.3 * g.standard_normal(x.shape)
    found = count_factors(x, np.zeros(x.shape, bool), 8)
    assert found.bic is not None
    assert found.bic > 4
    assert found.major == found.parallel == 3


def test_what_two_columns_have_for_themselves_is_no_factor_behind_a_gap() -> None:
    """Five columns nearly without noise and two with their own: the third eigenvalue stands out, but is no factor."""
    g = np.random.default_rng(4)
    z = g.standard_normal((2000, 4))
    sizes = z[:, :1] + 0.1 * g.standard_normal((2000, 5))
    two = np.stack([z[:, 1] + z[:, 2], -z[:, 1] + z[:, 3]], axis=1)
    x = np.concatenate([sizes, two], axis=1)
    found = count_factors(x, np.zeros(x.shape, bool), 6)
    assert found.gap == 3
    assert found.major == 2


def test_correlated_factors_are_simple_in_oblique_axes_only() -> None:
    """Two groups of columns 45 degrees apart."""
    g = np.random.default_rng(5)
    groups = np.repeat([[1.0, 0.0], [np.cos(np.pi / 4), np.sin(np.pi / 4)]], 7, axis=0)
    L = (groups + 0.06 * g.standard_normal(groups.shape)) @ np.linalg.qr(g.standard_normal((2, 2)))[0]
    assert simple_structure(L, oblique=True).simple
    assert not simple_structure(L).simple


def test_oblique_axes_are_tested_against_their_own_null() -> None:
    g = np.random.default_rng(6)
    chances = np.array([simple_structure(g.standard_normal((14, 3)), oblique=True).p_value for _ in range(60)])
    assert 0.3 < chances.mean() < 0.7
    assert (chances <= 0.05).mean() < 0.15
    cone = [simple_structure(g.uniform(0.3, 1.0, (12, 3)), oblique=True).simple for _ in range(40)]
    assert sum(cone) <= 2  # loadings of one sign are near each other, which is no axis


@pytest.mark.parametrize("seed", [0, 7])
def test_slight_dependence_in_many_rows_is_no_cloud(seed: int) -> None:
    """Sizes that correlate by 0.02 are significant in 20,000 rows (2.8 standard errors) and nothing."""
    g = np.random.default_rng(seed)
    a = g.standard_normal((20_000, 3))
    a[:, 1] = 0.025 * a[:, 0] + np.sqrt(1 - 0.025**2) * a[:, 1]
    u = expon.isf(norm.sf(a)) * g.choice([-1, 1], size=a.shape)
    assert 0.0195 < rank_correlations(np.abs(u), np.abs(u))[0, 1] < 0.025
    assert not depend(u, 0).any()
    cloud = g.standard_normal((20_000, 3)) * np.sqrt(12 / g.chisquare(12, (20_000, 1)))
    assert depend(cloud, 0).any(1).all()


def made_answer(alone: list[float], identified: list[bool]) -> Answer:
    """An answer of which only what comes back is known; chance 0.97."""
    back = Agreement(np.array(alone), 0.97, np.arange(len(alone)), np.array(alone))
    k = len(alone)
    return Answer(
        "linear", None, np.eye(k), np.ones(k), np.ones(k), np.array(identified), ("",) * k, back, None,  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_last_axis_beside_found_ones_cannot_turn() -> None:
    assert made_answer([0.99, 0.92], [True, True]).grades(True) == ["found", "found"]
    assert made_answer([0.96, 0.92], [True, True]).grades(True) == ["unstable", "unstable"]
    assert made_answer([0.99, 0.85], [True, True]).grades(True) == ["found", "unstable"]
    assert made_answer([0.99, 0.96], [True, False]).grades(True)[1] == "pair"
    assert made_answer([0.92], [True]).grades(True) == ["unstable"]


def test_factors_that_do_not_come_back_alone_are_a_group_if_their_space_does() -> None:
    """Two factors turned a little between halves, a third that is noise, a fourth by itself."""
    g = np.random.default_rng(7)
    codes = g.standard_normal((400, 4))
    c, s = np.cos(0.3), np.sin(0.3)
    other = codes.copy()
    other[:, 0], other[:, 1] = c * codes[:, 0] + s * codes[:, 1], c * codes[:, 1] - s * codes[:, 0]
    other[:, 2] = g.standard_normal(400)
    twice = [(codes, other)] * 5
    back = agreement(codes, twice)._replace(agrees=0.97)
    joined = not_alone(back, np.ones(4, bool), lambda group: group_correlation(codes, twice, group))
    assert joined.group[0] == joined.group[1]
    assert len(set(joined.group.tolist())) == 3
    assert (joined.together[:2] > 0.95).all()
    alone = not_alone(back, np.array([False, False, False, True]), lambda group: group_correlation(codes, twice, group))
    assert alone is back  # what has no axis of its own was grouped before
