"""The trained linear network against the exact optimum: loss, lengths, Sigma law, axes and collapse."""

import numpy as np
import pytest

from unseam.linear import linear_vae
from unseam.train import fit

L, S2, BETAS = np.array([4.0, 2.0, 1.0, 0.3]), 0.5, (0.5, 3.0, 5.0)


def data():
    """2000 points whose sample covariance has exactly the eigenvalues L."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    x = rng.normal(size=(2000, 4))
    x -= x.mean(0)
    white = x @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T, bias=True))).T
    return (white * np.sqrt(L) @ U.T).astype(np.float32), U


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = fit(
        data()[0],
        "beta-vae",
        beta=list(BETAS),
        steps=3000,
        lr=1e-2,
        batch=500,
        network="linear",
        latents=2,
        likelihood="gaussian",
        s2=S2,
        holdout=0.0,
        workers=1,
        out=tmp_path_factory.mktemp("linear") / "run",
        show=False,
    )
    return {run.beta(i): run.model(i) for i in range(len(BETAS))}


def as_linear(model, beta):
    encoder, decoder = model.encoder[-1], model.decoder[0]
    weight, bias = encoder.weight.detach().double().numpy(), encoder.bias.detach().double().numpy()
    W = decoder.weight.detach().double().numpy().T
    return linear_vae.LinearVAE(W, weight[:, :2].T, np.diag(np.exp(bias[2:])), S2, beta)


@pytest.mark.parametrize("beta", BETAS)
def test_training_reaches_the_exact_optimum(trained, beta):
    x, U = data()
    S = np.cov(x.T, bias=True)
    found, exact = as_linear(trained[beta], beta), linear_vae.optimum(S, 2, S2, beta)
    assert 0 < found.loss(S) - exact.loss(S) < 0.01
    order = np.argsort(-(found.W**2).sum(0))
    assert np.allclose((found.W**2).sum(0)[order], (exact.W**2).sum(0), atol=0.1)
    assert np.allclose(np.diag(found.Sigma)[order], np.diag(exact.Sigma), atol=0.03)
    alive = linear_vae.collapse_points(L, S2)[:2] > beta
    for k, i in enumerate(order[alive]):
        cosine = abs(found.W[:, i] @ U[:, k]) / np.linalg.norm(found.W[:, i])
        assert cosine > np.cos(np.deg2rad(5))


def test_the_second_latent_dies_between_the_two_collapse_points(trained):
    assert list(linear_vae.collapse_points(L, S2)[:2]) == [8.0, 4.0]
    lengths = {beta: np.sort((as_linear(trained[beta], beta).W ** 2).sum(0)) for beta in BETAS}
    assert lengths[3.0][0] > 0.4  # L - beta s2 = 0.5
    assert lengths[5.0][0] < 0.02
