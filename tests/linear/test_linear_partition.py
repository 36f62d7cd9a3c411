"""I_m: log-determinants against definitions, branch and bound against every assignment, samples against the truth."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseam.errors import BadInput
from unseam.linear import (
    Scenario,
    best_latents,
    best_partition,
    brute_force,
    gaussian_tables,
    partition_information,
    partition_value,
    same_groups,
    scenarios,
    squared_correlations,
)
from unseam.linear.information import Tables
from unseam.linear.samples import ksg_tables
from unseam.linear.search import local_search
from unseam.stats import ksg, top_two_gap


def problem(s, m, seed, kind="dependent"):
    """Joint covariance of m codes and s factors: (m + s, m + s), codes first."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(s, s)) / np.sqrt(s)
    Sv = {"dependent": L @ L.T + 0.3 * np.eye(s), "independent": np.eye(s)}.get(kind)
    if Sv is None:  # pairs
        Sv = Scenario(n=s, groups=scenarios.even_groups(s, max(s // 2, 1))).Sv
    B = rng.normal(size=(m, s)) if kind != "independent" else np.eye(m, s) + 0.3 * rng.normal(size=(m, s))
    C = B @ Sv
    return np.block([[C @ B.T + 0.3 * np.eye(m), C], [C.T, Sv]])


def tables_of(joint, m):
    return gaussian_tables(joint[m:, m:], np.diag(joint)[:m], joint[:m, m:])


def gaussian_information(S, a, b):
    """I(a; b) = 1/2 (log|S_aa| + log|S_bb| - log|S_ab,ab|) of two groups of the variables with covariance S."""
    log_det = [np.linalg.slogdet(S[np.ix_(g, g)])[1] for g in (a, b, [*a, *b])]
    return (log_det[0] + log_det[1] - log_det[2]) / 2


def naive(joint, m):
    """The definition (Vu 2024, eq. 5, 6): every assignment, each information from its own determinants."""
    s, best = len(joint) - m, -np.inf
    for labels in product(range(m), repeat=s):
        groups = [[m + j for j in range(s) if labels[j] == i] for i in range(m)]
        used = [i for i in range(m) if groups[i]]
        value = sum(gaussian_information(joint, [i], groups[i]) for i in used)
        value -= sum(gaussian_information(joint, groups[i], groups[j]) for i in used for j in used if i < j)
        best = max(best, value)
    return best


@pytest.mark.parametrize(("s", "m"), [(3, 3), (4, 3), (5, 2), (2, 4)])
def test_brute_force_is_the_definition(s, m):
    joint = problem(s, m, seed=s)
    assert brute_force(tables_of(joint, m))[0] == pytest.approx(naive(joint, m), abs=1e-9)


@pytest.mark.parametrize("kind", ["dependent", "independent", "pairs"])
@pytest.mark.parametrize(("s", "m"), [(1, 1), (1, 4), (4, 1), (3, 3), (5, 4), (4, 6), (6, 3), (6, 5), (6, 6)])
def test_branch_and_bound_finds_what_brute_force_finds(kind, s, m):
    for seed in range(4):
        tables = tables_of(problem(s, m, seed, kind), m)
        found, (value, labels) = best_partition(tables), brute_force(tables)
        assert found.gap == 0.0
        assert found.value == pytest.approx(float(value), abs=1e-12)
        assert same_groups(labels, tuple(g for g in found.groups if g))
        masks = np.array([[sum(1 << j for j in g) for g in found.groups]])
        assert partition_value(tables, masks)[0] == pytest.approx(found.value, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(s=st.integers(1, 5), m=st.integers(1, 5), seed=st.integers(0, 10_000), noise=st.floats(1e-3, 10))
def test_branch_and_bound_on_redundant_and_noisy_codes(s, m, seed, noise):
    """Duplicated latents make the row bound loose; the answer must not care."""
    rng = np.random.default_rng(seed)
    joint = problem(s, 1, seed)
    Sv, b = joint[1:, 1:], rng.normal(size=(rng.integers(1, 3), s))
    B = b[rng.integers(len(b), size=m)]
    tables = gaussian_tables(Sv, np.diag(B @ Sv @ B.T) + noise, B @ Sv)
    assert best_partition(tables).value == pytest.approx(float(brute_force(tables)[0]), abs=1e-12)


def test_ten_factors_and_ten_latents_are_exact():
    tables = tables_of(problem(10, 10, seed=0), 10)
    found = best_partition(tables)
    assert found.gap == 0.0
    assert found.nodes < 200_000  # of 10^10 assignments
    assert found.value >= local_search(tables, restarts=100).value


def test_a_small_budget_gives_a_gap_that_holds():
    for seed in range(5):
        tables = tables_of(problem(8, 8, seed), 8)
        exact, hasty = best_partition(tables), best_partition(tables, budget=20)
        assert hasty.gap > 0
        assert hasty.value <= exact.value + 1e-12 <= hasty.value + hasty.gap + 2e-9 * 8


def test_search_without_monotony_is_exact_too():
    """Estimated tables need not be monotone; the search then cuts at complete partitions only."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        gain, pair = rng.random((4, 32)), rng.random((32, 32))
        gain[:, 0], pair[0], pair[:, 0] = 0, 0, 0
        pair = (pair + pair.T) / 4
        tables = Tables(gain, lambda a, b, pair=pair: pair[a, b], monotone=False)
        assert best_partition(tables).value == pytest.approx(float(brute_force(tables)[0]), abs=1e-12)


def test_information_is_monotone_as_the_bound_assumes():
    tables = tables_of(problem(6, 4, seed=3), 4)
    sets = np.arange(64)
    for j in range(6):
        assert (tables.gain[:, sets | 1 << j] >= tables.gain[:, sets] - 1e-12).all()
        others = sets[sets & (1 << j) == 0]
        for a in others:
            apart = others[others & a == 0]
            assert (tables.between(a | 1 << j, apart) >= tables.between(a, apart) - 1e-12).all()


def test_many_codes_at_once():
    joints = [problem(4, 3, seed) for seed in range(6)]
    Sv = joints[0][3:, 3:]
    variances, cross = np.array([np.diag(j)[:3] for j in joints]), np.array([j[:3, 3:] for j in joints])
    values, labels = brute_force(gaussian_tables(Sv, variances, cross))
    for i in range(6):
        value, label = brute_force(gaussian_tables(Sv, variances[i], cross[i]))
        assert values[i] == pytest.approx(float(value), abs=1e-12)
        assert (labels[i] == label).all()


def test_fewer_groups_win_a_tie():
    nothing = gaussian_tables(np.eye(3), np.ones(3), np.zeros((3, 3)))
    assert len(best_partition(nothing).blocks) == 1
    assert same_groups(brute_force(nothing)[1], ((0, 1, 2),))


@pytest.mark.parametrize("groups", scenarios.published(3, 4) + scenarios.published(5, 5))
def test_a_code_of_the_roots_recovers_the_scenario(groups):
    """One latent a group, reading the group's factors: I_m and SAP both see the true groups."""
    s = sum(map(len, groups))
    v = Scenario(n=s, groups=groups, residual=0.05)
    B = np.zeros((s, s))
    for i, group in enumerate(groups):
        B[i, list(group)] = 1
    Sx, Sxv = v.joint(B, 0.01 * np.eye(s))
    tables = gaussian_tables(v.Sv, np.diag(Sx), Sxv)
    assert best_partition(tables).blocks == frozenset(map(frozenset, groups))
    S = squared_correlations(Sx, v.Sv, Sxv)
    assert same_groups(best_latents(S), groups)
    assert top_two_gap(S.T).mean() > 0.5  # SAP, eq. 8


def test_scenario_covariances_are_those_of_the_slides():
    v2 = Scenario(n=4, groups=((0, 1), (2,)), slopes=(0.7,), variances=(2.0, 3.0), residual=0.5)
    assert np.allclose(v2.Sv, [[2, 1.4, 0], [1.4, 0.49 * 2 + 0.5, 0], [0, 0, 3]])
    v3 = Scenario(n=4, groups=((0, 1, 2),), slopes=(0.7, -0.4), variances=(2.0,), residual=0.5)
    a, b, v = 0.7, -0.4, 2.0
    assert np.allclose(
        v3.Sv, [[v, a * v, b * v], [a * v, a * a * v + 0.5, a * b * v], [b * v, a * b * v, b * b * v + 0.5]]
    )
    assert np.allclose(v3.Sy[:3, :3], v3.Sv + 0.1 * np.eye(3))
    assert v3.Sy[3, 3] == pytest.approx(0.1)


def test_sap_in_closed_form_is_squared_correlation_of_samples():
    joint = problem(3, 4, seed=1)
    x = np.random.default_rng(0).multivariate_normal(np.zeros(7), joint, size=200_000)
    S = squared_correlations(joint[:4, :4], joint[4:, 4:], joint[:4, 4:])
    assert np.allclose(S, np.corrcoef(x.T)[:4, 4:] ** 2, atol=0.01)


def test_samples_find_the_groups_by_both_methods():
    rng = np.random.default_rng(0)
    v = rng.normal(size=(3000, 3))
    x = np.stack([v[:, 2], v[:, 0] + v[:, 1]], 1) + 0.1 * rng.normal(size=(3000, 2))
    for method in ("gaussian", "ksg"):
        assert partition_information(x, v, method).groups == ((2,), (0, 1))


def test_gaussian_samples_approach_the_exact_value():
    joint = problem(4, 3, seed=2)
    x = np.random.default_rng(0).multivariate_normal(np.zeros(7), joint, size=100_000)
    exact = best_partition(tables_of(joint, 3))
    assert partition_information(x[:, :3], x[:, 3:]).value == pytest.approx(exact.value, abs=0.03)


def test_ksg_sees_what_correlation_cannot():
    rng = np.random.default_rng(1)
    v = rng.normal(size=(1500, 2))
    x = np.stack([v[:, 0] ** 2, v[:, 1] ** 2], 1)[:, ::-1] + 0.05 * rng.normal(size=(1500, 2))
    assert partition_information(x, v, "ksg").groups == ((1,), (0,))
    assert partition_information(x, v, "gaussian").value < 0.05


def test_ksg_groups_against_the_gaussian_truth():
    joint = problem(2, 1, seed=5)
    y = np.random.default_rng(3).multivariate_normal(np.zeros(3), joint, size=4000)
    assert ksg(y[:, :1], y[:, 1:]) == pytest.approx(gaussian_information(joint, [0], [1, 2]), abs=0.08)


def test_ksg_tables_take_discrete_factors():
    """A fair coin known exactly is log 2 nats, ties or not."""
    v = np.random.default_rng(4).integers(2, size=(2000, 1))
    x = v + 0.01 * np.random.default_rng(5).normal(size=v.shape)
    assert ksg_tables(x, v).gain[0, 1] == pytest.approx(np.log(2), abs=0.06)


def test_a_perfect_code_is_finite():
    v = np.random.default_rng(7).normal(size=(500, 4))
    found = partition_information(v, v)
    assert found.groups == ((0,), (1,), (2,), (3,))
    assert np.isfinite(found.value)


X, V = np.random.default_rng(0).normal(size=(50, 2)), np.random.default_rng(1).normal(size=(50, 3))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: partition_information(X, V[:40]), "same N rows"),
        (lambda: partition_information(X, np.hstack([V, V])), "singular"),
        (lambda: partition_information(X, V * [1, 1, 0]), "factor 2 is constant"),
        (lambda: partition_information(X * np.nan, V), "not finite"),
        (lambda: partition_information(X[:3], V[:3]), "give more"),
        (lambda: partition_information(X, V, "histogram"), "method='histogram' is unknown"),
        (lambda: partition_information(X, np.random.default_rng(0).normal(size=(50, 17))), "at most 16 factors"),
        (lambda: partition_information(X, np.random.default_rng(0).normal(size=(50, 7)), "ksg"), "at most 6 factors"),
        (lambda: brute_force(tables_of(problem(10, 10, 0), 10)), "use best_partition"),
        (lambda: best_partition(gaussian_tables(np.eye(2), np.ones((3, 2)), np.zeros((3, 2, 2)))), "takes one code"),
        (lambda: scenarios.even_groups(3, 4), "give between 1 and 3"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(BadInput, match=says):
        call()
