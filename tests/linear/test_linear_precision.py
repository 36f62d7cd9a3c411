"""The stochastic-loss problems of the thesis, closed form against direct optimisation."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import ortho_group

from unseam.errors import BadInput
from unseam.linear import precision

M1 = np.array([[4.0, 1.0], [-3.0, 1.0], [5.0, -1.0]])


def rotation(angles, d):
    """A rotation of R^d from d(d-1)/2 plane angles."""
    R, k = np.eye(d), 0
    for i in range(d):
        for j in range(i):
            G = np.eye(d)
            G[[i, j], [i, j]], G[i, j], G[j, i] = np.cos(angles[k]), -np.sin(angles[k]), np.sin(angles[k])
            R, k = R @ G, k + 1
    return R


def test_worked_example():
    """Thesis (3.20)-(3.22)."""
    turn = rotation([np.pi / 4], 2)
    assert precision.allocate(M1).value == pytest.approx(2 * np.sqrt(150), abs=1e-12)
    assert round(precision.allocate(M1).value, 1) == 24.5
    assert np.allclose(sorted(((M1 @ turn.T) ** 2).sum(0)), [45 / 2, 61 / 2])
    assert round(precision.allocate(M1 @ turn.T).value, 1) == 52.4


@pytest.mark.parametrize("budget", [0.0, 1.7])
def test_allocate_solves_3_18(budget):
    M = np.random.default_rng(0).normal(size=(5, 3)) * [1, 2, 4]

    def loss(p):  # log sigma^2 with the budget spent
        logs = np.append(p, -budget - p.sum())
        return ((M**2).sum(0) * np.exp(logs)).sum()

    best = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-10})
    found = precision.allocate(M, budget)
    assert found.value == pytest.approx(best.fun, rel=1e-8)
    assert -np.log(found.variances).sum() == pytest.approx(budget)
    assert np.allclose(np.log(found.variances)[:2], best.x, atol=1e-5)


def test_rotate_solves_3_23_and_orthogonalises():
    M = np.random.default_rng(1).normal(size=(5, 3)) * [1, 2, 4]
    V, found = precision.rotate(M)
    best = min(
        minimize(lambda a: precision.allocate(M @ rotation(a, 3).T).value, a, method="BFGS").fun
        for a in np.random.default_rng(2).normal(size=(3, 3))
    )
    assert found.value == pytest.approx(best, rel=1e-7)
    gram = V @ M.T @ M @ V.T
    assert np.allclose(gram, np.diag(np.diag(gram)))
    for R in ortho_group.rvs(3, size=20, random_state=3):
        assert precision.allocate(M @ R.T).value >= found.value - 1e-12


def test_embed_solves_4_1_by_pca():
    """Theorem 2: over all axes with unit-variance latents the principal ones lose least."""
    A = np.random.default_rng(5).normal(size=(3, 3))
    S = A @ A.T + 0.1 * np.eye(3)
    found = precision.embed(S)

    def loss(angles):
        U = rotation(angles, 3)
        return 3 * np.prod(np.diag(U.T @ S @ U)) ** (1 / 3)

    best = min(
        (minimize(loss, a, method="BFGS") for a in np.random.default_rng(6).normal(size=(4, 3))), key=lambda r: r.fun
    )
    assert found.value == pytest.approx(best.fun, rel=1e-8)
    match = np.abs(found.axes.T @ rotation(best.x, 3))
    assert np.allclose(np.sort(match, 1), [[0, 0, 1]] * 3, atol=1e-4)  # a signed permutation
    assert np.allclose(found.scales**2 * found.variances, found.value / 3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: precision.allocate([[1.0, 0.0], [1.0, 0.0]]), "column of zeros"),
        (lambda: precision.allocate(np.array([[1.0, np.inf]])), "finite decoder"),
        (lambda: precision.rotate(np.ones((3, 2))), "singular"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(BadInput, match=says):
        call()
