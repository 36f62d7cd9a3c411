"""The robustness radius against eigenvectors, random search and symmetry."""

import math

import numpy as np
import pytest
import torch

from unseam.errors import BadInput
from unseam.perturb.stress import SLOPE, break_pair, stress, turn_of


def plane(seed, n=8):
    rng = np.random.default_rng(seed)
    J = np.linalg.qr(rng.normal(size=(n, 2)))[0] * [3.0, rng.uniform(0.5, 2.5)]
    return J @ np.array([[1, 0.1 * seed / 10], [0, 1]]), rng.uniform(0.5, 2, n)


def turned_by(J, W, e, b, u):
    moved = J + e * np.outer(u, [math.cos(b), math.sin(b)])
    before, after = (turn_of(x.T @ (W[:, None] * x)) for x in (J, moved))
    return abs((after - before + 90) % 180 - 90)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("degrees", [5.0, 15.0, 30.0])
def test_at_the_radius_the_axes_have_turned_by_just_that(seed, degrees):
    J, W = plane(seed)
    e, b, u = break_pair(J[:, 0], J[:, 1], J.T @ (W[:, None] * J), W, degrees)
    assert turned_by(J, W, e, b, u) == pytest.approx(degrees, abs=1e-6)
    assert turned_by(J, W, 0.9 * e, b, u) < degrees


@pytest.mark.parametrize("seed", range(4))
def test_no_smaller_change_does_it(seed):
    """Random pictures, corners and mixtures just inside the radius never turn the axes as far."""
    J, W = plane(seed)
    e = break_pair(J[:, 0], J[:, 1], J.T @ (W[:, None] * J), W)[0]
    rng = np.random.default_rng(seed)
    for _ in range(3000):
        u = rng.choice([-1.0, 1.0], 8) if rng.random() < 0.5 else rng.uniform(-1, 1, 8)
        assert turned_by(J, W, 0.995 * e, rng.uniform(0, 2 * math.pi), u) < 15.0


def test_closer_singular_values_break_sooner_and_equal_ones_at_once():
    draw = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    draw = draw / draw.std(0)
    radii = [stress(lambda z, r=r: z * torch.tensor([r, 1.0]), draw).radius for r in (1.05, 1.2, 1.5, 3.0)]
    assert radii == sorted(radii)
    assert radii[0] < 0.1 * radii[-1]


def test_the_radius_has_the_unit_of_the_data_and_ignores_that_of_the_codes():
    draw = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    one = stress(lambda z: z * torch.tensor([2.0, 1.0]), draw).radius
    assert stress(lambda z: 10 * z * torch.tensor([2.0, 1.0]), draw).radius == pytest.approx(10 * one, rel=1e-5)
    assert stress(lambda z: z / 5 * torch.tensor([2.0, 1.0]), 5 * draw).radius == pytest.approx(one, rel=1e-5)


def test_only_latents_in_use_are_asked():
    draw = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    found = stress(lambda z: z * torch.tensor([2.0, 1.0, 1e-3]), draw, latents=(0, 1))
    assert [b.pair for b in found.breaks] == [(0, 1)]
    assert stress(lambda z: z, draw, latents=(0,)).radius == math.inf


def test_the_slope_is_that_of_tanh():
    t = np.linspace(-10, 10, 20_001)
    density = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    assert np.trapezoid((1 - np.tanh(t) ** 2) * density, t) == pytest.approx(SLOPE, abs=1e-4)


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="degrees=60"):
        stress(lambda z: z, torch.randn(10, 2), degrees=60)
    with pytest.raises(BadInput, match="at least 2 latents"):
        stress(lambda z: z, torch.randn(10, 1))
