"""Latents (C, H, W) and thousands of them: blocks against the dense Jacobian, the estimate against the exact."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import jacrev, vmap

import unseam
from unseam.errors import BadInput
from unseam.geometry import entanglement_cost, pullback
from unseam.geometry.groups import WAYS, choose_groups, group_pullbacks, group_sample, middle, way_of
from unseam.geometry.sampled_cost import sampled_cost
from unseam.models.likelihood import Bernoulli, Gaussian
from unseam.models.posterior import Diagonal

SHAPE = (3, 4, 4)


class ConvVAE(nn.Module):
    """Latents (3, 4, 4), as diffusers' autoencoders have them: `latent_dist` and `sample`."""

    def __init__(self, attention=False):
        super().__init__()
        torch.manual_seed(0)
        self.config = {"latent_channels": 3}
        self.down = nn.Conv2d(1, 6, 2, 2)
        self.up = nn.Sequential(nn.ConvTranspose2d(3, 5, 2, 2), nn.Tanh(), nn.Conv2d(5, 1, 3, 1, 1))
        self.attention = nn.MultiheadAttention(1, 1, batch_first=True) if attention else None

    def encode(self, x):
        mean, log_variance = self.down(x).chunk(2, 1)
        return type("Out", (), {"latent_dist": type("Gaussian", (), {"mean": mean, "var": log_variance.exp()})()})()

    def decode(self, z):
        x = self.up(z)
        if self.attention is not None:
            tokens = x.flatten(2).mT[:, ::4]
            x = x + self.attention(tokens, tokens, tokens, need_weights=False)[0].mean(1)[:, :, None, None]
        return type("Out", (), {"sample": x})()


@pytest.fixture(scope="module")
def model():
    return ConvVAE().eval()


@pytest.fixture(scope="module")
def x():
    return torch.randn(60, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def dense(model, x, s2, rows=slice(None)):
    """M of all 48 latents by reverse mode, (N, 48, 48)."""
    z = model.encode(x).latent_dist.mean.detach()[rows]
    J = vmap(jacrev(lambda t: model.decode(t[None]).sample[0].flatten()))(z).flatten(2).double()
    return J.mT @ J / s2


def test_channels_at_each_location_are_blocks_of_the_whole_metric(model, x):
    found = unseam.diagnose(model, x, s2=0.1, beta=2.0, points=60 * 16, samples=0)
    M = dense(model, x, 0.1).detach()
    index = torch.arange(48).reshape(3, 16).T  # (16, 3)
    blocks = M[:, index[:, :, None], index[:, None, :]]  # (60, 16, 3, 3)
    assert found.points == 960
    assert len(found.latents) == 3
    assert found.entanglement_cost == pytest.approx(float(entanglement_cost(blocks, 2.0).mean()), rel=1e-4)
    assert found.scope == "3 channels at each of 16 locations"
    assert found.verdict.startswith(found.scope)
    q = model.encode(x).latent_dist
    np.testing.assert_allclose([z.sigma2 for z in found.latents], q.var.mean((0, 2, 3)).detach(), rtol=1e-5)
    std = q.mean.detach().movedim(1, 0).flatten(1).std(1, correction=0)
    np.testing.assert_allclose([z.mu_std for z in found.latents], std, rtol=1e-4)


def test_locations_of_a_channel_a_subset_and_all_of_them(model, x):
    M = dense(model, x, 0.1).detach()
    channels = unseam.diagnose(model, x, s2=0.1, beta=2.0, latents="channels", points=180, samples=0)
    blocks = torch.stack([M[:, 16 * c : 16 * c + 16, 16 * c : 16 * c + 16] for c in range(3)], 1)
    assert channels.entanglement_cost == pytest.approx(float(entanglement_cost(blocks, 2.0).mean()), rel=1e-4)
    chosen = unseam.diagnose(model, x, s2=0.1, beta=2.0, latents=[(2, 3, 1), 5, 0], samples=0)
    index = [2 * 16 + 3 * 4 + 1, 5, 0]
    assert chosen.entanglement_cost == pytest.approx(
        float(entanglement_cost(M[:, index][:, :, index], 2.0).mean()), rel=1e-4
    )
    whole = unseam.diagnose(model, x, s2=0.1, beta=2.0, latents="all")
    assert whole.entanglement_cost == pytest.approx(float(entanglement_cost(M, 2.0).mean()), rel=1e-4)
    assert whole.scope == ""
    assert whole.whole_cost is None
    assert max(channels.entanglement_cost, chosen.entanglement_cost) < whole.entanglement_cost  # Fischer


def test_the_cost_of_all_latents_is_estimated_beside(model, x):
    exact = float(entanglement_cost(dense(model, x, 0.1).detach(), 2.0).mean())
    found = unseam.diagnose(model, x, s2=0.1, beta=2.0, samples=480)
    assert abs(found.whole_cost - exact) < 5 * found.whole_cost_error
    assert 0 < found.whole_cost_error < 0.1 * exact
    assert f"All latents together cost {found.whole_cost:.3g} +- {found.whole_cost_error:.3g} nats" in found.verdict
    assert found.to_json()["whole_cost"] == found.whole_cost


def test_attention_is_differentiated(x):
    model = ConvVAE(attention=True).eval()
    part = unseam.diagnose(model, x, s2=0.1, beta=1.0, latents=[0, 17], samples=0, points=60)
    M = dense(model, x, 0.1).detach()[:, [0, 17]][:, :, [0, 17]]
    assert part.entanglement_cost == pytest.approx(float(entanglement_cost(M, 1.0).mean()), rel=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_same_columns(way):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 4)).double()
    z, index = torch.randn(7, 5).double(), torch.tensor([[0, 3], [1, 2], [4, 0], [2, 3], [1, 0], [3, 4], [0, 1]])
    for p in (Gaussian(0.3), Bernoulli()):
        found = group_pullbacks(net, z, index, p, way)
        M = pullback(net, z, p)
        expected = torch.stack([m[i][:, i] for m, i in zip(M, index, strict=True)])
        assert torch.allclose(found.pullback, expected.detach(), rtol=1e-6, atol=1e-9)


def test_a_slice_changes_nothing_but_memory():
    W = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).double()
    z, index = torch.zeros(9, 4).double(), torch.tensor([[0, 2]] * 9)
    one, many = (group_pullbacks(lambda t: t @ W.T, z, index, Gaussian(1.0), chunk=c) for c in (2, None))
    assert torch.allclose(one.pullback, many.pullback)
    assert len(one.pullback) == 9


def test_ways_are_tried_in_order():
    z, index = torch.zeros(3, 2), torch.tensor([[0], [1], [0]])
    assert way_of(lambda t: torch.tanh(t), z, index) == "forward"
    assert way_of(lambda t: t, z, index, differentiable=False) == "differences"

    class OnlyReverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return 2 * t

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    assert way_of(OnlyReverse.apply, z, index) == "double reverse"
    with pytest.raises(BadInput, match="derivative is 0 everywhere"):
        way_of(lambda t: t.detach(), z, index)


def test_rows_are_pairs_each_once_or_spread_evenly():
    groups = choose_groups((2, 2, 2))
    every = group_sample(3, groups, 1000)
    assert sorted(zip(every.points.tolist(), map(tuple, every.index.tolist()), strict=True)) == sorted(
        (i, tuple(g)) for i in range(3) for g in groups.index.tolist()
    )
    some = group_sample(50, groups, 20)
    assert len(some.points) == 20
    assert len(set(some.points.tolist())) == 20
    assert {tuple(i) for i in some.index.tolist()} <= {tuple(g) for g in groups.index.tolist()}


def test_many_flat_latents_are_a_part_and_an_estimate():
    """400 latents of which 40 move the output: the 32 strongest are looked at, all are in the estimate."""
    g = torch.Generator().manual_seed(0)
    W = torch.randn(50, 400, generator=g) * (torch.arange(400) < 40)
    codes = torch.randn(500, 400, generator=g) * (1 + (torch.arange(400) < 32))
    found = unseam.diagnose(
        (lambda x: codes[: len(x)], lambda z: z @ W.T), torch.zeros(200, 3), s2=1.0, beta=1.0, samples=800, points=50
    )
    assert found.scope == "the 32 strongest of 400 latents"
    assert len(found.latents) == 32
    exact = float(entanglement_cost((W.T @ W).double()))
    assert abs(found.whole_cost - exact) < 5 * found.whole_cost_error
    block = (W.T @ W).double()[:32, :32]
    assert found.entanglement_cost == pytest.approx(float(entanglement_cost(block)), rel=1e-4)


@pytest.mark.parametrize("beta", [0.05, 1.0, 20.0])
def test_sampled_cost_is_the_exact_one_within_its_error(beta):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(30, 40), nn.Tanh(), nn.Linear(40, 25)).double()
    z = torch.randn(20, 30).double()
    exact = float(entanglement_cost(pullback(net, z, s2=0.1), beta).mean())
    found = sampled_cost(net, z, s2=0.1, beta=beta, samples=600)
    assert abs(found.cost - exact) < 5 * found.error
    assert found.error < 0.05 * exact
    assert (found.shares >= 0).all()
    assert found.truncation < 1e-3 * exact


def test_shares_of_every_latent_sum_to_the_cost():
    W = torch.randn(6, 5, generator=torch.Generator().manual_seed(0)).double()
    found = sampled_cost(lambda z: z @ W.T, torch.zeros(1, 5).double(), s2=1.0, beta=0.5, samples=5)
    assert sorted(found.latents.tolist()) == [0, 1, 2, 3, 4]  # each once
    assert found.shares.sum() == pytest.approx(float(entanglement_cost(W.T @ W, 0.5)), rel=1e-9)


def test_fewer_steps_never_exaggerate():
    W = torch.randn(40, 40, generator=torch.Generator().manual_seed(0)).double()
    costs = [sampled_cost(lambda z: z @ W.T, torch.zeros(1, 40).double(), s2=1.0, samples=40, steps=k).cost
             for k in (2, 4, 8, 40)]  # fmt: skip
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(float(entanglement_cost(W.T @ W)), rel=1e-6)


@pytest.mark.parametrize(
    ("latents", "message"),
    [
        ("chanels", "latents='chanels'.*did you mean 'channels'"),
        ([0, 0], "different positions"),
        ([999], "different positions from 0 to 47"),
        ([(9, 0, 0)], "do not lie in codes of shape"),
        ([], "at least one"),
    ],
)
def test_latents_that_are_not_there_are_one_line(model, x, latents, message):
    with pytest.raises(BadInput, match=message):
        unseam.diagnose(model, x, latents=latents)


def test_align_turns_the_chosen_latents_and_holds_the_others():
    scales, turn = torch.tensor([1.0, 3.0, 2.0, 1.0, 1.5, 0.5, 1.0, 2.5]), torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
    W = torch.eye(8)
    W[[[1], [6]], [1, 6]] = turn
    W = scales * W.T  # latents 1 and 6 are mixed, and no others
    x = torch.randn(200, 8, generator=torch.Generator().manual_seed(0))
    networks = (lambda x: (x @ torch.linalg.inv(W)).unflatten(1, (2, 2, 2)), lambda z: z.flatten(1) @ W)
    codes = networks[0](x).flatten(1)
    found = unseam.align(networks, x, latents=[(0, 0, 1), (1, 1, 0)], s2=0.1, beta=1.0, whiten=False)
    cost = next(row for row in found.table if "cost" in row["what"])
    M = (W @ W.T)[[[1], [6]], [1, 6]] / 0.1
    assert cost["before"] == pytest.approx(float(entanglement_cost(M.double())), rel=1e-5)
    assert cost["after"] < 1e-9
    assert found.helped
    np.testing.assert_allclose(found.encoder(x).numpy(), found.codes, atol=1e-5)
    row = middle(codes.double().numpy())
    assert f"latents [1, 6] of 8 are looked at, what else the decoder takes is held as in row {row}" in found.verdict
    held = codes[row].repeat(4, 1)
    held[:, [1, 6]] = codes[:4, [1, 6]]
    torch.testing.assert_close(found.decoder(torch.from_numpy(found.codes[:4]).float()), held @ W, rtol=1e-4, atol=1e-4)


def test_align_and_theorems_take_the_strongest_of_a_grid(model, x):
    found = unseam.align(model, x, points=40)
    assert found.codes.shape == (60, 32)
    assert "of 48, those that say most, are looked at" in found.verdict
    table = unseam.theorems(model, x, latents=[(0, 0, 0), (1, 0, 0)], points=10)
    assert str(table).startswith("latents [0, 16] of 48 are looked at")
    assert table.to_json()["scope"] == table.scope
    decode = lambda z: model.decode(z).sample  # noqa: E731
    z = model.encode(x).latent_dist.mean.detach()
    same = unseam.theorems(decode, codes=z, latents=np.array([0, 16]), points=10)
    assert same.premise("C1").value == pytest.approx(table.premise("C1").value, rel=1e-3)
    assert "latents [0, 16] of 48 are" in unseam.align(model, x, latents=np.array([0, 16]), points=40).verdict
    with pytest.raises(BadInput, match="latents='channels' are many groups, and this needs one"):
        unseam.align(model, x, latents="channels")


def test_locations_need_a_grid(model, x):
    with pytest.raises(BadInput, match=r"latents='locations' needs codes \(N, C, H, W\)"):
        unseam.diagnose((lambda t: t[:, :2], lambda z: z.repeat(1, 2)), torch.randn(20, 4), latents="locations")
    with pytest.raises(BadInput, match="samples=1 must be at least 2"):
        sampled_cost(lambda z: z, torch.zeros(3, 2), samples=1)


def test_a_part_of_a_full_posterior_is_the_one_given_the_other_latents():
    """The decoder holds the others, so beta and the cost are those of the whole: 4, not the 6 of the marginals."""
    g, beta, s2 = torch.Generator().manual_seed(0), 4.0, 0.5
    W = torch.randn(6, 4, generator=g) * torch.tensor([3.0, 2.0, 1.5, 1.0])
    S = torch.linalg.inv(torch.eye(4) + W.T @ W / (s2 * beta))
    B = torch.linalg.inv(W.T @ W + beta * s2 * torch.eye(4)) @ W.T
    both = (lambda x: torch.distributions.MultivariateNormal(x @ B.T, S.expand(len(x), 4, 4)), lambda z: z @ W.T)
    x = torch.randn(400, 4, generator=g) @ W.T + 0.7 * torch.randn(400, 6, generator=g)
    whole = unseam.align(both, x, s2=s2, beta=None)
    part = unseam.align(both, x, s2=s2, beta=None, latents=[0, 1])
    assert "Beta was not given; 4 is an estimate" in whole.verdict
    assert "Beta was not given; 4 is an estimate" in part.verdict
    M = (W.T @ W / s2)[:2, :2].double()
    assert part.table[0]["before"] == pytest.approx(float(entanglement_cost(M, beta)), rel=1e-4)
    torch.testing.assert_close(
        part.encoder(x[:1]).covariance().inverse(), (part.rotation.T @ (torch.eye(2) + M / beta) @ part.rotation)[None],
        rtol=1e-3, atol=1e-3, check_dtype=False,
    )  # fmt: skip


def test_beta_of_a_part_is_estimated_with_each_rows_own_other_latents():
    """Latent 2 scales what latents 0 and 1 do; the variances followed it in every row."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(500, 3, generator=g)
    x[:, 2] = x[:, 2].exp()  # most rows lie below the one that is held
    scale = lambda z: torch.cat([z[:, 2:].expand(-1, 2), torch.ones(len(z), 1)], 1)  # noqa: E731
    encode = lambda x: (x, -torch.log1p(scale(x).square() / (0.1 * 2)))  # noqa: E731
    both = (encode, lambda z: z * scale(z))
    found = unseam.align(both, x, latents=[0, 1], s2=0.1, beta=None)
    assert "2 is an estimate from the Sigma law" in found.verdict
    assert found.verdict.count("Beta was not given") == 1


def test_what_is_given_with_codes_is_used_with_a_part_of_the_latents_too():
    g = torch.Generator().manual_seed(0)
    codes, W = torch.randn(100, 3, generator=g), torch.randn(4, 3, generator=g)
    variances = torch.rand(100, 3, generator=g) + 0.1
    decode = lambda z: z @ W.T  # noqa: E731
    plain = unseam.diagnose(decode, codes, variances, latents=[0, 1])
    for given in (
        (torch.distributions.Normal(codes, variances.sqrt()), None),
        ((codes, variances.log()), None),
        (codes, Diagonal(codes, variances.log())),
    ):
        same = unseam.diagnose(decode, *given, latents=[0, 1])
        assert same.entanglement_cost == pytest.approx(plain.entanglement_cost)
        assert same.sigma_law_r == pytest.approx(plain.sigma_law_r, rel=1e-4)
    with pytest.raises(BadInput, match="look like log-variances"):
        unseam.diagnose(decode, codes, variances.log() - 3, latents=[0, 1])
    with pytest.raises(BadInput, match="are compared with all latents"):
        unseam.diagnose(decode, codes, data=decode(codes), latents=[0, 1])
    assert unseam.diagnose(decode, codes, variances, beta=None, has_beta=False, latents=[0, 1]).beta_source == "none"
    assert "factors=9 was not used" in str(unseam.diagnose(decode, codes, factors=9, latents=[0, 1]).warnings)
    covariances = torch.diag_embed(variances)
    turned = unseam.align(decode, codes, covariances, latents=[0, 1])
    np.testing.assert_allclose(turned.table[0]["before"], plain.entanglement_cost, rtol=1e-4)


def test_a_decoder_with_codes_has_no_encoder_and_one_that_is_given_gives_the_chosen_latents():
    W = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.3, 0.0, 1.0]])
    codes = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    x, decode = codes @ W.T, lambda z: z @ W.T
    assert unseam.align(decode, codes, latents=[0, 2]).encoder is None
    encode = lambda x: x @ torch.linalg.inv(W).T  # noqa: E731
    for found in (
        unseam.align(decode, codes=codes, latents=[0, 2], encoder=encode),
        unseam.align((encode, decode), x, latents=[0, 2], encoder=encode, whiten=False),
    ):
        np.testing.assert_allclose(found.encoder(x).numpy(), found.codes, atol=1e-4)


def test_the_sigma_identity_is_not_asked_where_latents_are_held():
    W = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    codes = torch.randn(100, 3, generator=torch.Generator().manual_seed(1))
    variances = torch.full((100, 3), 0.3)
    decode = lambda z: torch.tanh(z @ W.T)  # noqa: E731
    given = {"codes": codes, "posterior": variances, "data": decode(codes)}
    whole = unseam.theorems(decode, **given).premise("Sigma identity")
    every = unseam.theorems(decode, **given, latents="all").premise("Sigma identity")
    part = unseam.theorems(decode, **given, latents=[0, 1]).premise("Sigma identity")
    assert every.value == pytest.approx(whole.value)
    assert part.value is None
    assert part.sentence == "Sigma identity: needs all that the decoder takes"


def test_the_likelihood_of_a_model_holds_unless_another_one_is_given():
    class Model(torch.nn.Linear):
        likelihood = Bernoulli()

        def decode(self, z):
            return self(z)

    torch.manual_seed(0)
    model, codes = Model(3, 4).eval(), torch.randn(100, 3)
    for latents in ("auto", [0, 1, 2]):
        own = unseam.diagnose(model, codes=codes, latents=latents)
        other = unseam.diagnose(model, codes=codes, latents=latents, likelihood="gaussian", s2=0.5)
        expected = [unseam.diagnose(model.forward, codes=codes, likelihood=p) for p in (Bernoulli(), Gaussian(0.5))]
        assert own.entanglement_cost == pytest.approx(expected[0].entanglement_cost, rel=1e-4)
        assert other.entanglement_cost == pytest.approx(expected[1].entanglement_cost, rel=1e-4)


def test_a_decoder_whose_units_are_off_at_some_codes_is_not_called_cut():
    codes = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    codes[:2], codes[::50] = -0.5, -0.5  # where the decoder is tried first
    W = torch.rand(3, 5, generator=torch.Generator().manual_seed(0))

    class Transformer:
        transform = staticmethod(lambda x: x[:, :3])
        inverse_transform = staticmethod(lambda z: np.maximum(z, 0) @ W.numpy())

    for decode, error in ((lambda z: z.relu() @ W, None), (lambda z: z.round() @ W, BadInput)):
        for latents in ("auto", [0, 1]):
            if error is None:
                assert unseam.diagnose(decode, codes, latents=latents).entanglement_cost > 0
            else:
                with pytest.raises(error, match="its derivative is 0 everywhere"):
                    unseam.diagnose(decode, codes, latents=latents)
    assert unseam.diagnose(Transformer(), torch.cat([codes, codes], 1).numpy()).entanglement_cost > 0
