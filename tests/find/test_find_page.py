"""What is shown of findings: page, command line and documents, against the object they are made of."""

import io
import json
import re
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from PIL import Image

import unseam
from unseam.cli import main
from unseam.errors import BadInput
from unseam.finding.findings import Findings, compared_text, measured_text
from unseam.finding.sentences import findings_headline
from unseam.show.pages.find import _scree_figure, loadings_table, write_find_page
from unseam.show.style import CHOSEN


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


def cells(text: str) -> list[list[str]]:
    """The rows of a table, as texts."""
    rows = re.findall(r"<tr.*?>(.*?)</tr>", text, re.DOTALL)
    return [
        [re.sub("<.*?>", "", c).strip() for c in re.findall(r"<t[dh].*?>(.*?)</t[dh]>", r, re.DOTALL)] for r in rows
    ]


def test_every_number_stands_with_its_factor_column_and_method(found: Findings, tmp_path: Path) -> None:
    g = np.random.default_rng(0)  # numbers that are all different, so that none can stand in for another
    factors = tuple(
        replace(f, nats=float(g.uniform(1, 2)), determinacy=float(g.uniform(0.5, 0.9)),
                agreement=float(g.uniform(0.96, 0.99)), bar=float(g.uniform(0.5, 0.9)), grade="found", with_=(),
                moves=tuple(replace(m, change=float(g.normal()), share=float(g.normal())) for m in f.moves))
        for f in found.factors
    )  # fmt: skip
    rivals = {name: {c: float(g.uniform()) for c in found.compared} for name in found.rivals}
    correlations = g.uniform(0.2, 0.9, (3, 3))
    other = replace(found, factors=factors, rivals=rivals, factor_correlations=correlations)
    page = write_find_page(other, "items.csv", tmp_path / "findings.html").read_text()
    cards = re.findall(r'<section class="side">(.*?)</section>', page, re.DOTALL)
    assert len(cards) == len(factors)
    widest = max(abs(m.share) for f in factors for m in f.moves)
    for f, card in zip(factors, cards, strict=True):
        assert f"<h3>Factor {f.latent} " in card
        bars = re.findall(r"<li><span>(.*?)</span><i.*?--s: (.*?)\"></i><strong>(.*?)</strong>", card)
        assert bars == [(m.name, f"{abs(m.share) / widest:.3f}", f"{m.change:+.3g}") for m in f.moves]
        facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", card))
        value, bar = compared_text(f.agreement, f.bar)
        assert facts == {"comes back": f"{value} (needs {bar})", "determinacy": measured_text(f.determinacy),
                         "nats": measured_text(f.nats)}  # fmt: skip
        tests = [row for row in cells(card) if row[0] != "clue"]
        assert [row[0] for row in tests] == [test.clue for test in f.certificate.tests]
        for row, test in zip(tests, f.certificate.tests, strict=True):
            shown = [measured_text(x) if x is not None else "–" for x in (test.statistic, test.null)]
            assert row[1:4] == [*shown, "–" if test.p_value is None else f"{test.p_value:.2g}"]
    parts = {text.partition("<")[0]: cells(text) for text in page.split("<h2>")[1:]}
    assert {row[0]: row[1:] for row in parts["Beside others"][1:]} == {
        name: [f"{row[c]:.3f}" for c in found.compared] for name, row in rivals.items()
    }
    assert {row[0]: [float(c) for c in row[1:]] for row in parts["Loadings"][1:]} == {
        name: pytest.approx(row.tolist(), abs=0.0051) for name, row in found.loadings.iterrows()
    }
    assert [[float(c) for c in row[1:]] for row in parts["Correlations of the factors"][1:]] == [
        pytest.approx(row, abs=0.0051) for row in correlations.tolist()
    ]


def test_strips_are_of_their_factor_and_as_many_eigenvalues_are_coloured_as_factors(
    found: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr("unseam.show.pages.find.svg", lambda figure, _: drawn.append(figure) or "")
    write_find_page(found, "items.csv", tmp_path / "findings.html")
    points = drawn[0].axes[0].collections[0]
    chosen = [np.allclose(colour, to_rgba(CHOSEN)) for colour in points.get_facecolors()]
    assert chosen == [i < found.numbers.major for i in range(len(chosen))]
    assert np.allclose(points.get_offsets()[:, 1], found.numbers.eigenvalues[: len(chosen)])

    grey = np.linspace(0.2, 0.8, found.count)
    monkeypatch.setattr(
        Findings, "traversals", lambda self: np.ones((self.count, 3, 1, 4, 4)) * grey[:, None, None, None, None]
    )
    pictures = replace(found, prepared=replace(found.prepared, shape=(1, 4, 4)))
    page = write_find_page(pictures, "items", tmp_path / "pictures.html").read_text()
    images = re.findall(r'<img src="data:image/png;base64,(.*?)" alt="What factor (\d+) does', page)
    assert [int(number) for _, number in images] == list(range(found.count))
    for content, number in images:
        with Image.open(io.BytesIO(b64decode(content))) as picture:
            assert np.asarray(picture)[1, 1].flat[0] / 255 == pytest.approx(grey[int(number)], abs=0.01)
