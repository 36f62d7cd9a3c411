"""Intervals and chance levels: do they mean what they say?"""

import numpy as np
import pytest
from _known import known

from unseam.axes import Representation
from unseam.metrics import score, score_representation


@pytest.mark.parametrize("rho", [0.3, 0.8])
def test_the_interval_is_the_textbook_one(rho):
    """MCC of one normal factor and latent is |r|, whose standard deviation is (1 - rho^2) / sqrt(N - 1)."""
    n, rng, widths = 1000, np.random.default_rng(0), []
    for _ in range(4):
        v, e = rng.normal(size=(2, n))
        ci = score(rho * v + np.sqrt(1 - rho**2) * e, v, metrics="mcc", ci=250)["mcc"].ci
        widths.append((ci[1] - ci[0]) / 2)
    assert np.mean(widths) == pytest.approx(1.96 * (1 - rho**2) / np.sqrt(n - 1), rel=0.1)


def test_the_interval_holds_the_value_and_stays_in_range():
    z, v = known("perfect", 300, (2, 3), 3)
    for name, s in score(z, v, metrics="mig,sap,explicitness,infoe,ds", ci=5).items():
        assert s.ci is not None, name
        assert s.ci[0] <= s.value <= s.ci[1]
        assert s.settings["ci_rounds"] == 5
    assert score(z, v, metrics="mig", ci=5)["mig"].ci[1] <= 1.0


def test_bias_is_what_more_rows_take_away():
    """Latents of noise share nothing, so all of their plug-in information is bias; a metric without 1/N has none."""
    z, v = known("noise", 2000, (4, 5), 3)
    found = score(z, v, metrics="code-mutual-information,irs", bias=20)
    s = found["code-mutual-information"]
    assert s.value > 0.05
    assert s.bias == pytest.approx(s.value, rel=0.15)
    assert s.ci is None
    assert found["irs"].bias is None


def test_mig_without_its_bias_is_nearer_to_that_of_many_rows():
    z, v = known("noisy-0.3", 40_000, (3, 6, 10, 8), 6)
    many = score(z, v, metrics="mig")["mig"].value
    few = [score(z[i::50], v[i::50], metrics="mig", bias=12)["mig"] for i in range(10)]  # 800 rows each
    left = np.mean([s.value - s.bias for s in few]) - many
    assert abs(left) < 0.4 * abs(np.mean([s.value for s in few]) - many)


def test_chance_is_what_shuffled_codes_score():
    z, v = known("perfect", 600, (2, 3, 4), 4)
    found = score(z, v, metrics="mig,explicitness,beta-vae,gaussian-tc", chance=3)
    assert found["mig"].chance < 0.05
    assert found["explicitness"].chance == pytest.approx(0.5, abs=0.06)
    assert found["beta-vae"].chance == pytest.approx(1 / 3, abs=0.12)
    assert found["gaussian-tc"].chance is None  # it has no factors to be shuffled against
    assert found["mig"].settings["chance_rounds"] == 3


def test_halves_are_halved_apart():
    """A row of the training half never turns up among the test rows of a round."""
    from unseam.metrics.inputs import prepare_inputs
    from unseam.metrics.shared.uncertainty import half_sample

    table = prepare_inputs(np.arange(100.0), np.arange(100) % 2)
    table.halves()
    smaller = half_sample(table, np.random.default_rng(0))
    train, test = smaller.halves()
    assert (len(train), len(test)) == (33, 16)
    assert not set(train.codes[:, 0]) & set(test.codes[:, 0])


def test_a_representation_brings_its_variances():
    z, v = known("perfect", 300, (2, 3), 3)
    rep = Representation(codes=z, variances=np.full(z.shape, 1.0), factors=v)
    found = score_representation(rep, metrics="mig,rmig,gaussian-tc-sampled")
    assert found["rmig"].value < found["mig"].value
    held_out = score_representation(rep, Representation(codes=z, factors=v), metrics="sap")
    assert held_out["sap"].settings["test"] == 300
