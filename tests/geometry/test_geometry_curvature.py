"""Sigma law and entanglement cost: bounds, limits, and against posteriors optimised by gradient descent."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unseam.errors import BadInput
from unseam.geometry.curvature import entanglement_cost, hessian_axes, law_fit, pair_costs, precision, sigma_law
from unseam.geometry.orthogonality import ima_contrast


def random_metrics(K: int, N: int = 6, seed: int = 0) -> Tensor:
    J = torch.randn(N, K + 3, K, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return J.mT @ J


@given(seed=st.integers(0, 10_000), K=st.integers(2, 6), beta=st.floats(1e-4, 100))
@settings(max_examples=50, deadline=None)
def test_the_gap_is_never_negative_and_is_what_the_formula_says(seed: int, K: int, beta: float) -> None:
    M = random_metrics(K, seed=seed)
    gap = entanglement_cost(M, beta)
    C = torch.eye(K).double() + M / beta
    formula = beta / 2 * (C.diagonal(dim1=1, dim2=2).log().sum(1) - torch.logdet(C))
    torch.testing.assert_close(gap, formula, rtol=1e-6, atol=1e-10 * beta)
    assert (gap >= 0).all()


def test_zero_iff_orthogonal() -> None:
    lengths = torch.rand(5, 4).double() * 9
    assert entanglement_cost(torch.diag_embed(lengths), 0.1).abs().max() == 0
    tilted = torch.diag_embed(lengths + 1)
    tilted[:, 0, 1] = tilted[:, 1, 0] = 1e-3
    assert (entanglement_cost(tilted, 0.1) > 0).all()


def test_small_beta_gives_the_ima_contrast() -> None:
    M = random_metrics(4)
    torch.testing.assert_close(entanglement_cost(M, 1e-8) / 1e-8, ima_contrast(M), rtol=1e-5, atol=1e-7)


def test_single_precision_is_safe_for_small_beta() -> None:
    M = random_metrics(5)
    torch.testing.assert_close(
        entanglement_cost(M.float(), 1e-6).double(), entanglement_cost(M, 1e-6), rtol=1e-3, atol=0
    )


@given(seed=st.integers(0, 10_000), K=st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_pair_costs_sum_to_the_gap(seed: int, K: int) -> None:
    M = random_metrics(K, seed=seed)
    shares = pair_costs(M, 0.3)
    torch.testing.assert_close(shares, shares.mT)
    torch.testing.assert_close(shares.triu(1).sum((1, 2)), entanglement_cost(M, 0.3))


def test_pair_costs_find_the_mixed_pair() -> None:
    M = torch.diag(torch.tensor([5.0, 3.0, 2.0, 7.0]).double())
    M[1, 3] = M[3, 1] = 4.0
    shares = pair_costs(M)
    torch.testing.assert_close(shares[1, 3], entanglement_cost(M))
    assert shares.triu(1).count_nonzero() == 1


def linear_elbo(W: Tensor, x: Tensor, m: Tensor, L: Tensor, s2: float, beta: float) -> Tensor:
    """The exact ELBO of x = W z + noise(s2) with q = N(m, L L^T), KL weighted by beta."""
    S = L @ L.T
    fit = -((x - W @ m).square().sum() + (W @ S @ W.T).trace()) / (2 * s2)
    kl = 0.5 * (m.square().sum() + S.trace() - 2 * L.diagonal().abs().log().sum() - len(m))
    return fit - beta * kl


def best_elbo(W: Tensor, x: Tensor, s2: float, beta: float, full: bool) -> tuple[float, Tensor]:
    """Optimise the posterior numerically; knows nothing of the Sigma law."""
    K = W.shape[1]
    m = torch.zeros(K, dtype=torch.float64, requires_grad=True)
    free = torch.zeros(K, K, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [m, free], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def factor() -> Tensor:
        return free.diagonal().exp().diag() + (free.tril(-1) if full else 0)

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = -linear_elbo(W, x, m, factor(), s2, beta)
        loss.backward()
        return loss

    optimiser.step(closure)
    L = factor().detach()
    return float(linear_elbo(W, x, m.detach(), L, s2, beta)), (L @ L.T).diagonal()


@pytest.mark.parametrize("beta", [0.1, 1.0, 4.0])
def test_gap_and_law_against_optimised_posteriors(beta: float) -> None:
    """In the linear case the gap is exactly what a diagonal posterior's best ELBO lacks against a full one's."""
    generator = torch.Generator().manual_seed(0)
    W, x, s2 = torch.randn(5, 3, generator=generator).double(), torch.randn(5, generator=generator).double(), 0.5
    diagonal, variances = best_elbo(W, x, s2, beta, full=False)
    full, marginals = best_elbo(W, x, s2, beta, full=True)
    M = W.T @ W / s2
    assert full - diagonal == pytest.approx(float(entanglement_cost(M, beta)), abs=1e-7)
    torch.testing.assert_close(variances, sigma_law(M, beta), rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(marginals, sigma_law(M, beta, full=True), rtol=1e-5, atol=1e-8)


def test_precision_and_axes() -> None:
    M = random_metrics(3)
    torch.testing.assert_close(precision(M, 2.0), torch.eye(3).double() + M / 2)
    curvatures, axes = hessian_axes(-M)
    torch.testing.assert_close(axes @ torch.diag_embed(curvatures) @ axes.mT, -M)
    assert (curvatures.diff(dim=1) >= 0).all()  # sharpest (most negative) first


def test_law_fit() -> None:
    rng = np.random.default_rng(0)
    predicted = rng.uniform(0.01, 1, (200, 3))
    exact = law_fit(predicted, predicted)
    assert exact.r == 1.0
    assert exact.error == 0
    off = law_fit(2 * predicted, predicted)
    assert off.r == pytest.approx(1.0)
    assert off.error == pytest.approx(1.0)  # twice as large: 100 %
    assert abs(law_fit(rng.uniform(0.01, 1, (200, 3)), predicted).r) < 0.2
    constant = law_fit(np.full((9, 1), 0.3), np.full((9, 1), 0.3))
    assert constant.r is None
    assert np.isnan(constant.per_latent).all()
    with pytest.raises(BadInput, match="positive"):
        law_fit(np.zeros((3, 2)), np.ones((3, 2)))
