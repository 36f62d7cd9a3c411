"""benchmarks/find_calibration.py: the judge is right about made-up findings, and a run that stopped goes on."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def module(name: str) -> ModuleType:
    """A file of benchmarks/."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def calibration() -> ModuleType:
    return module("find_calibration")


def findings(codes: np.ndarray, grades: list[str], loadings: pd.DataFrame | None = None) -> Any:
    document = {
        "count": len(grades), "model": "linear", "settled": True, "factors": [{"grade": grade} for grade in grades],
    }  # fmt: skip
    return SimpleNamespace(codes=pd.DataFrame(codes), to_json=lambda: document, loadings=loadings)


@pytest.fixture(scope="module")
def items(calibration: ModuleType) -> Any:
    """Two factors with five items each; determinacy about 0.9."""
    g = np.random.default_rng(0)
    z, L = g.standard_normal((2000, 2)), np.kron(np.eye(2), np.full((5, 1), 0.7))
    x = z @ L.T + 0.7 * g.standard_normal((2000, 10))
    kinds = module("_calibration_kinds")
    return kinds.Simulated(kinds.frame(x), 2, "", z, L)


def scores(items: Any) -> np.ndarray:
    """The sum of each factor's own items: what noise leaves of the factors."""
    return items.table.to_numpy() @ items.loadings


def test_an_axis_is_right_up_to_what_noise_hides(calibration: ModuleType, items: Any) -> None:
    judge = module("_calibration_judge").judge
    noisy = scores(items)
    correlation = np.corrcoef(noisy[:, 0], items.factors[:, 0])[0, 1]
    assert correlation < 0.93
    row = judge(findings(noisy, ["found", "found"]), items, "known")
    assert (row["wrong"], row["right"], row["knowable"], row["rules"]) == (0, 2, 2, ["codes", "codes"])


def test_a_rotated_axis_is_wrong(calibration: ModuleType, items: Any) -> None:
    judge = module("_calibration_judge").judge
    turned = scores(items) @ np.array([[1.0, 1.0], [1.0, -1.0]])
    row = judge(findings(turned, ["found", "found"]), items, "known")
    assert (row["wrong"], row["right"]) == (2, 0)
    row = judge(findings(turned, ["group", "found"]), items, "known")
    assert (row["wrong"], row["right"]) == (1, 0)


def test_the_same_factor_twice_is_right_once(calibration: ModuleType, items: Any) -> None:
    judge = module("_calibration_judge").judge
    twice = np.repeat(scores(items)[:, :1], 2, axis=1)
    assert judge(findings(twice, ["found", "found"]), items, "known")["wrong"] == 1


def test_loadings_of_a_simple_structure_are_enough(calibration: ModuleType, items: Any) -> None:
    judge = module("_calibration_judge").judge
    loadings = pd.DataFrame(items.loadings, index=items.table.columns)
    noise = np.random.default_rng(1).standard_normal((2000, 2))
    row = judge(findings(noise, ["found", "found"], loadings), items, "known")
    assert row["rules"] == ["loadings", "loadings"]
    turned = pd.DataFrame(items.loadings @ np.array([[0.8, 0.6], [-0.6, 0.8]]), index=items.table.columns)
    assert judge(findings(noise, ["found", "found"], turned), items, "known")["wrong"] == 2


def test_the_sum_of_factors_that_noise_hides_is_wrong(calibration: ModuleType) -> None:
    """Determinacy is low, so that a correlation of 0.6 is above the bar: what the codes have must be one factor."""
    g, kinds = np.random.default_rng(0), module("_calibration_kinds")
    z = g.laplace(size=(3000, 2))
    x = z @ np.ones((2, 8)) + 3 * g.standard_normal((3000, 8))
    made = kinds.Simulated(kinds.frame(x), 2, "", z)
    row = module("_calibration_judge").judge(findings(x.sum(1, keepdims=True), ["found"]), made, "possible")
    assert row["rank"][0] > row["bar"][0]
    assert row["wrong"] == 1


def test_nothing_may_be_found_where_nothing_can_be_known(calibration: ModuleType, items: Any) -> None:
    judge = module("_calibration_judge").judge
    assert judge(findings(scores(items), ["found", "group"]), items, "none")["wrong"] == 1
    assert judge(findings(scores(items), ["group", "unstable"]), items, "none")["wrong"] == 0


def test_bound_is_the_one_of_clopper_and_pearson(calibration: ModuleType) -> None:
    from scipy.stats import binom

    bound = module("_calibration_judge").upper_bound(3, 200)
    assert binom.cdf(3, 200, bound) == pytest.approx(0.05)
    assert module("_calibration_judge").upper_bound(0, 59) == pytest.approx(1 - 0.05 ** (1 / 59))


def test_every_kind_makes_the_same_table_twice(calibration: ModuleType) -> None:
    for name, kind in calibration.KINDS.items():
        for table in range(3):
            made, again = (calibration.simulate(name, table, rows=80) for _ in range(2))
            pd.testing.assert_frame_equal(made.table, again.table)
            assert len(made.table) == 80
            assert made.factors is None or made.factors.shape == (80, made.count)
            assert made.loadings is None or made.loadings.shape[1] == made.count
            assert kind.answer == "none" or made.factors is not None
    different = calibration.simulate("items", 0), calibration.simulate("items", 1)
    assert different[0].table.shape != different[1].table.shape or not different[0].table.equals(different[1].table)


def test_promax_is_right_about_oblique_items(calibration: ModuleType) -> None:
    rivals = module("_calibration_judge").rivals(calibration.simulate("oblique", 0))
    assert rivals["FA promax"] > rivals["FA"]
    assert rivals["FA promax"] > 0.85


def test_a_run_that_stopped_goes_on(calibration: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[str, int]] = []

    def measure(name: str, table: int) -> dict[str, Any]:
        if len(measured) == 3:
            raise KeyboardInterrupt
        measured.append((name, table))
        return {"kind": name, "table": table, "count": 0, "true": 0, "grades": [], "rules": [], "wrong": 0, "cpu": 0.1}

    monkeypatch.setattr(calibration, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        calibration.calibrate(["independent", "series"], 2, 1, tmp_path, show=False)
    assert measured == [("independent", 0), ("series", 0), ("independent", 1)]
    with (tmp_path / "series.jsonl").open("a") as file:
        file.write('{"code": "cut o')  # a line that was cut off
    measured.clear()
    summaries = calibration.calibrate(["independent", "series"], 2, 1, tmp_path, show=False)
    assert measured == [("series", 1)]
    assert [s["tables"] for s in summaries] == [2, 2]
    assert json.loads((tmp_path / "summary.json").read_text())["kinds"] == summaries
    measured.clear()
    monkeypatch.setattr(calibration, "fingerprint", lambda network: "other code")
    assert [s["tables"] for s in calibration.calibrate(["series"], 1, 1, tmp_path, show=False)] == [1]
    assert measured == [("series", 0)]


def test_the_code_that_makes_numbers_is_known_by_its_statements(calibration: ModuleType) -> None:
    """Where a name is imported from, comments and sentences make no numbers; a constant does."""

    def dumped(text: str) -> str:
        return ast.dump(calibration._WithoutWords().visit(ast.parse(text)))

    code = 'from unseam.stats import matched\n\ndef f(x):\n    """What it does."""\n    return matched(x) > 0.9\n'
    same = code.replace("unseam.stats", "unseam.stats.assignment").replace("What it does.", "In other words.")
    assert dumped(code) == dumped(same) != dumped(code.replace("0.9", "0.8"))


def test_one_table_from_simulation_to_summary(calibration: ModuleType, tmp_path: Path) -> None:
    (summary,) = calibration.calibrate(["nongaussian"], 1, 1, tmp_path, show=False)
    assert summary["found"] == summary["found_right"] > 0
    assert summary["wrong_tables"] == 0
    assert summary["mcc"] > 0.9
    assert "nongaussian" in (tmp_path / "summary.md").read_text()


def test_unknown_kind_is_named(calibration: ModuleType, tmp_path: Path) -> None:
    from unseam.errors import BadInput

    with pytest.raises(BadInput, match="did you mean 'items'"):
        calibration.calibrate(["item"], 1, 1, tmp_path)
    with pytest.raises(BadInput, match="tables=0"):
        calibration.calibrate(["items"], 0, 1, tmp_path)


def test_the_page_shows_the_published_results(calibration: ModuleType) -> None:
    """docs/find-measured.md holds the tables of benchmarks/results/, to the letter."""
    results = BENCHMARKS / "results"
    page = (BENCHMARKS.parent / "docs" / "find-measured.md").read_text()
    assert calibration.markdown(json.loads((results / "find-calibration.json").read_text())["kinds"]) in page
    real = module("find_real_tables")
    assert real.markdown(json.loads((results / "find-real-tables.json").read_text())) in page


def test_a_table_without_its_package_is_skipped(
    calibration: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = module("find_real_tables")
    monkeypatch.setattr(real, "TABLES", {"a": real.Table(lambda: real.importlib.import_module("no_such_package"), "")})
    assert real.run(out=tmp_path)["tables"] == []
    assert "a: skipped, because no_such_package is not installed" in capsys.readouterr().err


def test_a_real_table_is_measured_once(calibration: ModuleType, tmp_path: Path) -> None:
    real = module("find_real_tables")
    (row,) = real.run("wine", tmp_path)["tables"]
    assert row["shape"] == [178, 14]
    assert f"| wine | 178 x 14 | {row['count']} (" in (tmp_path / "tables.md").read_text()
    document = json.loads((tmp_path / "wine.json").read_text())
    (tmp_path / "wine.json").write_text(json.dumps(document | {"cpu": 123.0}))
    assert real.run("wine", tmp_path)["tables"][0]["cpu"] == 123.0
