"""Every tile, curve, label and score belongs to the member and the latent beside which it stands, whoever is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unseam.metrics import score
from unseam.runs.evaluate import evaluate, rows_for
from unseam.runs.represent import represent, without_constants
from unseam.show.explorer.member import REACH
from unseam.show.explorer.open_runs import open_gallery
from unseam.show.report import write as report_write
from unseam.train import Run, fit

BETAS = (0.02, 0.05, 0.2, 0.6)  # far enough apart that no two members share a number


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four members that differ in everything, with scores on file."""
    done = fit("sprites", beta=list(BETAS), seeds=[3], steps=250, lr=5e-3, network="mlp", latents=4, encoder=(16,),
               decoder=(16,), workers=1, show=False, out=tmp_path_factory.mktemp("belongs") / "run",
               data_parameters={"size": 8, "shapes": 1, "orientations": 1, "xs": 6, "ys": 6})  # fmt: skip
    evaluate(done, "mcc,sap")
    return done


def page(run: Run, member: int | None, monkeypatch: pytest.MonkeyPatch, out: Path) -> dict[str, Any]:
    """What the report's template is filled with."""
    told: dict[str, Any] = {}

    def record(template: str, album: Any, **values: Any) -> str:
        told.update(values)
        return ""

    with monkeypatch.context() as patch:
        patch.setattr(report_write, "fill", record)
        report_write.write_run_report(run.folder, out / "report.html", member, show=False)
    return told


@pytest.fixture(scope="module")
def truth(run: Run) -> list[dict[str, str]]:
    """Each member's numbers, by other means: the run's table and the codes."""
    losses, taken = run.table()["loss"], rows_for(run)
    on_file = evaluate(run, "mcc,sap")
    rows = []
    for m in range(len(run.members)):
        seen = without_constants(represent(run.model(m), run.data, taken.rows))
        mig = score(seen.codes, seen.factors, seen.space, active=seen.active, metrics="mig")["mig"].value
        numbers = {"loss": f"{losses[m]:.2f}", "MIG": f"{mig:.3f}"}
        rows.append(numbers | {name: f"{s.value:.3f}" for name, s in on_file[m].items()})
    assert all(len({row[name] for row in rows}) == len(BETAS) for name in ("loss", "MIG")), "members must differ"
    return rows


@pytest.mark.parametrize("member", [None, 1, 3])
def test_the_report_shows_numbers_of_the_member_it_names(
    run: Run, truth: list[dict[str, str]], member: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = page(run, member, monkeypatch, tmp_path)
    shown = told["chosen"].member
    assert member in (None, shown)
    tiles = {tile.name: tile.value for tile in told["tiles"]}
    assert {name: tiles[name] for name in truth[shown]} == truth[shown]
    assert told["pages"][0].page.view.member == shown
    assert f"{BETAS[shown]:g}" in told["chosen"].name


@pytest.mark.parametrize("member", [0, 3])
def test_the_strong_curve_is_of_the_member_shown(
    run: Run, member: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = report_write.figures(run, member)
    log = run.log()
    for name in ("loss", "kl"):
        lines = found[f"training-{name}"].axes[0].lines
        widest = max(lines, key=lambda line: line.get_linewidth())
        assert sum(line.get_linewidth() == widest.get_linewidth() for line in lines) == 1
        own = log[(log["member"] == member) & (log["name"] == name)].sort_values("step")["value"]
        assert np.allclose(widest.get_ydata(), own.to_numpy(float))


def test_scores_on_file_stand_under_their_own_member(
    run: Run, truth: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every member in full or in brief: its tiles wherever the page has them."""
    for each in page(run, None, monkeypatch, tmp_path)["pages"]:
        view = each.page.view
        values = {tile.name: tile.value for tile in report_write.tiles(run, view)}
        assert {name: values[name] for name in truth[view.member]} == truth[view.member]


@pytest.mark.parametrize("member", range(len(BETAS)))
def test_what_the_explorer_says_of_a_latent_is_its_own(run: Run, member: int) -> None:
    """Factor, share and range of every slider against the codes, latent by latent."""
    gallery = open_gallery([run.folder], [member, None])
    model = next(name for name, (_, m) in gallery.models.items() if m == member)
    subject = gallery.subject(model)
    seen = without_constants(represent(run.model(member), run.data, gallery.rows))
    assert np.allclose(subject.codes, seen.codes, atol=1e-5)
    assert sorted(row["latent"] for row in subject.latents) == list(range(4))
    for row in subject.latents:
        k = row["latent"]
        codes = seen.codes[:, k]
        assert row["low"] == pytest.approx(min(-REACH, codes.min()), abs=1e-5)
        assert row["high"] == pytest.approx(max(REACH, codes.max()), abs=1e-5)
        assert row["std"] == pytest.approx(codes.std(), rel=1e-4, abs=1e-6)
        alone = score(seen.codes[:, [k]], seen.factors, seen.space, metrics="mig")
        matrix = alone["mig"].matrix
        assert matrix is not None
        shares = matrix[:, 0] / np.array([np.log(len(np.unique(f))) for f in seen.factors.T])  # the whole grid: uniform
        assert row["share"] == pytest.approx(shares.max(), abs=0.02)
        assert seen.space is not None
        assert row["factor"] == seen.space.names[int(shares.argmax())]
    reaches = {round(row["high"], 3) for row in subject.latents} | {round(row["low"], 3) for row in subject.latents}
    assert member or len(reaches) > 2, "some latent of the member with the least beta reaches farther than the prior"
