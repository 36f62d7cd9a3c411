"""Every tile, curve, label and score belongs to the member and the latent beside which it stands, whoever is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unseam.geometry.groups import middle
from unseam.metrics import score
from unseam.runs.diagnose import diagnose
from unseam.runs.evaluate import evaluate, rows_for
from unseam.runs.labels import name_latent
from unseam.runs.represent import represent, without_constants
from unseam.show.explorer.member import REACH
from unseam.show.explorer.open_runs import open_gallery
from unseam.show.pictures import Album, strip
from unseam.show.report import codes as report_codes
from unseam.show.report import write as report_write
from unseam.show.report.collect import collect_report
from unseam.show.report.member import member_page
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


def best(run: Run, member: int) -> dict[int, str]:
    """latent -> the factor it knows most about, by MIG of that latent alone."""
    seen = without_constants(represent(run.model(member), run.data, rows_for(run).rows))
    assert seen.space is not None
    sizes = np.array([np.log(len(np.unique(f))) for f in seen.factors.T])  # the whole grid: uniform
    found = {}
    for k in range(seen.codes.shape[1]):
        matrix = score(seen.codes[:, [k]], seen.factors, seen.space, metrics="mig")["mig"].matrix
        assert matrix is not None
        found[k] = seen.space.names[int((matrix[:, 0] / sizes).argmax())]
    return found


@pytest.mark.parametrize("member", [1, 3])
def test_geometry_of_the_report_is_the_members_own(
    run: Run, member: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tiles without labels, against the diagnosis of this member alone."""
    d = diagnose(run, [member], show=False)[member]
    shown = page(run, member, monkeypatch, tmp_path)["tiles"]
    tiles, beside = ({tile.name: getattr(tile, part) for tile in shown} for part in ("value", "beside"))
    assert tiles["entanglement cost"] == f"{d.entanglement_cost / d.beta:.3f}"
    assert tiles["active latents"] == str(d.active)
    assert d.dto is not None
    assert tiles["DtO"] == f"{d.dto:.3f}"
    assert tiles["Σ law r"] == f"{d.sigma_law_r:.2f}"
    row = run.table().set_index("member").loc[member]
    assert beside["loss"] == f"nats: reconstruction {row['reconstruction']:.2f}, KL {row['kl']:.2f}"
    for name, values in (("DtO", d.arrays["distances"]), ("entanglement cost", np.asarray(d.arrays["costs"]) / d.beta)):
        error = 1.96 * values.std(ddof=1) / len(values) ** 0.5
        assert beside[name].startswith(f"95 % [{values.mean() - error:.3f}, {values.mean() + error:.3f}], ")
    seen = without_constants(represent(run.model(member), run.data, rows_for(run).rows))
    found = score(seen.codes, seen.factors, seen.space, metrics="mig,dci", active=seen.active, chance=True)
    assert f"chance {found['mig'].chance:.3f}" in beside["MIG"]
    assert tiles["DCI"] == f"{found['dci-disentanglement'].value:.3f}"
    for name in ("completeness", "informativeness"):
        assert f"{name} {found[f'dci-{name}'].value:.2f}" in beside["DCI"]


@pytest.mark.parametrize("member", [1, 3])
def test_every_card_is_of_its_member_and_latent(run: Run, member: int) -> None:
    """Numbers, factor, name, film and curve: each against the member's own model, latent by latent."""
    for m in range(len(BETAS)):
        for k in range(4):  # whatever other tests named
            name_latent(run, m, k, f"name of {m}" if k == 2 else "")
    album = Album()
    found = member_page(run, collect_report(run, member, show=False).shown, album)
    model, log = run.model(member), run.latents()
    log = log[log["member"] == member].sort_values("step")
    codes = represent(model, run.data, rows_for(run).rows).codes
    factors, own = best(run, member), diagnose(run, [member], show=False)[member]
    assert sorted(card.latent.index for card in found.cards) == list(range(4))
    for card in found.cards:
        k = card.latent.index
        assert card.latent.mu_std == own.latents[k].mu_std
        assert (card.factor and card.factor[0]) == (factors[k] if card.latent.active else None)
        assert card.name == (f"name of {member}" if k == 2 else "")
        z = torch.tensor(codes[middle(codes)]).float()
        frames = z.repeat(len(card.values), 1)
        frames[:, k] = torch.tensor(card.values)
        with torch.no_grad():
            truth = strip(model.mean(frames)).astype(float)
        shown = album.image(card.film).astype(float)
        others = [strip(run.model(m).mean(frames).detach()).astype(float) for m in range(len(BETAS)) if m != member]
        near = np.abs(shown - truth).mean()
        assert all(near < np.abs(shown - other).mean() for other in others), "another member draws this film better"
    lines = {line.get_label(): line for line in found.figures["kl"].axes[0].lines}
    assert len(lines) == 4
    ends = sorted(float(line.get_ydata()[-1]) for line in lines.values())
    assert ends == pytest.approx(sorted(log[log["step"] == log["step"].max()]["kl"]), rel=1e-6)


def test_rows_and_points_of_the_cohort_are_each_members_own(
    run: Run, truth: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = page(run, 2, monkeypatch, tmp_path)
    for row in told["rows"]:
        d = diagnose(run, [row["member"]], show=False)[row["member"]]
        assert (f"{row['mig']:.3f}", row["beta"]) == (truth[row["member"]]["MIG"], BETAS[row["member"]])
        assert (row["active"], row["entanglement_cost"]) == (d.active, pytest.approx(d.entanglement_cost))
    axes = report_write.figures(run, 2)["sweep-mig"].axes[0]
    points = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert {name: f"{y:.3f}" for name, y in points.items()} == {str(m): row["MIG"] for m, row in enumerate(truth)}


@pytest.mark.parametrize("member", range(len(BETAS)))
def test_the_explorer_draws_and_names_the_member_that_is_chosen(run: Run, member: int) -> None:
    gallery = open_gallery([run.folder], [member, None])
    name_latent(run, member, 1, f"one of {member}")
    subject, z = gallery.subject(f"0.{member}"), torch.tensor([0.5, -1.0, 1.5, 0.0])
    with torch.no_grad():
        assert torch.allclose(subject.picture(z), run.model(member).mean(z[None])[0], atol=1e-6)
    assert gallery.names(f"0.{member}")[0][1] == f"one of {member}"
    x, _ = gallery.row(7)
    mean, variance = subject.place(x)
    q = run.model(member).encode(x[None])
    assert torch.allclose(mean, q.mean[0], atol=1e-6)
    assert torch.allclose(variance, q.variance()[0], atol=1e-6)


@pytest.mark.parametrize("member", [0, 1])
def test_a_report_without_decoder_shows_the_member_that_is_named(
    tmp_path: Path, member: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"size": 8, "shapes": 1, "orientations": 1, "xs": 6, "ys": 6}
    done = fit("sprites", "pcl", seeds=[0, 1], steps=20, network="mlp", latents=3, encoder=(8,), workers=1, show=False,
               out=tmp_path / "run", data_parameters=few)  # fmt: skip
    drawn: list[Any] = []
    heatmap = report_codes.heatmap
    monkeypatch.setattr(report_codes, "heatmap", lambda share, *rest: drawn.append(share) or heatmap(share, *rest))
    assert report_codes.write_codes(done, tmp_path / "r.html", member, None, (), show=False) == member
    seen = without_constants(represent(done.model(member), done.data, rows_for(done).rows))
    matrix = score(seen.codes, seen.factors, seen.space, metrics="mig")["mig"].matrix
    sizes = np.array([np.log(len(np.unique(f))) for f in seen.factors.T])
    assert matrix is not None
    assert np.allclose(drawn[0], matrix / sizes[:, None], atol=0.02)
