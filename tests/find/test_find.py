"""`find` by truth: what is there is found, what is not is not, and the grades say which is which."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unseam
from unseam.axes import Array
from unseam.cli import main
from unseam.errors import BadInput
from unseam.finding import Findings
from unseam.finding.axes import fit_axes
from unseam.finding.grades import grade_of
from unseam.finding.kinds import recognise
from unseam.finding.network import EFFORTS, Effort, loss_state
from unseam.finding.stability import Agreement, agreement
from unseam.rng import numpy_generator
from unseam.run.config import split
from unseam.stats import matched, rank_correlations


def linear(d: int, n: int, N: int = 1500, seed: int = 0, shape: str = "laplace") -> tuple[Array, Array]:
    g = np.random.default_rng(seed)
    s = {"laplace": g.laplace, "uniform": g.uniform, "normal": g.normal}[shape](size=(N, d))
    return s @ g.normal(size=(d, n)) + 0.1 * g.normal(size=(N, n)), s


def like(findings: Findings, s: Array) -> Array:
    return matched(np.abs(rank_correlations(s, findings.codes.to_numpy()))).values


def pca_kept(seen: Array, y: Array, d: int) -> float:
    """The share of the variance of y that d principal components of other rows keep."""
    U = np.linalg.svd(seen - seen.mean(0), full_matrices=False)[2][:d]
    centred = y - seen.mean(0)
    return float(((centred @ U.T) ** 2).sum() / (centred**2).sum())


@pytest.mark.parametrize("shape", ["laplace", "uniform"])
@pytest.mark.parametrize("seed", [0, 1])
def test_linear_mixtures_come_out_as_fastica_finds_them(shape: str, seed: int) -> None:
    x, s = linear(3, 10, seed=seed, shape=shape)
    found = unseam.find(x, network=False, factors=s)
    assert [f.grade for f in found.factors] == ["found"] * 3
    assert like(found, s).min() > 0.97
    assert found.rivals["unseam"]["mcc"] >= found.rivals["FastICA"]["mcc"] - 0.01
    assert found.kind == "linear"


def test_columns_of_different_noise_are_counted_right() -> None:
    """Standardising makes noise unequal, and PPCA's evidence then counts columns; factor analysis does not."""
    x, s = linear(4, 12, N=2000)
    found = unseam.find(x * 10.0 ** np.arange(-3, 9), network=False)
    assert found.count == 4
    assert found.prepared.scale == "standard"
    assert like(found, s).min() > 0.97


def test_as_many_factors_as_columns() -> None:
    g = np.random.default_rng(1)
    s = g.laplace(size=(2000, 4))
    found = unseam.find(s @ g.normal(size=(4, 4)), network=False)
    assert found.count == 4
    assert like(found, s).min() > 0.97


@pytest.mark.parametrize("seed", range(3))
def test_noise_has_no_factors(seed: int) -> None:
    found = unseam.find(np.random.default_rng(seed).normal(size=(600, 8)))
    assert (found.count, found.kind) == (0, "none")
    assert "No factors" in found.sentence
    assert found.transform(np.zeros((3, 8))).shape == (3, 0)


def test_a_gaussian_cloud_has_no_axes_of_its_own() -> None:
    x, _ = linear(3, 10, N=600, shape="normal")
    found = unseam.find(x, network=False)
    assert [f.grade for f in found.factors] == ["pair"] * 3
    assert found.factors[0].with_ == (1, 2)
    assert "not identified" in found.sentence
    assert "found" in {f.grade for f in unseam.find(x, network=False, orthogonal=True).factors}


def test_dependent_components_are_not_called_found() -> None:
    """x and x^2 are uncorrelated, non-Gaussian and stable, but one factor: a linear model may not call them two."""
    g = np.random.default_rng(0)
    t = g.uniform(-1, 1, 1500)
    x = np.stack([t, t**2], axis=1) @ g.normal(size=(2, 8)) + 0.05 * g.normal(size=(1500, 8))
    assert "found" not in {f.grade for f in unseam.find(x, network=False).factors}


def test_forty_rows_cannot_know() -> None:
    x, _ = linear(3, 10, N=40)
    found = unseam.find(x)
    assert "found" not in {f.grade for f in found.factors}
    assert "too few to know" in found.sentence


def test_a_curve_needs_the_network_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", Effort(seeds=2, steps=900, width=32))
    g = np.random.default_rng(0)
    s = g.uniform(-1, 1, (800, 2))
    x = np.stack([s[:, 0], s[:, 0] ** 2, s[:, 1], s[:, 0] * s[:, 1], np.sin(2 * s[:, 1])], axis=1)
    found = unseam.find(x + 0.03 * g.normal(size=x.shape), effort="quick", scale="common", show=False)
    assert (found.kind, found.count) == ("non-linear", 2)
    assert like(found, s).min() > 0.95
    assert found.transform(x[:5]).shape == (5, 2)
    again = found.inverse_transform(found.transform(x))
    assert ((again - x) ** 2).sum() < 0.05 * ((x - x.mean(0)) ** 2).sum()
    unseen = numpy_generator(0, "rows").permutation(800)[split(800, 0.2)[1].numpy()]  # what its training held out
    z = found.prepared.x / found.prepared.x.std(0)
    y, seen = z[unseen], np.delete(z, unseen, axis=0)
    again = found.model.decode(found.model.encode(found.prepared.x[unseen])) / found.prepared.x.std(0)
    kept = 1 - ((y - again) ** 2).sum() / ((y - seen.mean(0)) ** 2).sum()
    assert found.rivals["unseam"]["variance_kept"] == pytest.approx(kept, abs=1e-9)
    assert found.rivals["PCA"]["variance_kept"] == pytest.approx(pca_kept(seen, y, 2), abs=1e-6)
    assert found.rivals["unseam"]["log_likelihood"] > found.rivals["FastICA"]["log_likelihood"] + 0.5


def test_codes_are_those_of_transform_and_moves_are_in_the_columns_units() -> None:
    x, _ = linear(2, 6)
    table = pd.DataFrame(x * 1000, columns=list("abcdef"))
    found = unseam.find(table, network=False)
    assert np.allclose(found.transform(table), found.codes.to_numpy())
    small = unseam.find(table / 1000, network=False)
    for one, two in zip(found.factors, small.factors, strict=True):
        assert one.features == two.features
        assert set(one.features) <= set("abcdef")
        assert one.moves[0].change == pytest.approx(1000 * two.moves[0].change, rel=1e-6)
    step = np.zeros((2, 2))
    step[1, 0] = 1
    rows = found.inverse_transform(step)
    change = dict(zip("abcdef", rows[1] - rows[0], strict=True))
    assert all(change[m.name] == pytest.approx(m.change) for m in found.factors[0].moves)


def test_columns_are_recognised_and_left_out_by_name() -> None:
    x, _ = linear(2, 5, N=300)
    g = np.random.default_rng(0)
    table = pd.DataFrame(x, columns=list("abcde")).assign(
        id=np.arange(300), fixed=7.0, again=x[:, 0], kind=["x", "y", "z"] * 100, sex=g.integers(0, 2, 300),
        visits=g.negative_binomial(1, 0.1, 300),
    )  # fmt: skip
    found = unseam.find(table, network=False)
    kinds = dict(zip(found.prepared.names, found.prepared.kinds, strict=True))
    assert {k: kinds[k] for k in ("id", "fixed", "again", "kind", "sex", "visits")} == {
        "id": "identifier", "fixed": "constant", "again": "copy", "kind": "classes", "sex": "binary",
        "visits": "counts",
    }  # fmt: skip
    assert found.prepared.features == ("a", "b", "c", "d", "e", "sex", "visits")
    assert all(name in found.notes[0] for name in ("'id'", "'fixed'", "'again'", "'kind'"))


def test_moves_of_counts_are_counts() -> None:
    """Counts are modelled as logarithms; what a factor does to them is said in counts."""
    g = np.random.default_rng(0)
    s = g.uniform(-1, 1, (600, 2))
    rates = np.exp(s @ g.normal(size=(2, 6)) + 4)
    found = unseam.find(g.poisson(rates), network=False)
    logged = [n for n, k in zip(found.prepared.names, found.prepared.kinds, strict=True) if k == "counts"]
    step = np.zeros((2, found.count))
    step[1, 0] = 1
    rows = found.inverse_transform(step)
    change = dict(zip(found.prepared.features, rows[1] - rows[0], strict=True))
    assert all(change[m.name] == pytest.approx(m.change) for m in found.factors[0].moves)
    assert max(abs(m.change) for f in found.factors for m in f.moves if m.name in logged) > 5  # logarithms move by < 3


def test_few_rows_keep_the_axes_that_make_unseen_rows_likelier() -> None:
    """150 rows of three shaped sources: no test alone calls them non-Gaussian, but ICA's axes are right."""
    g = np.random.default_rng(1)
    s = g.uniform(size=(150, 3))
    x = s @ g.normal(size=(3, 8)) + 0.02 * g.normal(size=(150, 8))
    shaped, cloud = fit_axes(x, 3), fit_axes(g.normal(size=(150, 3)) @ g.normal(size=(3, 8)), 3)
    assert shaped.gaussian.sum() > 1
    assert (shaped.likelier, cloud.likelier) == (True, False)
    right = matched(np.abs(rank_correlations(s, shaped.encode(x)))).values.min()
    assert right > 0.9 > matched(np.abs(rank_correlations(s, fit_axes(x, 3, principal=True).encode(x)))).values.min()
    found = unseam.find(x, network=False)
    assert "found" not in {f.grade for f in found.factors if "too few to tell" in f.by}
    believed = unseam.find(x, network=False, orthogonal=True)  # then geometry decides
    assert not any("too few" in f.by for f in believed.factors)


def test_agreement_knows_swaps_signs_and_planes() -> None:
    g = np.random.default_rng(0)
    u = g.normal(size=(800, 3))
    turn = np.eye(3)
    turn[:2, :2] = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    back = agreement(u, [(u, (u @ turn)[:, [2, 0, 1]])] * 3)
    assert back.alone[2] > 0.99
    assert back.alone[:2].max() < 0.8
    assert back.group[0] == back.group[1] != back.group[2]
    assert back.together.min() > 0.99


@pytest.mark.parametrize(
    ("case", "grade"),
    [
        ((0.91, 0.9, True, 0.0, False, True), "found"),
        ((0.89, 0.9, True, 0.0, False, True), "unstable"),
        ((0.99, 0.5, False, 0.99, True, True), "pair"),
        ((0.99, 0.5, False, 0.89, True, True), "unstable"),
        ((0.91, 0.95, True, 0.0, False, True), "unstable"),
    ],
)
def test_grades_at_both_sides_of_their_limits(case: tuple[float, float, bool, float, bool, bool], grade: str) -> None:
    assert grade_of(*case) == grade


def test_the_bar_of_coming_back_is_at_least_that_of_being_the_same() -> None:
    """With many factors chance alone gives little: an axis that comes back at 0.89 is still not the same one."""
    back = Agreement(np.full(9, 0.89), 0.5, np.arange(9), np.zeros(9))
    assert (back.bar, back._replace(chance=0.95).bar, back._replace(agrees=0.97).bar) == (0.9, 0.95, 0.97)


def test_settled_says_how_fast_it_falls() -> None:
    t = np.arange(0, 3000, 50)
    state = loss_state(t, 5 - 0.2 * t / 1000)
    assert (state.word, round(state.per_1000, 6)) == ("still falling", 0.2)
    assert "0.2 nats per 1,000 steps" in state.says()


def test_linear_likelihood_is_a_density() -> None:
    """Against SciPy: with Gaussian components it is the likelihood of N(mean, U L U' + s2 (I - U U'))."""
    from scipy.stats import multivariate_normal

    x, _ = linear(2, 5, shape="normal")
    axes = fit_axes(x, 2)
    C = axes.W @ axes.W.T + axes.s2 * (np.eye(5) - axes.U @ axes.U.T)
    assert np.allclose(axes.ppca_log_likelihood(x), multivariate_normal(axes.mean, C).logpdf(x))


BAD = {
    "one row": (np.ones((1, 3)), "1 row;.*at least 10"),
    "one column": (np.arange(50.0), "one column"),
    "all constant": (np.ones((50, 3)), "n_features=0 usable.*3 constant"),
    "empty": (np.ones((0, 3)), "empty"),
    "all missing": (np.full((50, 2), np.nan), "n_features=0 usable.*2 empty"),
    "infinity": (np.where(np.eye(50) > 0, np.inf, 1.0 * np.arange(50)), "column0.*infinity.*row 0"),
    "words": (pd.DataFrame({"a": [f"x{i}" for i in range(20)], "b": [f"y{i}" for i in range(20)]}), "2 words"),
    "dates": (pd.DataFrame({"a": pd.date_range("2020", periods=20), "b": range(20)}), "1 dates, 1 identifier"),
    "two names": (pd.DataFrame(np.eye(20)[:, :2], columns=["a", "a"]), "two columns named 'a'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_sentence_that_helps(case: str) -> None:
    data, says = BAD[case]
    with pytest.raises(BadInput, match=says):
        unseam.find(data)


def test_verb_writes_codes_page_and_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x, s = linear(2, 6, N=400)
    pd.DataFrame(x, columns=[f"<b>{c}" for c in "abcdef"]).to_csv("mine.csv", index=False)
    assert main(["find", "mine.csv", "--no-network", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    kinds = {"count": int, "factors": list, "settled": bool, "overfitting": bool, "rivals": dict, "codes": str,
             "report": str, "sentence": str}  # fmt: skip
    assert {name: type(document[name]) for name in kinds} == kinds
    assert document["count"] == len(document["factors"]) == 2
    assert {"latent", "grade", "nats", "agreement", "chance", "features"} <= set(document["factors"][0])
    codes = pd.read_csv(document["codes"]).to_numpy()
    assert matched(np.abs(rank_correlations(s, codes))).values.min() > 0.95  # rows in the order of the input
    page = Path(document["report"]).read_text()
    assert "Content-Security-Policy" in page
    assert "<b>a" not in page
    assert "&lt;b&gt;a" in page
    assert json.loads(Path("found/mine/findings.json").read_text()) == document


def test_verb_on_noise_ends_well_and_on_bad_input_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("noise.npy", np.random.default_rng(0).normal(size=(300, 5)))
    assert main(["find", "noise.npy", "--json", "--out", "o"]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 0
    Path("bad.csv").write_text("a,b\n" + "1,x\n" * 20)
    before = sorted(tmp_path.rglob("*"))
    for args in (["bad.csv"], ["nowhere.csv"], ["noise.npy", "--out", "o"], ["noise.npy", "--quick", "--thorough"]):
        assert main(["find", *args]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_verb_that_is_stopped_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(data: str, *, out: Path, **how: object) -> None:
        (out / "run").mkdir(parents=True)
        raise KeyboardInterrupt("go on with: unseam train --resume")

    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.eye(20))
    monkeypatch.setattr(sys.modules["unseam.finding"], "find", stopped)
    assert main(["find", "x.npy", "--out", "o"]) == 130
    assert capsys.readouterr().err == "unseam: stopped; nothing was written: start it again\n"
    assert not Path("o").exists()


def test_numbers_are_recognised() -> None:
    assert recognise("customer_id", np.array([7, 3, 9, 1, 4])) == "identifier"
    assert recognise("age", np.array([31, 45, 31, 60])) == "whole"


def test_a_folder_that_holds_something_is_left_alone_and_a_killed_find_is_begun_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "out" / "run").mkdir(parents=True)
    asked = ["find", str(tmp_path / "x.csv"), "--out", str(tmp_path / "out")]
    assert main(asked) == 2
    assert "exists already and is not an empty folder; choose another" in capsys.readouterr().err
    (tmp_path / "out" / ".unfinished").touch()
    assert main(asked) == 2
    assert "2 rows" in capsys.readouterr().err
