"""Every term on a linear-Gaussian model, against its closed form.

x = A u + a, u ~ N(0, I); q(z|x) = N(Bx + b, S); p(x|z) = N(Wz + c, s2 I). Expectations over u and the noise are
taken by Gauss-Hermite quadrature, or on samples whose mean and covariance are exactly 0 and I.
"""

import math
from itertools import product

import numpy as np
import pytest
import torch

from unseam.axes import Pass
from unseam.models import Architecture
from unseam.objectives import OBJECTIVES, Context
from unseam.objectives.dip import aggregate_covariance, batch_covariance
from unseam.objectives.total_correlation import decompose

A = torch.tensor([[1.0, 0.3], [-0.4, 0.8], [0.2, 0.5]], dtype=torch.float64)
B = torch.tensor([[0.5, -0.2, 0.1], [0.3, 0.6, -0.1]], dtype=torch.float64)
b, a = torch.tensor([0.1, -0.2], dtype=torch.float64), torch.tensor([0.2, 0.0, -0.1], dtype=torch.float64)
W = torch.tensor([[0.7, 0.2], [0.1, -0.6], [0.4, 0.3]], dtype=torch.float64)
c = torch.tensor([0.3, -0.1, 0.2], dtype=torch.float64)
S = torch.tensor([0.6, 0.9], dtype=torch.float64)
S2, K, N = math.exp(-1), 2, 3  # log s2 is exact in single precision, in which a model keeps it
SX = A @ A.T
MU = B @ a + b  # the mean of z
CZ = B @ SX @ B.T + S.diag()  # the covariance of z

TRUTH = {
    "kl": 0.5 * (torch.trace(B @ SX @ B.T) + MU @ MU + S.sum() - S.log().sum() - K),
    "mutual_information": 0.5 * (torch.logdet(CZ) - S.log().sum()),
    "tc": 0.5 * (CZ.diagonal().log().sum() - torch.logdet(CZ)),
    "dimension_kl": 0.5 * (CZ.diagonal() + MU.square() - CZ.diagonal().log() - 1).sum(),
}
_left = torch.eye(3, dtype=torch.float64) - W @ B
_offset = a - W @ MU - c
TRUTH["reconstruction"] = (torch.trace(_left @ SX @ _left.T) + torch.trace(W @ S.diag() @ W.T) + _offset @ _offset) / (
    2 * S2
) + 1.5 * math.log(2 * math.pi * S2)


def model(name="vae"):
    kind = OBJECTIVES[name]
    architecture = Architecture(
        network="linear", latents=K, likelihood="gaussian", s2=S2, posterior=kind.posterior, learned_s2=kind.learned_s2
    )
    m = architecture.build((N,), 0).double()
    encoder, decoder = m.encoder[1], m.decoder[0]
    with torch.no_grad():
        encoder.weight.zero_(), encoder.bias.zero_()
        encoder.weight[:, :K], encoder.bias[:K] = B.T, b
        if kind.posterior != "point":
            encoder.bias[K : 2 * K] = S.log()
        decoder.weight.copy_(W.T), decoder.bias.copy_(c)
    return m


def quadrature(order):
    """Nodes (order^4, 4) of the standard normal in (u, noise) and their weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    grid = torch.tensor(list(product(nodes, repeat=4)), dtype=torch.float64)
    return grid, torch.tensor(list(product(weights / weights.sum(), repeat=4))).prod(1)


def exact_sample(size, seed=0):
    """A sample of (u, noise) whose mean is 0 and whose covariance is I, exactly."""
    raw = torch.randn(size, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    raw = raw - raw.mean(0)
    return raw @ torch.linalg.inv(torch.linalg.cholesky(raw.T @ raw / size)).T


def evaluate(name, points, **settings):
    m, objective = model(name), OBJECTIVES[name](**settings)
    x = points[:, :2] @ A.T + a
    noise = {name: torch.zeros(shape) for name, shape in objective.noise_shapes(len(x), 2).items()}
    noise |= dict.fromkeys(("z", "prior", "second", "shuffle"), points[:, 2:])
    posterior, z, theta = m(x, noise["z"])
    modules = {n: p.module.double() for n, p in objective.players(m).items()}
    second = x if objective.pairing() else None  # each image its own partner: both posteriors are the one of x
    return objective(Pass(x, posterior, z, theta), Context(m, 1, 1, len(x), modules, noise, second))


def test_the_three_parts_sum_to_the_kl_in_closed_form():
    total = TRUTH["mutual_information"] + TRUTH["tc"] + TRUTH["dimension_kl"]
    torch.testing.assert_close(total, TRUTH["kl"], rtol=1e-12, atol=0)


# those that log both terms
ELBO = [n for n in OBJECTIVES if n not in ("ae", "qlae", "tripod", "det-vae", "beta-tcvae", "pcl", "weak-gan")]


@pytest.mark.parametrize("name", ELBO)
def test_reconstruction_and_kl(name):
    settings = {"width": 4, "depth": 1} if name == "factor-vae" else {}
    terms = evaluate(name, exact_sample(500), **settings).values
    torch.testing.assert_close(terms["reconstruction"].mean(), TRUTH["reconstruction"], rtol=0, atol=1e-9)
    torch.testing.assert_close(terms["kl"].mean(), TRUTH["kl"], rtol=0, atol=1e-9)


def test_autoencoder_reconstruction():
    truth = TRUTH["reconstruction"] - torch.trace(W @ S.diag() @ W.T) / (2 * S2)
    torch.testing.assert_close(evaluate("ae", exact_sample(500)).values["reconstruction"].mean(), truth)


@pytest.mark.parametrize("hessian", ["gauss-newton", "exact"])
def test_the_deterministic_elbo_is_the_elbo_whatever_the_variance(hessian):
    """log p is quadratic in z, so the second-order expansion is exact."""
    terms = evaluate("det-vae", exact_sample(500), hessian=hessian).values
    total = (terms["reconstruction"] + terms["curvature"]).mean()
    torch.testing.assert_close(total, TRUTH["reconstruction"], rtol=0, atol=1e-9)
    torch.testing.assert_close(terms["kl"].mean(), TRUTH["kl"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("part", ["mutual_information", "tc", "dimension_kl"])
def test_parts_of_the_kl(part):
    """The mixture over quadrature nodes is the Gaussian aggregate, so the parts have closed forms."""
    points, weights = quadrature(7)
    x = points[:, :2] @ A.T + a
    posterior = model().encode(x)
    z = posterior.sample(points[:, 2:])
    values = decompose(z, posterior, weights.log().expand(len(z), -1))
    assert abs((weights * values[part]).sum() - TRUTH[part]) < 1e-4


def test_dip_covariances():
    points = exact_sample(300)
    posterior = model().encode(points[:, :2] @ A.T + a)
    torch.testing.assert_close(batch_covariance(posterior.mean), B @ SX @ B.T)
    torch.testing.assert_close(aggregate_covariance(posterior), CZ)


@pytest.mark.parametrize(("name", "C"), [("dip-vae-i", B @ SX @ B.T), ("dip-vae-ii", CZ)])
def test_dip_loss(name, C):
    terms = evaluate(name, exact_sample(300), lambda_od=3.0, ratio=2.0)
    off = C - C.diagonal().diag()
    penalty = 3 * off.square().sum() + 6 * (C.diagonal() - 1).square().sum()
    torch.testing.assert_close(terms.loss(), TRUTH["reconstruction"] + TRUTH["kl"] + penalty)


def test_sigma_law_minimises_the_deterministic_loss():
    """Allen eq. 7 through the objective: with 1/S_ii = 1 + M_ii/beta the gradient in the log-variance vanishes."""
    beta = 0.7
    m, objective = model("det-vae"), OBJECTIVES["det-vae"](beta=beta)
    M = W.T @ W / S2
    log_var = (-torch.log1p(M.diagonal() / beta)).expand(5, -1).clone().requires_grad_()
    x = exact_sample(5)[:, :2] @ A.T
    posterior = type(m.encode(x))(m.encode(x).mean, log_var)
    loss = objective(Pass(x, posterior, posterior.mean, x), Context(m)).loss()
    assert torch.autograd.grad(loss, log_var)[0].abs().max() < 1e-12


def test_orthogonality_penalties():
    """M = W^T W / s2 at every point; both penalties vanish once W's columns are orthogonal."""
    M, beta = W.T @ W / S2, 0.5
    I = torch.eye(K, dtype=torch.float64)
    gap = beta / 2 * (torch.log1p(M.diagonal() / beta).sum() - torch.logdet(I + M / beta))
    terms = evaluate("ortho-vae", exact_sample(20), beta=beta)
    torch.testing.assert_close(terms.values["entanglement"].mean(), gap)
    contrast = 0.5 * (M.diagonal().log().sum() - torch.logdet(M))
    assert abs(evaluate("ima-vae", exact_sample(20)).values["ima"].mean() - contrast) < 1e-3  # the ridge
