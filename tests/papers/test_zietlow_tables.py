"""Z4 to Z7 and Z9: their predictions against closed forms, and their tables against what is printed."""

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from unseam.geometry import entanglement_cost, haar
from unseam.geometry.orthogonality import distances
from unseam.linear import linear_vae
from unseam_papers import EXHIBITS
from unseam_papers.allen.shapes import pull
from unseam_papers.zietlow.equal_singular_values import plane_distances
from unseam_papers.zietlow.over_beta import predicted
from unseam_papers.zietlow.setups import SETUPS, within


@pytest.mark.parametrize("ratio", [1.0, 1.2, 2.0])
def test_the_pull_is_the_cost_of_the_worst_rotation(ratio: float) -> None:
    beta, turn = 1e-9, np.sqrt(0.5) * np.array([[1.0, -1.0], [1.0, 1.0]])
    M = turn @ np.diag([ratio**2, 1.0]) @ turn.T
    cost = float(entanglement_cost(torch.tensor(M)[None], beta).mean())
    assert cost / beta == pytest.approx(pull(ratio), abs=1e-6)


@pytest.mark.parametrize("beta", [0.1, 0.2, 0.5, 0.9])
def test_predicted_kl_is_that_of_the_optimal_linear_vae(beta: float) -> None:
    S, s2 = np.diag([1 / 3, 1 / 12, 1e-6]), 0.5
    best = linear_vae.optimum(S, d=2, s2=s2, beta=beta)
    assert predicted(beta, np.array([1 / 3, 1 / 12]) / s2).sum() == pytest.approx(best.terms(S)["kl"], abs=1e-9)


def test_random_axes_in_the_plane() -> None:
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, 2000)
    V = np.stack([np.stack([np.cos(angles), -np.sin(angles)], 1), np.stack([np.sin(angles), np.cos(angles)], 1)], 1)
    assert kstest(distances(V), plane_distances()).pvalue > 0.01
    assert plane_distances().mean() == pytest.approx(haar(2)[0], abs=0.03)


def test_an_epoch_is_four_fifths_of_the_rows_in_batches_of_64() -> None:
    assert SETUPS["Synth. Lin."].steps(600) == 375_000
    assert all(setup.beta in setup.betas for setup in SETUPS.values() if setup.betas)


def test_agreement_needs_our_mean_within_the_published_spread() -> None:
    assert within(0.5, 0.1, [0.6, 0.6, 0.6]) == "agrees"
    assert within(0.5, 0.1, [0.62, 0.62, 0.62]) == "differs"
    assert within(0.0, 0.0, [0.004, 0.005]) == "agrees"  # 0.00 as printed


def test_short_trainings_are_not_compared_with_long_ones() -> None:
    score = {"DS": [0.5, 0.6], "DtO": [0.2, 0.3], "steps": [1], "trend": [[0.2]]}
    points = [{"ratio": ratio, **score} for ratio in (1.0, 1.2, 1.5)]
    short, full = (
        EXHIBITS["Z7"].judge({"points": points, "strong": [score] * 3, "epochs": epochs}) for epochs in (10, 600)
    )
    assert {row.verdict for row in short[:6]} == {"not comparable"}
    assert "not comparable" not in {row.verdict for row in full[:6]}
    assert [row.published for row in full[:6:2]] == ["0.51 +- 0.28", "0.76 +- 0.25", "0.98 +- 0.06"]
