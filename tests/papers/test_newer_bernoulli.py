"""N4: the predictions against closed forms, and verdicts that can fail."""

import numpy as np
import pytest

from unseam_papers.frame.rows import keyed
from unseam_papers.newer.bernoulli_columns import conclude, judge, pixel_probabilities, turn_of_least_cost


def principal(bright: float, dark: float) -> float:
    """The eigenvectors of bright * e e^T + dark * e' e'^T with e = (1, 1/2), e' = (1, -1/2)."""
    F = bright * np.outer([1, 0.5], [1, 0.5]) + dark * np.outer([1, -0.5], [1, -0.5])
    x, y = np.linalg.eigh(F)[1][:, 1]
    return float((np.degrees(np.arctan2(y, x)) + 45) % 90 - 45)


@pytest.mark.parametrize(("bright", "dark"), [(0.25, 0.2), (0.25, 0.05), (1.0, 0.01)])
def test_with_one_metric_everywhere_the_prediction_is_its_eigenvectors(bright, dark):
    weights = np.repeat([[bright, dark]], 60, axis=1)
    assert turn_of_least_cost(weights) == pytest.approx(principal(bright, dark), abs=0.051)  # a grid of 0.1 degrees


def test_the_factors_are_white_in_the_sample_and_the_two_predictions_differ():
    p = pixel_probabilities(-2.0)
    w = np.linalg.lstsq(np.array([[0.4, 0.2]] * 60), np.log(p / (1 - p))[:, :60].T, rcond=None)[0]
    assert w.mean() == pytest.approx(0, abs=1e-9)
    assert turn_of_least_cost(p * (1 - p), 0.5) < turn_of_least_cost((p * (1 - p)) ** 2) - 5
    bright = pixel_probabilities(0.0)
    assert abs(turn_of_least_cost(bright * (1 - bright))) < 0.5


def test_angles_at_the_prediction_hold_and_those_at_the_other_fail():
    spread = np.linspace(-0.5, 0.5, 8)
    right = {"at": [{"shift": -2.0, "A D": 14.0, "J": 22.0, "found": (14 + spread).tolist()}]}
    rows = keyed(judge(right))
    assert [row.verdict for row in rows.values()] == ["holds", "holds"]
    assert "is met in 1 of 1 cases, and in 1 of 1 cases" in conclude(right, rows)
    wrong = {"at": [{"shift": -2.0, "A D": 14.0, "J": 22.0, "found": (22 + spread).tolist()}]}
    assert [row.verdict for row in judge(wrong)] == ["fails", "fails"]
