"""The report on tiny runs: pictures and vectors, with and without factors. It parses, stands alone, has the numbers."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from page_checks import checked

from unseam.errors import BadInput
from unseam.show import report
from unseam.show.report.cohort import table_rows
from unseam.show.report.numbers import tiles
from unseam.show.report.page import number
from unseam.show.report.view import find
from unseam.train import Run, fit

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
    found = find(cohort, show=False)
    for row in table_rows(cohort, found.views):
        for name in ("dto", "entanglement_cost", "mig"):
            assert number(row[name]) in page.words
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
    assert "Scores on 96 rows, held-out and trained on (fewer than 500 were held out)" in page.words
    tile = page.words[page.words.index("MIG") : page.words.index("DCI")]
    assert "chance" in tile
    assert "95 %" not in tile  # the rows are the whole data set: nothing was drawn
    assert "nats of KL" not in page.words.replace("they hold", "")
    assert written == cohort.folder / "report.html"


def test_the_script_is_the_one_the_policy_allows(written: Path) -> None:
    text = written.read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.S)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text


def test_a_named_member_comes_first_and_figures_are_saved(cohort: Run, folder: Path) -> None:
    preferred = find(cohort, show=False).chosen.member
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
    assert "along blue ones" in page.words  # a net over two latents


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
    view = find(run, show=False).shown
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
    text, page = checked(report(run, show=False))
    assert "<b>" not in text
    assert "<b>a</b>" in page.words


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [({"member": 9}, "member=9"), ({"formats": ["gif"]}, "gif"), ({"out": "."}, "folder")],
)
def test_bad_input(cohort: Run, arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        report(cohort, show=False, **arguments)  # type: ignore[arg-type]


def test_a_run_without_a_finished_member(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import unseam.train.run as module

    monkeypatch.setattr(module, "run_cohort", lambda *_: None)
    run = fit("sprites", beta=1.0, steps=5, out=folder / "stopped", data_parameters=SPRITES, **SMALL)
    with pytest.raises(BadInput, match=r"no finished member.*--resume"):
        report(run, show=False)
