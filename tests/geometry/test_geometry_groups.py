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
