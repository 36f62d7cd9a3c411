"""Runs diagnosed and aligned: `unseam diagnose`, `unseam align`, and the functions behind them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch

import unseam
from unseam.cli import main
from unseam.errors import BadInput
from unseam.run import Run
from unseam.runs.align import align, load_alignment, save_alignment, weakest_correlation
from unseam.runs.diagnose import diagnose, stored_scores
from unseam.runs.history import history, latent_columns, regime
from unseam.show.diagnosis_figure import diagnosis_figure
from unseam.show.style import save
from unseam.train import fit


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two linear VAEs with full posteriors, which leave the axes to chance, trained briefly."""
    return fit(
        "synth-linear",
        "beta-vae-sigma",
        seeds=[0, 1],
        beta=1e-2,
        steps=400,
        lr=1e-2,
        network="linear",
        latents=2,
        snapshots=2,
        workers=1,
        data_parameters={"size": 2000},
        out=tmp_path_factory.mktemp("geometry") / "run",
        show=False,
    )


def test_diagnose_and_history(run: Run) -> None:
    found = diagnose(run, points=100)
    assert set(found) == {0, 1}
    d = found[0]
    assert d.active == 2
    with torch.no_grad():
        W = run.model(0).mean(torch.eye(2)) - run.model(0).mean(torch.zeros(1, 2))  # rows: the columns of J
    np.testing.assert_allclose([z.jacobian_norm for z in d.latents], W.norm(dim=1), rtol=1e-4)
    past = history(run, 0, points=50)
    assert len(past.steps) == len(past.delta_kl) > 1
    assert past.snapshot_steps.tolist() == [*run.snapshot_steps(0)] == [200, 400]
    assert past.cost[-1] == pytest.approx(d.entanglement_cost, rel=1e-6)  # linear: the same at every point
    assert past.cost[0] != past.cost[-1]


def test_histories_are_of_the_columns_they_name(run: Run) -> None:
    """Column by column against the rows on file: the report's KL must not be another column, nor another member's."""
    rows = run.latents()
    for member in (0, 1):
        steps, columns = latent_columns(run, member, "kl", "mu2", "sigma2")
        for name, values in zip(("kl", "mu2", "sigma2"), columns, strict=True):
            for k in (0, 1):
                some = rows[(rows["member"] == member) & (rows["latent"] == k)].set_index("step")[name]
                np.testing.assert_array_equal(values[:, k], some.loc[steps])
    assert not np.array_equal(latent_columns(run, 0, "kl")[1][0], latent_columns(run, 1, "kl")[1][0])


def test_the_report_draws_kl_over_training(run: Run) -> None:
    from unseam.show.report.collect import collect_report
    from unseam.show.report.member import timeline

    view = collect_report(run, show=False).views[1]
    drawn = timeline(run, view)["kl"].axes[0]
    names = [text.get_text().strip() for text in drawn.texts]
    assert sorted(names) == ["0", "1"]
    rows = run.latents()
    for name, line in zip(names, drawn.lines, strict=True):
        some = rows[(rows["member"] == 1) & (rows["latent"] == int(name))].sort_values("step")
        np.testing.assert_allclose(line.get_ydata(), some["kl"])
        np.testing.assert_allclose(line.get_xdata(), some["step"])
    assert regime(run, 1)[0].tolist() == sorted(set(rows["step"]))


def test_align_of_a_linear_decoder_is_complete(run: Run) -> None:
    """It has one Jacobian, so one rotation makes its columns orthogonal everywhere."""
    for member in (0, 1):
        found, arrays = align(run, member, points=200)
        assert found.table[0]["before"] > 1e-8 > 1e-12 > found.table[0]["after"]
        assert found.helped
        assert arrays["codes"].shape == (200, 2)
        np.testing.assert_allclose(arrays["codes_before"] @ found.rotation.numpy(), arrays["codes"], atol=1e-5)


def test_align_whitens_an_autoencoder(tmp_path: Path) -> None:
    """No prior has fixed the scale of its codes: unwhitened, the axes would follow units that mean nothing."""
    run = fit("synth-linear", "ae", steps=60, network="linear", latents=2, data_parameters={"size": 600},
              out=tmp_path / "run", show=False)  # fmt: skip
    found, arrays = align(run, 0, points=60)
    np.testing.assert_allclose(np.cov(arrays["codes"].T, bias=True), np.eye(2), atol=1e-4)
    assert not np.allclose(np.cov(arrays["codes_before"].T, bias=True), np.eye(2), atol=1e-2)
    back = found.frame.old(torch.as_tensor(arrays["codes"]))
    np.testing.assert_allclose(back, arrays["codes_before"], atol=1e-4)


def test_figures(run: Run, tmp_path: Path) -> None:
    d = diagnose(run, [0], points=50)[0]
    with_past = save(diagnosis_figure(d, history(run, 0, points=20), "title"), tmp_path / "a" / "one.png")
    assert with_past.read_bytes()[:4] == b"\x89PNG"
    alone = save(diagnosis_figure(d), tmp_path / "two.svg")
    titles = " ".join(axes.get_title() for axes in diagnosis_figure(d).axes)
    assert titles.count("A D") == 2  # the matrix that cosines and singular values are of, not J
    assert "<svg" in alone.read_text()
    assert sorted(p.name for p in tmp_path.rglob("*.p*")) == ["one.png"]


def test_diagnose_verb(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(run.folder), "--points", "50", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    keys = {
        "member",
        "dto",
        "dto_haar",
        "entanglement_cost",
        "ima_contrast",
        "sigma_law_r",
        "active",
        "latents",
        "verdict",
    }
    for number, member in enumerate(document["members"]):
        assert keys <= set(member)
        assert member["member"] == number
        assert {"kl", "sigma2", "jacobian_norm", "active"} <= set(member["latents"][0])
        assert Path(member["figure"]).is_file()
    assert main(["diagnose", str(run.folder), "--member", "1", "--points", "50", "--no-figures"]) == 0
    said = capsys.readouterr().out
    assert "of 2 latents" in said
    assert "member 0" not in said


def test_align_verb(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "aligned"
    assert main(["align", str(run.folder), "--out", str(out), "--points", "100", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((out / "alignment.json").read_text())
    for member in document["members"]:
        stored = np.load(out / f"member-{member['member']}.npz")
        rotation = np.array(member["rotation"])
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(2), atol=1e-9)
        np.testing.assert_allclose(stored["codes_before"] @ rotation, stored["codes"], atol=1e-5)
        assert stored["factors"].shape == (100, 2)
        assert member["table"][-1]["what"] == "weakest factor correlation"
    again = ["align", str(run.folder), "--out", str(tmp_path / "again"), "--member", "0", "--points", "100"]
    assert main(again) == 0
    assert "entanglement cost" in capsys.readouterr().out


def test_an_alignment_is_read_again(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The loaded encoder and decoder are the run's own in other axes; its file can be scored as it is."""
    out = tmp_path / "aligned"
    found, arrays = align(run, 1, points=100)
    save_alignment(out, run, {0: align(run, 0, points=100), 1: (found, arrays)})
    loaded = load_alignment(out, 1)
    x, model = run.data.batch(torch.arange(20)), run.model(1)
    assert loaded.encoder is not None
    with torch.no_grad():
        old, new = model.encode(x), loaded.encoder(x)
        torch.testing.assert_close(loaded.decoder(new.mean), model.decode(old.mean), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(new.mean, old.mean @ found.rotation.float(), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(loaded.codes, found.codes)
    assert (loaded.helped, loaded.verdict, loaded.table[: len(found.table)]) == (
        found.helped, found.verdict, found.table)  # fmt: skip
    diagnosis = unseam.diagnose(loaded.decoder, loaded.codes, beta=run.beta(1), points=50)
    assert diagnosis.entanglement_cost < 1e-9  # linear: one rotation makes it orthogonal everywhere
    assert load_alignment(out, 1, run=run.folder).verdict == found.verdict
    file = str(out / "member-1.npz")
    assert main(["score", file, file, "--metrics", "mcc", "--json"]) == 0
    assert "mcc" in json.loads(capsys.readouterr().out)["scores"]


def test_an_alignment_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no alignment.json.*unseam align"):
        load_alignment(tmp_path)
    document = save_alignment(tmp_path, run, {m: align(run, m, points=50) for m in (0, 1)})
    for member in (None, 7):
        with pytest.raises(BadInput, match="holds members 0, 1"):
            load_alignment(tmp_path, member)
    (tmp_path / "member-0.npz").write_bytes(b"PK")
    with pytest.raises(BadInput, match=r"member-0.npz is missing or damaged"):
        load_alignment(tmp_path, 0)
    with np.load(tmp_path / "member-1.npz") as archive:
        good = dict(archive)
    for bad in ({"rotation": good["rotation"][:1]}, {"shift": np.full(good["shift"].shape, "x")},
                {"codes": good["codes"] * np.nan}):  # fmt: skip
        np.savez(tmp_path / "member-1.npz", **{**good, **bad})
        with pytest.raises(BadInput, match=r"member-1.npz is missing or damaged"):
            load_alignment(tmp_path, 1)
    (tmp_path / "alignment.json").write_text(json.dumps({**document, "run": str(tmp_path / "gone")}))
    with pytest.raises(BadInput, match="give run="):
        load_alignment(tmp_path, 1)
    (tmp_path / "alignment.json").write_text("[]")
    with pytest.raises(BadInput, match="damaged"):
        load_alignment(tmp_path, 1)


def test_a_hyperparameter_that_is_gone_is_named(run: Run) -> None:
    old = replace(run.config, members=tuple(replace(m, hyper={**m.hyper, "warmth": 1.0}) for m in run.members))
    with pytest.raises(BadInput, match="'warmth' is not one of beta-vae-sigma"):
        Run(run.folder, old).beta(0)


def test_stored_scores_are_signed_so_that_more_is_better(run: Run) -> None:
    run.rows.write_scores(0, {"mcc": (0.5, {}), "gaussian-tc": (0.2, {})})
    run.rows.write_scores(1, {"mcc": (0.4, {}), "gaussian-tc": (0.3, {})})
    stored = stored_scores(run)
    assert stored == {0: {"mcc": 0.5, "gaussian-tc": -0.2}, 1: {"mcc": 0.4, "gaussian-tc": -0.3}}


@pytest.mark.parametrize("verb", ["diagnose", "align"])
@pytest.mark.parametrize(("arguments", "said"), [(["--member", "7"], "members 0..1"), (["--points", "1"], "points=1")])
def test_bad_input(run: Run, verb: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, str(run.folder), *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_not_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(tmp_path)]) == 2
    assert "not a run folder" in capsys.readouterr().err


def test_weakest_correlation() -> None:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(300, 2))
    assert weakest_correlation(np.exp(factors[:, ::-1]), factors) == 1.0  # order and monotone maps do not matter
    assert weakest_correlation(rng.normal(size=(300, 3)), factors) < 0.3
    assert weakest_correlation(factors[:, :1], factors[:, :1]) == 1.0
    assert weakest_correlation(factors[:, :1], factors) == 0.0  # the second factor has no latent


def test_factors_that_came_later_are_scored_against(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).normal(size=(200, 3))
    np.save(tmp_path / "x.npy", x)
    pandas.DataFrame({"a": np.digitize(x[:, 0], [-0.5, 0.5])}).to_csv(tmp_path / "truth.csv", index=False)
    run = fit(tmp_path / "x.npy", out=tmp_path / "run", steps=5, network="linear", latents=2, show=False, workers=1)
    assert main(["evaluate", str(run.folder)]) == 2
    assert "--factors FILE" in capsys.readouterr().err
    assert main(["evaluate", str(run.folder), "--factors", str(tmp_path / "truth.csv"), "--metrics", "mcc"]) == 0
    out = capsys.readouterr().out
    assert "mcc" in out
    assert "read: float64 (200, 3)" in out
    assert "truth.csv" in run.rows.read("scores")["detail"][0]
    (tmp_path / "truth.csv").write_text("a\n1\n2\n")
    assert main(["evaluate", str(run.folder), "--factors", str(tmp_path / "truth.csv")]) == 2
    assert "has 2 rows" in capsys.readouterr().err
