"""The parts of A1 to A9, Z3 and Z10 against closed forms: the linear Gaussian model, a square, rotations by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from unseam.geometry import hessian
from unseam.linear import linear_vae, ppca
from unseam.models.likelihood import Gaussian
from unseam.train import fit
from unseam_papers import EXHIBITS, reproduce
from unseam_papers.allen.sigma_law import averaged
from unseam_papers.allen.taylor_elbo import remainder
from unseam_papers.frame.axes import angles
from unseam_papers.zietlow.linear_vae_is_pca import stochastic_loss, turn
from unseam_papers.zietlow.turned import Turned, rotation

W = np.array([[1.5, 0.3], [0.2, -0.7], [0.4, 0.9]])
S2 = 0.3


def linear(nodes=10, mesh=0.1):
    x = torch.tensor(np.random.default_rng(0).standard_normal((5, 3)))
    return Turned(lambda z: z @ torch.tensor(W).T, Gaussian(S2), x, nodes, mesh), x


@pytest.mark.parametrize("degrees", [0, 20, -37])
def test_integrals_of_a_turned_linear_model_are_ppcas(degrees):
    turned, x = linear()
    U, model = rotation(degrees), ppca.PPCA(W, S2, np.zeros(3))
    truth = model.log_likelihood(x.numpy()).mean()
    mean, Sigma = (torch.tensor(part) for part in model.posterior(x.numpy()))
    assert turned.evidence(U) == pytest.approx(truth, abs=1e-9)
    assert turned.elbo(U, mean @ U.T, (U @ Sigma @ U.T).expand(5, 2, 2)) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("degrees", [0, 20, -37])
def test_the_best_diagonal_posterior_pays_the_entanglement_cost(degrees):
    turned, x = linear()
    U, model = rotation(degrees), ppca.PPCA(W, S2, np.zeros(3))
    mean = torch.tensor(model.posterior(x.numpy())[0]) @ U.T
    found = turned.best_diagonal(U, mean, torch.full_like(mean, 0.9))
    cost = linear_vae.entanglement_cost(W @ U.numpy().T, S2)
    assert found == pytest.approx(model.log_likelihood(x.numpy()).mean() - cost, abs=1e-9)


def model_of(decode, s2):
    return SimpleNamespace(decode=decode, likelihood=Gaussian(s2))


def test_the_gap_is_zero_for_a_linear_decoder():
    turned, x = linear()
    e, variance = torch.zeros(5, 2).double(), torch.full((5, 2), 0.3).double()
    H = hessian(turned.decode, e, x, turned.likelihood)
    gap = remainder(model_of(turned.decode, S2), x, e, variance, H, draws=3)
    torch.testing.assert_close(gap, torch.zeros(5).double(), atol=1e-12, rtol=0)


def test_gap_and_averaged_curvature_of_a_square():
    """log p = -(x - z^2)^2 / (2 s2): the gap is -3 v^2 / (2 s2), and E[H] = (2 x - 6 (e^2 + v)) / s2."""
    e, x, v = torch.full((4000, 1), 0.7).double(), torch.full((4000, 1), 0.4).double(), 0.05
    model, variance = model_of(torch.square, 0.5), torch.full((4000, 1), v).double()
    H = hessian(model.decode, e, x, model.likelihood)
    assert remainder(model, x, e, variance, H, draws=2).mean().item() == pytest.approx(-3 * v**2, rel=0.15)
    expected = (2 * 0.4 - 6 * (0.7**2 + v)) / 0.5
    assert averaged(model, x, e, variance, draws=2).mean().item() == pytest.approx(expected, rel=0.02)


def test_angles_do_not_see_order_sign_or_length():
    U = np.eye(4, 3)
    assert angles(U[:, [2, 0, 1]] * [-3.0, 0.1, 2.0], U).max() == 0
    turned = U.copy()
    turned[:2, :2] = rotation(10).numpy()
    np.testing.assert_allclose(np.sort(angles(turned, U)), [0, 10, 10], atol=1e-9)
    assert turn(rotation(10).numpy()) == pytest.approx(10)
    assert turn(rotation(100).numpy() * [1, -1]) == pytest.approx(10)


def test_the_stochastic_loss_is_the_best_over_the_noise():
    """min over sigma of sum_j C_jj sigma_j^2 with sigma_1 sigma_2 = 1 is 2 (C_11 C_22)^{1/2}."""
    C, t = np.diag([0.33, 0.08]), 0.4
    R = rotation(np.degrees(t)).numpy()
    a, b = np.diag(R @ C @ R.T)
    best = minimize_scalar(lambda log: a * np.exp(log) + b * np.exp(-log)).fun
    assert 2 * stochastic_loss(C, t) == pytest.approx(best, rel=1e-9)


def test_weights_keep_the_precision_they_were_trained_in(tmp_path):
    settings = {"data_parameters": {"size": 100}, "network": "linear", "latents": 2, "steps": 2, "workers": 1}
    run = fit("synth-linear", "vae", precision="float64", out=tmp_path / "run", **settings)
    assert {w.dtype for w in run.weights(0).values()} == {torch.float64}
    for name, parameter in run.model(0).named_parameters():
        assert torch.equal(parameter, run.weights(0)[name].float())


def test_theorem_3_holds_and_its_controls_do_not(tmp_path):
    (entry,) = reproduce(EXHIBITS, ["A7"], "tiny", tmp_path)
    assert [row["verdict"] for row in entry["rows"]] == ["agrees"] * 2 + ["not comparable"] * 3 + ["agrees"]


def test_what_holds_in_closed_form_holds_untrained(tmp_path):
    a1, z10 = reproduce(EXHIBITS, ["A1", "Z10"], "tiny", tmp_path)
    assert a1["rows"][0]["verdict"] == "agrees"
    assert [row["verdict"] for row in z10["rows"][:3]] == ["agrees"] * 3
