"""A run folder: what was changed in it or behind it is refused in one line, and it can be moved and only read."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unseam.atomic import MARK
from unseam.cli import main
from unseam.data import config, load_data
from unseam.data.sets.perturbed import Mover, write_perturbed
from unseam.errors import BadInput
from unseam.objectives import OBJECTIVES
from unseam.run import Run, load_run, user_files
from unseam.run.checkpoint import load_checkpoint, save_checkpoint
from unseam.run.results import Results
from unseam.train import fit, resume, workers

SMALL: dict[str, Any] = {"network": "linear", "latents": 2, "steps": 6, "batch": 8, "show": False, "workers": 1}
X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
VERBS = (("evaluate",), ("diagnose", "--no-figures"), ("report",), ("align",))


def on_file(tmp_path: Path, **settings: Any) -> Run:
    np.save(tmp_path / "mine.npy", X)
    np.save(tmp_path / "factors.npy", np.arange(60) % 4)
    own_factors = {"factors": str(tmp_path / "factors.npy")}
    return fit(tmp_path / "mine.npy", out=tmp_path / "run", data_parameters=own_factors, **{**SMALL, **settings})


def unfinished(run: Run) -> None:
    with sqlite3.connect(run.rows.path) as connection:
        connection.execute("delete from runs")


# The user's own files


@pytest.mark.parametrize("name", ["mine.npy", "factors.npy"])
def test_other_data_than_it_was_trained_on_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = on_file(tmp_path)
    np.save(tmp_path / name, np.load(tmp_path / name)[::-1])  # other numbers, the same shape
    for args in (*VERBS, ("train", "--resume")):
        if args[0] == "train":
            unfinished(run)
        assert main([args[0], *args[1:], str(run.folder)]) == 2, args
        error = capsys.readouterr().err
        assert "has changed since" in error
        assert "put the file back" in error
        assert error.count("\n") == 1


def test_other_pairs_than_it_was_begun_with_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of pairs is part of what a run goes on with; scores do not need it."""
    np.save(tmp_path / "mine.npy", X)
    monkeypatch.chdir(tmp_path)
    Path("pairs.csv").write_text("0,1\n2,3\n")
    run = fit("mine.npy", "ada-gvae", pairs="pairs.csv", out="run", **SMALL)
    monkeypatch.chdir("/")  # its place is known from anywhere
    unfinished(run := load_run(tmp_path / "run"))
    assert resume(run.folder).table()["status"].tolist() == ["finished"]
    (tmp_path / "pairs.csv").write_text("0,1\n2,4\n")
    unfinished(run)
    with pytest.raises(BadInput, match=r"pairs='.*pairs.csv' has changed since"):
        resume(run.folder)
    assert len(load_run(run.folder).data) == 60
    with pytest.raises(BadInput, match=r"pairs='.*none.csv': no such file"):
        fit(X, "ada-gvae", pairs="none.csv", out=tmp_path / "other", **SMALL)
    assert not (tmp_path / "other").exists()


def test_a_page_beside_perturbed_data_is_no_change_and_older_digests_open(tmp_path: Path) -> None:
    """Only what is observed counts; runs of before kept a digest of every file of the folder, which still opens."""
    folder = tmp_path / "perturbed"
    folder.mkdir()
    for name, text in (
        ("perturbed.json", '{"base": {"name": "ring"}, "eps": 0.1, "inputs": 1}'),
        ("m.safetensors", "m"),
    ):
        (folder / name).write_text(text)
    now, before, data = user_files.digest(folder), user_files.digest(folder, every=True), {"name": str(folder)}
    user_files.check_digests(data, {"name": before}, tmp_path)
    (folder / "perturb.html").write_text("page")
    user_files.check_digests(data, {"name": now}, tmp_path)
    (folder / "m.safetensors").write_text("other")
    for known in (now, before):
        with pytest.raises(BadInput, match="has changed since"):
            user_files.check_digests(data, {"name": known}, tmp_path)


def test_a_base_that_changed_is_seen_through_a_perturbed_folder(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", np.clip(X, 0, 1))
    base, w = load_data(tmp_path / "mine.npy"), np.zeros((60, 2))
    write_perturbed(tmp_path / "moved", config(base), 0.1, Mover(2, (3,), hidden=2), own=w)
    run = fit(tmp_path / "moved", out=tmp_path / "run", **SMALL)
    (tmp_path / "moved" / "perturb.html").write_text("a page beside the data is not the data")
    assert len(load_run(run.folder).data) == 60
    np.save(tmp_path / "mine.npy", np.clip(X[::-1], 0, 1))
    with pytest.raises(BadInput, match=r"base.name='.*mine.npy' has changed since"):
        _ = load_run(run.folder).data


def test_a_run_is_no_data(tmp_path: Path) -> None:
    """Its figures were taken for a folder of images when --resume was forgotten (later-words-663)."""
    with pytest.raises(BadInput, match="is a run, not data; continue with it: unseam train --resume"):
        load_data(on_file(tmp_path).folder)


def test_the_same_bytes_are_the_same_data(tmp_path: Path) -> None:
    run = on_file(tmp_path)
    np.save(tmp_path / "mine.npy", X)
    unfinished(run)
    assert resume(run.folder, show=False).table()["status"].tolist() == ["finished"]


def test_a_run_from_before_digests_opens(tmp_path: Path) -> None:
    run = on_file(tmp_path)
    path = run.folder / "config.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "digests"}))
    assert len(load_run(run.folder).data) == 60


def test_a_digest_sees_every_part_of_a_large_file_and_of_a_folder(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(user_files, "DIGEST_WHOLE", 64)
    monkeypatch.setattr(user_files, "DIGEST_BLOCK", 1)
    file = tmp_path / "in" / "x.bin"
    file.parent.mkdir()
    file.write_bytes(bytes(64))
    assert len({*user_files.digests({"name": str(file)}, tmp_path).values()}) == 1
    seen = set()
    for place in (None, 0, 32, 63):
        content = bytearray(64)
        if place is not None:
            content[place] = 1
        file.write_bytes(content)
        seen |= {user_files.digest(file), user_files.digest(file.parent)}
    file.write_bytes(bytes(6400))
    seen |= {user_files.digest(file), user_files.digest(file.parent)}
    file.write_bytes(bytes(6399) + b"1")
    seen |= {user_files.digest(file), user_files.digest(file.parent)}
    assert len(seen) == 12


def test_a_folder_can_be_moved(tmp_path: Path) -> None:
    run = fit(X, out=tmp_path / "a", data_parameters={"factors": np.arange(60) % 4}, **SMALL)
    assert run.config.data["name"] == "source.npy"
    shutil.move(tmp_path / "a", tmp_path / "b")
    moved = load_run(tmp_path / "b")
    np.testing.assert_array_equal(moved.data.batch(torch.arange(60)), X)
    unfinished(moved)
    resume(tmp_path / "b", show=False)
    for args in VERBS:
        assert main([args[0], *args[1:], str(tmp_path / "b")]) == 0


def test_a_folder_from_before_paths_were_relative_can_be_moved(tmp_path: Path) -> None:
    run = fit(X, out=tmp_path / "a", **SMALL)
    document = json.loads((run.folder / "config.json").read_text())
    document["data"]["name"] = str((tmp_path / "a" / "source.npy").resolve())
    (run.folder / "config.json").write_text(json.dumps(document))
    assert len(load_run(run.folder).data) == 60
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert len(load_run(tmp_path / "b").data) == 60


# What stands in the folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    few = {"data_parameters": {"size": 60}, "seeds": [0, 1]}
    return fit("synth-linear", out=tmp_path_factory.mktemp("made") / "run", **SMALL, **few)


WRONG = [
    ("data.size", "many"),
    ("data.size", True),
    ("data.name", 3),
    ("data", []),
    ("objective", None),
    ("static", 0),
    ("members", {}),
    ("members.0.seed", 1.5),
    ("members.0.seed", 2**70),
    ("members.0.hyper", {"beta": "x"}),
    ("members.0.hyper", [1]),
    ("members.0", None),
    ("architecture.latents", "2"),
    ("architecture.encoder", 7),
    ("architecture.encoder", ["a"]),
    ("architecture.network", ["linear"]),
    ("architecture.later", 1),
    ("training.steps", None),
    ("training.how", 5),
    ("optimiser.lr", "fast"),
    ("groups", [[0]]),
    ("groups", [[0, 0], [1]]),
    ("groups", []),
    ("groups", [[0, 1, 2]]),
    ("groups", "01"),
    ("digests", [1]),
]


def opens(folder: Path) -> int:
    """Everything a verb would ask of a run."""
    return main(["diagnose", "--no-figures", str(folder)])


def changed(run: Run, to: Path) -> Path:
    return Path(shutil.copytree(run.folder, to / "run"))


@pytest.mark.parametrize(("place", "value"), WRONG, ids=[f"{p}={v}" for p, v in WRONG])
def test_a_changed_configuration_is_refused_in_one_line(
    made: Run, place: str, value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = changed(made, tmp_path)
    document = json.loads((folder / "config.json").read_text())
    *way, last = place.split(".")
    part: Any = document
    for name in way:
        part = part[int(name) if isinstance(part, list) else name]
    part[int(last) if isinstance(part, list) else last] = value
    (folder / "config.json").write_text(json.dumps(document))
    assert opens(folder) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "config" in error


@pytest.mark.parametrize("content", [b"\xff", b"", b"[]", b"{}", b"1", b'{"data":', b"[" * 100_000])
def test_a_damaged_configuration_is_refused_in_one_line(
    made: Run, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = changed(made, tmp_path)
    (folder / "config.json").write_bytes(content)
    assert opens(folder) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_configuration_survives_the_round_trip(made: Run) -> None:
    assert load_run(made.folder).config == made.config


def test_weights_of_another_architecture_are_refused(made: Run, tmp_path: Path) -> None:
    folder = changed(made, tmp_path)
    document = json.loads((folder / "config.json").read_text())
    document["architecture"]["latents"] = 3
    (folder / "config.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match=r"results.sqlite is damaged, or does not fit config.json"):
        load_run(folder)
    (folder / "results.sqlite").unlink()
    with pytest.raises(BadInput, match=r"safetensors does not fit .*config.json"):
        load_run(folder).model(0)
    with pytest.raises(BadInput, match=r"does not fit .*config.json"):
        resume(folder, show=False)


FORGED: list[dict[str, Any]] = [
    {"step": "1"}, {"step": -1}, {"step": 10**9}, {"seconds": None}, {"frozen": []}, {"frozen": {"7": "why"}},
    {"frozen": {"x": "why"}},
]  # fmt: skip


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_a_forged_checkpoint_is_refused(made: Run, forged: dict[str, Any], tmp_path: Path) -> None:
    folder = changed(made, tmp_path)
    path = folder / "checkpoints" / "group-000.safetensors"
    tensors, meta = load_checkpoint(path)
    save_checkpoint(path, tensors, {**meta, **forged})  # its digest is right
    unfinished(replace(made, folder=folder))
    with pytest.raises(BadInput, match="does not fit"):
        resume(folder, show=False)


def test_fewer_members_in_a_checkpoint_are_refused(made: Run, tmp_path: Path) -> None:
    folder = changed(made, tmp_path)
    path = folder / "checkpoints" / "group-000.safetensors"
    tensors, meta = load_checkpoint(path)
    save_checkpoint(path, {n: t[:1] if t.dim() else t for n, t in tensors.items()}, meta)
    with pytest.raises(BadInput, match="holds no member 1"):
        load_run(folder).model(1)


@pytest.mark.parametrize("content", [b"garbage" * 300, b"SQLite format 3\0" + b"\xff" * 2000])
def test_damaged_results_are_refused(made: Run, content: bytes, tmp_path: Path) -> None:
    folder = changed(made, tmp_path)
    (folder / "results.sqlite").write_bytes(content)
    for suffix in ("-wal", "-shm"):
        (folder / f"results.sqlite{suffix}").unlink(missing_ok=True)
    assert opens(folder) == 2
    assert main(["train", "--resume", str(folder)]) == 2


def test_rows_of_other_types_are_refused(made: Run, tmp_path: Path) -> None:
    folder = changed(made, tmp_path)
    for change in ("hyper = 'x'", "hyper = '[1]', loss = 1", "loss = 'x', hyper = '{}'"):
        with sqlite3.connect(folder / "results.sqlite") as connection:
            connection.execute(f"update runs set {change}")
        assert main(["report", str(folder)]) == 2, change


def test_a_finished_run_can_be_resumed_where_nothing_can_be_written(made: Run, monkeypatch: Any) -> None:
    def barred(*_: Any) -> None:
        raise PermissionError(13, "Read-only file system")

    monkeypatch.setattr(Results, "create", barred)
    monkeypatch.setattr("unseam.train.fitting.remove_leftovers", barred)
    assert len(resume(made.folder, show=False).table()) == 2


def test_what_a_start_left_that_died_goes_with_the_next(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / "run" / f".config.{MARK}-{dead.pid}.abcdefgh.json"
    left.parent.mkdir()
    left.touch()
    fit("synth-linear", out=tmp_path / "run", data_parameters={"size": 60}, **SMALL)
    assert not left.exists()


# Numbers


@pytest.mark.parametrize("settings", [{"lr": 1e38}, {"lr": float("inf")}, {"weight_decay": float("inf")}], ids=str)
def test_frozen_means_finite(settings: dict[str, float], tmp_path: Path) -> None:
    """A step may break the weights before a loss shows it; they are put back."""
    few = {"data_parameters": {"size": 60}, "seeds": [0, 1]}
    run = fit("synth-linear", out=tmp_path / "run", **{**SMALL, **few, **settings})
    assert run.table()["status"].tolist() == ["diverged", "diverged"]
    for member in (0, 1):
        assert all(torch.isfinite(t).all() for t in run.weights(member).values())


NO_WORK = """
def no_work(line, *_):  # a worker that has done a group as soon as it has it
    line.send("next")
    while (number := line.receive()) >= 0:
        line.send("progress", number, 1, 0.0, 0.0)
        line.send("next")
"""


def test_many_groups_do_not_fill_a_pipe(made: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 groups waited for ever when their numbers were queued before anyone read them."""
    config = replace(made.config, groups=((0,),) * 5000)
    jobs = [workers.Job(config, OBJECTIVES["beta-vae"], (0,), i, made.folder) for i in range(5000)]
    (tmp_path / "unseam_no_work.py").write_text(NO_WORK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(workers, "WORK", "unseam_no_work:no_work")
    done: list[int] = []
    signal.alarm(600)  # it hung for ever; a busy machine is slow
    try:
        workers.train_in_processes(jobs, 2, lambda n, *_: done.append(n))
    finally:
        signal.alarm(0)
    assert sum(done) == 5000


@pytest.mark.parametrize("shape", [[0], [-1], [3, 0], [2**40]])
def test_a_shape_that_is_none_is_refused(tmp_path: Path, shape: list[int]) -> None:
    """The fuzz's run-folder-6672 and -7714: a network with no inputs divided by 0."""
    run = on_file(tmp_path)
    document = json.loads((run.folder / "config.json").read_text())
    (run.folder / "config.json").write_text(json.dumps({**document, "shape": shape}))
    with pytest.raises(BadInput, match="not the shape of an observation"):
        load_run(run.folder)
