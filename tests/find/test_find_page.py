"""What is shown of findings: page, command line and documents, against the object they are made of."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unseam
from unseam.cli import main
from unseam.errors import BadInput
from unseam.finding.findings import Findings
from unseam.finding.sentences import findings_headline
from unseam.show.pages.find import _scree_figure, loadings_table, write_find_page


def questionnaire(N: int = 500) -> pd.DataFrame:
    """Three traits, four items each with five levels, and an identifier."""
    g = np.random.default_rng(0)
    s = g.normal(size=(N, 3)) @ np.kron(np.eye(3), np.ones(4)) * g.uniform(0.8, 1.2, 12)
    x = np.digitize(s + 0.7 * g.normal(size=(N, 12)), [-1.5, -0.5, 0.5, 1.5]) + 1
    return pd.DataFrame(x, columns=[f"{c}{i}" for c in "abc" for i in range(4)]).assign(person_id=np.arange(N))


@pytest.fixture(scope="module")
def found() -> Findings:
    return unseam.find(questionnaire(), network=False)


def test_page_states_each_fact_once(found: Findings, tmp_path: Path) -> None:
    page = write_find_page(found, "items.csv", tmp_path / "findings.html").read_text()
    assert f"<h1>{findings_headline(found.factors)}</h1>" in page
    for text in ("<h2>Loadings</h2>", "<h2>How many</h2>", "<h2>Beside others</h2>", found.sentence):
        assert page.count(text) == 1
    assert page.count('<table class="tests">') == sum(bool(f.certificate.tests) for f in found.factors)
    for factor in found.factors:
        assert page.count(f">Factor {factor.latent} <") == 1
        assert factor.certificate.assumption in page
    assert "FA varimax" in page
    assert "'person_id' looks like an identifier" in page.replace("&#39;", "'")
    assert "<script" not in page


def test_loadings_are_sorted_by_factor(found: Findings) -> None:
    rows = loadings_table(found)
    assert sorted(name for name, _, _ in rows) == sorted(found.loadings.index)
    assert [own for _, own, _ in rows] == sorted(own for _, own, _ in rows)
    for name, own, values in rows:
        assert values == found.loadings.loc[name].tolist()
        assert own == int(np.abs(values).argmax())
    groups = {own: {name[0] for name, other, _ in rows if other == own} for _, own, _ in rows}
    assert sorted(len(letters) for letters in groups.values()) == [1, 1, 1]  # each trait has its own items


def test_scree_plot_shows_eigenvalues_and_those_of_shuffled_columns(found: Findings) -> None:
    (ax,) = _scree_figure(found).axes
    eigenvalues, shuffled = (line.get_ydata() for line in ax.lines)
    assert np.allclose(eigenvalues, np.linalg.eigvalsh(np.corrcoef(found.prepared.x.T))[::-1], atol=0.2)  # 4 of 5 rows
    assert np.allclose(shuffled, found.numbers.null)
    assert found.count == int((found.numbers.eigenvalues > found.numbers.null).sum())
    colours = [tuple(colour) for colour in ax.collections[0].get_facecolors()]
    assert [colour == colours[0] for colour in colours] == [i < found.count for i in range(12)]


def test_what_was_not_measured_is_not_printed_as_a_number(found: Findings, tmp_path: Path) -> None:
    first, *rest = found.factors
    unmeasured = replace(first, agreement=float("nan"), determinacy=None, group_agreement=None)
    other = replace(found, factors=(unmeasured, *rest))
    page = write_find_page(other, "items.csv", tmp_path / "findings.html").read_text()
    assert "not measured" in page
    assert "nan" not in page
    other.write(tmp_path)
    factor = json.loads((tmp_path / "findings.json").read_text())["factors"][0]
    assert factor["agreement"] is None
    assert factor["determinacy"] is None


def test_verb_prints_loadings_and_certificates_and_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    questionnaire().to_csv("items.csv", index=False)
    assert main(["find", "items.csv", "--no-network"]) == 0
    text = capsys.readouterr().out
    assert "\nloadings " in text
    assert "axis of factor" in text
    written = pd.read_csv("found/items/loadings.csv", index_col="column")
    document = json.loads(Path("found/items/findings.json").read_text())
    assert document["loadings"] == "found/items/loadings.csv"
    assert written.shape == (12, document["count"])
    assert {"major", "parallel", "map", "evidence"} <= set(document["numbers"])
    assert {"clue", "determinacy", "certificate"} <= set(document["factors"][0])
    cells = [cell for line in Path("found/items/codes.csv").read_text().split()[1:] for cell in line.split(",")]
    digits = [cell.lower().split("e")[0].replace(".", "").lstrip("-0") for cell in cells]
    assert max(map(len, digits)) <= 6


def test_options_that_are_misspelt_are_named() -> None:
    with pytest.raises(BadInput, match="option='networks' is unknown; did you mean 'network'"):
        unseam.find(np.eye(20), networks=False)
    x = questionnaire(150)
    assert "a0" not in unseam.find(x, leave_out="a0", network=False).prepared.names
