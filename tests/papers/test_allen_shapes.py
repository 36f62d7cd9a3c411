"""What A4 to A11 compare with: closed forms against the general machinery, and the published betas."""

import numpy as np
import pytest
import torch

from unseam.data.manifolds import Manifolds
from unseam.linear import linear_vae
from unseam.runs.diagnose import weakest_correlation
from unseam_papers.allen import general_decoders as a5
from unseam_papers.allen import merging_points as a6
from unseam_papers.allen import plateaus as a10
from unseam_papers.allen import posterior_collapse as a8
from unseam_papers.allen import sheared_truth as a11
from unseam_papers.allen.shapes import components


@pytest.mark.parametrize("shear", [0.0, 0.4, 0.75**0.5, 1.4])
def test_the_predicted_recovery_is_that_of_the_aligned_true_map(shear: float) -> None:
    data = Manifolds(kind="parabolic", spread=0.5, size=4000, shear=shear)
    rows = torch.arange(4000)
    found = weakest_correlation(components(data, rows), data.factors(rows).numpy())
    assert found == pytest.approx(a11.predicted(shear, ratio=2.0), abs=0.02)


def test_recovery_is_lowest_where_the_singular_directions_lie_between_the_axes() -> None:
    shears = np.linspace(0, 3, 301)
    for ratio in (1.5, 2.0, 4.0):
        curve = [a11.predicted(a, ratio) for a in shears]
        assert shears[int(np.argmin(curve))] == pytest.approx(np.sqrt(1 - ratio**-2), abs=0.01)
        assert min(curve) == pytest.approx(6 / np.pi * np.arcsin(np.sqrt(0.5) / 2), abs=1e-2)


def test_the_pull_is_the_contrast_of_axes_turned_by_45_degrees() -> None:
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    for ratio in (1.0, 1.3, 2.0):
        W = np.diag([ratio, 1.0]) @ turn
        contrast = np.log(np.linalg.norm(W, axis=0)).sum() - np.log(abs(np.linalg.det(W)))
        assert a11.pull(ratio) == pytest.approx(contrast, abs=1e-12)


def test_the_closed_form_of_collapse_is_that_of_the_best_linear_vae() -> None:
    eigen = [3.0, 2.0, 1.0, 0.5]
    for beta in (0.2, 0.5, 0.9, 1.0, 2.0):
        best = linear_vae.optimum(np.diag(eigen), 3, s2=eigen[0], beta=beta)
        variance = np.diag(best.Sigma)
        mu2 = np.diag(best.V @ np.diag(eigen) @ best.V.T)
        kl = 0.5 * (mu2 + variance - np.log(variance) - 1).sum()
        active, predicted = a8.predicted([*eigen[:3]], beta)
        assert predicted == pytest.approx(kl, abs=1e-9)
        assert active == int((np.sqrt(mu2) > 0.5).sum())


def test_the_weighted_mean_of_two_equal_posteriors_is_their_mean() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    torch.testing.assert_close(a6.weighted_mean(torch.zeros(2, 2), torch.ones(2, 2), x), torch.full((2, 2), 0.5))


def test_targets_of_the_ring() -> None:
    data = a6.load_data("ring", circles=5)
    x = data.batch(torch.arange(len(data))).reshape(5, -1, 2)
    assert float((x[:, 1:] - x[:, :-1]).norm(dim=-1).mean()) == pytest.approx(a6.SPACING, abs=1e-5)
    found = {
        name: [a6.kept(t - t.mean(1, keepdim=True), x - x.mean(1, keepdim=True)) for t in ts]
        for name, ts in a6.targets(x).items()
    }
    assert found["own point"] == [1.0]
    expected = [(1 + 2 * sum(np.cos(2 * np.pi * k / 16) for k in range(1, n // 2 + 1))) / n for n in a6.NEIGHBOURS]
    assert found["mean of neighbours"] == pytest.approx(expected, abs=1e-3)
    assert found["circle centroid"] == pytest.approx([0.0], abs=1e-4)


def test_the_published_betas_of_figure_2() -> None:
    assert {beta: goes[0] for beta, goes in a6.PUBLISHED.items()} == {
        0.55: "own point",
        2.2: "mean of neighbours",
        3.8: "mean of neighbours",
        60.0: "global centroid",
    }


def test_coordinates_of_a_stretched_plane_are_the_plane_itself() -> None:
    z = torch.tensor([[0.0, 0.0], [1.0, -0.5], [-1.5, 2.0]], dtype=torch.float64)
    curves = [a5.both_ways(lambda z: z * torch.tensor([3.0, 1.0], dtype=z.dtype), z, k, 0.1) for k in range(2)]
    c, near = a5.coordinates(curves, 1)
    np.testing.assert_allclose(np.abs(c), np.abs(z[1:]), atol=0.06)
    assert near.max() < 0.08
    assert max(a5.bend(lines) for lines in curves) < 1e-6


def test_a_swirl_keeps_lengths_and_areas() -> None:
    z = torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    J = torch.func.vmap(torch.func.jacrev(lambda one: a5.swirl(one[None])[0]))(z)
    torch.testing.assert_close(torch.linalg.det(J), torch.ones(50, dtype=torch.float64))
    torch.testing.assert_close(a5.swirl(z).norm(dim=1), z.norm(dim=1))


def test_points_on_the_half_circle() -> None:
    x = a10.half_circle(5)
    assert x.shape == (80, 2)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), a10.RADIUS, rtol=1e-6)
    assert len(np.unique(x.round(4), axis=0)) == 5


def test_what_waking_gains_is_the_difference_of_the_best_linear_losses() -> None:
    eigen = np.array([3.0, 2.0, 1.0])
    for beta in (0.3, 0.8, 1.5):
        best = linear_vae.optimum(np.diag(eigen), 3, s2=eigen[0], beta=beta).loss(np.diag(eigen))
        asleep = linear_vae.best_encoder(np.zeros((3, 3)), eigen[0], beta).loss(np.diag(eigen))
        assert a8.gain(eigen.tolist(), beta) == pytest.approx(asleep - best, abs=1e-9)
