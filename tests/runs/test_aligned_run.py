"""An aligned run is a run: the models are the old ones in new axes, to rounding, and every verb opens the folder."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import unseam
from unseam.cli import main
from unseam.errors import BadInput
from unseam.run import Run, load_run
from unseam.runs.align import align
from unseam.runs.aligned_run import write_aligned_run
from unseam.train import fit, resume

OBJECTIVES = ("beta-vae", "beta-vae-sigma", "ae", "qlae")


def trained(folder: Path, objective: str, **more) -> Run:
    return fit(
        "synth-linear", objective, seeds=[0, 1, 2], steps=300, lr=1e-2, network="mlp", encoder=(16,), decoder=(16,),
        decoder_activation="tanh", latents=3, workers=1, data_parameters={"size": 600}, out=folder / objective,
        show=False, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Run, Run, dict]]:
    """Of each kind of posterior: the run, the aligned run of its members 2 and 0, and the alignments."""
    at = tmp_path_factory.mktemp("aligned")
    found = {}
    for objective in OBJECTIVES:
        run = trained(at, objective, **({"beta": 1e-2} if "beta" in objective else {}))
        turned = {m: align(run, m, points=100)[0] for m in (2, 0)}
        found[objective] = (run, write_aligned_run(at / f"{objective}-aligned", run, turned), turned)
    return found


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_models_are_the_old_ones_in_new_axes(runs, objective):
    run, made, turned = runs[objective]
    x = run.data.batch(torch.arange(50))
    for new, old in enumerate((2, 0)):
        frame, before, after = turned[old].frame, run.model(old), made.model(new)
        with torch.no_grad():
            q, p = before.encode(x), after.encode(x)
            A = frame.linear().float()
            assert torch.allclose(p.mean, frame.new(q.mean), atol=1e-4)
            assert torch.allclose(p.covariance(), A.T @ q.covariance() @ A, atol=1e-5)
            assert torch.allclose(after.decode(p.mean), before.decode(q.mean), atol=1e-4)
            assert torch.allclose(p.kl(), q.kl(), atol=1e-3)
            noise = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
            assert torch.isfinite(p.sample(noise)).all()
        assert made.members[new] == run.members[old]
        np.testing.assert_allclose(made.reconstruct(x, new), run.reconstruct(x, old), atol=1e-4)
    moved = max(float((t.rotation - torch.eye(3)).abs().max()) for t in turned.values())
    assert moved > 1e-3  # there was something to turn


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_rows_are_those_of_the_members_and_latents_those_of_the_new_axes(runs, objective):
    run, made, _ = runs[objective]
    before, after = run.table(), made.table()
    assert after["seed"].tolist() == [2, 0]
    for name in ("loss", "kl", "reconstruction", "step"):
        np.testing.assert_allclose(after[name], before[name][[2, 0]])
    codes = made.encode(made.data.batch(made.split("all")), 0)
    latents = made.latents()
    assert set(latents["step"]) == {300}
    np.testing.assert_allclose(latents[latents["member"] == 0]["mu_std"], codes.std(0), rtol=0.15)
    log = made.log()
    assert "active" not in set(log["name"])
    loss = (run.log().query("member == 2 and name == 'loss'"), log.query("member == 0 and name == 'loss'"))
    np.testing.assert_array_equal(loss[0]["value"], loss[1]["value"])


def test_the_diagnosis_is_what_align_promised(runs):
    run, made, turned = runs["beta-vae-sigma"]
    promised = {row["what"]: row["after"] for row in turned[2].table}
    found = unseam.diagnose(made, member=0, points=100)
    model, seen = made.model(0), turned[2]
    by_hand = unseam.diagnose(model.decode, seen.codes, likelihood=model.likelihood, beta=made.beta(0), points=100)
    assert by_hand.entanglement_cost == pytest.approx(promised["entanglement cost (nats of loss)"], rel=1e-3, abs=1e-6)
    assert found.entanglement_cost <= unseam.diagnose(run, member=2, points=100).entanglement_cost + 1e-9


def verb(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    assert main([*words, "--json"]) in (0, None)
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def folder(runs, tmp_path_factory) -> Path:
    """As the command writes it."""
    out = tmp_path_factory.mktemp("command") / "turned"
    main(["align", str(runs["beta-vae-sigma"][0].folder), "--out", str(out), "--points", "100", "--json"])
    return out


def test_evaluate_scores_the_new_codes(folder, capsys):
    document = verb(capsys, "evaluate", str(folder), "--metrics", "mcc", "--member", "1")
    run = load_run(folder)
    scores = document["members"][0]["scores"] if "members" in document else document
    value = json.dumps(scores)
    assert "mcc" in value
    stored = run.rows.read("scores").query("name == 'mcc' and member == 1")["value"].iloc[0]
    rows = run.split("all")
    by_hand = unseam.score(run.encode(run.data.batch(rows), 1), run.data.factors(rows), metrics="mcc")["mcc"].value
    assert stored == pytest.approx(by_hand, abs=0.05)


def test_match_diagnose_traverse_report_and_export_open_it(folder, capsys):
    found = verb(capsys, "match", str(folder))
    assert len(found["sets"]) == 3
    told = verb(capsys, "diagnose", str(folder), "--no-figures", "--member", "0", "--points", "100")
    assert len(told["members"][0]["latents"]) == 3
    assert main(["traverse", str(folder), "--member", "0"]) in (0, None)
    capsys.readouterr()
    out = verb(capsys, "export", str(folder), "--to", "pt2", "--member", "0")
    assert out["largest_difference"] < 1e-4
    again = torch.export.load(folder / "exported" / "member-0" / "encoder.pt2").module()
    x = load_run(folder).data.batch(torch.arange(4))
    np.testing.assert_allclose(again(x)[0].detach(), load_run(folder).encode(x, 0), atol=1e-5)


def test_the_report_says_that_the_axes_were_turned(folder):
    from unseam.show.report.provenance import call, facts

    run = load_run(folder)
    assert facts(run, [])["axes"] == "turned after training by unseam align"
    assert "aligned" not in call(run)


def test_the_explorer_opens_it(folder):
    from unseam.show.explorer.open_runs import open_gallery

    gallery = open_gallery([folder], [1])
    x = gallery.data.batch(gallery.rows)
    np.testing.assert_allclose(gallery.subject("0.1").codes, load_run(folder).encode(x, 1), atol=1e-5)


def test_the_files_of_before_are_still_there(folder, runs):
    rows = json.loads((folder / "alignment.json").read_text())["members"]
    assert [(row["member"], row["aligned_member"]) for row in rows] == [(0, 0), (1, 1), (2, 2)]
    with np.load(folder / "member-1.npz") as archive:
        assert {"codes", "codes_before", "rotation"} <= set(archive)
        rotation = archive["rotation"]
    loaded = unseam.load_alignment(folder, member=1)
    np.testing.assert_allclose(loaded.rotation, rotation)
    x = runs["beta-vae-sigma"][0].data.batch(torch.arange(5))
    np.testing.assert_allclose(loaded.encoder(x).mean.detach(), load_run(folder).encode(x, 1), atol=1e-4)


def test_it_can_be_written_again_but_not_over_a_trained_run(folder, runs, capsys):
    run = runs["beta-vae-sigma"][0]
    words = ["align", str(run.folder), "--member", "2", "--points", "100"]
    assert main([*words, "--out", str(run.folder)]) == 2
    assert "exists already and is not an empty folder" in capsys.readouterr().err
    before = run.encode(run.data.batch(torch.arange(3)), 2)
    np.testing.assert_array_equal(load_run(run.folder).encode(run.data.batch(torch.arange(3)), 2), before)
    assert main(["align", str(folder), "--out", str(folder.parent / "twice")]) == 2
    assert "is aligned already" in capsys.readouterr().err
    assert not (folder.parent / "twice").exists()
    with pytest.raises(BadInput, match="is an aligned run"):
        resume(folder, steps=1000)


def test_arrays_of_the_user_move_with_it(tmp_path):
    x = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    run = fit(x, "beta-vae", beta=1e-3, steps=30, latents=2, network="linear", out=tmp_path / "run", show=False,
              scale="standard")  # fmt: skip
    made = write_aligned_run(tmp_path / "new", run, {0: align(run, 0, points=50)[0]})
    (tmp_path / "run" / "source.npy").unlink()
    assert len(load_run(made.folder).data) == 300
    np.testing.assert_allclose(made.reconstruct(x[:5]), run.reconstruct(x[:5]), atol=1e-4)


def test_samples_are_decoded_draws_of_the_prior(runs):
    run, *_ = runs["beta-vae-sigma"]
    drawn = run.sample(3000, member=0)
    again = run.sample(3000, member=0)
    np.testing.assert_array_equal(drawn, again)
    assert drawn.shape == (3000, 3)
    with torch.no_grad():
        z = torch.randn(20_000, 3, generator=torch.Generator().manual_seed(5))
        expected = run.model(0).mean(z).numpy()
    np.testing.assert_allclose(drawn.mean(0), expected.mean(0), atol=0.15 * expected.std())
    np.testing.assert_allclose(drawn.std(0), expected.std(0), rtol=0.15)
    with pytest.raises(BadInput, match="has no prior over codes"):
        runs["ae"][0].sample(3, member=0)
    with pytest.raises(BadInput, match="n=0 must be at least 1"):
        run.sample(0, member=0)


def test_a_member_that_no_rotation_helps_keeps_its_axes(runs, tmp_path, monkeypatch, capsys):
    """The new run then holds the old model, not the best of the rotations that do not help."""
    monkeypatch.setattr(sys.modules["unseam.geometry.align"], "judge", lambda rows: False)
    run = runs["beta-vae-sigma"][0]
    assert main(["align", str(run.folder), "--out", str(tmp_path / "turned"), "--points", "100"]) in (0, None)
    assert "the axes are kept" in capsys.readouterr().out
    made, x = load_run(tmp_path / "turned"), run.data.batch(torch.arange(9))
    np.testing.assert_array_equal(made.encode(x, 0), run.encode(x, 0))
    codes = np.load(tmp_path / "turned" / "member-0.npz")
    np.testing.assert_array_equal(codes["codes"], codes["codes_before"])
