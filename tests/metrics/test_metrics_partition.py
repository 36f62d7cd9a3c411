"""I_m as a metric: a thin face of unseam.linear.partition_information."""

import numpy as np
import pytest

from unseam.axes import Factor, FactorSpace
from unseam.linear import partition_information as plain
from unseam.metrics import partition_information

RNG = np.random.default_rng(0)
V = RNG.normal(size=(800, 3))
Z = np.stack([V[:, 2], V[:, 0] + V[:, 1], 0 * V[:, 0]], 1) + 0.1 * RNG.normal(size=(800, 3))


@pytest.mark.parametrize("method", ["gaussian", "ksg"])
def test_the_metric_is_the_library_s_value(method):
    score, found = partition_information(Z, V, method=method), plain(Z, V, method)
    assert score.value == pytest.approx(found.value, abs=1e-12)
    assert score.extra["groups"][0] == ["factor2"]
    assert score.extra["groups"][1] == ["factor0", "factor1"]
    assert score.settings["gap"] == 0.0


def test_factors_without_an_order_are_left_out_and_named():
    names = (Factor("x", None, "continuous"), Factor("kind", 2, "categorical"))
    v = np.column_stack([V[:, 2], RNG.integers(2, size=800)])
    score = partition_information(Z, v, FactorSpace(names))
    assert score.extra["groups"] == {0: ["x"]}
    assert "kind" in score.notes[0]


def test_the_order_sign_and_unit_of_latents_do_not_matter():
    before = partition_information(Z, V).value
    for changed in (Z[:, ::-1], -Z, 7 * Z, np.hstack([Z, np.ones((800, 1))])):
        assert partition_information(changed, V).value == pytest.approx(before, abs=1e-9)
