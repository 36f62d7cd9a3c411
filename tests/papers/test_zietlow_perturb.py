"""Z16: its closed forms against singular vectors and random search, and verdicts that can fail."""

import copy

import numpy as np
import pytest

from unseam_papers.frame.rows import keyed
from unseam_papers.zietlow.robustness_radius import (
    MIX,
    RATIO,
    anywhere,
    direction,
    gaussian_factors,
    judge,
    observations,
    predicted_angle,
    radius,
    recovery,
    swap,
)


def leading(A):
    """The angle of the leading right singular vector, degrees in [-90, 90)."""
    v = np.linalg.svd(A)[2][0]
    return (np.degrees(np.arctan2(v[1], v[0])) + 90) % 180 - 90


@pytest.mark.parametrize("e", [0.0, 0.3, 1.0, 1.7, 3.0])
def test_the_prediction_is_the_leading_principal_direction_of_the_data(e):
    """Of the observations that are trained on: regress their first principal component on the factors."""
    x = observations(e).astype(float)
    component = (x - x.mean(0)) @ np.linalg.svd(x - x.mean(0), full_matrices=False)[2][0]
    assert direction(component, gaussian_factors()) == pytest.approx(predicted_angle(e), abs=0.01)


def test_at_the_swap_both_columns_are_equally_long():
    b, e = np.radians(MIX), swap()
    A = np.array([[RATIO, 0], [0, 1], [e * np.cos(b), e * np.sin(b)]])
    lengths = np.linalg.norm(A, axis=0)
    assert lengths[0] == pytest.approx(lengths[1])
    assert abs(leading(A)) == pytest.approx(45)
    assert recovery(np.pi / 4) == pytest.approx(0.69, abs=0.005)


def test_noise_has_the_mean_square_of_the_change():
    base = observations(0.0)
    sizes = [np.square(observations(0.7, noise) - base).sum(1).mean() for noise in (False, True)]
    assert sizes[0] == pytest.approx(0.49, rel=1e-3)
    assert sizes[1] == pytest.approx(0.49, rel=0.03)


@pytest.mark.parametrize("ratio", [1.05, 1.5, 3.0])
def test_no_smaller_change_in_any_direction_turns_as_far(ratio):
    rng, e = np.random.default_rng(0), anywhere(ratio)
    turns = {}
    for size in (0.99 * e, 1.02 * e):
        found = []
        for _ in range(4000):
            u, b = rng.normal(size=3), rng.uniform(0, 2 * np.pi)
            A = np.diag([ratio, 1.0, 0.0])[:, :2] + size * np.outer(u / np.linalg.norm(u), [np.cos(b), np.sin(b)])
            found.append(abs(leading(A)))
        turns[size] = max(found)
    assert turns[0.99 * e] < 15
    assert turns[1.02 * e] > 14.5  # random search comes close
    assert e < radius(ratio)


def made():
    points = [{"change": e, "predicted": predicted_angle(e)} for e in (0.0, 0.5, 0.8, 1.2, 1.6, 2.4)]
    for p in points:
        p |= {"turns": [p["predicted"]] * 5, "recoveries": [recovery(np.radians(p["predicted"]))] * 5}
    still = [{"change": p["change"], "predicted": 0.0, "turns": [0.5] * 5, "recoveries": [1.0] * 5} for p in points]
    return {"points": points, "noise": still[1:]}


def test_the_rows_hold_and_can_fail():
    good = made()
    assert {row.verdict for row in judge(good)} == {"holds"}
    turned, lost, shaken = (copy.deepcopy(good) for _ in range(3))
    turned["points"][3]["turns"] = [good["points"][3]["predicted"] + 5] * 5
    lost["points"][0]["recoveries"] = [0.9] * 5
    shaken["noise"][2]["turns"] = [10.0] * 5
    assert keyed(judge(turned))["turn"].verdict == "fails"
    assert keyed(judge(lost))["recovery"].verdict == "fails"
    assert keyed(judge(shaken))["noise"].verdict == "fails"
    early = copy.deepcopy(good)
    for point in early["points"][1:]:
        point["turns"] = [40.0] * 5
    assert keyed(judge(early))["radius"].verdict == "fails"


def test_directions_have_no_sign():
    """A latent at -88 degrees is 2 degrees from one at 90."""
    good = made()
    good["points"][5]["predicted"], good["points"][5]["turns"] = 89.0, [-90.0] * 5
    assert "largest difference 1.0 degrees" in keyed(judge(good))["turn"].ours
