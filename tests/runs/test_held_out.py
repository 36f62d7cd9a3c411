"""Held-out means held out. In this data set held-out rows can be recognised by every number that is taken on them:

a column that is 0 in training is 10 (so their loss is enormous), the others are twice as large (so their codes are),
and their factors are shuffled (so no code can score). Whoever uses the wrong rows gets another number.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unseam.cli import main
from unseam.data import load_data
from unseam.errors import BadInput
from unseam.metrics import score
from unseam.run import Run, load_run
from unseam.run.config import split
from unseam.runs.align import align
from unseam.runs.diagnose import diagnose, rows_of
from unseam.runs.evaluate import evaluate, rows_for
from unseam.runs.history import moment
from unseam.runs.represent import EncodedRows, codes_of_members, represent, sample_rows
from unseam.train import fit

N, HOLDOUT = 1200, 0.5


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("held-out")
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(N, 2)).astype(np.float32)
    x = np.concatenate([factors * [3, 1], np.zeros((N, 1))], axis=1).astype(np.float32)
    held = split(N, HOLDOUT)[1].numpy()
    x[held] *= 2
    x[held, 2] = 10
    factors[held] = rng.permutation(factors[held])
    np.save(folder / "x.npy", x)
    np.save(folder / "factors.npy", factors)
    settings: dict[str, Any] = {"network": "linear", "latents": 2, "steps": 600, "lr": 1e-2, "holdout": HOLDOUT}
    return fit(folder / "x.npy", "beta-vae", beta=0.1, seeds=[0, 1, 2], out=folder / "run", show=False, workers=1,
              data_parameters={"factors": str(folder / "factors.npy")}, **settings)  # fmt: skip


def codes(run: Run, which: str, member: int = 0) -> np.ndarray:
    with torch.no_grad():
        return run.model(member).encode(run.data.batch(run.split(which))).mean.numpy()


def test_the_parts_are_apart_and_complete(run: Run) -> None:
    held, trained = set(run.split("held-out").tolist()), set(run.split("trained").tolist())
    assert not held & trained
    assert held | trained == set(run.split("all").tolist()) == set(range(N))
    assert (run.data.batch(run.split("held-out"))[:, 2] == 10).all()
    with pytest.raises(BadInput, match="rows='test' is unknown"):
        run.split("test")


def test_final_numbers_are_those_of_rows_never_trained_on(run: Run) -> None:
    """A user who reads the table would take the training loss (below 5 nats) for the loss on new data (above 50)."""
    assert (run.table()["reconstruction"] > 50).all()
    log = run.log()
    last = log[(log["name"] == "reconstruction") & (log["step"] == log["step"].max())]["value"]
    assert (last < 5).all()


def test_evaluate_scores_held_out_rows(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """On rows it was trained on the code looks good; on new rows, whose factors are shuffled, nothing is known."""
    assert all(scores["mcc"].value < 0.2 for scores in evaluate(run, "mcc", show=False).values())
    trained = evaluate(run, "mcc", show=False, rows="trained")
    assert all(scores["mcc"].value > 0.5 for scores in trained.values())
    assert main(["evaluate", str(run.folder), "--metrics", "mcc", "--rows", "trained", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == {"which": "trained", "count": 600}
    assert document["scores"]["mcc"]["value"] > 0.5
    assert main(["evaluate", str(run.folder), "--metrics", "mcc", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == {"which": "held-out", "count": 600}
    assert document["scores"]["mcc"]["value"] < 0.2
    detail = json.loads(run.rows.read("scores")["detail"][0])
    assert detail["rows"] == {"which": "held-out", "count": 600}  # the row on file says it too
    assert main(["evaluate", str(run.folder), "--metrics", "mcc"]) == 0
    assert "600 held-out rows" in capsys.readouterr().out


def test_passive_latents_have_no_vote(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they were trained on, the two latents hold the two factors; without one of them half is left."""
    both = evaluate(run, "mcc", [0], rows="trained", show=False)[0]["mcc"]
    monkeypatch.setattr(EncodedRows, "active", property(lambda seen: np.array([True, False])))
    one = evaluate(run, "mcc", [0], rows="trained", show=False)[0]["mcc"]
    assert both.per_factor is not None
    assert both.value > 0.8
    assert one.value == pytest.approx(both.per_factor[0] / 2)  # the second factor has no latent left
    assert one.settings["passive"] == [1]


def test_evaluate_says_which_latents_a_score_counts(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evaluate", str(run.folder), "--metrics", "mcc,dci-completeness,mig", "--samples", "200", "--member", "0"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "2 of 2" in told
    assert "in use" not in told
    monkeypatch.setattr(EncodedRows, "active", property(lambda seen: np.array([True, False])))
    assert main([*words, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["members"][0]["scores"]
    counted = {name: [note for note in row.get("notes", []) if "in use or not" in note] for name, row in scores.items()}
    assert {name: len(notes) for name, notes in counted.items()} == {"mcc": 0, "dci-completeness": 1, "mig": 0}
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "1 of 2" in told
    assert "latents: those in use, which are scored" in told
    assert counted["dci-completeness"][0] in told


def test_a_wide_table_has_a_row_per_metric(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """No number is cut, whatever the width of the terminal; every member has its own column."""
    names = "mcc,mcc-spearman,sap-r2,gaussian-tc,wasserstein-dependency,code-mutual-information"
    assert main(["evaluate", str(run.folder), "--metrics", names, "--ci"]) == 0
    wide = capsys.readouterr().out
    found = evaluate(run, names, show=False)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in wide.splitlines() if "│" in line]
    for name in names.split(","):
        shown = [cell.split(" ")[0] for row in rows if row[0] == name for cell in row[1:]]
        assert shown == [f"{found[m][name].value:.3f}" for m in sorted(found)]


def test_evaluate_gives_means_over_members(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """The best of three seeds is not what a method achieves."""
    assert main(["evaluate", str(run.folder), "--metrics", "mcc", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    values = [member["scores"]["mcc"]["value"] for member in document["members"]]
    assert len(set(values)) == 3
    assert document["scores"]["mcc"]["value"] == pytest.approx(np.mean(values))
    factors = [member["scores"]["mcc"]["per_factor"] for member in document["members"]]
    np.testing.assert_allclose(document["scores"]["mcc"]["per_factor"], np.mean(factors, axis=0))


def test_members_are_matched_on_held_out_rows(run: Run) -> None:
    """Twice as large there, so that the spread of the codes tells the rows apart."""
    (z, *_) = codes_of_members([run], 2000).values()
    assert len(z) == 600
    assert z.std(0) == pytest.approx(codes(run, "held-out")[:, : z.shape[1]].std(0), rel=1e-4)


def test_diagnose_and_align_look_at_held_out_rows(run: Run) -> None:
    """Twice as wide as those of the training rows, and the ELBO of data that the model cannot explain."""
    found = diagnose(run, [0], points=100, show=False)[0]
    np.testing.assert_allclose([z.mu_std for z in found.latents], codes(run, "held-out").std(0), rtol=1e-4)
    assert found.latents[0].mu_std > 1.5 * codes(run, "trained").std(0)[0]
    assert found.elbo is not None
    assert found.elbo < -50
    held = {tuple(row) for row in codes(run, "held-out").round(4).tolist()}
    arrays = align(run, 0, points=200)[1]
    assert {tuple(row) for row in arrays["codes_before"].round(4).tolist()} <= held
    assert rows_of(run, 100).to_json() == {"which": "held-out", "count": 100}
    assert moment(run, 0, None, 50, 0)[0] == pytest.approx(found.entanglement_cost, rel=1e-4)  # linear: everywhere


def test_the_report_scores_and_shows_held_out_rows(run: Run) -> None:
    from unseam.show.report.collect import collect_report
    from unseam.show.report.member import examples
    from unseam.show.report.write import write_run_report

    done = write_run_report(run, show=False)
    assert done.rows.to_json() == {"which": "held-out", "count": 600}
    text = done.path.read_text()
    assert "Scores of the latents in use, on 600 held-out rows; geometry at 600 held-out rows" in text
    assert "on data never trained on" in text
    view = collect_report(run, show=False).views[0]
    assert {tuple(r) for r in view.codes.round(4).tolist()} == {
        tuple(r) for r in codes(run, "held-out").round(4).tolist()
    }
    assert (examples(run, run.model(0))[0][:, 2] == 10).all()


def test_the_explorer_shows_held_out_rows(run: Run) -> None:
    from unseam.show.explorer.open_runs import open_gallery

    gallery = open_gallery([run.folder], [0, None])
    assert gallery.describe()["rows"] == {"which": "held-out", "count": 600, "words": "600 held-out rows"}
    assert set(gallery.rows.tolist()) == set(run.split("held-out").tolist())


def test_too_few_held_out_rows_are_not_enough_and_it_says_so(run: Run) -> None:
    few = sample_rows(run, enough=601)
    assert few.to_json() == {"which": "all", "count": N}
    assert str(few) == "1200 rows, held-out and trained on"
    assert sample_rows(run, enough=600).which == "held-out"


def test_without_held_out_rows_nothing_claims_any(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 600}, holdout=0.0,
              out=tmp_path / "run", show=False)  # fmt: skip
    assert main(["report", str(run.folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"which": "all", "count": 600}
    text = (run.folder / "report.html").read_text()
    for claim in ("never trained on", "Held-out", "600 held-out"):
        assert claim not in text
    assert "600 rows, all trained on (none were held out)" in text
    assert main(["evaluate", str(run.folder), "--rows", "held-out"]) == 2
    assert "held no rows out" in capsys.readouterr().err
    assert main(["diagnose", str(run.folder), "--no-figures"]) == 0
    assert "none were held out" in capsys.readouterr().out


def test_ten_thousand_labels_are_found_where_there_are_rows(tmp_path: Path) -> None:
    """`evaluate` took 10,000 rows, of which two thirds are for training, and then refused 10,000 labels."""
    run = fit("synth-linear", steps=1, network="linear", latents=2, data_parameters={"size": 15_000},
              out=tmp_path / "run", show=False)  # fmt: skip
    name = "downstream-logistic-10000"
    assert rows_for(run, name).to_json() == {"which": "all", "count": 15_000}
    assert 0 <= evaluate(run, name, show=False)[0][name].value <= 1
    assert rows_for(run, "mig").to_json() == {"which": "held-out", "count": 1500}
    with pytest.raises(BadInput, match="10000 training rows"):
        evaluate(run, name, samples=900, show=False)


def test_one_way_to_codes(tmp_path: Path) -> None:
    """Codes are the posterior's means of the observations that come with them, noise included, in any chunks."""
    small: dict[str, Any] = {"network": "mlp", "encoder": (8,), "decoder": (8,), "latents": 2}
    run = fit("sprites", steps=2, out=tmp_path / "run", show=False, **small,
              data_parameters={"size": 16, "shapes": 1, "orientations": 1, "noisy": True})  # fmt: skip
    assert run.data.stochastic
    rows = run.split("held-out")[:700]
    for chunk in (512, 1):
        seen = represent(run.model(0), run.data, rows, chunk=chunk)
        with torch.no_grad():
            torch.testing.assert_close(run.model(0).encode(seen.x).mean, seen.posterior.mean, rtol=1e-4, atol=1e-5)
        assert torch.equal(seen.x, seen.x)
    alone = represent(run.model(0), run.data, rows[5:6], chunk=1)
    assert torch.equal(alone.x[0], seen.x[5])  # the noise belongs to the row
    double = represent(run.model(0).double(), run.data, rows[:3])
    assert double.posterior.mean.dtype == double.x.dtype == torch.float64
    assert load_run(run.folder).split("all").tolist() == list(range(len(run.data)))


def test_combinations_that_were_left_out_can_be_scored_on(tmp_path: Path) -> None:
    """Rows that the data never had, by the model that was trained on the others; or the whole grid."""
    grid = {"size": 16, "shapes": 1, "orientations": 1, "xs": 6, "ys": 6}
    run = fit("sprites", "ae", steps=2, latents=2, network="linear", workers=1, show=False, out=tmp_path / "run",
              data_parameters={**grid, "without": "x=0&y>2"})  # fmt: skip
    gone, full = sample_rows(run, "left-out"), load_data("sprites", **grid)
    x, y = (full.factors(gone.rows)[:, full.space.names.index(name)] for name in "xy")
    assert len(gone.rows) == 6 * 3
    assert ((x == 0) & (y > 2)).all()
    assert str(rows_for(run, "mcc", "full")) == "216 rows of the full data, what was left out among them"
    codes = run.model(0).encode(full.batch(torch.arange(216))).mean.detach().numpy()
    told = score(codes, full.factors(torch.arange(216))[:, [1, 3, 4]], metrics="mcc", kinds=["ordinal"] * 3)
    assert evaluate(run, "mcc", rows="full", show=False)[0]["mcc"].value == pytest.approx(told["mcc"].value, abs=1e-6)
    left = evaluate(run, "mcc", rows="left-out", show=False)[0]["mcc"]  # x is 0 on all of them
    assert left.settings["scored_factors"] == ["scale", "y"]
    assert "not scored, because constant on these rows: x" in left.notes  # not shape, which the data itself fixes
    plain = fit("synth-linear", steps=2, latents=2, network="linear", workers=1, show=False, out=tmp_path / "plain",
                data_parameters={"size": 50})  # fmt: skip
    with pytest.raises(BadInput, match="nothing was left out of this run"):
        sample_rows(plain, "left-out")
