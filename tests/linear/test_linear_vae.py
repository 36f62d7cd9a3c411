"""The linear VAE's closed forms against numerical optimisation, Monte Carlo and torch's own distributions."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, minimize_scalar

from unseam.errors import BadInput
from unseam.linear import linear_vae, ppca

RNG = np.random.default_rng(1)
U = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
L = np.array([5.0, 3.0, 1.5, 0.4])
S = U * L @ U.T
TURN = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)


def unpack(p, n, d, posterior):
    W, V = p[: n * d].reshape(n, d), p[n * d : 2 * n * d].reshape(d, n)
    rest = p[2 * n * d :]
    if posterior == "diagonal":
        return W, V, np.diag(np.exp(rest))
    C = np.zeros((d, d))
    C[np.tril_indices(d)] = rest
    C[np.diag_indices(d)] = np.exp(np.diag(C))
    return W, V, C @ C.T


@pytest.mark.parametrize("posterior", ["diagonal", "full"])
@pytest.mark.parametrize(("beta", "s2"), [(1.0, 1.0), (0.3, 0.5), (4.0, 0.5), (20.0, 0.5)])
def test_optimum_is_the_numerical_minimum(posterior, beta, s2):
    n, d = 4, 2
    exact = linear_vae.optimum(S, d, s2, beta, posterior)

    def loss(p):
        return linear_vae.LinearVAE(*unpack(p, n, d, posterior), s2, beta).loss(S)

    size = 2 * n * d + (d if posterior == "diagonal" else d * (d + 1) // 2)
    starts = 0.5 * np.random.default_rng(3).normal(size=(3, size))
    best = min(
        (minimize(loss, p, method="BFGS", options={"gtol": 1e-8, "maxiter": 3000}) for p in starts), key=lambda r: r.fun
    )
    assert exact.loss(S) == pytest.approx(best.fun, abs=1e-6)
    assert exact.loss(S) == pytest.approx(linear_vae.optimal_loss(L, d, s2, beta), abs=1e-12)
    W = unpack(best.x, n, d, posterior)[0]
    assert np.allclose(W @ W.T, exact.W @ exact.W.T, atol=1e-4)
    if posterior == "diagonal" and beta * s2 < L[1]:
        gram = W.T @ W
        assert abs(gram[0, 1]) < 1e-4 * gram.max()


def test_loss_against_monte_carlo_through_torch():
    vae = linear_vae.LinearVAE(RNG.normal(size=(4, 2)), RNG.normal(size=(2, 4)) / 3, np.diag([0.3, 0.7]), 0.8, 2.0)
    x = torch.distributions.MultivariateNormal(torch.zeros(4, dtype=torch.float64), torch.tensor(S))
    torch.manual_seed(0)
    x = x.sample((400_000,))
    W, V, Sigma = (torch.tensor(a) for a in (vae.W, vae.V, vae.Sigma))
    q = torch.distributions.MultivariateNormal(x @ V.T, Sigma)
    prior = torch.distributions.MultivariateNormal(
        torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64)
    )
    log_p = torch.distributions.Normal(q.sample() @ W.T, 0.8**0.5).log_prob(x).sum(1)
    terms = vae.terms(S)
    assert terms["reconstruction"] == pytest.approx(-log_p.mean().item(), abs=6 * log_p.std().item() / 400_000**0.5)
    kl = torch.distributions.kl_divergence(q, prior)
    assert terms["kl"] == pytest.approx(kl.mean().item(), abs=6 * kl.std().item() / 400_000**0.5)


def test_gradient_vanishes_at_the_optimum():
    vae = linear_vae.optimum(S, 2, 0.5, 2.0)
    p = np.concatenate([vae.W.ravel(), vae.V.ravel(), np.log(np.diag(vae.Sigma))])

    def loss(p):
        return linear_vae.LinearVAE(*unpack(p, 4, 2, "diagonal"), 0.5, 2.0).loss(S)

    steps = 1e-5 * np.eye(len(p))
    gradient = [(loss(p + e) - loss(p - e)) / 2e-5 for e in steps]
    assert np.abs(gradient).max() < 1e-8


def test_rotation_full_posterior_invariant_diagonal_not():
    """Thesis Prop. 2 and 3."""
    full = linear_vae.optimum(S, 2, 0.5, posterior="full")
    turned = full.rotated(TURN)
    assert turned.loss(S) == pytest.approx(full.loss(S), abs=1e-12)
    again = linear_vae.best_encoder(turned.W, 0.5, posterior="diagonal")
    rise = again.loss(S) - full.loss(S)
    assert rise == pytest.approx(linear_vae.entanglement_cost(turned.W, 0.5), abs=1e-12)
    assert rise == pytest.approx(np.log(8 * 8 / (10 * 6)) / 2, abs=1e-12)  # l / s2 = 10, 6; their mean is 8
    assert linear_vae.optimum(S, 2, 0.5, posterior="full", R=TURN).loss(S) == pytest.approx(full.loss(S), abs=1e-12)


def test_signed_permutations_cost_a_diagonal_posterior_nothing():
    swap = np.array([[0.0, -1.0], [1.0, 0.0]])
    assert linear_vae.optimum(S, 2, 0.5, R=swap).loss(S) == pytest.approx(linear_vae.optimum(S, 2, 0.5).loss(S))


def test_latents_die_at_the_collapse_points():
    s2, points = 0.5, linear_vae.collapse_points(L, 0.5)
    for beta in (0.9 * points[:3]).tolist() + (1.1 * points[:3]).tolist():
        W = linear_vae.optimum(S, 3, s2, beta).W
        assert ((W**2).sum(0) > 1e-12).sum() == (points[:3] > beta).sum()


def test_theorem_3_beta_is_a_variance():
    """loss(beta, s2) / beta = loss(1, beta s2) + const (MATHS section 2)."""
    beta, s2 = 3.0, 0.4
    vae = linear_vae.LinearVAE(RNG.normal(size=(4, 2)), RNG.normal(size=(2, 4)), np.diag([0.5, 0.2]), s2, beta)
    plain = linear_vae.LinearVAE(vae.W, vae.V, vae.Sigma, beta * s2, 1.0)
    const = 2 * np.log(2 * np.pi * s2) / beta - 2 * np.log(2 * np.pi * beta * s2)
    assert vae.loss(S) / beta == pytest.approx(plain.loss(S) + const, abs=1e-12)


@pytest.mark.parametrize("beta", [0.25, 0.9, 1.0, 1.3, 2.5, 8.0])
def test_learned_variance_is_the_numerical_minimum(beta):
    grid = np.exp(np.linspace(-6, 4, 4001))
    losses = [linear_vae.optimal_loss(L, 3, s2, beta) for s2 in grid]
    near = grid[int(np.argmin(losses))]
    best = minimize_scalar(
        lambda s2: linear_vae.optimal_loss(L, 3, s2, beta), bounds=(near / 1.1, near * 1.1), options={"xatol": 1e-10}
    )
    assert linear_vae.learned_variance(L, 3, beta) == pytest.approx(best.x, rel=1e-5)


def test_beta_one_with_learned_variance_is_ppca():
    vae, model = linear_vae.optimum(S, 2), ppca.closed_form(S, 2)
    assert vae.s2 == pytest.approx(model.s2)
    assert vae.loss(S) == pytest.approx(-model.expected_log_likelihood(S), abs=1e-12)
    assert np.allclose(np.abs(ppca.rotation_of(vae.W, S, vae.s2)), np.eye(2), atol=1e-9)


@pytest.mark.parametrize(("beta", "alive"), [(1.0, None), (3.0, None), (8.0, None), (1.0, [1]), (1.0, [2, 0])])
def test_likelihood_loss_is_the_difference_of_two_likelihoods(beta, alive):
    s2, d = 0.5, 2
    kept = [0, 1] if alive is None else alive
    W = (U[:, kept] * np.sqrt(np.maximum(L[kept] - beta * s2, 0))).reshape(4, -1)
    ended = ppca.PPCA(W, s2, np.zeros(4)).expected_log_likelihood(S)
    best = ppca.closed_form(S, d, s2=s2).expected_log_likelihood(S)
    assert linear_vae.likelihood_loss(L, d, s2, beta, alive) == pytest.approx(best - ended, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: linear_vae.optimum(S, 2, s2=-0.5), "s2=-0.5 must be positive"),
        (lambda: linear_vae.optimum(S, 2, s2=0.5, beta=0.0), "beta=0 must be positive"),
        (lambda: linear_vae.optimum(S, 4), "d=4 must be at least 1 and smaller than n=4"),
        (lambda: linear_vae.optimum(S, 5, s2=1.0), "d=5 must be between 1 and n=4"),
        (lambda: linear_vae.optimum(S, 2, s2=0.5, R=TURN), "signed permutation"),
        (lambda: linear_vae.best_encoder(np.eye(2), 1.0, posterior="diag"), "did you mean 'diagonal'"),
        (lambda: linear_vae.likelihood_loss(L, 2, 0.5, alive=[0, 1, 2]), "at most d=2"),
        (lambda: linear_vae.collapse_points([[1.0]], 1.0), "list of eigenvalues"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(BadInput, match=says):
        call()
