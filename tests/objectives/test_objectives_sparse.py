"""The L1 norm of the Jacobian as a penalty, and the entropic scores of a decoder, against known truth."""

import numpy as np
import pytest
import torch
from objective_cases import Member
from torch.autograd.functional import jacobian as by_autograd

from unseam.errors import BadInput
from unseam.geometry import entropic_scores, jacobian
from unseam.geometry.entropic import NORMAL
from unseam.geometry.separability import effective_columns
from unseam.objectives.sparse import jacobian_l1
from unseam.train import fit


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_the_penalty_is_the_l1_norm_of_the_jacobian_of_the_mean(likelihood):
    model = Member("sparse-jacobian", likelihood).model
    z = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).double()
    expected = [by_autograd(lambda t: model.mean(t[None])[0], point).abs().sum() for point in z]
    assert torch.allclose(jacobian_l1(model, z), torch.stack(expected))


def test_it_finds_the_sparse_axes_that_the_elbo_does_not_prefer(tmp_path):
    """Two factors of one strength move disjoint outputs: all rotations have the same ELBO, one a sparse Jacobian."""
    g = torch.Generator().manual_seed(0)
    w = torch.randn(1500, 2, generator=g)
    x = torch.cat([w[:, :1].expand(-1, 4), w[:, 1:].expand(-1, 4)], 1) + 0.1 * torch.randn(1500, 8, generator=g)
    common = {"latents": 2, "network": "linear", "steps": 600, "lr": 1e-2, "seeds": [0, 1, 2], "workers": 1,
              "show": False, "beta": 0.2, "scale": "none", "batch": 64}  # fmt: skip
    runs = {name: fit(x.numpy(), name, out=tmp_path / name, **common, **more)
            for name, more in (("beta-vae", {}), ("sparse-jacobian", {"gamma": 0.5}))}  # fmt: skip
    columns = {
        name: [float(effective_columns(jacobian(run.model(m).mean, torch.zeros(1, 2))).detach()) for m in range(3)]
        for name, run in runs.items()
    }
    assert max(columns["sparse-jacobian"]) < 1.15
    assert np.mean(columns["beta-vae"]) > 1.4


def test_entropies_of_a_linear_map_are_those_of_its_lengths():
    W = torch.tensor([[3.0, 1.0], [0.0, 2.0], [0.0, 0.0]]).double()
    found = entropic_scores(lambda z: z @ W.T, torch.zeros(7, 2).double())
    lengths = W.norm(dim=0)
    np.testing.assert_allclose(found.entropy, NORMAL + lengths.log(), rtol=1e-12)
    assert found.order.tolist() == [0, 1]
    cos2 = float((W[:, 0] @ W[:, 1]) ** 2 / (lengths[0] * lengths[1]) ** 2)
    assert found.redundancy == pytest.approx(-0.5 * np.log(1 - cos2))
    assert found.shared[0, 1] == pytest.approx(found.redundancy)
    p = (lengths**2 / (lengths**2).sum()).numpy()
    assert found.effective == pytest.approx(float(np.exp(-(p * np.log(p)).sum())))


def test_the_entropy_of_a_curve_is_that_of_its_arc_length():
    """d(z) = (e^z, 0): arc length e^z is log-normal, of entropy mu + 1/2 log(2 pi e sigma^2) = H(z) + E z."""
    z = torch.randn(20_000, 1, generator=torch.Generator().manual_seed(0)).double() + 0.5
    found = entropic_scores(lambda t: torch.cat([t.exp(), 0 * t], 1), z)
    assert found.entropy[0] == pytest.approx(NORMAL + float(z.mean()))
    assert found.redundancy == pytest.approx(0)
    assert found.effective == pytest.approx(1)


def test_redundancy_is_free_of_the_order_and_scale_of_latents_and_dead_ones_count_last():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 6)).double()
    z = torch.randn(50, 3).double()
    here, there = (entropic_scores(f, p) for f, p in ((net, z), (lambda t: net(t.flip(1) / 2), 2 * z.flip(1))))
    assert here.redundancy == pytest.approx(there.redundancy)
    np.testing.assert_allclose(there.entropy, here.entropy[::-1] - np.log(2))
    dead = entropic_scores(lambda t: net(t * torch.tensor([1.0, 0.0, 1.0]).double()), z)
    assert dead.order[-1] == 1
    with pytest.raises(BadInput, match="does not move with any latent"):
        entropic_scores(lambda t: 0 * t, z)
    with pytest.raises(BadInput, match="give points"):
        entropic_scores(net, z[0])
