"""C1, C2 and the other premises against maps whose answer is known; which theorem applies to each."""

import numpy as np
import pytest
import torch
from torch import nn

import unseam
from unseam.errors import BadInput
from unseam.geometry import cosines, entanglement_cost, jacobian
from unseam.geometry.prepare import prepare_decoder
from unseam.geometry.separability import (
    cross_slopes,
    effective_columns,
    length_changes,
    length_slopes,
    product_cost,
    product_support,
)
from unseam.geometry.theorems import THEOREMS, theorem_table
from unseam.models.likelihood import Bernoulli, Gaussian

G = torch.Generator().manual_seed(0)
Z = torch.rand(600, 2, generator=G).double() * torch.tensor([2.0, 1.5]) + torch.tensor([1.0, 0.0])


def polar(z):
    return torch.stack([z[:, 0] * z[:, 1].cos(), z[:, 0] * z[:, 1].sin()], 1)


def curves(z):
    """A product of two curves: each output moves with one latent."""
    return torch.stack([z[:, 0] ** 2, z[:, 0].sin(), z[:, 1].exp() / 4, z[:, 1].cos()], 1)


def shear(z):
    """Neither orthogonal nor curved: a linear map."""
    return z @ torch.tensor([[1.0, 0.6, 0.0], [0.0, 1.5, 0.5]]).double()


def table(decode, z=Z, **more):
    return theorem_table(prepare_decoder(decode, z, None, None, 0.5, 1.0, 600, None), **more)


def test_polar_coordinates_separate_c1_from_c2_by_five_standard_errors():
    J = jacobian(polar, Z)
    assert cosines(J.mT @ J)[:, 0, 1].abs().max() < 1e-12
    found = cross_slopes(polar, Z, s2=1.0)
    assert found.value > 5 * found.error > 0
    r, sd = Z[:, 0], Z[:, 0].std()
    exact = ((r + sd / 2) / (r - sd / 2)).log()  # |J_angle| = radius
    assert found.pairs[1, 0] == pytest.approx(float(exact.square().mean().sqrt()), rel=1e-9)
    assert found.pairs[0, 1] < 1e-12
    assert found.value == pytest.approx(float((exact.square().mean() / 2).sqrt()), rel=1e-9)
    flat = cross_slopes(curves, Z)
    assert flat.value < 1e-9 < 0.02 < flat.chance


def test_slopes_are_derivatives_where_there_are_any():
    slopes = length_slopes(polar, Z[:50])
    expected = torch.zeros(50, 2, 2).double()
    expected[:, 1, 0] = 1 / Z[:50, 0]
    assert torch.allclose(slopes, expected, atol=1e-9)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 5)).double()
    from unseam.geometry.separability import log_lengths

    exact, h, p = length_slopes(net, Z[:5], Bernoulli()), 1e-5, Bernoulli()
    for j in range(2):
        e = h * torch.eye(2)[j].double()
        differences = (log_lengths(net, Z[:5] + e, p) - log_lengths(net, Z[:5] - e, p)) / (2 * h)
        assert torch.allclose(exact[:, :, j], differences, atol=1e-6)


def test_a_piecewise_linear_decoder_is_not_flat_because_its_derivative_is():
    """|J_2| doubles where z_1 crosses 2: no derivative shows it, one standard deviation does."""

    def kinked(z):
        return torch.stack([z[:, 0], z[:, 1] + torch.relu(z[:, 0] - 2) * 0, torch.relu(z[:, 1] * (z[:, 0] > 2))], 1)

    p = Gaussian(1.0)
    assert length_slopes(kinked, Z[:40], p).abs().max() < 1e-12
    assert length_changes(kinked, Z, p)[:, 1, 0].abs().max() > 0.3
    assert not table(kinked).premise("C2").holds


def test_the_cost_of_c2_is_the_divergence_from_a_product():
    r = Z[:, 0]
    exact = float(r.mean().log() - r.log().mean())  # log E r - E log r: the speeds along the angle
    assert product_cost(polar, Z, Gaussian(1.0)) == pytest.approx(exact, rel=0.05)
    assert product_cost(curves, Z, Gaussian(1.0)) < 1e-4
    assert product_cost(shear, Z, Gaussian(1.0)) < 1e-9


@pytest.mark.parametrize(
    ("decode", "holds"),
    [
        (polar, {"C1": True, "C2": False, "sparse Jacobian": False, "product support": True}),
        (curves, {"C1": True, "C2": True, "sparse Jacobian": True, "product support": True}),
        (shear, {"C1": False, "C2": True, "sparse Jacobian": False, "product support": True}),
    ],
)
def test_each_map_fails_where_it_must(decode, holds):
    found = table(decode)
    assert {name: found.premise(name).holds for name in holds} == holds
    assert found.premise("Sigma identity").holds is None
    applies = found.applies
    assert applies["factorised density"] == (holds["C1"] and holds["C2"])
    assert applies["identifiable factors"] == (holds["C1"] and holds["C2"])
    assert applies["orthogonality without independence"] == holds["C1"]
    assert applies["sparse mechanisms"] == holds["sparse Jacobian"]
    assert not applies["axes of the posterior"]


def test_every_number_of_the_table_is_the_one_computed_alone():
    found = table(shear, points=600)
    J = jacobian(shear, Z)
    M = (J.mT @ J) / 0.5
    assert found.premise("C1").cost == pytest.approx(float(entanglement_cost(M).mean()))
    assert found.premise("C2").value == pytest.approx(cross_slopes(shear, Z, s2=0.5).value, abs=1e-9)
    assert found.premise("product support").value == product_support(Z.numpy()).empty
    scaled = J * Z.std(0)
    assert found.premise("sparse Jacobian").value == pytest.approx(float(effective_columns(scaled).mean()))
    s = torch.linalg.svdvals(J[0])
    assert found.premise("distinct singular values").value == pytest.approx(float((s[0] - s[1]) / s[0]))


def test_support_distinct_values_and_degeneracy():
    diagonal = Z[:, :1] + 0.1 * torch.rand(600, 2, generator=torch.Generator().manual_seed(1)).double()
    found = table(curves, diagonal)
    assert not found.premise("product support").holds
    assert "latents 0 and 1" in found.premise("product support").sentence
    equal = table(lambda z: z)
    assert not equal.premise("distinct singular values").holds
    assert not equal.applies["identifiable factors"]
    assert equal.applies["factorised density"]
    with pytest.raises(BadInput, match="needs 16 rows of 2 latents"):
        product_support(np.zeros((5, 2)))
    with pytest.raises(BadInput, match="at least 4 points of at least 2 latents"):
        cross_slopes(polar, Z[:3])


def test_sigma_identity_of_a_linear_gaussian_model_is_exact():
    """Sigma^-1 = I + W'W / (s2 beta): the identity is exact, and twice the variance is off by one."""
    W = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]]).double()
    x = Z @ W.T
    law = 1 / (1 + (W.T @ W).diagonal() / (0.5 * 0.7))
    exact, wide = (
        unseam.theorems(lambda z: z @ W.T, Z - 1, (k * law).expand(600, 2), data=x, s2=0.5, beta=0.7)
        for k in (1.0, 2.0)
    )
    assert exact.premise("Sigma identity").value < 1e-6
    assert exact.premise("Sigma identity").cost == pytest.approx(0, abs=1e-9)
    assert wide.premise("Sigma identity").value == pytest.approx(1.0, abs=1e-6)
    assert wide.premise("Sigma identity").cost == pytest.approx(2 * 0.35 * (1 - np.log(2)), rel=1e-6)  # two latents
    assert exact.applies["axes of the posterior"]
    assert not wide.applies["axes of the posterior"]


def test_sigma_identity_averages_the_hessian_over_q():
    """d(z) = z^2, x = 0: -H = 6 z^2 / s2 has mean 6 (m^2 + v) / s2 under q, which the law at the mean misses."""
    m = torch.full((400, 2), 1.0).double() + torch.randn(400, 2, generator=G).double() * 0.01
    v, s2 = 0.3, 1.0
    beta = 5.0
    found = unseam.theorems(
        lambda z: z**2, m, torch.full((400, 2), v).double(), data=torch.zeros(400, 2), s2=s2, beta=beta, points=400
    )
    target = 1 + 6 * (1 + v) / s2 / beta  # log p = -z^4 / (2 s2): -H = 6 z^2 / s2
    product = v * target
    # a median of a noisy mean of eight draws: near the exact error, and on its side of 1
    assert found.premise("Sigma identity").value == pytest.approx(abs(product - 1), abs=0.2)


def test_words_and_documents_say_the_same():
    found = table(polar)
    text, document = str(found), found.to_json()
    assert "factorised density [Allen 2024, v7 (if and only if)]: no; C2 fails" in text
    assert "axes of the posterior" in text
    assert "unknown; Sigma identity was not measured" in text
    assert [t["name"] for t in document["theorems"]] == [t.name for t in THEOREMS]
    assert document["theorems"][0]["fails"] == ("C2",)
    assert found._repr_html_().count("<tr>") == 2 + len(found.premises) + len(THEOREMS)
    alone = table(lambda z: z[:, :1] * torch.tensor([[1.0, 2.0]]).double())
    assert alone.active == 1
    assert all(p.holds is None for p in alone.premises)


def test_passive_latents_are_left_out():
    wide = torch.cat([Z, torch.randn(600, 1, generator=G).double()], 1)
    found = table(lambda z: polar(z[:, :2]), wide)
    assert found.active == 2
    assert found.premise("C2").value == pytest.approx(table(polar).premise("C2").value)
