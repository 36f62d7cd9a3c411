"""Posteriors and likelihoods against torch.distributions; shapes of every network."""

import pytest
import torch
from torch import distributions as D

from unseam.errors import BadInput
from unseam.models import Architecture, Bernoulli, Diagonal, Full, Gaussian

torch.manual_seed(0)


def test_diagonal_kl_is_the_kl_in_nats() -> None:
    q = Diagonal(torch.randn(7, 3), torch.randn(7, 3))
    truth = D.kl_divergence(D.Normal(q.mean, (0.5 * q.log_var).exp()), D.Normal(0.0, 1.0))
    torch.testing.assert_close(q.kl_per_latent(), truth)
    torch.testing.assert_close(q.kl(), truth.sum(1))


def test_full_posterior_is_a_multivariate_normal() -> None:
    model = Architecture(posterior="full", latents=3, network="mlp", likelihood="gaussian").build((5,), 0).double()
    q = model.encode(torch.randn(6, 5, dtype=torch.float64))
    assert isinstance(q, Full)
    L = q.cholesky()
    torch.testing.assert_close(L, L.tril())
    assert (L.tril(-1).abs().amax(0)[torch.tril_indices(3, 3, -1).unbind()] > 0).all()
    truth = D.MultivariateNormal(q.mean, scale_tril=L)
    prior = D.MultivariateNormal(torch.zeros(3).double(), torch.eye(3).double())
    torch.testing.assert_close(q.kl(), D.kl_divergence(truth, prior))
    torch.testing.assert_close(q.variance(), truth.variance)
    noise = torch.randn(6, 3, dtype=torch.float64)
    torch.testing.assert_close(q.sample(noise), q.mean + torch.einsum("bij,bj->bi", L, noise))


@pytest.mark.parametrize("s2", [0.5, 0.01, 3.0])
def test_gaussian_likelihood(s2: float) -> None:
    x, theta = torch.randn(4, 2, 3, 3), torch.randn(4, 2, 3, 3)
    truth = D.Normal(theta, s2**0.5).log_prob(x).flatten(1).sum(1)
    torch.testing.assert_close(Gaussian(s2).log_prob(x, theta), truth)
    assert torch.allclose(Gaussian(s2).curvature(theta), torch.tensor(1 / s2))


def test_half_variance_is_the_squared_error() -> None:
    x, theta = torch.randn(4, 3), torch.randn(4, 3)
    difference = Gaussian(0.5).log_prob(x, theta) - Gaussian(0.5).log_prob(theta, theta)
    torch.testing.assert_close(-difference, (x - theta).square().sum(1))


def test_bernoulli_likelihood_and_its_curvature() -> None:
    x, theta = torch.rand(4, 5).round(), torch.linspace(-40, 40, 20).view(4, 5)
    truth = D.Bernoulli(logits=theta).log_prob(x).sum(1)
    torch.testing.assert_close(Bernoulli().log_prob(x, theta), truth)
    t = torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(Bernoulli().log_prob(torch.rand(1, 7).double(), t[None]).sum(), t, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), t)
    torch.testing.assert_close(-second, Bernoulli().curvature(t.detach()))


@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 32, 32), (1, 16, 48)])
def test_conv_takes_every_image_of_multiples_of_16(shape: tuple[int, ...]) -> None:
    model = Architecture(latents=4).for_data(shape, "bernoulli").build(shape, 0)
    posterior, z, theta = model(torch.rand(2, *shape), torch.randn(2, 4))
    assert posterior.mean.shape == z.shape == (2, 4)
    assert theta.shape == (2, *shape)


@pytest.mark.parametrize("network", ["mlp", "linear"])
@pytest.mark.parametrize("posterior", ["diagonal", "full", "point"])
def test_vector_networks(network: str, posterior: str) -> None:
    architecture = Architecture(network=network, posterior=posterior, latents=2, likelihood="gaussian")  # type: ignore[arg-type]
    _, z, theta = architecture.build((6,), 0)(torch.randn(3, 6), torch.randn(3, 2))
    assert z.shape == (3, 2)
    assert theta.shape == (3, 6)


def test_linear_network_is_affine() -> None:
    model = Architecture(network="linear", latents=2, likelihood="gaussian").build((5,), 0)
    a, b = torch.randn(1, 2), torch.randn(1, 2)
    middle = model.decode(0.5 * (a + b))
    torch.testing.assert_close(middle, 0.5 * (model.decode(a) + model.decode(b)))


def test_same_seed_same_weights_and_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    one, two, other = (Architecture(network="mlp").build((4,), seed) for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), two.parameters(), strict=True))
    assert not all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"latents": 0}, "latents=0"),
        ({"s2": 0.0}, "s2=0.0"),
        ({"network": "con"}, "did you mean 'conv'"),
        ({"encoder": (0,)}, "hidden widths"),
    ],
)
def test_bad_architectures_are_named(bad: dict, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Architecture(**bad)


def test_conv_refuses_odd_sizes() -> None:
    with pytest.raises(BadInput, match="multiples of 16"):
        Architecture(network="conv").for_data((1, 28, 28), "bernoulli")
