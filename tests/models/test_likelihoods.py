"""Likelihoods of counts and classes against SciPy, their curvature against expected second differences."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import unseam
from unseam.errors import BadInput
from unseam.models import Architecture
from unseam.models.likelihood import LIKELIHOODS, Categorical, NegativeBinomial, Poisson

g = np.random.default_rng(0)
X = g.poisson(4.0, size=(6, 5)).astype(float)
THETA = torch.as_tensor(g.normal(1.0, 0.7, size=(6, 5)))
MEAN = THETA.exp().numpy()


def test_poisson_is_scipys() -> None:
    truth = stats.poisson(MEAN).logpmf(X).sum(1)
    assert np.allclose(Poisson().log_prob(torch.as_tensor(X), THETA), truth)


@pytest.mark.parametrize("r", [0.5, 3.0, 200.0])
def test_negative_binomial_is_scipys(r: float) -> None:
    truth = stats.nbinom(r, r / (r + MEAN)).logpmf(X).sum(1)
    ours = NegativeBinomial(r).double().log_prob(torch.as_tensor(X), THETA)
    assert np.allclose(ours.detach(), truth, rtol=1e-6)


def test_categorical_is_scipys_multinomial() -> None:
    shares = THETA.softmax(1).numpy()
    truth = [stats.multinomial(x.sum(), p).logpmf(x) for x, p in zip(X, shares, strict=True)]
    assert np.allclose(Categorical().log_prob(torch.as_tensor(X), THETA), truth)
    one = torch.eye(5).double()
    assert np.allclose(Categorical().log_prob(one, THETA[:5]), np.log(shares[:5].diagonal()))


@pytest.mark.parametrize("name", ["poisson", "negative-binomial"])
def test_curvature_is_the_expected_second_difference(name: str) -> None:
    """-E d^2 log p / d theta^2 at theta = 1, the expectation by summing over all counts that matter."""
    p, h, theta = LIKELIHOODS[name]().double(), 1e-3, torch.tensor([[1.0]]).double()
    counts = torch.arange(200.0).double()[:, None]
    logs = [p.log_prob(counts, theta + s * h).detach() for s in (-1, 0, 1)]
    second = (logs[0] - 2 * logs[1] + logs[2]) / h**2
    assert float(-(logs[1].exp() * second).sum()) == pytest.approx(float(p.curvature(theta).detach()), rel=1e-5)
    assert float((logs[1].exp() * counts[:, 0]).sum()) == pytest.approx(float(p.mean(theta)), rel=1e-6)


def test_the_encoder_sees_logarithms_of_counts_and_everything_else_as_it_is() -> None:
    x = torch.rand(3, 4)
    for name in ("gaussian", "bernoulli"):
        assert LIKELIHOODS[name]().inputs(x) is x
    model = Architecture(network="mlp", latents=2, likelihood="poisson").build((4,), 0)
    assert torch.equal(model.encode(x).mean, model.family.from_outputs(model.encoder(torch.log1p(x)), 2).mean)


@pytest.mark.parametrize("name", ["poisson", "negative-binomial", "categorical"])
def test_train_with_counts(name: str, tmp_path: Path) -> None:
    counts = np.random.default_rng(0).poisson(3.0, size=(60, 4)).astype(float)
    run = unseam.fit(counts, beta=1.0, likelihood=name, latents=2, steps=10, out=tmp_path / "run", show=False)
    assert run.table()["status"].tolist() == ["finished"]
    with pytest.raises(BadInput, match=f"likelihood='{name}' needs whole numbers from 0.*-1"):
        unseam.fit(counts - 1, "beta-vae", likelihood=name, steps=1, out=tmp_path / "bad", show=False)
    assert not (tmp_path / "bad").exists()
