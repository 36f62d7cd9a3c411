"""What A4 to A11 compare with: closed forms against the general machinery, and the published betas."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from unseam.data.sets.manifolds import Manifolds
from unseam.geometry import jacobian
from unseam.linear import linear_vae
from unseam.runs.align import weakest_correlation
from unseam_papers.allen import general_decoders as a5
from unseam_papers.allen import merging_points as a6
from unseam_papers.allen import plateaus as a10
from unseam_papers.allen import posterior_collapse as a8
from unseam_papers.allen import pushforward as a4
from unseam_papers.allen import sheared_truth as a11
from unseam_papers.allen.shapes import components, truth


@pytest.mark.parametrize("shear", [0.0, 0.4, 0.75**0.5, 1.4])
def test_the_predicted_recovery_is_that_of_the_aligned_true_map(shear: float) -> None:
    data = Manifolds(kind="parabolic", spread=0.5, size=4000, shear=shear)
    rows = torch.arange(4000)
    found = weakest_correlation(components(data, rows), data.factors(rows).numpy())
    assert found == pytest.approx(a11.predicted_correlation(shear, ratio=2.0), abs=0.02)


def test_recovery_is_lowest_where_the_singular_directions_lie_between_the_axes() -> None:
    shears = np.linspace(0, 3, 301)
    for ratio in (1.5, 2.0, 4.0):
        curve = [a11.predicted_correlation(a, ratio) for a in shears]
        assert shears[int(np.argmin(curve))] == pytest.approx(np.sqrt(1 - ratio**-2), abs=0.01)
        assert min(curve) == pytest.approx(6 / np.pi * np.arcsin(np.sqrt(0.5) / 2), abs=1e-2)


def test_the_pull_is_the_contrast_of_axes_turned_by_45_degrees() -> None:
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    for ratio in (1.0, 1.3, 2.0):
        W = np.diag([ratio, 1.0]) @ turn
        contrast = np.log(np.linalg.norm(W, axis=0)).sum() - np.log(abs(np.linalg.det(W)))
        assert a11.worst_axes_cost(ratio) == pytest.approx(contrast, abs=1e-12)


def test_the_closed_form_of_collapse_is_that_of_the_best_linear_vae() -> None:
    eigen = [3.0, 2.0, 1.0, 0.5]
    for beta in (0.2, 0.5, 0.9, 1.0, 2.0):
        best = linear_vae.optimum(np.diag(eigen), 3, s2=eigen[0], beta=beta)
        variance = np.diag(best.Sigma)
        mu2 = np.diag(best.V @ np.diag(eigen) @ best.V.T)
        kl = 0.5 * (mu2 + variance - np.log(variance) - 1).sum()
        active, predicted = a8.predicted_collapse([*eigen[:3]], beta)
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
        name: [a6.share_left(t - t.mean(1, keepdim=True), x - x.mean(1, keepdim=True)) for t in ts]
        for name, ts in a6.targets(x).items()
    }
    assert found["own point"] == [1.0]
    expected = [(1 + 2 * sum(np.cos(2 * np.pi * k / 16) for k in range(1, n // 2 + 1))) / n for n in a6.NEIGHBOURS]
    assert found["mean of neighbours"] == pytest.approx(expected, abs=1e-3)
    assert found["circle centroid"] == pytest.approx([0.0], abs=1e-4)


def test_what_is_at_no_target_is_called_so() -> None:
    data = a6.load_data("ring", circles=5)
    x = data.batch(torch.arange(len(data))).reshape(5, -1, 2)
    centre, noise = x.mean(1, keepdim=True), torch.randn(x.shape, generator=torch.Generator().manual_seed(0))

    def label(r: torch.Tensor) -> str:
        return a6.met_target(
            {n: min(float((r - t).norm(dim=-1).mean()) for t in ts) for n, ts in a6.targets(x).items()}
        )

    wrong = (centre + 1.2 * (x - centre), x.roll(1, 1), x + 0.6 * noise, x + torch.tensor([1.0, 0.0]))
    assert {label(r) for r in wrong} == {a6.NONE}
    for name, targets in a6.targets(x).items():
        assert {label(target + 0.05 * noise) for target in targets} == {name}
    assert label(0.5 * x + 0.5 * a6.means_over(x, 5)) == a6.NONE  # half way between two targets: no margin


def a10_numbers(ae: float) -> dict[str, Any]:
    def cell(points: int, ratio: float) -> dict[str, Any]:
        member = {"between": 1.0, "deviation": 0.2, "law": 0.9}
        return {"points": points, "members": [{**member, "at": ratio * (1 + k / 100)} for k in range(6)]}

    return {"vae": [cell(5, 0.03), cell(80, 1.0)], "ae": cell(5, ae)}


def test_a10_puts_the_same_test_to_the_autoencoder() -> None:
    for ratio, verdict in ((0.86, "fails"), (1.02, "holds")):
        rows = {row.key: row for row in a10.judge(a10_numbers(ratio))}
        assert (rows["ae"].kind, rows["ae"].verdict) == ("own control", verdict)
        assert ("An autoencoder is flatter" in a10.conclude(a10_numbers(ratio), rows)) == (verdict == "fails")
        assert (rows["few"].verdict, rows["many"].verdict, rows["deviation"].verdict) == ("agrees", "agrees", "differs")


def a11_numbers(fast: float) -> dict[str, Any]:
    def point(shear: float, ratio: float, true: float) -> dict[str, Any]:
        values = [true - k / 1000 for k in range(5)]
        return {"shear": shear, "ratio": ratio, "predicted": true, "true": values, "theory": [0.98] * 5}

    return {
        "fast": point(0.0, 1.5, fast),
        "shear": [point(0.0, 1.5, 0.99), point(0.75, 1.5, 0.69)],
        "ratio": [point(0.0, 1.0, 0.8), point(0.0, 2.0, 0.99)],
        "controls": {name: [point(0.0, 1.5, 0.84)] for name in a11.CONTROLS},
    }


def test_a11_judges_its_control_at_both_learning_rates() -> None:
    for fast, verdict in ((0.97, "fails"), (0.8, "holds")):
        numbers = a11_numbers(fast)
        rows = {row.key: row for row in a11.judge(numbers)}
        assert (rows["fast"].kind, rows["fast"].verdict) == ("own control", verdict)
        assert rows["beta-vae-sigma"].verdict == "holds"
        assert ("the control fails" in a11.conclude(numbers, rows)) == (verdict == "fails")


def test_a8_counts_every_collapsed_model_below_one() -> None:
    def numbers(kl: float) -> dict[str, Any]:
        cells = [{"beta": b, "kl": [k] * 3, "active": [1] * 3} for b, k in ((0.2, 4.0), (0.6, kl), (1.0, 0.0))]
        return {"eigen": [3.0, 2.0, 1.0], "s2": 3.0, "deep": cells, "linear": cells}

    for kl, verdict in ((0.01, "differs"), (1.0, "agrees")):
        rows = {row.key: row for row in a8.judge(numbers(kl))}
        assert rows["deep none"].verdict == verdict
        assert rows["deep order"].verdict == rows["deep trend"].verdict == "agrees"


def test_the_axes_of_a_neighbourhood_are_the_left_singular_vectors_of_the_true_map() -> None:
    data = Manifolds(kind="parabolic", spread=0.5, size=10_000, ratio=1.5)
    rows = torch.arange(40)
    run: Any = SimpleNamespace(data=data, held_out=lambda: rows)
    J = jacobian(truth(data), data.factors(rows).double())
    turn = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64) / 2**0.5
    straight, turned = a4.local_pca(run, J), a4.local_pca(run, J @ turn)
    assert max(straight["pca"], straight["columns"], turned["pca"]) < 12
    assert turned["columns"] > 25


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
        assert a8.gain_over_collapse(eigen.tolist(), beta) == pytest.approx(asleep - best, abs=1e-9)
