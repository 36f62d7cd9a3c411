"""The thesis' synthetic sets and the ring, against what the thesis and the paper say of them."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from unseam import BadInput
from unseam.data.sets.synthetic import Ring, SynthLinear, SynthNonlinear, rotation_about


def test_rotation_agrees_with_scipy() -> None:
    axis = np.array([1, -1, 1]) / np.sqrt(3)
    np.testing.assert_allclose(
        rotation_about((1, -1, 1), 45), Rotation.from_rotvec(axis * np.pi / 4).as_matrix(), atol=1e-14
    )


@pytest.mark.parametrize("ratio", [1.0, 1.2, 1.5, 2.0])
def test_linear_map_has_the_singular_values_and_axes_asked_for(ratio: float) -> None:
    J = SynthLinear(ratio=ratio).matrix
    torch.testing.assert_close(J.T @ J, torch.diag(torch.tensor([ratio**2, 1.0]).double()))


def test_linear_observations_are_the_map_of_their_factors() -> None:
    data = SynthLinear(size=1000)
    index = torch.arange(1000)
    w, x = data.factors(index).numpy(), data.batch(index).numpy()
    stretched = np.column_stack([2 * w[:, 0], w[:, 1], np.zeros(1000)])
    truth = Rotation.from_rotvec(np.array([1, -1, 1]) / np.sqrt(3) * np.pi / 4).apply(stretched)
    np.testing.assert_allclose(x, truth, atol=1e-6)


def test_factors_fill_the_unit_square() -> None:
    for data in (SynthLinear(), SynthNonlinear()):
        w = data.factors(torch.arange(50_000))
        assert len(data) == 50_000
        assert 0 <= w.min() < 1e-3
        assert 1 - 1e-3 < w.max() <= 1
        torch.testing.assert_close(w.T.cov() * 12, torch.eye(2), rtol=0, atol=0.03)


def test_nonlinear_network_has_the_thesis_widths_and_is_curved() -> None:
    data = SynthNonlinear()
    assert [tuple(W.shape) for W, _ in data.layers] == [(10, 2), (6, 10)]
    w = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]])
    a, b, middle = data.observe(w)
    assert (middle - (a + b) / 2).norm() > 1e-3


def test_seed_changes_points_and_network() -> None:
    index = torch.arange(10)
    assert not torch.equal(SynthLinear(seed=0).batch(index), SynthLinear(seed=1).batch(index))
    w = torch.rand(10, 2)
    assert not torch.equal(SynthNonlinear(seed=0).observe(w), SynthNonlinear(seed=1).observe(w))


def test_ring_points_sit_on_circles_that_sit_on_a_ring() -> None:
    data = Ring(circles=5, points=8, radius=7.0, small=2.0)
    x = data.batch(torch.arange(len(data))).reshape(5, 8, 2)
    centres = x.mean(1)
    torch.testing.assert_close(centres.norm(dim=1), torch.full((5,), 7.0))
    torch.testing.assert_close((x - centres[:, None]).norm(dim=2), torch.full((5, 8), 2.0))
    torch.testing.assert_close(x.mean((0, 1)), torch.zeros(2), rtol=0, atol=1e-5)


@pytest.mark.parametrize("bad", [{"ratio": 0.0}, {"size": 0}])
def test_bad_parameters_are_refused(bad: dict) -> None:
    with pytest.raises(BadInput, match=next(iter(bad))):
        SynthLinear(**bad)
    with pytest.raises(BadInput, match="circles"):
        Ring(circles=0)
