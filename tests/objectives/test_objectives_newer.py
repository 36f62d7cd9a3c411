"""Tripod and HFS against closed forms, brute force and cases they must solve."""

import itertools
import math

import pytest
import torch
from objective_cases import Member

from unseam.objectives import OBJECTIVES
from unseam.objectives.hfs import HFS, integers_from_noise, support_gap
from unseam.objectives.tripod import hidden, interaction, multi_information
from unseam.train import fit


def draws(count, B, K, seed=0):
    g = torch.Generator().manual_seed(seed)
    signs, normal = torch.randn(2, count, B, K, generator=g, dtype=torch.float64)
    return signs.sign(), normal


@pytest.mark.parametrize("mixed", [0.0, 0.5, 2.0])
def test_the_interaction_is_the_share_of_mixed_second_derivatives(mixed):
    """f = z^T A z has D_v = 2 v^T S A S v: the ratio tends to sum_{i != j} / sum_ij of (S A S)^2."""
    A = torch.tensor([[1.0, mixed, 0.0], [mixed, 0.5, 0.0], [0.0, 0.0, 2.0]], dtype=torch.float64)
    std, z = torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64), torch.zeros(1, 3, dtype=torch.float64)
    found = interaction(lambda z: [torch.einsum("bi,ij,bj->b", z, A, z)[:, None]], z, std, *draws(40_000, 1, 3))
    scaled = (A * std * std[:, None]).square()
    assert found.item() == pytest.approx(1 - (scaled.trace() / scaled.sum()).item(), abs=0.03)


def test_the_interaction_sums_over_layers_and_is_linear_in_none():
    square, line = (lambda z: z[:, :1] * z[:, 1:]), (lambda z: z.sum(1, keepdim=True))
    z, noise = torch.zeros(4, 2, dtype=torch.float64), draws(2, 4, 2)
    one = interaction(lambda z: [square(z)], z, torch.ones(2), *noise)
    torch.testing.assert_close(interaction(lambda z: [square(z), square(z)], z, torch.ones(2), *noise), 2 * one)
    assert interaction(lambda z: [line(z)], z, torch.ones(2), *noise).abs().max() < 1e-9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_interaction_of_a_layer_with_kinks_stays_a_share(dtype):
    """Divided sample by sample, one that meets a kink along the signs and none along the normals gave 1e9."""
    g = torch.Generator().manual_seed(0)
    shares = []
    for _ in range(300):
        W, b, z = (torch.randn(*shape, generator=g, dtype=dtype) for shape in ((3, 24), (24,), (32, 3)))
        signs, normal = torch.randn(2, 2, 32, 3, generator=g, dtype=dtype)
        kinks = lambda z, W=W, b=b: [torch.relu(z @ W + b)]  # noqa: E731
        shares.append(interaction(kinks, z, z.std(0), signs.sign(), normal).mean().item())
    assert min(shares) > 0
    assert max(shares) < 5
    assert torch.tensor(shares).median() < 1  # a share, up to noise


def test_the_interaction_of_a_batch_is_the_ratio_of_means():
    """f = a x y + b x^2, a and b of each sample, has second derivatives [[2b, a], [a, 0]]: 2 a^2 of 2 a^2 + 4 b^2."""
    a, b = (torch.tensor(v, dtype=torch.float64) for v in ((1.0, 3.0, 0.0), (2.0, 0.1, 1.0)))

    def layer(z):
        A, B = (v.repeat(len(z) // 3) for v in (a, b))
        return [(A * z[:, 0] * z[:, 1] + B * z[:, 0] ** 2)[:, None]]

    found = interaction(layer, torch.zeros(3, 2, dtype=torch.float64), torch.ones(2), *draws(40_000, 3, 2))
    mixed, all_ = 2 * a**2, 2 * a**2 + 4 * b**2
    torch.testing.assert_close(found, mixed / all_.mean(), rtol=0.05, atol=0.01)


def test_tripod_looks_at_hidden_layers_after_their_activation_only():
    model = Member("tripod").model
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (layer,) = hidden(model)(z)
    torch.testing.assert_close(layer, torch.tanh(z @ model.decoder[0].weight + model.decoder[0].bias))
    assert Member("tripod").terms()["model"].values["hessian"].min() > 0


def test_multi_information_by_loops():
    g = torch.Generator().manual_seed(0)
    z, std = torch.rand(6, 2, generator=g, dtype=torch.float64), torch.tensor([0.3, 0.2], dtype=torch.float64)
    scale = (4 / 4) ** (1 / 6) * 6 ** (-1 / 6)
    density = lambda x, m, s: math.exp(-0.5 * ((x - m) / s) ** 2) / (s * math.sqrt(2 * math.pi))  # noqa: E731
    for i in range(6):
        joint = sum(math.prod(density(z[i, k], z[j, k], std[k] * scale) for k in range(2)) for j in range(6)) / 6
        alone = [sum(density(z[i, k], z[j, k], std[k]) for j in range(6)) / 6 for k in range(2)]
        assert multi_information(z, std)[i].item() == pytest.approx(math.log(joint / math.prod(alone)))


def test_the_codes_of_tripod_are_on_its_grid_which_training_leaves_alone(tmp_path):
    small = {"network": "mlp", "encoder": (8,), "decoder": (8,), "latents": 2, "show": False, "workers": 1}
    run = fit("synth-nonlinear", "tripod", steps=40, levels=5, out=tmp_path / "run", **small,
              data_parameters={"size": 300}, weight_decay=0.0)  # fmt: skip
    model = run.model(0)
    torch.testing.assert_close(model.values.detach(), torch.linspace(-1, 1, 5).repeat(2, 1), rtol=0, atol=0)
    codes = model.encode(run.data.batch(torch.arange(300))).mean
    assert set(codes.unique().mul(2).round(decimals=5).tolist()) <= {-2.0, -1.0, 0.0, 1.0, 2.0}


def test_tripod_learns_two_positions_without_making_them_interact(tmp_path):
    """At the paper's weights times the pixels: latents in use, a better picture, few mixed derivatives left."""
    small = {"network": "mlp", "encoder": (64,), "decoder": (64,), "decoder_activation": "tanh", "latents": 3}
    sprites = {"size": 16, "shapes": 1, "orientations": 1, "scales": 1, "xs": 16, "ys": 16}
    run = fit("sprites", "tripod", steps=250, batch=32, lr=3e-3, levels=12, mi=0.0256, hessian=2.56, **small,
              data_parameters=sprites, out=tmp_path / "run", log_every=1, workers=1, show=False)  # fmt: skip
    log = run.log().set_index("name")["value"]
    assert log["reconstruction"].iloc[-5:].mean() < 0.5 * log["reconstruction"].iloc[0]
    assert log["hessian"].iloc[-20:].mean() < 0.5 * log["hessian"].iloc[:20].mean()
    codes = run.model(0).encode(run.data.batch(torch.arange(256))).mean
    assert sum(len(column.unique()) > 4 for column in codes.T) >= 2


def test_the_support_gap_is_the_hausdorff_distance_when_all_points_are_asked():
    g = torch.Generator().manual_seed(1)
    a, b = torch.rand(7, 1, generator=g), torch.rand(7, 1, generator=g)
    j, l = (torch.tensor(i)[:, None] for i in zip(*itertools.product(range(7), repeat=2), strict=True))
    far = max(min((s - x) ** 2 + (t - y) ** 2 for x, y in zip(a, b, strict=True)) for s in a for t in b)
    torch.testing.assert_close(support_gap(a, b, a.gather(0, j), b.gather(0, l)), far)


def test_hfs_forgives_correlation_and_not_a_hole_in_the_support():
    """Strongly correlated codes that fill the square cost less than uncorrelated ones on a cross."""
    g = torch.Generator().manual_seed(0)
    u, v = torch.rand(2000, 1, generator=g), torch.rand(2000, 1, generator=g)
    filled = torch.where(torch.rand(2000, 1, generator=g) < 0.8, u, v)  # rank correlation about 0.8, full support
    cross = torch.where(
        torch.rand(2000, 1, generator=g) < 0.5, torch.cat([u, 0 * u + 0.5], 1), torch.cat([0 * v + 0.5, v], 1)
    )
    gap = lambda a, b: support_gap(a, b, a[torch.randperm(2000, generator=g)[:200]], b[:200]).item()  # noqa: E731
    assert torch.corrcoef(torch.cat([u, filled], 1).T)[0, 1] > 0.7
    assert gap(u, filled) < 0.02
    assert gap(cross[:, :1], cross[:, 1:]) > 0.1


def test_training_with_hfs_fills_the_support(tmp_path):
    """Data on a diagonal band, two latents: with gamma the worst gap is smaller than without."""
    common = {"network": "mlp", "encoder": (16,), "decoder": (16,), "latents": 2, "batch": 64, "show": False,
              "workers": 1, "steps": 200, "lr": 5e-3, "gamma": [1e-6, 100.0], "seeds": [0], "beta": 0.05}  # fmt: skip
    g = torch.Generator().manual_seed(0)
    c = torch.rand(600, 1, generator=g)
    x = torch.cat([c, (c + 0.3 * torch.rand(600, 1, generator=g)), c.square()], 1).numpy()
    run = fit(x, "hfs", out=tmp_path / "run", **common)
    gaps = []
    for member in (0, 1):
        e = run.model(member).encode(run.data.batch(torch.arange(600))).mean.detach()
        e = (e - e.mean(0)) / e.std(0)
        j = torch.randperm(600, generator=g)
        gaps.append(support_gap(e[:, :1], e[:, 1:], e[j, :1], e[:, 1:]).item())
    assert gaps[1] < 0.7 * gaps[0]


def test_hfs_draws_indices_evenly_and_its_kl_weight_may_be_none():
    found = integers_from_noise(torch.randn(40_000, generator=torch.Generator().manual_seed(0)), 4).bincount() / 40_000
    torch.testing.assert_close(found, torch.full((4,), 0.25), atol=0.01, rtol=0)
    assert HFS(beta=0.0).kl_weight() is None
    assert OBJECTIVES["hfs"](beta=2.0).kl_weight() == 2.0
