"""Densities, curves, coordinates and dependence against known flows, known curves and known answers."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from unseam.data.sets.manifolds import Manifolds
from unseam.errors import BadInput
from unseam.geometry import (
    component_density,
    coordinate_curve,
    dependence,
    labelled_coordinates,
    log_densities,
    pair_coordinates,
    pullbacks,
    self_consistency,
    singular_curve,
)
from unseam.geometry.degeneracy import axis_preferences, pairs_of, plane_differences
from unseam.models.posterior import Diagonal


def coupling(z: Tensor) -> Tensor:
    """A normalising flow with a known determinant: x1 = sinh z1, x2 = z2 e^{tanh z1} + z1, embedded in R^3."""
    x1, x2 = torch.sinh(z[:, 0]), z[:, 1] * torch.exp(torch.tanh(z[:, 0])) + z[:, 0]
    turn = torch.tensor([[0.6, 0.0], [0.0, 1.0], [0.8, 0.0]], dtype=z.dtype)  # orthonormal columns: an isometry
    return torch.stack([x1, x2], 1) @ turn.T


def test_push_forward_against_a_normalising_flow() -> None:
    z = torch.randn(40, 2, generator=torch.Generator().manual_seed(0)).double()
    log_det = torch.log(torch.cosh(z[:, 0])) + torch.tanh(z[:, 0])
    prior = -0.5 * (z.square() + math.log(2 * math.pi)).sum(1)
    found = log_densities(coupling, z)
    torch.testing.assert_close(found.manifold, prior - log_det)
    assert (found.gap > 0).all()
    torch.testing.assert_close(found.factorised + found.gap, found.manifold)


def test_orthogonal_manifolds_factorise() -> None:
    data = Manifolds(kind="torus", size=50)
    w = data.factors(torch.arange(50)).double()
    found = log_densities(data.function, w)
    torch.testing.assert_close(found.manifold, found.factorised)
    with pytest.raises(BadInput, match=r"latents \[1\] do not move"):
        log_densities(lambda z: z * torch.tensor([1.0, 0.0]).double(), w)


def test_component_density_is_a_density() -> None:
    c = component_density(coupling, torch.tensor([0.3, -0.2]).double(), latent=0, span=5.0, steps=401)
    assert torch.trapezoid(c.density, c.arc).item() == pytest.approx(1.0, abs=1e-3)
    chords = (c.curve[1:] - c.curve[:-1]).norm(dim=1).cumsum(0)
    torch.testing.assert_close(c.arc[1:], chords, rtol=2e-3, atol=1e-4)
    with pytest.raises(BadInput, match="latent=2"):
        component_density(coupling, torch.zeros(2), latent=2)


def disc(z: Tensor) -> Tensor:
    """(radius, angle) -> plane: columns of length 1 and r, orthogonal everywhere."""
    return torch.stack([z[:, 0] * z[:, 1].cos(), z[:, 0] * z[:, 1].sin()], 1)


def turned_disc(z: Tensor) -> Tensor:
    """The same with latent space turned by 30 degrees: the seams are no longer coordinate lines."""
    return disc(z @ TURN)


TURN = torch.tensor([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]], dtype=torch.float64)


def test_singular_curves_are_the_known_ones() -> None:
    """On the disc with r > 1 the large singular vector is the angle's: the curve is a circle of radius r."""
    starts = torch.tensor([[2.0, 0.0], [3.0, 1.0]]).double() @ TURN.T  # in turned coordinates
    circle = singular_curve(turned_disc, starts, component=0, length=1.0)
    torch.testing.assert_close(circle.x.norm(dim=2), torch.tensor([[2.0], [3.0]]).double().expand(2, 21))
    assert circle.reason == ["length reached"] * 2
    ray = singular_curve(turned_disc, starts[1:], component=1, length=1.0)
    angle = torch.atan2(ray.x[0, :, 1], ray.x[0, :, 0])
    torch.testing.assert_close(angle, torch.full_like(angle, 1.0), rtol=1e-9, atol=1e-9)


def test_curves_stop_with_a_reason() -> None:
    """Going inwards the two singular values of the disc, 1 and r, meet at r = 1."""
    inwards = singular_curve(lambda z: disc(-z), torch.tensor([[-1.5, 0.0]]).double(), component=1, length=2.0)
    assert inwards.reason == ["singular values cross"]
    assert 0.9 < abs(inwards.z[0, -1, 0]) < 1.1
    walked = inwards.z[0, : inwards.steps[0]].diff(dim=0).norm(dim=1)
    assert walked.numel() == pytest.approx(0.5 / 0.05, abs=2)  # from 1.5 to 1 in steps of 0.05, then no further
    torch.testing.assert_close(walked, torch.full_like(walked, 0.05))
    out = singular_curve(lambda z: z * torch.tensor([3.0, 1.0]).double(), torch.tensor([[5.5, 0.0]]).double(), 0)
    assert out.reason == ["left the region"]
    equal = singular_curve(lambda z: z, torch.zeros(1, 2), 0)
    assert equal.reason == ["singular values cross"]
    broken = singular_curve(
        lambda z: torch.sqrt(1 - z * torch.tensor([1.0, 0.1]).double()), torch.zeros(1, 2).double(), 0
    )
    assert broken.reason == ["not finite"]


def test_coordinate_curves() -> None:
    curve = coordinate_curve(disc, torch.tensor([[2.0, 0.5]]).double(), 1, torch.linspace(0, 1, 5))
    torch.testing.assert_close(curve.x.norm(dim=2), torch.full((1, 5), 2.0).double())
    for wrong in ({"latent": 2, "values": torch.zeros(1)},):
        with pytest.raises(BadInput, match="latent=2"):
            coordinate_curve(disc, torch.zeros(1, 2), **wrong)
    with pytest.raises(BadInput, match="component=5"):
        singular_curve(disc, torch.zeros(1, 2), 5)


def test_self_consistency() -> None:
    z = torch.randn(200, 2, generator=torch.Generator().manual_seed(0)).double()
    A = torch.tensor([[2.0, 1.0], [0.0, 1.0], [1.0, 1.0]]).double()
    inverse = torch.linalg.pinv(A)
    assert self_consistency(lambda x: x @ inverse.T, lambda z: z @ A.T, z).error < 1e-20
    posterior = self_consistency(lambda x: Diagonal(x @ inverse.T, 0 * x[:, :2]), lambda z: z @ A.T, z)
    assert posterior.error < 1e-20
    blind = self_consistency(lambda x: (0 * x[:, :2], None), lambda z: z @ A.T, z)
    assert blind.error == pytest.approx(1.0, abs=0.02)
    half = self_consistency(lambda x: (x @ inverse.T) * torch.tensor([1.0, 0.0]).double(), lambda z: z @ A.T, z)
    np.testing.assert_allclose(half.per_latent, [0, 1], atol=0.02)
    with pytest.raises(BadInput, match="latents must match"):
        self_consistency(lambda x: x, lambda z: z @ A.T, z)


def polar_image(z: Tensor) -> Tensor:
    """The latents are a plane whose radius and angle the picture shows: radius in two pixels, angle in two."""
    radius, angle = z.norm(dim=1), torch.atan2(z[:, 1], z[:, 0])
    return torch.stack([3 * radius, radius, angle.cos(), angle.sin()], 1)


@pytest.mark.parametrize("turn", [0.0, 0.4])
def test_tells_cartesian_from_polar_without_labels(turn: float) -> None:
    z = torch.randn(400, 2, generator=torch.Generator().manual_seed(0)).double()
    R = torch.tensor([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]).double()
    around = z * 0.6 + 2 * z / z.norm(dim=1, keepdim=True)
    M = pullbacks(lambda a: polar_image(a @ R), around, s2=0.1).pullback
    assert pair_coordinates(around, M).kind == "polar"
    flat = pullbacks(lambda a: torch.tanh(a @ R * torch.tensor([3.0, 1.0]).double()), z, s2=0.1).pullback
    found = pair_coordinates(z, flat)
    assert found.kind == "cartesian"
    assert abs(abs(found.turn) - math.degrees(turn)) < 2
    assert pair_coordinates(z, torch.eye(2).double().expand(400, 2, 2)).kind == "undecided"


def test_tells_cartesian_from_polar_with_labels() -> None:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, 16, 4000), rng.integers(1, 6, 4000)], 1)
    angle = factors[:, 0] * 2 * np.pi / 16
    polar = np.stack([factors[:, 1] * np.cos(angle), factors[:, 1] * np.sin(angle)], 1)
    assert labelled_coordinates(polar + 0.01 * rng.normal(size=polar.shape), factors).kind == "polar"
    assert labelled_coordinates(factors + 0.1 * rng.normal(size=factors.shape), factors).kind == "cartesian"
    shifted = labelled_coordinates(polar + np.array([9.0, 1.0]), factors, centre=(9.0, 1.0))
    assert shifted.kind == "polar"
    with pytest.raises(BadInput, match="same N"):
        labelled_coordinates(polar, factors[:5])


def test_dependence_does_not_alias_with_rows_in_grid_order() -> None:
    """Every 32nd row of a grid of 32 values is the same value: a constant, which depends on nothing."""
    x = np.tile(np.arange(32.0), 500)
    found = dependence(x, x + 0.01 * np.random.default_rng(0).normal(size=len(x)))
    assert found.correlation > 0.99
    assert found.p_value == 0.005


def test_dependence() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    assert dependence(x, 3 * x - 1).correlation == pytest.approx(1.0)
    assert dependence(x, x**2).p_value == 0.005
    assert dependence(x, np.ones(300)) == (0.0, 1.0)
    p_values = [dependence(rng.normal(size=60), rng.normal(size=60), permutations=99).p_value for _ in range(40)]
    assert 0.3 < np.mean(p_values) < 0.7  # uniform under independence
    with pytest.raises(BadInput, match="same length"):
        dependence(x, x[:10])


def test_distance_correlation_by_its_definition() -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 12))
    a, b = np.abs(x[:, None] - x), np.abs(y[:, None] - y)
    centred = [m - m.mean(0) - m.mean(1)[:, None] + m.mean() for m in (a, b)]
    expected = math.sqrt(
        (centred[0] * centred[1]).mean() / math.sqrt((centred[0] ** 2).mean() * (centred[1] ** 2).mean())
    )
    assert dependence(x, y).correlation == pytest.approx(expected)


def test_degeneracy() -> None:
    """Equal singular values: no rotation of the plane changes anything; a ratio of 1.5 does."""
    pair = pairs_of(2)
    round_, stretched = torch.eye(2).double()[None], torch.diag(torch.tensor([1.0, 1 / 1.5]).double() ** 2)[None]
    assert plane_differences(round_, *pair).item() == 0
    assert plane_differences(stretched, *pair).item() == pytest.approx(1 / 3)
    t = 0.7
    R = torch.tensor([[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]]).double()
    assert plane_differences(R.T @ stretched @ R, *pair).item() == pytest.approx(
        1 / 3
    )  # the plane's own, not the axes'
    assert axis_preferences(round_, *pair).preference.item() == 0
    turned = axis_preferences(100 * R.T @ stretched @ R, *pair)
    straight = axis_preferences(100 * stretched, *pair)
    assert straight.saving.item() == 0
    assert 0 < turned.saving.item() <= turned.preference.item() * 1.001
