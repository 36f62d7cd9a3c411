"""Missing cells, kinds that are asked for, counts as parts, images, AnnData; each against what was put in."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import unseam
from unseam.axes import Array
from unseam.cli import main
from unseam.data import load_data
from unseam.errors import BadInput
from unseam.finding import read as reading
from unseam.finding.columns import prepare
from unseam.finding.density import dependent, hsic
from unseam.finding.kinds import recognise
from unseam.finding.missing import ppca_fill
from unseam.finding.network import EFFORTS, Effort
from unseam.finding.parts import fit_parts, how_many
from unseam.finding.read import read
from unseam.readers import Columns
from unseam.show.pages.find import write_find_page
from unseam.stats import matched, rank_correlations


def programs(N: int = 400, d: int = 3, n: int = 10, seed: int = 0) -> tuple[Array, Array]:
    """Poisson counts of d programs at library sizes that vary."""
    g = np.random.default_rng(seed)
    s = g.gamma(1.0, size=(N, d)) * np.exp(0.5 * g.standard_normal((N, 1)))
    return g.poisson(200 * s @ g.dirichlet(np.full(n, 0.5), size=d)), s


def test_hidden_cells_are_their_conditional_mean() -> None:
    """With PPCA's own covariance C = W W' + s2 I, E[x_1 | others] in closed form, and no other model's."""
    g = np.random.default_rng(0)
    W = g.normal(size=(6, 2))
    C = W @ W.T + 0.1 * np.eye(6)
    x = multivariate_normal(np.zeros(6), C).rvs(4000, random_state=1)
    seen = np.ones(x.shape, bool)
    seen[:400, 0] = False
    filled = ppca_fill(np.where(seen, x, np.nan), seen, 2)
    truth = x[:400, 1:] @ np.linalg.solve(C[1:, 1:], C[1:, 0])
    assert np.abs(filled[:400, 0] - truth).max() < 0.25 * x[:, 0].std()
    assert np.corrcoef(filled[:400, 0], truth)[0, 1] > 0.995
    assert np.array_equal(filled[seen], x[seen])


def test_factors_are_found_though_cells_are_missing() -> None:
    g = np.random.default_rng(0)
    s = g.laplace(size=(800, 2))
    x = s @ g.normal(size=(2, 8)) + 0.1 * g.normal(size=(800, 8))
    x[g.uniform(size=x.shape) < 0.1] = np.nan
    found = unseam.find(pd.DataFrame(x, columns=list("abcdefgh")), network=False)
    assert found.count == 2
    assert matched(np.abs(rank_correlations(s, found.codes.to_numpy()))).values.min() > 0.95
    assert any("missing cells" in note for note in found.notes)
    assert np.abs(found.transform(x) - found.codes.to_numpy()).max() < 1e-9  # the same rows, the same codes
    x[3] = np.nan
    assert np.isfinite(found.transform(x[:20])).all()


def test_counts_are_sums_of_parts() -> None:
    x, s = programs()
    found = unseam.find(x)
    assert (found.kind, found.count) == ("parts", 3)
    assert matched(np.abs(rank_correlations(s, found.codes.to_numpy()))).values.min() > 0.9
    assert "found" in {f.grade for f in found.factors}
    assert (found.codes.to_numpy() >= 0).all()
    again = found.inverse_transform(found.transform(x))
    assert np.corrcoef(again.ravel(), x.ravel())[0, 1] > 0.95


def test_hidden_cells_count_the_parts_and_unseen_cells_are_not_looked_at() -> None:
    x, _ = programs(400)
    seen = np.ones(x.shape, bool)
    assert how_many(x.astype(float), seen, True, 0)[0] == 3
    seen[5, 2] = False
    one, two = (fit_parts(np.where(seen, x, fill), 3, True, 0, seen).W for fill in (0.0, 1e6))
    assert np.allclose(one, two)


def test_hsic_sees_what_correlation_does_not() -> None:
    g = np.random.default_rng(0)
    t = g.uniform(-1, 1, 600)
    x = np.stack([t, t**2, g.uniform(-1, 1, 600)], axis=1)
    assert abs(np.corrcoef(x[:, 0], x[:, 1])[0, 1]) < 0.1
    assert hsic(x)[0, 1] > 0.2 > 0.02 > hsic(x)[0, 2]
    assert not dependent(g.standard_cauchy((600, 3)), 0).any()


def test_kinds_can_be_said_and_are_checked() -> None:
    g = np.random.default_rng(0)
    table = Columns(
        ["a", "b", "kind", "yes"],
        [
            g.normal(size=60),
            g.integers(0, 4, 60),
            np.array(list("xyz") * 20, object),
            np.array(["y", "n"] * 30, object),
        ],
    )
    plain = prepare(table)
    assert plain.kinds == ("continuous", "ordinal", "classes", "binary")
    assert plain.features == ("a", "b", "yes=y")
    asked = prepare(table, kinds={"kind": "categorical", "b": "counts"})
    assert asked.features == ("a", "b", "kind=y", "kind=z", "yes=y")
    assert asked.logged.tolist() == [False, True, False, False, False]
    assert np.allclose(asked.raw(asked.x)[:3, 2:4], np.eye(3)[:, 1:])
    with pytest.raises(BadInput, match="'kind' holds words"):
        prepare(table, kinds={"kind": "counts"})
    with pytest.raises(BadInput, match="negative numbers"):
        prepare(table, kinds={"a": "counts"})
    with pytest.raises(BadInput, match="did you mean 'counts'"):
        prepare(table, kinds={"b": "count"})


def test_images_are_shown_as_traversals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each frame is the rows' own reconstruction with one code moved; pixels that never change stay as they are."""
    monkeypatch.setitem(EFFORTS, "quick", Effort(seeds=2, steps=60, width=16))
    place = np.random.default_rng(0).uniform(1.5, 6.5, 420)
    x = np.exp(-0.5 * (np.arange(8)[None, None] - place[:, None, None]) ** 2) * np.ones((1, 8, 1))
    x[:, 0] = 0.25
    found = unseam.find(x, effort="quick", show=False, latents=1)
    frames = found.traversals(3)
    assert frames.shape == (found.count, 3, 1, 8, 8)
    codes = found.codes.to_numpy()
    rows = np.repeat(codes.mean(0)[None], 2, axis=0)
    rows[1, 0] += 2 * codes[:, 0].std()
    made = found.inverse_transform(rows).reshape(2, 7, 8)
    low, high = frames[0, 1, 0, 1:], frames[0, 2, 0, 1:]
    assert np.corrcoef((high - low).ravel(), (made[1] - made[0]).ravel())[0, 1] > 0.999999
    assert np.ptp(frames[:, :, 0, 0]) < 1e-12
    assert "data:image/png" in write_find_page(found, "dots", tmp_path / "page.html").read_text()
    with pytest.raises(BadInput, match="no set of images"):
        unseam.find(x.reshape(420, -1)[:, 8:16], network=False).traversals()


def test_anndata_is_read_by_its_variables(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    from scipy.sparse import csr_matrix

    x, _ = programs(40, n=5)
    with pd.option_context("future.infer_string", False):  # anndata does not write pandas 3's strings yet
        names = pd.DataFrame(index=[f"gene{i}" for i in range(5)])
        data = anndata.AnnData(csr_matrix(x.astype(np.float32)), var=names)
        data.write_h5ad(tmp_path / "cells.h5ad")
    for source in (data, str(tmp_path / "cells.h5ad")):
        table = read(source).table
        assert table.names == list(names.index)
        assert np.array_equal(np.stack(table.columns, 1), x)
    (tmp_path / "bad.h5ad").write_bytes(b"no")
    with pytest.raises(BadInput, match=r"corrupt or no \.h5ad"):
        read(str(tmp_path / "bad.h5ad"))


def test_verb_writes_parquet_and_takes_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    g = np.random.default_rng(0)
    x = g.laplace(size=(200, 2)) @ g.normal(size=(2, 5)) + 0.1 * g.normal(size=(200, 5))
    x[3, 1] = np.nan
    pd.DataFrame(x, columns=list("abcde")).to_csv(tmp_path / "t.csv", index=False)
    common = ["find", str(tmp_path / "t.csv"), "--no-network"]
    assert main([*common, "--codes", "parquet", "--out", str(tmp_path / "o"), "--kinds", "e=constant", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(pd.read_parquet(document["codes"])) == 200
    assert "'e' (constant)" in document["notes"][0]
    assert main([*common, "--kinds", "e", "--out", str(tmp_path / "p")]) == 2
    assert "no '='" in capsys.readouterr().err


def test_dates_copies_and_labels_are_seen() -> None:
    g = np.random.default_rng(0)
    a, b = g.normal(size=60), g.normal(size=60)
    days = np.array([f"2020-01-{1 + i % 28:02d}" for i in range(60)], object)
    table = Columns(["a", "b", "day", "fahrenheit", "ill"], [a, b, days, 32 - 1.8 * a, np.where(b > 0.3, "yes", "no")])
    found = prepare(table)
    assert found.kinds == ("continuous", "continuous", "dates", "copy", "binary")
    assert any("'ill' is a threshold of 'b'" in note for note in found.notes)
    other = prepare(Columns(["a", "b", "ill"], [a, b, np.where(a + b > 0, "yes", "no")]))
    assert not any("threshold" in note for note in other.notes)


def test_tables_as_people_have_them(tmp_path: Path) -> None:
    """Decimal commas, a first line of column numbers, a question mark, a code for missing, a label, idx files."""
    x = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    frame = pd.DataFrame(x, columns=list("abc"))
    for head in (True, False):
        frame.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False, header=head)
        assert np.array_equal(np.stack(read(tmp_path / "t.csv").table.columns, 1), x)
    pd.DataFrame(x).to_csv(tmp_path / "t.csv", index=False)
    numbered = read(tmp_path / "t.csv").table
    assert numbered.names == ["column0", "column1", "column2"]
    assert np.array_equal(np.stack(numbered.columns, 1), x)
    words = frame.astype({"c": str})
    words.loc[7, "c"] = "?"
    assert any("'c' is left out, though 59 of its 60" in note and "'?'" in note for note in _notes_of(words))
    assert any("-999 in 2 rows of 'b'" in note for note in _notes_of(frame.assign(b=[*x[:58, 1], -999, -999])))
    assert any("'target' looks like a label" in note for note in _notes_of(frame.assign(target=[0, 1, 2] * 20)))
    assert any("'age_group' is taken as a number" in note for note in _notes_of(frame.assign(age_group=[0, 1, 2] * 20)))
    assert not any("far" in note or "label" in note or "alike" in note for note in _notes_of(frame))
    head = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3])
    (tmp_path / "some-images-idx3-ubyte").write_bytes(head + bytes(range(12)))
    assert read(tmp_path / "some-images-idx3-ubyte").shape == (1, 2, 3)


LEFT_OUT = {
    "id": "identifier", "ID": "identifier", "patient_id": "identifier", "userId": "identifier", "": "identifier",
    "Unnamed: 0": "identifier", "rownames": "identifier", "target": "label", "Label": "label", "class": "label",
    "y": "label", "species": "label",
}  # fmt: skip
MEASURED = (
    "humid",
    "PID",
    "idp",
    "acid",
    "age_group",
    "social_class",
    "body mass index",
    "grid",
    "classroom",
    "number",
)


@pytest.mark.parametrize("name", [*LEFT_OUT, *MEASURED])
def test_identifiers_and_labels_are_left_out_and_can_be_kept(name: str) -> None:
    """By names that say so; a name that only contains such a word is a measurement's."""
    g = np.random.default_rng(0)
    table = Columns(["a", "b", name], [g.normal(size=90), g.normal(size=90), g.integers(0, 3, 90)])
    made = prepare(table)
    assert made.kinds[2] == LEFT_OUT.get(name, "ordinal")
    assert prepare(table, keep=name).features == ("a", "b", name)
    assert prepare(table, kinds={name: "ordinal"}).features == ("a", "b", name)
    if name in LEFT_OUT:
        assert any("left out (to use it: --keep " in note for note in made.notes)
    with pytest.raises(BadInput, match="keep: column='c' is unknown"):
        prepare(table, keep="c")


def test_numbers_of_an_identifier_need_not_repeat_and_those_of_a_label_may_be_any() -> None:
    g = np.random.default_rng(0)
    rows = np.sort(g.permutation(140)[:100])  # of a table that has lost rows
    assert recognise("first", rows) == "identifier"
    assert recognise("first", g.permutation(rows)) == "whole"
    assert recognise("invoice number", g.permutation(rows)) == "identifier"
    assert recognise("ID", np.array([1.1, 2.0, 1.1, 4.5, 6.0])) == "identifier"
    both = [g.normal(size=100), g.normal(size=100), g.normal(size=100)]
    assert prepare(Columns(["a", "b", "target"], both)).kinds[2] == "label"
    assert prepare(Columns(["a", "b", "y"], both)).kinds[2] == "continuous"
    pixels = [g.integers(0, 3, 100), g.integers(0, 3, 100), g.normal(size=100)]
    assert prepare(Columns(["x", "y", "light"], pixels)).kinds == ("ordinal", "ordinal", "continuous")


def test_each_column_has_its_own_unit_unless_all_are_items_with_the_same_levels() -> None:
    g = np.random.default_rng(0)
    items = [g.integers(1, 6, 200) for _ in range(3)]
    assert prepare(Columns(list("abc"), items)).scale == "common"
    assert prepare(Columns(list("abc"), [*items[:2], items[2] + 1])).scale == "standard"
    close = prepare(Columns(list("ab"), [g.normal(size=50), 3 * g.normal(size=50)]))
    assert close.scale == "standard"
    assert np.allclose(close.x.std(0), 1)
    assert len(set(prepare(Columns(list("abc"), items), "common").unit)) == 1
    assert np.allclose(prepare(Columns(list("abc"), items), "standard").x.std(0), 1)


def _notes_of(frame: pd.DataFrame) -> tuple[str, ...]:
    return prepare(Columns(list(frame.columns), [frame[c].to_numpy() for c in frame.columns])).notes


def test_a_series_and_wild_values_are_never_found() -> None:
    """Five random walks share nothing, though their columns correlate; one row of errors makes a direction."""
    g = np.random.default_rng(0)
    walks = unseam.find(g.normal(size=(300, 5)).cumsum(0), network=False)
    assert all(f.grade == "unstable" for f in walks.factors)
    assert any("neighbouring rows are alike" in note and "too few" in note for note in walks.notes)
    x = g.uniform(size=(300, 2)) @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(300, 6))
    assert [f.grade for f in unseam.find(x, network=False).factors] == ["found", "found"]
    x[5] *= 1e6
    assert {f.grade for f in unseam.find(x, network=False).factors} == {"unstable"}


def test_new_rows_come_as_the_old_ones_did(tmp_path: Path) -> None:
    g = np.random.default_rng(0)
    frame = pd.DataFrame(g.laplace(size=(150, 2)) @ g.normal(size=(2, 5)), columns=list("abcde"))
    found = unseam.find(frame, network=False)
    frame.to_csv(tmp_path / "new.csv", index=False)
    for new in (frame[list("edcba")], frame.to_numpy(), tmp_path / "new.csv"):
        assert np.allclose(found.transform(new), found.codes)
    pictures = g.laplace(size=(120, 1, 1, 1)) * g.normal(size=(1, 4, 5, 3)) + 0.1 * g.normal(size=(120, 4, 5, 3))
    seen = unseam.find(pictures, network=False)
    assert np.allclose(seen.transform(pictures), seen.codes)
    with pytest.raises(BadInput, match="hold words"):
        found.transform(frame.astype(object).where(frame != frame.iloc[0, 0], "oops"))


def test_nothing_is_found_where_most_cells_are_missing() -> None:
    g = np.random.default_rng(0)
    x = g.laplace(size=(600, 2)) @ g.normal(size=(2, 8)) + 0.1 * g.normal(size=(600, 8))
    x[g.uniform(size=x.shape) < 0.6] = np.nan
    found = unseam.find(pd.DataFrame(x), network=False)
    assert {f.grade for f in found.factors} == {"unstable"}
    assert any("more than half" in note for note in found.notes)


def amounts(depend: bool) -> tuple[Array, Array]:
    """Three parts on a ground of 0.5, whose amounts are independent or share a size."""
    g = np.random.default_rng(0)
    h = g.exponential(size=(600, 3)) * (g.uniform(size=(600, 3)) < 0.7)
    h = h * np.exp(g.normal(size=(600, 1))) if depend else h
    W = np.kron(np.eye(3), np.ones(3)) + 0.3 * np.kron(np.roll(np.eye(3), 1, 0), [1, 0, 0])
    return h @ W + 0.5 + 0.03 * np.abs(g.normal(size=(600, 9))), h


def test_parts_stand_on_what_every_row_has() -> None:
    x, h = amounts(depend=False)
    parts = fit_parts(x, 3, poisson=False)
    assert ((parts.b > 0.2) & (parts.b < 0.55)).all()  # some of it may be in amounts that are never 0
    assert matched(np.abs(rank_correlations(h, parts.amounts(x)))).values.min() > 0.97
    assert np.abs(parts.rows(parts.amounts(x)) - x).max() < 0.3


def test_parts_that_depend_on_each_other_are_not_called_found_by_independence_or_non_negativity() -> None:
    """Amounts that share a size are neither independent nor safe from mixing, but each part moves three columns only:
    simplicity may find them, and is right."""
    assert {f.grade for f in unseam.find(amounts(False)[0] - 0.5, network=False).factors} == {"found"}
    x, h = amounts(True)
    found = unseam.find(x - 0.5, network=False)
    assert {f.clue for f in found.factors if f.grade == "found"} == {"simplicity"}
    both = np.abs(np.corrcoef(h.T, found.codes.to_numpy().T))[:3, 3:]
    assert matched(both).values.min() > 0.95
    assert found.factor_correlations is not None  # a common size makes them correlate


def test_a_column_that_hardly_changes_does_no_harm() -> None:
    """Some rows that are looked at may have one value only, whose mean is off by rounding."""
    g = np.random.default_rng(0)
    x = g.normal(size=(40, 60))
    for j in range(0, 60, 3):
        x[:, j] = 0.1 * (j + 1)
        x[g.integers(40), j] += 1
    assert unseam.find(x, network=False).count >= 0
    x[3, 1] = np.nan
    assert unseam.find(x, network=False).count >= 0


def test_all_rows_of_a_named_data_set_are_read_or_the_notes_say_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_data("synth-linear")
    assert len(read("synth-linear").table) == len(data)
    assert read("synth-linear").table.notes == ()
    monkeypatch.setattr(reading, "MOST_VALUES", 3 * 200)
    few = read("synth-linear").table
    assert len(few) == 200
    assert few.notes[0].startswith(f"200 of {len(data):,} rows")
    assert any("200 of" in note for note in unseam.find("synth-linear", network=False, show=False).notes)
