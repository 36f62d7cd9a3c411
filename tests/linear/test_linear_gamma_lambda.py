"""The gamma-lambda solver: exact steps, the named regimes, and never a NaN."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from unseam.errors import BadInput
from unseam.linear import Scenario, linear_vae
from unseam.linear.gamma_lambda import OUTCOMES, random_starts, solve

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from _loop_gamma_lambda import solve_one

SY = Scenario(n=4, groups=((0, 1), (2,))).Sy
GAMMA, LAM = np.linspace(0.98, 1.02, 5), np.linspace(-0.02, 0.02, 5)


def loss(A, B, Sw, Sz, Sy, gamma, lam):
    """Vu 2024, eq. 3, with its traces, from the definition of each term."""
    n, m = A.shape
    R = np.eye(n) - A @ B
    E = R @ Sy @ R.T + A @ Sw @ A.T
    kl = (np.trace(B @ Sy @ B.T + Sw) - np.linalg.slogdet(Sw)[1] - m) / 2
    nll = (n * np.log(2 * np.pi) + np.linalg.slogdet(Sz)[1] + np.trace(np.linalg.solve(Sz, E))) / 2
    return kl + gamma * nll + lam * np.trace(E)


@pytest.mark.parametrize("Sw", ["full", "diagonal"])
@pytest.mark.parametrize("Sz", ["full", "diagonal", "isotropic"])
@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.0), (1.02, 0.01), (0.97, 0.02), (1.01, -0.01)])
def test_reported_loss_is_the_definition(Sw, Sz, gamma, lam):
    s = solve(SY, gamma, lam, random_starts((), 4, 3), Sw=Sw, Sz=Sz, steps=7, tolerance=None)
    assert s.loss == pytest.approx(loss(s.A, s.B, s.Sw, s.Sz, SY, gamma, lam), abs=1e-10)


@pytest.mark.parametrize("Sw", ["full", "diagonal"])
@pytest.mark.parametrize("Sz", ["full", "diagonal", "isotropic"])
def test_each_half_step_is_the_numerical_minimum(Sw, Sz):
    """After a step no other decoder is better for its encoder; and the next encoder is best for that decoder."""
    gamma, lam, start = 1.02, 0.01, random_starts((), 3, 2)
    Sy = SY[1:, 1:]
    one = solve(Sy, gamma, lam, start, Sw=Sw, Sz=Sz, steps=1, tolerance=None)
    two = solve(Sy, gamma, lam, start, Sw=Sw, Sz=Sz, steps=2, tolerance=None)

    def factor(p, k, kind):
        if kind == "isotropic":
            return np.exp(p[0]) * np.eye(k)
        if kind == "diagonal":
            return np.diag(np.exp(p[:k]))
        C = np.zeros((k, k))
        C[np.tril_indices(k)] = p[: k * (k + 1) // 2]
        C[np.diag_indices(k)] = np.exp(np.diag(C))
        return C @ C.T

    def decoder(p):
        return loss(p[:6].reshape(3, 2), one.B, one.Sw, factor(p[6:], 3, Sz), Sy, gamma, lam)

    def encoder(p):
        return loss(one.A, p[:6].reshape(2, 3), factor(p[6:], 2, Sw), one.Sz, Sy, gamma, lam)

    rng = np.random.default_rng(0)
    best = minimize(decoder, rng.normal(size=12) / 3, method="BFGS", options={"gtol": 1e-9})
    assert one.loss == pytest.approx(best.fun, abs=1e-8)
    best = minimize(encoder, rng.normal(size=9) / 3, method="BFGS", options={"gtol": 1e-9})
    assert loss(one.A, two.B, two.Sw, one.Sz, Sy, gamma, lam) == pytest.approx(best.fun, abs=1e-8)


def test_batched_equals_one_at_a_time():
    starts = random_starts((5, 5), 4, 3)
    many = solve(SY, GAMMA[:, None], LAM, starts, steps=400)
    for i in range(5):
        for j in range(5):
            B, value, error, outcome = solve_one(SY, GAMMA[i], LAM[j], starts[i, j], steps=400)
            assert many.outcome[i, j] == outcome
            assert np.allclose(many.B[i, j], B, atol=1e-8)
            assert many.loss[i, j] == pytest.approx(value, abs=1e-8)
            assert many.error[i, j] == pytest.approx(error, abs=1e-8)


@pytest.mark.parametrize("Sw", ["full", "diagonal"])
@pytest.mark.parametrize("Sz", ["full", "diagonal", "isotropic"])
def test_loss_never_rises_for_lambda_at_least_zero(Sw, Sz):
    s = solve(
        SY, GAMMA[:, None], [0.0, 0.01, 0.5], random_starts((5, 3), 4, 3), Sw=Sw, Sz=Sz, steps=500, keep_trace=True
    )
    assert s.trace is not None
    assert (np.diff(s.trace) <= 1e-9 * np.abs(s.trace[..., 1:])).all()
    assert np.allclose(s.trace[..., -1], s.loss)


def test_the_code_grows_by_gamma_and_keeps_its_rotation():
    """Full Sw and Sz, lambda = 0: C = B' Sw^-1 is multiplied by gamma at each step, nothing else."""
    for gamma in (0.9, 1.0, 1.1):
        C = [
            np.linalg.solve(s.Sw, s.B).T
            for s in (solve(SY, gamma, 0.0, random_starts((), 4, 3), steps=k, tolerance=None) for k in (1, 6))
        ]
        assert np.allclose(C[1], gamma**5 * C[0], rtol=1e-9)


def test_the_loss_does_not_see_a_rotation_of_the_code_with_full_noise():
    start = random_starts((), 4, 3)
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    a, b = (solve(SY, 1.01, 0.01, A, steps=50, tolerance=None) for A in (start, start @ R))
    assert a.loss == pytest.approx(b.loss, abs=1e-9)
    assert np.allclose(a.A @ R, b.A, atol=1e-9)
    c, d = (solve(SY, 1.01, 0.01, A, Sw="diagonal", steps=1, tolerance=None) for A in (start, start @ R))
    assert abs(c.loss - d.loss) > 0.01


@pytest.mark.parametrize(
    ("gamma", "lam", "expected"),
    [
        (0.98, -0.02, {"collapsed"}),
        (0.98, 0.0, {"collapsed"}),
        (1.0, 0.0, {"converged"}),
        (0.98, 0.02, {"converged"}),
        (1.02, 0.02, {"tolerance reached", "diverged"}),
        (1.02, 0.0, {"tolerance reached", "diverged"}),
    ],
)
def test_regimes_are_named(gamma, lam, expected):
    s = solve(SY, gamma, lam, random_starts((50,), 4, 3))
    assert set(s.outcome) <= expected


def test_below_one_with_positive_lambda_settles_at_the_predicted_residual():
    """gamma I + 2 lambda Sz = I on the directions that live: their residual variance is (1 - gamma) / (2 lambda)."""
    gamma, lam = 0.98, 0.04  # 0.25
    s = solve(np.diag([3.0, 2.0, 1.0, 0.1]), gamma, lam, random_starts((20,), 4, 3), tolerance=None, steps=20_000)
    assert set(s.outcome) == {"converged"}
    assert np.allclose(np.linalg.eigvalsh(s.Sz), [0.1, 0.25, 0.25, 0.25], atol=1e-4)


@pytest.mark.parametrize("gamma", [0.7, 1.0, 1.4])
def test_diagonal_and_isotropic_noise_give_the_linear_vae(gamma):
    """beta = 1 / gamma, s2 learned: the closed form, and the principal axes up to sign and order."""
    n, m = 5, 3
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
    S = U * np.array([6.0, 4.0, 2.5, 0.5, 0.3]) @ U.T
    s = solve(S, gamma, 0.0, random_starts((8,), n, m), Sw="diagonal", Sz="isotropic", tolerance=None, steps=20_000)
    exact = linear_vae.optimum(S, m, beta=1 / gamma)
    assert set(s.outcome) == {"converged"}
    assert np.allclose(s.loss, gamma * exact.loss(S), atol=1e-6)
    assert np.allclose(s.Sz[:, 0, 0], exact.s2, atol=1e-5)
    match = np.abs(np.einsum("ki,pkj->pij", exact.W / np.linalg.norm(exact.W, axis=0), s.A))
    match /= np.linalg.norm(s.A, axis=1)[:, None]
    assert np.allclose(np.sort(match, -1), [0, 0, 1], atol=1e-2)


@settings(max_examples=40, deadline=None)
@given(
    gamma=st.floats(1e-3, 50),
    lam=st.floats(-50, 50),
    scale=st.floats(1e-4, 1e4),
    noise=st.floats(1e-6, 1.0),
    seed=st.integers(0, 1000),
    Sw=st.sampled_from(["full", "diagonal"]),
    Sz=st.sampled_from(["full", "diagonal", "isotropic"]),
)
def test_never_a_nan_and_always_a_name(gamma, lam, scale, noise, seed, Sw, Sz):
    F = np.random.default_rng(seed).normal(size=(4, 2))
    Sy = scale * (F @ F.T + noise * np.eye(4))
    s = solve(Sy, gamma, lam, random_starts((5,), 4, 3, seed), Sw=Sw, Sz=Sz, steps=200, keep_trace=True)
    assert set(s.outcome) <= set(OUTCOMES)
    for field in (s.A, s.B, s.Sw, s.Sz, s.loss, s.error, s.trace):
        assert np.isfinite(field).all()
    assert np.linalg.eigvalsh(s.Sw).min() > 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: solve(SY, 0.0, 0.0, random_starts((), 4, 3)), "gamma=0 must be positive"),
        (lambda: solve(SY, [1.0, -1.0], 0.0, random_starts((), 4, 3)), "gamma=-1 must be positive"),
        (lambda: solve(SY, 1.0, np.nan, random_starts((), 4, 3)), "lambda and start must be finite"),
        (lambda: solve(SY, 1.0, 0.0, random_starts((), 3, 3)), "start has shape"),
        (lambda: solve(SY, 1.0, 0.0, np.zeros((4, 3))), "column of zeros"),
        (lambda: solve(np.ones((4, 4)), 1.0, 0.0, random_starts((), 4, 3)), "Sy is singular"),
        (lambda: solve(SY + np.triu(np.ones((4, 4)), 1), 1.0, 0.0, random_starts((), 4, 3)), "not symmetric"),
        (lambda: solve(SY, 1.0, 0.0, random_starts((), 4, 3), Sw="isotropic"), "Sw='isotropic' is unknown"),
        (lambda: solve(SY, 1.0, 0.0, random_starts((), 4, 3), Sz="diag"), "did you mean 'diagonal'"),
        (lambda: solve(SY, 1.0, 0.0, random_starts((), 4, 3), tolerance=2.0), "tolerance=2"),
        (lambda: solve(SY, 1.0, 0.0, random_starts((), 4, 3), steps=0), "steps=0"),
        (lambda: Scenario(n=2, groups=((0, 1), (2,))), "n=2 must be at least s=3"),
        (lambda: Scenario(n=4, groups=((0, 1), ())), "empty group"),
        (lambda: Scenario(n=4, groups=((0, 1), (1,))), "exactly once"),
        (lambda: Scenario(n=4, groups=((0,),), residual=-1.0), "residual=-1 must be positive"),
        (lambda: Scenario(n=4, groups=((0,),), s2=1.5), "must be below 1"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(BadInput, match=says):
        call()
