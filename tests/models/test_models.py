"""Posteriors and likelihoods against torch.distributions; shapes of every network."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import distributions as D

from unseam.axes import Pass, Terms
from unseam.errors import BadInput, check_literals, literal_choices
from unseam.models import Architecture, Bernoulli, Diagonal, Full, Gaussian
from unseam.models.posterior import POSTERIORS, Posterior
from unseam.objectives import Context, Objective, Optimiser

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
@pytest.mark.parametrize("posterior", POSTERIORS)
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
        ({"likelihood": "gausian"}, "did you mean 'gaussian'"),
        ({"encoder": (0,)}, "hidden widths"),
    ],
)
def test_bad_architectures_are_named(bad: dict, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Architecture(**bad)


def test_an_unknown_posterior_is_named_when_the_model_is_built() -> None:
    with pytest.raises(BadInput, match="did you mean 'diagonal'"):
        Architecture(network="linear", latents=2, posterior="diagnal").for_data((5,), "gaussian").build((5,), 0)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 17, 40), (1, 8, 8)])
def test_conv_takes_images_of_any_size_and_pads_nothing_that_is_seen(shape: tuple[int, ...]) -> None:
    model = Architecture(network="conv", latents=3).for_data(shape, "bernoulli").build(shape, 0)
    x = torch.rand(2, *shape)
    assert model.decode(model.encode(x).mean).shape == x.shape
    sides = [-(-side // 16) * 16 for side in shape[1:]]
    padded = torch.zeros(2, shape[0], *sides)
    padded[..., : shape[1], : shape[2]] = x
    whole = Architecture(network="conv", latents=3).for_data((shape[0], *sides), "bernoulli").build(padded.shape[1:], 0)
    torch.testing.assert_close(model.encode(x).mean, whole.encode(padded).mean)  # the same network on black borders


def test_conv_refuses_what_is_no_image() -> None:
    with pytest.raises(BadInput, match="needs images"):
        Architecture(network="conv").for_data((28,), "gaussian")


@pytest.mark.parametrize("name", POSTERIORS)
def test_every_family_keeps_its_word(name: str) -> None:
    """Variances are the covariance's diagonal, shares sum to the KL and to log|Sigma|, turning changes neither."""
    model = Architecture(network="mlp", posterior=name, latents=3, likelihood="gaussian").build((4,), 0).double()
    q = model.encode(torch.randn(5, 4, dtype=torch.float64))
    torch.testing.assert_close(q.covariance().diagonal(dim1=1, dim2=2), q.variance())
    torch.testing.assert_close(q.kl_per_latent().sum(1), q.kl())
    turned = q.rotate(Turn())
    torch.testing.assert_close(turned.mean, q.mean @ Turn().linear())
    torch.testing.assert_close(turned.kl(), q.kl())
    assert turned.has_prior == q.has_prior
    if q.has_prior:
        torch.testing.assert_close(q.log_variance().sum(1), torch.logdet(q.covariance()))
        torch.testing.assert_close(turned.covariance(), Turn().linear().T @ q.covariance() @ Turn().linear())


class Turn:
    """Other axes, as `geometry.align.Frame` gives them."""

    def linear(self) -> torch.Tensor:
        return torch.linalg.qr(torch.arange(9.0).reshape(3, 3).double().sin())[0]

    def new(self, old: torch.Tensor) -> torch.Tensor:
        return old @ self.linear()


@dataclass(frozen=True)
class Round(Posterior):
    """A toy family: one variance for all latents of a sample, made narrower by a parameter of its own."""

    log_var: torch.Tensor  # (B, 1)

    @staticmethod
    def outputs(K: int) -> int:
        return K + 1

    @staticmethod
    def parameters(K: int, levels: int) -> dict[str, torch.Tensor]:
        return {"shift": torch.zeros(())}

    @classmethod
    def from_outputs(cls, t: torch.Tensor, K: int, **own: torch.Tensor) -> "Round":
        return cls(t[:, :K], t[:, K:] - own["shift"])

    def sample(self, noise: torch.Tensor) -> torch.Tensor:
        return self.mean + torch.exp(0.5 * self.log_var) * noise

    def variance(self) -> torch.Tensor:
        return self.log_variance().exp()

    def log_variance(self) -> torch.Tensor:
        return self.log_var.expand_as(self.mean)


@dataclass(frozen=True)
class RoundVAE(Objective):
    """The ELBO with the toy family."""

    formula: ClassVar[str] = "-E_q log p(x|z) + KL"
    paper: ClassVar[str] = "none"
    posterior: ClassVar[str] = "round"
    beta_is: ClassVar[float] = 1.0

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        log_p = context.model.likelihood.log_prob(pass_.x, pass_.theta)
        return Terms({"reconstruction": -log_p, "kl": pass_.posterior.kl()})


def test_a_new_family_is_a_class_and_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """It trains as a cohort, can be diagnosed and aligned, and its own parameter learns."""
    import unseam

    monkeypatch.setitem(POSTERIORS, "round", Round)
    small = {"network": "linear", "latents": 2, "data_parameters": {"size": 300}, "workers": 1, "show": False}
    run = unseam.fit("synth-linear", RoundVAE, seeds=[0, 1], steps=20, out=tmp_path / "run", **small)
    assert (run.table()["status"] == "finished").all()
    model = run.model(1)
    assert model.shift.item() != 0
    with torch.no_grad():
        q = model.encode(run.data.batch(torch.arange(50)))
    assert isinstance(q, Round)
    found = unseam.diagnose(model, q.mean, q)
    np.testing.assert_allclose(found.kl, q.kl().mean(), rtol=1e-6)
    turned = unseam.align(model, q.mean, q).encoder(run.data.batch(torch.arange(50)))
    torch.testing.assert_close(turned.kl(), q.kl())


def test_choices_have_one_source() -> None:
    assert literal_choices(Architecture, "network") == ("auto", "mlp", "conv", "linear", "own")
    assert literal_choices(Architecture, "latents") == ()
    with pytest.raises(BadInput, match="optimiser='adma' is unknown; did you mean 'adam'"):
        Optimiser(name="adma")  # type: ignore[arg-type]
    check_literals(Architecture())
