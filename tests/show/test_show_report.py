"""The report on tiny runs: pictures and vectors, with and without factors. It parses, stands alone, has the numbers."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from page_checks import checked

import unseam
from unseam.errors import BadInput
from unseam.run import Run
from unseam.runs.labels import name_latent
from unseam.show.pictures import Album
from unseam.show.report import report
from unseam.show.report.cohort import table_rows
from unseam.show.report.collect import collect_report
from unseam.show.report.member import background_rows, member_page
from unseam.show.report.page import number_text
from unseam.show.report.tiles import tiles
from unseam.train import fit

SMALL = {"latents": 3, "encoder": (16,), "decoder": (16,), "network": "mlp", "workers": 1, "show": False}
SPRITES = {"size": 16, "shapes": 1, "orientations": 1, "xs": 4, "ys": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def cohort(folder: Path) -> Run:
    return fit("sprites", beta=[0.1, 0.3], seeds=[0, 1], steps=400, out=folder / "cohort",
               data_parameters=SPRITES, snapshots=2, lr=5e-3, **SMALL)  # fmt: skip


@pytest.fixture(scope="module")
def written(cohort: Run) -> Path:
    return report(cohort, show=False)


def test_a_cohort_of_pictures(cohort: Run, written: Path) -> None:
    text, page = checked(written)
    found = collect_report(cohort, show=False)
    for row in table_rows(cohort, found.views):
        for name in ("dto", "entanglement_cost", "mig"):
            assert number_text(row[name]) in page.words
    for word in ("Chosen without labels", "MIG", "DCI", "unseam train sprites", "scale", "torch", "seed"):
        assert word in page.words
    shown = {f"member-{member}" for member in range(4)}
    assert shown <= set(page.ids)
    assert len(page.sliders) == 4 * 3
    assert all(len(slider["data-values"].split()) == int(slider["max"]) + 1 for slider in page.sliders)
    assert text.count("data:image/png") >= 4 * (3 * 2 + 1)
    assert "at the snapshots" in page.words
    assert "upwards" in page.words  # tables over pairs of active latents
    assert found.other is not None
    assert f"Chosen without labels: member {found.chosen.member} " in page.words
    assert f"Compared with: member {found.other.member}" in page.words
    assert (
        "Scores of the latents in use, on 96 rows, held-out and trained on (fewer than 500 were held out)" in page.words
    )
    tile = page.words[page.words.index("MIG") : page.words.index("DCI")]
    assert "chance" in tile
    assert "95 %" not in tile  # the rows are the whole data set: nothing was drawn
    assert "nats of KL" not in page.words.replace("they hold", "")
    assert written == cohort.folder / "report.html"


def test_rank_correlations_of_four_members_are_called_too_few(written: Path) -> None:
    text = written.read_text()
    assert "rank correlation with" in text
    assert "Over 4 members, which is too few to judge" in text
    assert set(re.findall(r'class="rho" style="--r:([^"]*)"', text)) == {"0"}  # no colour


def test_the_first_line_says_how_good_such_a_choice_is(written: Path) -> None:
    lead = re.search(r'<p class="lead">(.*?)</p>', written.read_text(), re.DOTALL)
    assert lead is not None
    assert "such a choice beats 54 % of the other seeds" in lead[1]


def test_the_script_is_the_one_the_policy_allows(written: Path) -> None:
    text = written.read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.S)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert '"Content-Security-Policy" content="default-src \'none\'' in text


def test_a_named_member_comes_first_and_figures_are_saved(cohort: Run, folder: Path) -> None:
    preferred = collect_report(cohort, show=False).chosen.member
    other = next(m for m in range(4) if m != preferred)
    path = report(cohort.folder, folder / "named.html", other, figures=folder / "figures", formats=["svg"],
                  show=False)  # fmt: skip
    _, page = checked(path)
    articles = [name for name in page.ids if name.startswith("member-")]
    assert articles[0] == f"member-{other}"
    names = {file.name for file in (folder / "figures").iterdir()}
    pictures = {f"member-{other}-{name}.svg" for name in ("cosines", "traversals", "inputs-and-reconstructions")}
    assert {"sweep-mig.svg"} | pictures <= names
    assert any(name.startswith(f"member-{other}-pair-") for name in names)


def test_every_figure_is_a_matplotlib_figure_in_python(cohort: Run) -> None:
    drawn = unseam.figures(cohort, member=1)
    assert {"sweep-mig", "agreement", "cosines", "costs", "information", "importance", "sigma-law", "kl"} <= set(drawn)
    assert {"cost-history", "traversals", "inputs-and-reconstructions"} <= set(drawn)
    assert all(isinstance(figure, Figure) for figure in drawn.values())


def test_vectors_without_factors(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(folder / "plain.npy", rng.normal(size=(300, 2)) @ rng.normal(size=(2, 5)))
    run = fit(folder / "plain.npy", beta=0.01, steps=60, out=folder / "vectors", **SMALL)
    text, page = checked(report(run, show=False))
    assert "This data has no factors" in page.words
    assert "data:image/png" in text  # the rasterised dots of a scatter plot
    assert "polyline" in page.tags
    assert "rect" in page.tags
    assert "Chosen without labels" not in page.words
    assert "along those of its own" in page.words  # a net over two latents
    assert "column 3" in page.words  # without names, columns have numbers


def test_a_table_is_told_by_the_names_of_its_columns(folder: Path) -> None:
    """The decoder's derivatives name the columns that a latent moves; the largest one comes first."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 1))
    frame = pd.DataFrame(
        np.hstack([3 * z, -z, 0 * z]) + 0.01 * rng.normal(size=(400, 3)), columns=["ash", "<hue>", "iron"]
    )
    run = fit(
        frame,
        scale="none",
        beta=0.01,
        steps=300,
        lr=1e-2,
        out=folder / "named",
        **{**SMALL, "network": "linear", "latents": 1},
    )
    found = collect_report(run, show=False)
    card = member_page(run, found.shown, Album()).cards[0]
    assert [move.name for move in card.moved] == ["ash", "<hue>"]
    assert card.moved[0].value * card.moved[1].value < 0
    assert card.moved[0].value / card.moved[1].value == pytest.approx(-3, rel=0.1)
    text, page = checked(report(run, show=False))
    assert "<hue>" in page.words
    assert "in the data's own units" in page.words
    assert "column 0" not in page.words
    assert "barbox" not in text.split("</style>")[1]


def test_behind_a_path_there_is_a_cloud(folder: Path) -> None:
    """Eighteen held-out rows are not cloud; all rows are drawn instead."""
    run = fit(np.random.default_rng(0).normal(size=(180, 3)), beta=0.01, steps=5, out=folder / "cloud", **SMALL)
    assert len(run.split("held-out")) == 18
    assert len(background_rows(run)) == 180


def test_contents_lead_to_every_part(written: Path) -> None:
    text = written.read_text()
    contents = re.findall(r'href="#(\w+)"', text[text.index('class="contents"') :].split("</nav>")[0])
    sections = re.findall(r'<section id="(\w+)"', text)
    assert contents == sections


def test_the_number_to_look_at_first_is_in_front(cohort: Run) -> None:
    view = collect_report(cohort, show=False).shown

    def first(**changed: object) -> str:
        shown = tiles(cohort, replace(view, diagnosis=replace(view.diagnosis, **changed)))  # type: ignore[arg-type]
        assert [tile.name for tile in shown if tile.first] == [shown[0].name]
        assert ("no axes to compare" in shown[0].first) == (changed["active"] == 1)
        return shown[0].name

    assert first(active=0) == "active latents"
    assert first(active=1, dto=None, dto_haar=None) == "MIG"
    assert first(active=2, dto=0.5, dto_haar=0.52) == "DtO"
    assert first(active=2, dto=0.1, dto_haar=0.52) == "MIG"
    assert first(active=2, dto=0.1, dto_haar=0.52, warnings=("overfitting: ...",)) == "loss"


def test_vectors_with_continuous_factors_and_no_posterior(folder: Path) -> None:
    run = fit("synth-linear", "ae", steps=40, out=folder / "ae", data_parameters={"size": 300}, **SMALL)
    _, page = checked(report(run, show=False))
    tile = page.words[page.words.index("MIG") : page.words.index("DCI")]
    assert "95 %" in tile  # these rows are a sample
    assert "–" in page.words  # an autoencoder has no KL


def test_tiles_that_mean_nothing_are_left_out(folder: Path) -> None:
    """With one factor every latent is for one factor: DCI's disentanglement is 1 whatever the code is."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    np.save(folder / "one.npy", x)
    (folder / "one.csv").write_text("\n".join(["a", *(str(int(v > 0)) for v in x[:, 0])]))
    run = fit(folder / "one.npy", beta=0.01, steps=30, out=folder / "one", **SMALL,
              data_parameters={"factors": str(folder / "one.csv")})  # fmt: skip
    view = collect_report(run, show=False).shown
    assert "DCI" not in [tile.name for tile in tiles(run, view)]
    alone = replace(view, diagnosis=replace(view.diagnosis, active=1))
    assert "DtO" not in [tile.name for tile in tiles(run, alone)]
    (loss,) = [tile for tile in tiles(run, view) if tile.name == "loss"]
    assert loss.read == "on data never trained on"


def test_pictures_without_factors(folder: Path) -> None:
    images = np.random.default_rng(0).random((60, 20, 12, 3))
    np.save(folder / "colour.npy", images)
    run = fit(folder / "colour.npy", "vae", steps=5, out=folder / "colour", **SMALL)
    text, page = checked(report(run, show=False))
    assert "This data has no factors" in page.words
    assert "--h:20;--w:12" in text


def test_names_are_text_not_markup(folder: Path) -> None:
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(200, 2))
    np.save(folder / "x.npy", codes @ rng.normal(size=(2, 4)))
    table = "\n".join(["<b>a</b>,$b$ & c", *(f"{a},{b}" for a, b in (codes > 0).astype(int))])
    (folder / "names.csv").write_text(table)
    run = fit(folder / "x.npy", beta=0.01, steps=30, out=folder / "names",
              data_parameters={"factors": str(folder / "names.csv")}, **SMALL)  # fmt: skip
    name_latent(run, 0, 1, "<b>width")  # as the explorer keeps it
    text, page = checked(report(run, show=False))
    assert "<b>" not in text
    assert "<b>a</b>" in page.words
    assert "<b>width" in page.words
    (run.folder / "names.json").write_text("no names")
    assert "b&gt;width" not in report(run, show=False).read_text()  # damaged, it stops nothing


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [({"member": 9}, "member=9"), ({"formats": ["gif"]}, "gif"), ({"out": "."}, "folder")],
)
def test_bad_input(cohort: Run, arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        report(cohort, show=False, **arguments)  # type: ignore[arg-type]


def test_a_run_without_a_finished_member(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import unseam.train.fitting as module

    monkeypatch.setattr(module, "run_cohort", lambda *_: None)
    run = fit("sprites", beta=1.0, steps=5, out=folder / "stopped", data_parameters=SPRITES, **SMALL)
    with pytest.raises(BadInput, match=r"no finished member.*--resume"):
        report(run, show=False)
