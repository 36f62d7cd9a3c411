"""Trackers: every logged row once, in order, as the table has it; a broken tracker does not hurt the run."""

import pytest

import unseam
from unseam.errors import BadInput
from unseam.train import track

SMALL = {"steps": 30, "log_every": 10, "network": "linear", "latents": 2, "workers": 1, "show": False,
         "data_parameters": {"size": 200}}  # fmt: skip


class Kept:
    """A tracker that keeps what it is told."""

    made: list = []

    def __init__(self, folder, config):
        self.rows, self.closed = [], False
        Kept.made.append(self)

    def write(self, member, step, values):
        self.rows.append((member, step, values))

    def close(self):
        self.closed = True


def test_every_row_is_passed_on_once(tmp_path, monkeypatch):
    monkeypatch.setitem(track.TRACKERS, "kept", Kept)
    monkeypatch.setattr(track, "POLL_EVERY", 0.01)
    run = unseam.fit("synth-linear", seeds=[0, 1], checkpoint_steps=5, track="kept", out=tmp_path / "run", **SMALL)
    told, log = Kept.made[-1], run.log()
    assert told.closed
    assert sorted((m, s) for m, s, _ in told.rows) == [(m, s) for m in (0, 1) for s in (0, 10, 20)]
    for member, step, values in told.rows:
        rows = log[(log["member"] == member) & (log["step"] == step)]
        assert values == dict(zip(rows["name"], rows["value"], strict=True))


def test_a_broken_tracker_is_told_and_the_run_finishes(tmp_path, monkeypatch, capsys):
    def broken(self, member, step, values):
        raise ConnectionError("no route")

    monkeypatch.setattr(Kept, "write", broken)
    monkeypatch.setitem(track.TRACKERS, "kept", Kept)
    run = unseam.fit("synth-linear", track="kept", out=tmp_path / "run", **SMALL)
    assert set(run.table()["status"]) == {"finished"}
    assert "kept failed (ConnectionError: no route); training continues" in " ".join(capsys.readouterr().err.split())


def test_tensorboard_gets_a_folder_a_member(tmp_path):
    pytest.importorskip("tensorboard")
    run = unseam.fit("synth-linear", beta=[1.0, 4.0], track="tensorboard", out=tmp_path / "run", **SMALL)
    found = sorted(p.name for p in (run.folder / "tensorboard").iterdir())
    assert found == ["member-00-beta-1-seed-0", "member-01-beta-4-seed-0"]


def test_an_uncheck_tracker_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(BadInput, match="track='mlflow'"):
        unseam.fit("synth-linear", track="mlflow", out=tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()
