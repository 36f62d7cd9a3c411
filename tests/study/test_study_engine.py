"""Pieces: done once, resumed bit for bit, leased; and the tidy table made of them."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from study_files import TINY, content

from unseam.cli import main
from unseam.errors import BadInput
from unseam.study import load, load_grid, study
from unseam.study.engine import one_piece, study_summary, work_on_study
from unseam.study.lease import newest
from unseam.study.pieces import advance, places, start_study
from unseam.study.table import seeds_agree

PAPER = ("beta-vae", "factor-vae", "mig", "dci-disentanglement", "modularity", "sap")


def test_the_table_has_the_columns_of_the_contract(done: Path) -> None:
    frame = load(done).table()
    assert len(frame) == 12
    assert set(frame["method"]) == {"beta-vae", "dip-vae-i", "annealed-vae"}
    assert set(frame["status"]) == {"finished"}
    assert (frame["model_num"] == -1).all()
    wanted = [f"{kind}.{name}" for kind in ("mean", "sampled") for name in PAPER]
    wanted += ["downstream.logistic.10", "downstream.trees.10"]
    wanted += [f"unsup.{n}" for n in ("reconstruction", "elbo", "kl", "regulariser", "tc-mean", "tc-sampled")]
    wanted += ["unsup.wasserstein", "unsup.mi-pairs"]
    wanted += [f"free.{n}" for n in ("dto", "dto-chance", "dto-over-chance", "entanglement-cost", "active")]
    wanted += ["free.model-centrality"]
    for name in (*wanted, "seconds", "free.udr", "free.rank"):
        assert frame[name].dtype == float, name
        assert frame[name].notna().any(), name
    assert frame[wanted[:12]].stack().between(0, 1).all()
    assert sorted(frame["free.rank"]) == list(range(1, 13))  # one data set: places 1..12


def test_the_rows_say_what_the_run_says(done: Path) -> None:
    """elbo, regulariser and MIG of a model, computed here from its run."""
    from unseam.metrics import score
    from unseam.run import load_run
    from unseam.runs.represent import represent, sample_rows

    row = load(done).table().query("method == 'annealed-vae'").iloc[3]
    run = load_run(done / "pieces" / row["piece"] / "run")
    trained = run.table().iloc[int(row["member"])]
    assert (trained["c_max"], trained["seed"]) == (row["strength"], row["seed"])
    elbo = -trained["reconstruction"] - trained["kl"]
    assert math.isclose(row["unsup.elbo"], elbo, rel_tol=1e-9)
    assert math.isclose(row["unsup.regulariser"], trained["loss"] + elbo, rel_tol=1e-9, abs_tol=1e-9)
    seen = represent(run.model(int(row["member"])), run.data, sample_rows(run, "all", 30, use="study").rows)
    fitted = slice(0, 20)
    mig = score(seen.codes[fitted], seen.factors[fitted], seen.space, "mig")["mig"].value
    assert math.isclose(row["mean.mig"], mig, rel_tol=1e-6)


def test_columns_of_a_row_are_what_they_are_called(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean and sampled codes, the model's own beta, the rows that a predictor has not seen, a model's share of time."""
    from unseam.geometry import diagnose
    from unseam.metrics.unsupervised import gaussian_tc
    from unseam.run import load_run
    from unseam.runs.represent import represent, sample_rows
    from unseam.study.evaluate import Evaluator

    frame = load(done).table()
    row = frame.query("method == 'beta-vae' and strength == 0.1").iloc[0]
    place = next(p for p in places(done, load_grid(TINY)) if p.piece.name == row["piece"])
    run, member = load_run(place.folder / "run"), int(row["member"])
    seen = represent(run.model(member), run.data, sample_rows(run, "all", 30, use="study").rows)
    assert math.isclose(row["unsup.tc-mean"], gaussian_tc(seen.codes).value, rel_tol=1e-6)
    found = diagnose(run.model(member), seen.posterior.mean, seen.posterior, beta=0.1, points=10)
    assert math.isclose(row["free.cost-over-beta"], found.entanglement_cost / 0.1, rel_tol=1e-6)
    evaluator = Evaluator(run, place.piece)
    monkeypatch.setattr("unseam.study.evaluate.TOGETHER", 14)  # seven rows of two numbers at once
    np.testing.assert_allclose(evaluator.posterior(run.model(member)).mean, seen.codes, rtol=1e-5, atol=1e-6)
    fitted, unseen = evaluator.inputs(seen.codes).halves()
    assert (len(fitted), len(unseen)) == (20, 10)
    np.testing.assert_allclose(unseen.codes, seen.codes[20:], rtol=1e-6)
    spent = json.loads((place.folder / "seconds.json").read_text())["training"]
    assert math.isclose(frame[frame["piece"] == row["piece"]]["seconds"].sum(), spent, rel_tol=1e-9)


def test_udr_does_not_ask_collapsed_latents() -> None:
    """Two seeds share their one latent in use; what is left of the other is noise."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 1))
    codes = [np.hstack([z, 1e-3 * rng.normal(size=(200, 1))]) for _ in range(2)]
    same = {"data": "a", "method": "b", "strength": 1.0, "status": "finished"}
    assert seeds_agree(pd.DataFrame([same, same]), codes) == pytest.approx([1.0, 1.0])


def test_udr_compares_the_seeds_of_a_setting(done: Path) -> None:
    from unseam.metrics.udr import two_codes

    frame = load(done).table()
    pair = frame[(frame["method"] == "beta-vae") & (frame["strength"] == 0.01)]
    codes = np.load(done / "pieces" / pair["piece"].iloc[0] / "codes.npy")
    one, two = (codes[m] for m in pair["member"])
    assert math.isclose(pair["free.udr"].iloc[0], two_codes(two, one, strength="spearman").value, rel_tol=1e-9)


def test_a_study_in_many_small_pieces_of_time_is_the_same_bytes(done: Path, tmp_path: Path) -> None:
    """Every advance is stopped after some steps or one evaluated model; the end is what an undisturbed study left."""
    start_study(tmp_path, load_grid(TINY))
    lives = 0
    for place in places(tmp_path, load_grid(TINY)):
        state = "later"
        while state != "done":
            calls = iter(range(10**9))
            scores = place.folder / "scores"
            state = advance(place, stop=lambda calls=calls, scores=scores: scores.exists() or next(calls) > 50)  # type: ignore[misc]
            lives += 1
            assert state in ("done", "later")
            assert not place.running()
        assert newest(place.folder) is None
    assert lives == 3 * (3 + 3)  # three of training (the last scores one model), then one a model
    assert content(tmp_path) == content(done)


def test_done_pieces_are_not_computed_again(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {p: p.stat().st_mtime_ns for p in done.rglob("rows.json")}
    monkeypatch.setattr("unseam.study.engine.run_locally", lambda *_: pytest.fail("nothing is left to do"))
    told = study(TINY, done)
    assert (told["done"], told["models"], told["diverged"], told["running"]) == (3, 12, 0, 0)
    assert before == {p: p.stat().st_mtime_ns for p in done.rglob("rows.json")}
    assert one_piece(done, 0) == "done"
    with pytest.raises(BadInput, match=r"piece=3 is not in this study; its pieces are 0\.\.2"):
        one_piece(done, 3)


def test_what_a_worker_would_refuse_is_refused_at_once(tmp_path: Path) -> None:
    text = TINY.read_text()
    for old, new, why in (
        ("latents = 2", "latent = 2", "did you mean 'latents'"),
        ("c_max = [1, 2]", "c_mex = [1, 2]", "did you mean 'c_max'"),
        ("circles = 4", "circle = 4", "did you mean 'circles'"),
        ("circles = 4", "circles = 'four'", "must be a whole number"),
    ):
        grid = tmp_path / "grid.toml"
        grid.write_text(text.replace(old, new))
        with pytest.raises(BadInput, match=why):
            study(grid, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_a_folder_of_another_grid_is_refused(done: Path) -> None:
    with pytest.raises(BadInput, match="another grid"):
        study("minute", done)


def test_a_diverged_member_is_a_row(tmp_path: Path) -> None:
    grid = load_grid(TINY)
    wild = replace(grid, methods=grid.methods[:1], settings={**grid.settings, "lr": 1e20, "steps": 40})
    start_study(tmp_path, wild)
    work_on_study(str(tmp_path))
    told = study_summary(tmp_path, places(tmp_path, wild))
    assert told["diverged"] == told["models"] == 4
    frame = load(tmp_path).table()
    assert set(frame["status"]) == {"diverged"}
    assert frame["free.rank"].isna().all()


# the command


def test_the_verb(done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", str(TINY), "--out", str(done), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"study": str(done), "pieces": 3, "done": 3, "running": 0, "models": 12, "of": 12, "diverged": 0}
    assert main(["study", "show", str(done)]) == 0
    assert "12 of 12 models in 3 of 3 pieces, 0 diverged" in capsys.readouterr().out
    for name in ("t.csv", "t.parquet"):
        assert main(["study", "table", str(done), "--out", str(tmp_path / name), "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"table": str(tmp_path / name)}
        pd.testing.assert_frame_equal(load(tmp_path / name).table(), load(done).table(), check_dtype=False)
    assert main(["study", "work", str(done), "--piece", "1"]) == 0
    assert capsys.readouterr().out == "piece 1: done\n"


def test_show_measures_a_grid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "show", str(TINY), "--workers", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["models"], told["pieces"], told["workers"]) == (12, 3, 2)
    assert told["training_hours"] > 0
    assert told["evaluation_seconds"] > 0
    assert 10_000 < told["bytes"] < 10_000_000
    seconds = sum(told["step_seconds"].values()) * 4 * 120  # 4 models a method, 120 steps, two workers
    assert math.isclose(told["training_hours"], seconds / 3600 / 2, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["show"], "needs a second word"),
        (["minute", "hour"], "unexpected argument"),
        (["nowhere"], "neither a preset"),
        (["show", "nowhere"], "neither a preset"),
        (["table", "nowhere"], "neither a study's folder nor"),
        (["work", "nowhere"], "has no study.json"),
        (["minute", "--on", "elsewhere"], "on='elsewhere' must be here, dask"),
        (["minute", "--models", "99"], "99 is not in minute"),
    ],
)
def test_bad_words_are_refused_in_one_line(
    words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", *words, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert why in error
    assert error.count("\n") == 1
