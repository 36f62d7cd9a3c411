"""The demo, small: the same function with fewer steps. Called again it trains nothing; its verbs say what it found."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from unseam.cli import main
from unseam.cli.demo import NOTE, print_story
from unseam.errors import BadInput
from unseam.show.demo import DemoResult, Plan, demo

ROOT = Path(__file__).parents[2]
SMALL = Plan(betas=(0.1, 0.3), seeds=2, steps=400, lr=5e-3, latents=3, encoder=(16,), decoder=(16,), workers=1,
             data_parameters={"size": 16, "shapes": 1, "orientations": 1, "xs": 4, "ys": 4})  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    return demo(tmp_path_factory.mktemp("demo") / "out", show=False, plan=SMALL)


def test_it_goes_the_whole_way(result: DemoResult) -> None:
    assert [(row["beta"], row["seed"]) for row in result.rows] == [(0.1, 0), (0.1, 1), (0.3, 0), (0.3, 1)]
    assert all(0 <= row["mig"] <= 1 for row in result.rows)
    kept = [row for row in result.rows if row["active"] == result.active]
    lowest = min(kept, key=lambda row: (row["dto"] or 0) / (row["dto_haar"] or 1))
    assert result.rows[result.chosen]["dto"] == lowest["dto"]
    assert result.active > 1
    assert len(result.why) == 2
    text = result.report.read_text()
    assert f'id="member-{result.chosen}"' in text
    scores = result.run.rows.read("scores")
    assert scores["value"].tolist() == [row["mig"] for row in result.rows]
    assert len(result.found.codes) == 569
    assert "'target' (label)" in " ".join(result.found.notes)
    size = result.found.loadings.loc[["mean radius", "mean perimeter", "mean area"]].abs()
    assert size.idxmax(axis=1).nunique() == 1  # they are one factor
    assert size.max(axis=1).min() > 0.8
    assert "569 tumours" in Path(result.found.paths["report"]).read_text()
    assert result.tells[list(size).index(size.idxmax(axis=1).iloc[0])] > 0.9  # size tells malignant tumours
    assert all(0.5 <= share <= 1 for share in result.tells)


def test_its_page_shows_both_examples_and_leads_on(result: DemoResult) -> None:
    text = result.page.read_text()
    assert result.found.sentence in unescape(text)
    for sentence in result.why:
        assert sentence in unescape(text)
    assert f"Chosen: member {result.chosen}" in text
    sides = [unescape(side) for side in text.split('<div class="side')[2:]]
    for side, place in zip(sides, (1, 0), strict=True):  # the chosen member first
        assert result.why[place] in side
    places = sorted((row["mig"] for row in result.rows), reverse=True)
    assert f"number {1 + places.index(result.rows[result.chosen]['mig'])} of {len(result.rows)}" in text
    links = re.findall('<a href="([^"#]+)"', text)
    assert links
    assert [link for link in links if not (result.page.parent / link).is_file()] == []
    used = set(re.findall(r'class="film (?:examples data|([\w-]+))"', text)) - {""}
    assert used
    assert [name for name in used if f".{name}{{background-image" not in text] == []  # every strip has its picture


def test_it_goes_without_a_member_to_compare(tmp_path: Path) -> None:
    alone = replace(SMALL, betas=(0.1,), seeds=1, steps=4)
    result = demo(tmp_path / "out", show=False, plan=alone)
    assert result.why == ()
    assert "Compared with" not in result.page.read_text()


def test_again_it_trains_nothing(result: DemoResult) -> None:
    log = result.run.log()
    again = demo(result.run.folder, show=False, plan=SMALL)
    assert again.rows == result.rows
    assert again.why == result.why
    assert again.run.log().equals(log)


def test_it_refuses_the_folder_of_another_run(result: DemoResult) -> None:
    with pytest.raises(BadInput, match="another run"):
        demo(result.run.folder, show=False, plan=replace(SMALL, steps=121))
    with pytest.raises(BadInput, match="another run"):
        demo(result.run.folder, seed=1, show=False, plan=SMALL)


def test_the_verbs(result: DemoResult, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.modules["unseam.show.demo"], "Plan", lambda: SMALL)
    assert main(["demo", "--out", str(result.run.folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["chosen"] == result.chosen
    assert [row["mig"] for row in document["rows"]] == [row["mig"] for row in result.rows]
    assert Path(document["report"]).exists()
    assert document["found"]["sentence"] == result.found.sentence
    assert Path(document["page"]).exists()
    assert main(["demo", "--out", str(result.run.folder)]) == 0
    text = capsys.readouterr().out.replace("\n", " ")
    assert result.found.sentence.replace(" ", "") in text.replace(" ", "")
    assert "4 models learned to redraw squares of 6 sizes at 4 x 4 places" in text
    assert "None" not in text
    assert main(["report", str(result.run.folder), "--json", "--out", str(result.run.folder / "again.html")]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] > 10_000
    assert main(["report", str(result.run.folder / "nowhere")]) == 2
    assert "is not a run folder" in capsys.readouterr().err


STORED = ROOT / "docs" / "figures" / "demo.txt"  # what `unseam demo` printed


def test_the_stored_output_is_what_the_demo_prints(result: DemoResult, capsys: pytest.CaptureFixture[str]) -> None:
    """The table is the same for every plan, to the letter; of the images the words around the numbers."""
    print_story(result)
    table, images = capsys.readouterr().out.split("2. Images:")
    stored_table, stored_images = STORED.read_text().split("2. Images:")
    assert table.split() == stored_table.split()
    for words in (NOTE, "member beta seed latents in use DtO chance cost/β MIG", "Both on one page:"):
        assert words in " ".join(images.split())
        assert words in " ".join(stored_images.split())


def test_the_readme_shows_lines_of_the_stored_output() -> None:
    (block,) = re.findall(r"```\n(member  beta.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    printed = {line.rstrip() for line in STORED.read_text().splitlines()}
    assert len(block.splitlines()) == 3
    assert [line for line in block.splitlines() if line not in printed] == []


def test_the_table(result: DemoResult) -> None:
    from rich.console import Console

    from unseam.cli.demo import members_table

    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(members_table(result))
    text = console.export_text()
    assert text.count("chosen") == 1
    for row in result.rows:
        assert f"{row['mig']:.2f}" in text
