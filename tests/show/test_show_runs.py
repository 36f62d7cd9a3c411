"""The report of a folder of runs: every run a row, every member a point, what is wrong with a run said in its row."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_checks import checked

import unseam
from browsing import reading, until
from unseam.cli import main
from unseam.errors import BadInput
from unseam.run import load_run
from unseam.runs.evaluate import evaluate
from unseam.runs.rank_members import correlate
from unseam.show.report import page as pages
from unseam.show.report import runs
from unseam.show.report.page import fixed
from unseam.show.report.runs import ranking_rows
from unseam.train import fit

SMALL = {"latents": 3, "encoder": (16,), "decoder": (16,), "network": "mlp", "workers": 1, "show": False}
SPRITES = {"size": 16, "shapes": 1, "orientations": 1, "xs": 4, "ys": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs on two data sets, one of them two levels down, and three that cannot be shown."""
    top = tmp_path_factory.mktemp("several") / "shelf"
    same: dict[str, Any] = {"steps": 300, "data_parameters": SPRITES, **SMALL}
    first = fit("sprites", beta=[0.1, 0.3], seeds=[0, 1], out=top / "first", lr=5e-3, **same)
    fit("sprites", "ae", seeds=[0], out=top / "deep" / "er", lr=2e-3, **same)
    fit("synth-linear", beta=1e-3, steps=200, out=top / "line", data_parameters={"size": 300}, **SMALL)
    evaluate(first, "mig,mcc", show=False)
    evaluate(load_run(top / "deep" / "er"), "mig,mcc", show=False)
    (top / "empty").mkdir()
    shutil.copytree(first.folder, top / "stopped")
    stopped = load_run(top / "stopped").rows
    stopped.write(
        "runs", [{"member": m, "seed": m % 2, "hyper": "{}", "status": "running", "step": 3} for m in range(4)]
    )
    shutil.copytree(first.folder, top / "torn")
    (top / "torn" / "results.sqlite").write_bytes(b"nothing like a database" * 200)
    (top / "cut").mkdir()
    (top / "cut" / "config.json").write_text('{"data": ')
    return top


@pytest.fixture(scope="module")
def written(folder: Path) -> Path:
    return unseam.report(folder, show=False)


def test_every_run_is_a_row_and_every_member_a_point(folder: Path, written: Path) -> None:
    assert written == folder / "report.html"
    text, page = checked(written)
    entries = runs.look_at_all(folder, runs.run_folders(folder), show=False)
    shown = [entry for entry in entries if entry.found]
    assert [entry.name for entry in shown] == ["deep/er", "first", "line"]
    assert [entry.number for entry in shown] == [1, 2, 3]
    for entry in shown:
        assert f"run-{entry.number}" in page.ids
        assert entry.found is not None
        for view in entry.found.views:
            assert view.anchor in page.ids
            assert view.mig is not None
            assert fixed(view.mig.value) in page.words
            assert fixed(view.cost, 3) in page.words
    assert text.count('<a href="#run-2-member-3"') >= 4  # a point in every panel
    for word in ("beta 0.1, 0.3", "lr 0.002", "5 members on sprites", "ae"):
        assert word in page.words
    assert "unseam train sprites" in page.words


def test_what_is_wrong_with_a_run_is_said_in_its_row(written: Path) -> None:
    _, page = checked(written)
    words = " ".join(page.words.split())
    assert "stoppednot shown: run=" in words
    assert "no finished member (continue with: unseam train --resume" in words
    assert "tornnot shown: " in words
    assert "cutnot shown:" in words
    assert "config.json is damaged" in words


def test_the_order_without_labels_is_judged_by_every_shared_metric(folder: Path) -> None:
    entries = runs.look_at_all(folder, runs.run_folders(folder), show=False)
    sprites, line = runs.grouped(entries)
    assert (sprites.data, line.data) == ("sprites", "synth-linear")
    assert set(sprites.judged.scores) == {"mig", "mcc"}
    assert line.judged.scores == {}  # one member: nothing to order
    dto = np.array([view.diagnosis.dto / view.diagnosis.dto_haar for view in sprites.views])  # type: ignore[operator]
    assert sprites.judged.agreement["dto"]["mig"] == pytest.approx(correlate(-dto, sprites.migs))
    assert [view.mig.value for view in sprites.views] == sprites.migs  # type: ignore[union-attr]
    places = [row["place"] for row in ranking_rows(sprites)]
    assert sorted(sprites.migs, reverse=True) == [sprites.migs[places.index(i)] for i in sorted(places)]


def test_figures_and_json(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, figures = tmp_path / "all.html", tmp_path / "figures"
    arguments = ["--out", str(out), "--figures", str(figures), "--formats", "svg", "--json"]
    assert main(["report", str(folder), *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == out.stat().st_size
    assert {"data-0-agreement.svg", "data-0-sweep-cost.svg"} <= {file.name for file in figures.iterdir()}


def test_when_there_is_no_room_members_stay_points_without_a_link(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "BUDGET", 1)
    text = unseam.report(folder, tmp_path / "small.html", show=False).read_text()
    assert text.count('class="member"') == 1
    assert "5 members found no room here" in " ".join(text.split())


@pytest.mark.parametrize(
    ("place", "arguments", "reason"),
    [
        ("", {"member": 1}, "member=1 is of one run"),
        ("empty", {}, "neither a run folder nor a folder of runs"),
        ("nowhere", {}, "not a run folder"),
        ("", {"formats": ["gif"]}, "format='gif'"),
    ],
)
def test_bad_input(folder: Path, place: str, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        unseam.report(folder / place, show=False, **arguments)


def test_a_folder_of_damaged_runs_only(tmp_path: Path) -> None:
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "config.json").write_text("[]")
    with pytest.raises(BadInput, match=r"holds no run that can be shown, 1 found: cut: "):
        unseam.report(tmp_path, show=False)


def test_runs_are_sorted_as_people_count(tmp_path: Path) -> None:
    for name in ("run-10", "run-2", ".hidden", "group/run-1", "run-2/aligned"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
    names = [run.relative_to(tmp_path).as_posix() for run in runs.run_folders(tmp_path)]
    assert names == ["group/run-1", "run-2", "run-10"]


@pytest.fixture
def page(written: Path) -> Iterator[Any]:
    with reading(written.as_uri()) as page:
        yield page


def test_by_keyboard_on_a_phone(page: Any) -> None:
    shown = page.locator("article.member:visible")
    assert shown.count() == 1
    point = page.locator('svg a[href="#run-2-member-3"]').first
    point.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#run-2-member-3:visible")
    assert shown.count() == 1
    assert point.locator("title").text_content() == "run 2, member 3"
    slider = shown.locator("input[type=range]").first
    before = int(slider.input_value())
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert int(slider.input_value()) == before + 1
    page.locator('.legend a[data-run="1"]').first.focus()  # its points come forward
    assert page.locator("svg a.dim").count() == page.locator('svg a[href^="#run-2-"]').count() + page.locator(
        'svg a[href^="#run-3-"]').count()  # fmt: skip
    page.keyboard.press("Enter")
    until(page, "() => location.hash === '#run-1'")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
