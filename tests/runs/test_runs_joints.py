"""Where a run meets what was not there when it was trained: other data, a pack, a table's order, a broken neighbour."""

import numpy as np
import pandas as pd
import pytest

import unseam
from unseam.cli import main
from unseam.errors import BadInput
from unseam.run import load_run
from unseam.runs.diagnose import diagnose
from unseam.runs.evaluate import evaluate
from unseam.runs.export import card, export
from unseam.runs.pack import pack
from unseam.runs.rank_members import correlate
from unseam.show.film import film
from unseam.train import track

LINEAR = {"network": "linear", "latents": 2, "steps": 30, "workers": 1, "show": False}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)) * [1.0, 10.0, 1000.0] + [0, 0, 500], columns=list("abc"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    return frame


@pytest.fixture
def own(table, tmp_path):
    return unseam.fit(str(tmp_path / "x.csv"), scale="standard", out=tmp_path / "own", **LINEAR)


def test_a_pack_stays_what_its_manifest_says(tmp_path):
    run = unseam.fit("synth-linear", out=tmp_path / "a", data_parameters={"size": 300}, **LINEAR)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / ".env").write_text("secret")
    place = pack([run], tmp_path / "pack", show=False)
    assert ".env" not in (place / "pack.json").read_text()
    for _ in range(2):  # a second look opens it again
        packed = load_run(place)
        assert evaluate(packed, "mig", show=False)[0]["mig"].value >= 0
        diagnose(packed, points=50, show=False)
    assert export(packed, 0, "safetensors", tmp_path / "out")["largest_difference"] == 0.0


def test_a_pack_of_a_strange_name_is_refused_before_it_is_written(tmp_path):
    run = unseam.fit("synth-linear", out=tmp_path / "my run", data_parameters={"size": 300}, **LINEAR)
    with pytest.raises(BadInput, match=r"'my run'.*rename it"):
        pack([run], tmp_path / "pack", show=False)


def test_results_of_other_data_are_its_own(own, tmp_path):
    other = load_run(own.folder, data=np.random.default_rng(1).normal(size=(300, 3)) * [5.0, 1.0, 300.0])
    first, second = diagnose(own, points=50, show=False)[0], diagnose(other, points=50, show=False)[0]
    assert [z.kl for z in first.latents] != [z.kl for z in second.latents]
    again = diagnose(load_run(own.folder), points=50, show=False)[0]
    assert [z.kl for z in again.latents] == [z.kl for z in first.latents]


def test_columns_are_taken_by_name_or_refused(own, table, tmp_path):
    turned = load_run(own.folder, data=table[["c", "a", "b"]])
    assert np.allclose(turned.data.batch(np.arange(5)), own.data.batch(np.arange(5)), atol=1e-5)
    table[["c", "a", "b"]].to_csv(tmp_path / "turned.csv", index=False)
    with pytest.raises(BadInput, match="trained on a, b, c"):
        load_run(own.folder, data=str(tmp_path / "turned.csv"))
    with pytest.raises(BadInput, match="no column 'b'"):
        load_run(own.folder, data=table[["a", "c"]])


def test_a_failing_device_loses_nothing(tmp_path):
    run = unseam.fit("synth-linear", out=tmp_path / "a", data_parameters={"size": 300}, **LINEAR)
    with pytest.raises(BadInput, match="cuda:7"):
        unseam.resume(run.folder, steps=60, device="cuda:7")
    again = load_run(run.folder)
    assert (again.config.training.steps, len(again.table())) == (30, 1)


def test_members_without_a_contrast_do_not_stop_the_ranking():
    assert correlate(np.array([np.inf, 1.0, 2.0, 3.0]), [0.1, 0.2, 0.3, 0.4]) == pytest.approx(1.0)


def test_traversals_are_in_the_datas_units(own):
    frames = film(own, every=True).frames
    assert frames[..., 2].abs().max() > 100  # column c has a standard deviation of 1,000
    assert card(own, 0, "onnx", 0.0)["features"] == ["a", "b", "c"]
    assert card(own, 0, "onnx", 0.0)["scaling"]["factor"][2] > 500


def test_what_has_no_decoder_is_neither_traversed_nor_exported(tmp_path, capsys):
    unseam.fit("synth-linear", "pcl", out=tmp_path / "pcl", data_parameters={"size": 300}, **LINEAR)
    for verb in ("traverse", "export"):
        assert main([verb, str(tmp_path / "pcl")]) == 2
        assert "no decoder" in capsys.readouterr().err


def test_a_tracker_that_cannot_start_does_not_stop_the_run(tmp_path, monkeypatch, capsys):
    def broken(folder, config):
        raise RuntimeError("no network")

    monkeypatch.setitem(track.TRACKERS, "broken", broken)
    run = unseam.fit("synth-linear", out=tmp_path / "a", data_parameters={"size": 300}, track="broken", **LINEAR)
    assert set(run.table()["status"]) == {"finished"}
    assert "broken failed (RuntimeError: no network)" in capsys.readouterr().err


def test_a_scaled_table_can_be_shared_too(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"k": np.arange(300) % 5}).to_csv("y.csv", index=False)
    words = ["train", "x.csv", "--scale", "standard", "--data.factors", "y.csv", "--data.share", "0.6", "--steps", "2"]
    assert main([*words, "--out", "shared", "--network", "linear"]) == 0
