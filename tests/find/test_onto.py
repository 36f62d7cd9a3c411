"""Rows as a network is given them: a likelihood a column, and back to the same rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unseam
from unseam.finding.columns import Prepared, prepare
from unseam.finding.encoding import mix
from unseam.finding.network import EFFORTS, Effort
from unseam.finding.nonlinear import Turning
from unseam.finding.read import read


def table(N: int = 600, seed: int = 0, gaps: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    """Two uniform factors in six numbers, two columns of counts, a column of two numbers and one of three words."""
    g = np.random.default_rng(seed)
    s = g.uniform(-1, 1, (N, 2))
    bent = np.stack([s[:, 0], s[:, 1], s[:, 0] ** 2, s[:, 1] ** 2, s[:, 0] * s[:, 1], np.sin(2 * s[:, 0])], axis=1)
    x = pd.DataFrame(10 * bent + 0.3 * g.normal(size=bent.shape), columns=[f"m{i}" for i in range(6)])
    x["visits"], x["falls"] = g.poisson(np.exp(2 + 1.5 * s[:, 0])), g.poisson(np.exp(2 - 1.5 * s[:, 1]))
    x["ill"] = 1 + (g.uniform(size=N) < 1 / (1 + np.exp(-4 * s[:, 1]))).astype(int)
    x["ward"] = np.array(["a", "b", "c"])[np.clip((s[:, 0] + 0.2 * g.normal(size=N)) // 0.6 + 1, 0, 2).astype(int)]
    if gaps:
        x = x.mask(g.uniform(size=x.shape) < 0.1)
    return x, s


def prepared(x: pd.DataFrame) -> Prepared:
    return prepare(read(x).table, kinds={"visits": "counts", "falls": "counts", "ward": "categorical"})


def test_columns_stand_by_kind_and_go_back_to_the_same_rows() -> None:
    p = prepared(table()[0])
    onto = mix(p, 2)
    assert onto.columns == ("gaussian:6", "bernoulli:1", "negative-binomial:2", "categorical:2")
    y = onto(p.x, p.gaps)
    assert np.allclose(onto.back(y), p.x)
    assert set(y[:, 6]) == {0.0, 1.0}
    assert np.allclose(y[:, 7:9], table()[0][["visits", "falls"]])
    assert (y[:, 9:].sum(1) == (table()[0]["ward"] != "a")).all()


def test_missing_cells_are_masked_and_filled() -> None:
    x, _ = table(gaps=True)
    p = prepared(x)
    onto = mix(p, 2)
    assert onto.columns[-1] == "seen:11"
    y = onto(p.x, p.gaps)
    seen = y[:, 11:]
    assert (seen == 1 - p.gaps[:, onto.order]).all()
    assert np.isfinite(y).all()
    assert np.allclose(onto.back(y)[~p.gaps], p.x[~p.gaps])
    assert not np.allclose(y[:, :6][seen[:, :6] == 0], 0)  # a guess by the row's other cells, not a mean


def test_a_table_of_counts_has_library_sizes_and_plain_numbers_a_density() -> None:
    g = np.random.default_rng(0)
    s = g.gamma(1.0, size=(300, 2)) @ g.dirichlet(np.ones(6), size=2)
    assert mix(prepare(read(g.poisson(200 * s)).table), 2).columns == ("library:6",)
    assert mix(prepare(read(g.normal(size=(50, 4))).table), 2).plain


def test_classes_that_stand_left_of_numbers_stay_variables_of_their_own() -> None:
    g = np.random.default_rng(0)
    words = np.array(["a", "b", "c"])
    x = pd.DataFrame({"one": words[g.integers(0, 3, 90)], "two": words[g.integers(0, 3, 90)]})
    x[["p", "q", "r"]] = g.normal(size=(90, 3))
    onto = mix(prepare(read(x).table, kinds={"one": "categorical", "two": "categorical"}), 2)
    assert onto.columns == ("gaussian:3", "categorical:2", "categorical:2")


@pytest.mark.parametrize(("widest", "ratio"), [(3.0, 3.0), (40.0, 1.0)])
def test_networks_see_similar_columns_in_their_common_unit(widest: float, ratio: float) -> None:
    """Spreads that are alike stay what they are, others are all 1; rows go back to what they were."""
    g = np.random.default_rng(0)
    p = prepare(read(g.normal(size=(500, 3)) * [1.0, 1.5, widest]).table, "standard")
    onto = mix(p, 2)
    spreads = onto(p.x).std(0)
    assert spreads[2] / spreads[0] == pytest.approx(ratio, rel=0.15)
    assert np.allclose(onto.back(onto(p.x)), p.x)


def test_what_a_factor_moves_is_said_in_the_columns_units() -> None:
    p = prepared(table()[0])
    onto = mix(p, 2)
    step = np.zeros((11, 1))
    step[7] = 3.0  # three visits more
    change = (p.raw(onto.moves(step).T) - p.raw(np.zeros((1, 11))))[0]
    visits = p.features.index("visits")
    assert change[visits] > 1
    assert np.abs(np.delete(change, visits)).max() < 1e-9


@pytest.mark.parametrize("gaps", [False, True])
def test_a_mixed_table_is_explained_by_a_network_with_a_likelihood_a_column(
    gaps: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(EFFORTS, "quick", Effort(seeds=1, steps=1000, width=32))
    x, s = table(gaps=gaps)
    how = {"visits": "counts", "falls": "counts", "ward": "categorical"}
    found = unseam.find(x, kinds=how, effort="quick", show=False, latents=3, out=tmp_path / "out")
    assert found.kind == "non-linear"
    codes = np.column_stack([np.ones(len(s)), found.codes])  # three latents share two factors: together they hold both
    left = s - codes @ np.linalg.lstsq(codes, s, rcond=None)[0]
    assert (left.var(0) < 0.2 * s.var(0)).all()
    columns = unseam.load_run(tmp_path / "out" / "run").config.architecture.columns
    assert columns[:4] == ("gaussian:6", "bernoulli:1", "negative-binomial:2", "categorical:2")
    assert (columns[-1] == "seen:11") == gaps
    assert found.transform(x.head()).shape == (5, found.count)


def test_axes_that_turn_are_said_to() -> None:
    still, rest = Turning(300, np.array([0.99, 0.7])), Turning(300, np.array([0.99, 0.97]))
    assert (still.still, rest.still) == (True, False)
    assert "axes still turning" in still.says()
    assert "0.97" in rest.says()
