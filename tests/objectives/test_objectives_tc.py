"""Estimators of the aggregate posterior: weights, unbiasedness, exact mixtures, and the bias of the logarithm."""

import importlib.util
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from unseam.models import Diagonal
from unseam.objectives.total_correlation import decompose, log_aggregate, log_normal, log_weights

path = Path(__file__).parents[2] / "examples" / "total_correlation_bias.py"
spec = importlib.util.spec_from_file_location("total_correlation_bias", path)
bias = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bias)


def posterior(size, K, seed=0):
    g = torch.Generator().manual_seed(seed)
    mean = torch.randn(size, K, generator=g, dtype=torch.float64)
    return Diagonal(mean, 0.3 * torch.randn(size, K, generator=g, dtype=torch.float64) - 1)


@pytest.mark.parametrize(("B", "N"), [(2, 2), (2, 3), (3, 1000), (64, 737280), (50, 50)])
def test_stratified_rows_sum_to_one(B, N):
    W = log_weights("stratified", B, N).double().exp()
    torch.testing.assert_close(W.sum(1), torch.ones(B, dtype=torch.float64), rtol=1e-6, atol=0)
    torch.testing.assert_close(W.diagonal(), torch.full((B,), 1 / N, dtype=torch.float64), rtol=1e-6, atol=0)


@pytest.mark.parametrize(("B", "N"), [(3, 7), (5, 5), (8, 100)])
def test_stratified_weights_are_the_papers_averaged_over_its_odd_one_out(B, N):
    """Chen et al., appendix C: n* has 1/N, one of the M = B - 1 others (N - M)/(N M), the rest 1/M."""
    M = B - 1
    paper = [[1 / N] + [(N - M) / (N * M) if j == odd else 1 / M for j in range(M)] for odd in range(M)]
    np.testing.assert_allclose(log_weights("stratified", B, N).exp()[0].numpy(), np.mean(paper, 0), rtol=1e-6)


def test_stratified_density_is_unbiased():
    """The mean over every batch that holds n* is the exact mixture density, for the joint and for each latent."""
    N, B, K = 6, 3, 2
    q = posterior(N, K)
    z = q.mean[0] + 0.3
    exact = log_normal(z, q.mean, q.log_var).exp()  # (N, K)
    W = log_weights("stratified", B, N).double()[0].exp()
    batches = [(0, *others) for others in combinations(range(1, N), B - 1)]
    joint = torch.stack([W @ exact[list(batch)].prod(1) for batch in batches]).mean()
    single = torch.stack([W @ exact[list(batch)] for batch in batches]).mean(0)
    torch.testing.assert_close(joint, exact.prod(1).mean(), rtol=1e-6, atol=0)
    torch.testing.assert_close(single, exact.mean(0), rtol=1e-6, atol=0)


def test_weighted_estimator_is_the_double_loop_of_its_definition():
    q, N = posterior(4, 3), 100
    z = q.mean + 0.1
    joint, product = log_aggregate(z, q, log_weights("weighted", 4, N).double())
    for i in range(4):
        densities = [[math.exp(log_normal(z[i, k], q.mean[j, k], q.log_var[j, k])) for k in range(3)] for j in range(4)]
        assert joint[i].item() == pytest.approx(math.log(sum(math.prod(d) for d in densities) / (N * 4)), rel=1e-6)
        singles = [math.log(sum(d[k] for d in densities) / (N * 4)) for k in range(3)]
        assert product[i].item() == pytest.approx(sum(singles), rel=1e-6)


def test_the_whole_data_set_as_a_batch_is_the_exact_mixture():
    """B = N: log q(z) is exact, and the parts, integrated by quadrature, sum to the KL and are all >= 0."""
    N, K, order = 5, 2, 24
    q = posterior(N, K)
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    weights = torch.tensor(np.outer(weights, weights).ravel() / weights.sum() ** 2)
    noise = torch.tensor(np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, K))
    log_w = log_weights("stratified", N, N).double()
    torch.testing.assert_close(log_w, torch.full((N, N), -math.log(N), dtype=torch.float64), rtol=1e-6, atol=1e-6)
    parts = [decompose(q.sample(e.expand(N, K)), q, torch.full((N, N), -math.log(N)).double()) for e in noise]
    mean = {k: (weights * torch.stack([p[k].mean() for p in parts])).sum() for k in parts[0]}
    torch.testing.assert_close(sum(mean.values()), q.kl().mean(), rtol=1e-9, atol=0)
    assert all(value >= 0 for value in mean.values())


def test_bias_against_batch_and_data_size():
    """What docs/objectives.md says: weighted is off by (K - 1) log N, stratified low, less so with larger batches."""
    K, truth = 5, bias.truth(5)
    small, large = (bias.estimate("weighted", 32, N, K, repeats=10) for N in (10**3, 10**5))
    torch.testing.assert_close(large - small, torch.full_like(small, (K - 1) * math.log(100)), rtol=1e-5, atol=0)
    off = {B: bias.estimate("stratified", B, 10**5, K, repeats=20).mean().item() - truth for B in (16, 64, 256)}
    assert off[16] < off[64] < off[256] < 0
    assert bias.estimate("stratified", 16, 10**5, K, repeats=20).min() < 0  # a negative estimate is passed on as it is
    wide = bias.estimate("stratified", 512, 10**4, K, s=0.4, repeats=20).mean().item()
    assert abs(wide - truth) < 0.1
