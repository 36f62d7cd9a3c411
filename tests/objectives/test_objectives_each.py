"""What is particular to an objective: capacity, critic, curvature, codebooks, kernels, variances, schedules."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from objective_cases import Member
from torch.func import jacrev, vmap

from unseam.axes import Pass, Terms
from unseam.errors import BadInput
from unseam.geometry import jacobian
from unseam.models import Architecture, Diagonal
from unseam.models.posterior import Quantised
from unseam.objectives import OBJECTIVES, Context, Objective, Optimiser
from unseam.objectives.deterministic import DetVAE, column_slices, gauss_newton, has_known_layers
from unseam.objectives.elbo import SCHEDULES
from unseam.objectives.factor import FactorVAE, permute_dims
from unseam.objectives.info import InfoVAE, mmd2
from unseam.objectives.sigma import SigmaVAE
from unseam.train.stack import Stepper


def context_at(member, step, steps):
    return Context(member.model, step, steps, 50, member.modules, member.noise, member.second)


def run(member, step=3, steps=10):
    posterior, z, theta = member.model(member.x, member.noise["z"])
    return member.objective(Pass(member.x, posterior, z, theta), context_at(member, step, steps))


def test_capacity_rises_and_the_gap_is_that_of_the_batch_mean():
    member = Member("annealed-vae")
    for step, capacity in ((0, 0.0), (5, 12.5), (10, 25.0), (30, 25.0)):
        terms = run(member, step, 30)
        assert terms.values["capacity"].item() == pytest.approx(capacity)
        kl = terms.values["kl"].mean().item()
        reconstruction = terms.values["reconstruction"].mean().item()
        assert terms.loss().item() == pytest.approx(reconstruction + 1000 * abs(kl - capacity))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_scales_beta_and_ends_there(schedule):
    share = [SCHEDULES[schedule](t, 0.5).item() for t in np.linspace(0, 1, 200)]
    assert min(share) >= 0
    assert max(share) == 1
    assert share[-1] == 1
    hyper = torch.tensor(0.25)
    assert SCHEDULES[schedule](0.9, hyper).item() == 1.0


def test_permute_dims_permutes_every_column_by_itself():
    g = torch.Generator().manual_seed(0)
    z, noise = torch.randn(50, 4, generator=g), torch.randn(50, 4, generator=g)
    shuffled = permute_dims(z, noise)
    torch.testing.assert_close(shuffled.sort(0).values, z.sort(0).values)
    assert all((shuffled[:, k] != z[:, k]).any() for k in range(4))
    rows = {tuple(row) for row in z.tolist()}
    assert sum(tuple(row) in rows for row in shuffled.tolist()) == 0


def test_the_critic_recovers_a_known_density_ratio():
    """z ~ N(0, C) with correlation r: log q(z) - sum_k log q(z_k) is a known quadratic, its mean -1/2 log(1 - r^2)."""
    r, B = 0.7, 512
    C = torch.tensor([[1.0, r], [r, 1.0]])
    objective = FactorVAE(width=32, depth=2)
    model = identity_encoder()
    torch.manual_seed(0)
    critic = objective.players(model)["critic"].module
    step = torch.optim.Adam(critic.parameters(), 5e-3)
    g = torch.Generator().manual_seed(1)
    root = torch.linalg.cholesky(C)
    for i in range(700):
        x, second = (torch.randn(2 * B, 2, generator=g) @ root.T).chunk(2)
        noise = {n: torch.randn(B, 2, generator=g) for n in ("z", "second", "shuffle")}
        step.param_groups[0]["lr"] = 5e-3 * (1 - i / 700)
        context = Context(model, modules={"critic": critic}, noise=noise, second=second)
        posterior = model.encode(x)
        terms = objective.critic_terms(Pass(x, posterior, posterior.sample(noise["z"]), x), context)
        step.zero_grad()
        terms.loss().backward()
        step.step()
    z = torch.randn(20000, 2, generator=g) @ root.T
    ratio = -0.5 * ((z @ torch.linalg.inv(C)) * z).sum(1) + 0.5 * z.square().sum(1) - 0.5 * math.log(1 - r * r)
    with torch.no_grad():
        found = critic(z)
    assert np.corrcoef(found, ratio)[0, 1] > 0.99
    assert abs(found.mean() - -0.5 * math.log(1 - r * r)) < 0.03
    assert (found - ratio).abs().mean() < 0.1


def identity_encoder():
    """z = x, up to noise of variance e^-30."""
    model = Architecture(network="linear", latents=2, likelihood="gaussian").build((2,), 0)
    with torch.no_grad():
        model.encoder[1].weight.copy_(torch.cat([torch.eye(2), torch.zeros(2, 2)], 1))
        model.encoder[1].bias.copy_(torch.tensor([0.0, 0.0, -30.0, -30.0]))
    return model


def test_the_critics_loss_does_not_reach_the_model_and_the_models_own_does():
    member = Member("factor-vae")
    terms = member.terms()
    parameters = list(member.model.parameters())
    assert all(g is None for g in torch.autograd.grad(terms["critic"].loss(), parameters, allow_unused=True))
    encoder = member.model.encoder[1].weight
    assert torch.autograd.grad(terms["model"].values["tc"].mean(), encoder)[0].abs().max() > 0


def test_factor_vae_players_are_the_papers():
    model = Architecture(latents=10, likelihood="bernoulli", network="mlp").build((4,), 0)
    player = FactorVAE().players(model)["critic"]
    assert player.optimiser == Optimiser(lr=1e-4, b1=0.5, b2=0.9)
    widths = [tuple(p.shape) for p in player.module.parameters() if p.ndim == 2]
    assert widths == [(10, 1000), *[(1000, 1000)] * 5, (1000, 1)]


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_gauss_newton_is_the_diagonal_of_the_pullback_metric(likelihood):
    model = Member("det-vae", likelihood).model
    z = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    theta, M = gauss_newton(model, z)
    D = vmap(jacrev(lambda one: model.decode(one[None])[0]))(z)  # (B, n, K)
    metric = D.mT @ torch.diag_embed(model.likelihood.curvature(theta)) @ D
    torch.testing.assert_close(M, metric.diagonal(dim1=-2, dim2=-1))


@pytest.mark.parametrize("network", ["linear", "relu", "tanh", "elu", "softplus", "conv", "unknown"])
def test_tangents_by_hand_are_the_jacobian(network):
    """Layer by layer for the networks of the package; torch's forward mode for a decoder with a layer of its own."""
    shape = (1, 16, 16) if network == "conv" else (5,)
    kind = network if network in ("linear", "conv") else "mlp"
    activation = "relu" if network in ("linear", "conv", "unknown") else network
    architecture = Architecture(
        network=kind, latents=3, decoder=(6,), decoder_activation=activation, likelihood="gaussian"
    )
    model = architecture.build(shape, 0).double()
    if network == "unknown":
        model.decoder.append(torch.nn.Hardtanh())
    assert has_known_layers(model.decoder) == (network != "unknown")
    z = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    theta, D = (torch.cat(parts) for parts in zip(*column_slices(model, z), strict=True))
    torch.testing.assert_close(theta, model.decode(z).flatten(1))
    torch.testing.assert_close(D.mT, jacobian(model.decode, z))


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_the_deterministic_elbo_tends_to_the_elbo(likelihood):
    """As Sigma = t I shrinks, the exact version's error falls as t^2, and Gauss-Newton's as t (t^2 once x = xhat)."""
    member = Member("det-vae", likelihood, K=2)
    model, x = member.model, member.x
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    weights = torch.tensor(np.outer(weights, weights).ravel() / weights.sum() ** 2)
    noise = torch.tensor(np.stack(np.meshgrid(nodes, nodes), -1).reshape(-1, 2))

    def errors(hessian, x):
        e = model.encode(member.x).mean
        out = []
        for t in (1e-2, 1e-3):
            q = Diagonal(e, torch.full_like(e, math.log(t)))
            z = e + math.sqrt(t) * noise[:, None]  # (Q, B, K)
            elbo = torch.stack([-model.likelihood.log_prob(x, model.decode(one)) for one in z])
            exact = (weights[:, None] * elbo).sum(0)
            terms = DetVAE(hessian=hessian)(Pass(x, q, e, x), Context(model)).values
            out.append((terms["reconstruction"] + terms["curvature"] - exact).abs().mean().item())
        return out

    large, small = errors("exact", x)
    assert small < 1e-4
    assert large / small == pytest.approx(100, rel=0.1)
    large, small = errors("gauss-newton", x)
    assert large / small == pytest.approx(10, rel=0.1)
    large, small = errors("gauss-newton", model.mean(model.encode(x).mean).detach())
    assert large / small == pytest.approx(100, rel=0.1)


def test_quantised_codes_are_values_of_the_codebook():
    member = Member("qlae", B=40)
    q = member.model.encode(5 * member.x)
    assert isinstance(q, Quantised)
    for k in range(3):
        assert set(q.mean[:, k].tolist()) <= set(member.model.values[k].tolist())
    distances = (q.continuous.unsqueeze(-1) - member.model.values).abs()
    torch.testing.assert_close((q.continuous - q.mean).abs(), distances.min(-1).values)
    assert q.kl().eq(0).all()


def test_the_straight_through_gradient_and_who_moves_what():
    """Reconstruction and commitment move the encoder, as if zhat were e(x); quantisation alone moves the codebook."""
    member = Member("qlae")
    q = member.model.encode(member.x)
    zhat = q.mean.detach().requires_grad_()
    through = torch.autograd.grad(member.model.likelihood.log_prob(member.x, member.model.decode(zhat)).sum(), zhat)[0]
    terms = run(member)
    parameters = [member.model.encoder[1].weight, member.model.values]
    q = member.model.encode(member.x)
    expected = torch.autograd.grad((q.continuous * -through).sum(), parameters[0])[0]
    got = torch.autograd.grad(terms.values["reconstruction"].sum(), parameters, allow_unused=True, retain_graph=True)
    torch.testing.assert_close(got[0], expected)
    assert got[1] is None
    got = torch.autograd.grad(terms.values["quantise"].sum(), parameters, allow_unused=True, retain_graph=True)
    assert got[0] is None
    assert got[1].abs().max() > 0
    got = torch.autograd.grad(terms.values["commit"].sum(), parameters, allow_unused=True)
    assert got[0].abs().max() > 0
    assert got[1] is None


def test_learned_variance_is_the_mean_squared_error_at_its_optimum():
    member = Member("sigma-vae")
    likelihood = member.model.likelihood
    _, _, theta = member.model(member.x, member.noise["z"])
    with torch.no_grad():
        likelihood.log_s2.copy_((member.x - theta).square().mean().log())
    gradient = torch.autograd.grad(run(member).loss(), likelihood.log_s2)[0]
    assert abs(gradient) < 1e-12
    optimal = SigmaVAE(variance="optimal")(Pass(member.x, *member.model(member.x, member.noise["z"])), member.context())
    learned = run(member)
    torch.testing.assert_close(optimal.values["reconstruction"], learned.values["reconstruction"])
    assert optimal.values["lag"] < 1e-20
    s2 = likelihood.log_s2.exp().item()
    entropy = 6 / 2 * math.log(2 * math.pi * math.e * s2)
    assert optimal.values["reconstruction"].mean().item() == pytest.approx(entropy)


def test_mmd_is_unbiased_and_has_its_closed_form():
    """RBF between N(m, C) and N(0, I): E exp(-|a - b|^2 / 2 l^2) is a Gaussian integral with l^2 = K."""
    K, B, repeats = 2, 16, 4000
    C = torch.tensor([[1.5, 0.4], [0.4, 0.5]])
    m = torch.tensor([0.7, -0.2])
    g = torch.Generator().manual_seed(0)
    a = m + torch.randn(repeats, B, K, generator=g) @ torch.linalg.cholesky(C).T
    found = vmap(mmd2)(a, torch.randn(repeats, B, K, generator=g))

    def expected(mean, covariance):
        inner = torch.eye(K) + covariance / K
        return torch.exp(-0.5 * mean @ torch.linalg.solve(K * inner, mean)) / torch.det(inner).sqrt()

    zero, I = torch.zeros(K), torch.eye(K)
    truth = expected(zero, 2 * C) + expected(zero, 2 * I) - 2 * expected(m, C + I)
    assert abs(found.mean() - truth) < 4 * found.std() / math.sqrt(repeats)
    assert found.std() / math.sqrt(repeats) < 0.05 * truth  # the comparison can fail


def test_info_vae_weights():
    terms = run(Member("info-vae imq"))
    assert terms.weights == {"kl": 0.5, "mmd2": 999.5}
    assert InfoVAE(alpha=0.75, lam=10).kl_weight() == 0.25
    assert InfoVAE(alpha=1.0, lam=10).kl_weight() is None  # no KL
    for bad in ({"alpha": 1.5}, {"alpha": 0.2, "lam": 0.5}):
        with pytest.raises(BadInput, match="alpha"):
            InfoVAE(**bad).check()


def test_kl_weight_is_the_weight_a_posterior_feels():
    assert OBJECTIVES["beta-vae"](beta=7.0).kl_weight() == 7
    assert OBJECTIVES["beta-tcvae"](beta=7.0).kl_weight() == 1
    assert OBJECTIVES["beta-tcvae"](alpha=0.5, gamma=0.5).kl_weight() == 0.5
    assert OBJECTIVES["beta-tcvae"](alpha=0.5).kl_weight() is None  # the KL has no one weight
    assert OBJECTIVES["dip-vae-i"]().kl_weight() == 1
    assert OBJECTIVES["annealed-vae"]().kl_weight() is None  # a Lagrange multiplier, which nobody knows


def test_a_field_called_beta_is_not_taken_for_the_weight():
    @dataclass(frozen=True)
    class Own(Objective):
        beta: float = 3.0

        def __call__(self, pass_, context):
            return Terms({"kl": pass_.posterior.kl()})

    @dataclass(frozen=True)
    class Says(Own):
        beta_is = "beta"

    assert Own().kl_weight() is None
    assert Says(beta=5.0).kl_weight() == 5


def test_sigma_vae_knows_the_variance_it_was_trained_with():
    """`optimal`: the model's s2 trails the mean squared error; in the end it is set to it. `learned` is left alone."""
    member = Member("sigma-vae optimal")
    posterior, z, theta = member.model(member.x, member.noise["z"])
    pass_ = Pass(member.x, posterior, z, theta)
    found = member.objective.settled(pass_, member.context())
    member.model.load_state_dict(found, strict=False)
    s2 = member.model.likelihood.log_s2.exp()
    torch.testing.assert_close(s2, (member.x - theta).square().mean())
    assert member.model.state_dict().keys() >= found.keys()
    for name in ("sigma-vae", "beta-vae"):
        other = Member(name)
        assert other.objective.settled(pass_, other.context()) == {}


def test_weight_decay_shrinks_and_is_refused_where_it_is_not_known():
    weights = torch.ones(3)
    weights.grad = torch.zeros(3)
    Stepper(Optimiser(weight_decay=0.1, lr=0.5), weights).step()
    torch.testing.assert_close(weights, torch.full((3,), 0.95))
    for bad in ({"weight_decay": -1.0}, {"weight_decay": 0.1, "name": "sgd"}):
        with pytest.raises(BadInput, match="weight_decay"):
            Optimiser(**bad)
