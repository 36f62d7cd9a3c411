"""N5 to N8: predictions against closed forms, and verdicts that can fail."""

import numpy as np
import pytest
import torch

from unseam.linear.linear_vae import best_encoder
from unseam_papers.frame.rows import keyed
from unseam_papers.newer import gap_and_teacher, gaussian_twins, local_variance, pull_law


def test_the_loss_that_descends_is_the_exact_one():
    W = np.array([[1.0, 0.3], [-0.2, 0.7]])
    S, vae = np.diag([1.44, 1.0]), best_encoder(W, 1.0, 0.05)
    parts = [torch.as_tensor(a)[None] for a in (vae.W, vae.V, np.log(np.diag(vae.Sigma)))]
    loss = float(pull_law.exact_loss(*parts, torch.as_tensor(S)))
    assert loss + np.log(2 * np.pi) == pytest.approx(vae.loss(S))  # n/2 log(2 pi s2) is no part of it


def test_the_pull_is_gone_at_the_axes_and_grows_with_the_ratio():
    slow, fast = pull_law.pull(1.05, 23), pull_law.pull(1.2, 23)
    assert slow.degrees[0] == pytest.approx(0, abs=1e-6)
    assert (fast.speed[1:] > slow.speed[1:]).all()
    assert pull_law.steps_to_halve(20, slow) / pull_law.steps_to_halve(20, fast) == pytest.approx(
        ((1.2 - 1 / 1.2) / (1.05 - 1 / 1.05)) ** 2, rel=0.1
    )


def test_starts_that_need_twice_the_steps_fail_the_pull_law():
    right = {"ratio": 1.1, "starts": 9, "found": [[20.0, 100.0 + i, 100.0] for i in range(6)]}
    wrong = {"ratio": 1.2, "starts": 9, "found": [[20.0, 200.0 + i, 100.0] for i in range(6)]}
    none = {"ratio": 1.3, "starts": 9, "found": []}
    rows = keyed(pull_law.judge({"at": [right, wrong, none]}))
    assert [row.verdict for row in rows.values()] == ["holds", "fails", "shown"]
    assert "1 of 3 ratios are met" in pull_law.conclude({"at": [right, wrong, none]}, rows)


def of_threshold(threshold, variances):
    return {"threshold": threshold, "variances": [list(v) for v in variances]}


def test_posteriors_at_the_local_prediction_hold_and_those_at_the_global_one_fail():
    u = (local_variance.edges()[1:] + local_variance.edges()[:-1]) / 2
    local = [local_variance.predicted(u, 0.5) + 0.001 * i for i in range(6)]
    whole = [np.full(len(u), 1.0) - 0.001 * i for i in range(6)]
    right = keyed(local_variance.judge({"at": [of_threshold(0.5, local)]}))
    assert {key: row.verdict for key, row in right.items()} == {"local 0.5": "holds", "awake 0.5": "holds"}
    wrong = keyed(local_variance.judge({"at": [of_threshold(0.5, whole)]}))
    assert {key: row.verdict for key, row in wrong.items()} == {"local 0.5": "fails", "awake 0.5": "fails"}
    collapsed = keyed(local_variance.judge({"at": [of_threshold(1.2, [np.ones(len(u))] * 6)]}))
    assert collapsed["collapsed 1.2"].verdict == "holds"


def test_the_data_have_the_local_variance_that_is_predicted_from():
    x, hidden = local_variance.uneven_rows()
    high = hidden[:, 0] > 1.5
    assert x[high, 1].std() == pytest.approx(local_variance.local_deviation(hidden[high, 0]).mean(), rel=0.1)
    assert x[:, 1].var() == pytest.approx(local_variance.whole_variance(), rel=0.1)


def test_a_radius_above_the_twins_holds_and_one_below_it_fails():
    spread = np.linspace(0, 0.01, 6)
    high, low = (0.2 + spread).tolist(), (0.1 + spread).tolist()
    sets = {"wine": {"linear": 0.1, "real": high, "twin": low}, "digits": {"linear": 0.1, "real": low, "twin": high},
            "diabetes": {"linear": 0.1, "real": low, "twin": []}}  # fmt: skip
    rows = keyed(gaussian_twins.judge({"sets": sets, "seeds": 6}))
    assert [rows[f"{name} above"].verdict for name in sets] == ["holds", "fails", "shown"]
    assert "6 of 6 twin models have no radius" in rows["diabetes above"].note
    told = gaussian_twins.conclude({"sets": sets, "seeds": 6}, rows)
    assert "above the twin in 1 of 3 sets and below it in 1" in told


def test_the_radius_of_a_linear_vae_shrinks_as_the_lengths_come_close():
    draw = np.random.default_rng(0).normal(size=(2000, 5))
    draw = (draw - draw.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(draw.T))).T
    far, near = (gaussian_twins.linear_radius((draw * [r, 1, 0, 0, 0]).astype(np.float32)) for r in (2.0, 1.05))
    assert 0 < near < far / 3


def cell(mig, gap="elbo", teacher="turned"):
    original = np.linspace(0.4, 0.5, 6).tolist()
    return {"beta": 1.0, "gap": gap, "teacher": teacher, "original": original, "mig": mig, "gaps": [0.1, -0.5],
            "turns": [3.0, 43.0]}  # fmt: skip


def test_cells_where_mig_falls_hold_and_those_where_it_does_not_are_open():
    low, same = np.linspace(0.1, 0.2, 6).tolist(), np.linspace(0.41, 0.49, 6).tolist()
    numbers = {"cells": [cell(low), cell(same, "reconstruction", "restart")]}
    rows = keyed(gap_and_teacher.judge(numbers))
    assert [row.verdict for row in rows.values()] == ["holds", "open"]
    assert (
        "gap 0.10 to -0.50 nats; preferred axes of the disentangled model 3 to 43 degrees" in rows["1-elbo-turned"].note
    )
    told = gap_and_teacher.conclude(numbers, rows)
    assert "reconstruction 0 of 1, elbo 1 of 1, restart 0 of 1, turned 1 of 1" in told
