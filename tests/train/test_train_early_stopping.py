"""Early stopping keeps the best weights by the held-out loss; callbacks see what is logged and may stop a run."""

import importlib.util
import re
from math import inf
from pathlib import Path

import pytest
import torch

from unseam.errors import BadInput
from unseam.run import Run
from unseam.train import fit, resume, step_by_step
from unseam.train.stopping import LoggedStep

SMALL = {"network": "mlp", "encoder": (32,), "decoder": (32,), "latents": 2, "batch": 16, "log_every": 10,
         "snapshots": 30, "steps": 300, "lr": 0.02, "beta": 0.01, "holdout": 0.5}  # fmt: skip


def train(out: Path, **settings: object) -> Run:
    return fit("synth-nonlinear", out=out, data_parameters={"size": 60}, **{**SMALL, **settings})  # type: ignore[arg-type]


def expected(losses: list[tuple[int, float]], patience: int) -> tuple[int, int | None]:
    """(the step of the best weights, the step at which it stops), from the logged held-out losses."""
    best, at = inf, 0
    for step, loss in losses:
        if loss < best:
            best, at = loss, step
        elif step - at >= patience:
            return at, step
    return at, None


def test_a_member_ends_with_the_weights_of_its_lowest_held_out_loss(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", seeds=[0, 1, 2])
    run = train(tmp_path / "stopped", seeds=[0, 1, 2], patience=40)
    log = whole.log()
    log = log[log["name"] == "held-out/loss"]
    stopped = []
    for member in range(3):
        mine = log[log["member"] == member].sort_values("step")
        at, stop = expected(list(zip(mine["step"], mine["value"], strict=True)), 40)
        stopped.append(stop)
        note = run.table()["note"][member]
        assert run.table()["status"][member] == "finished"
        assert f"lowest at step {at}" in note
        assert stop is None or f"stopped at step {stop}" in note
        if at:  # the snapshot of the run that was not stopped
            for a, b in zip(run.model(member).parameters(), whole.model(member, at).parameters(), strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    assert any(stop is not None for stop in stopped)  # 30 rows and 32 hidden units: the loss rises


def test_a_stopped_member_is_the_same_in_a_cohort_and_alone(tmp_path: Path) -> None:
    together = train(tmp_path / "all", seeds=[0, 1], patience=40, precision="float64")
    alone = train(tmp_path / "one", seeds=[1], patience=40, precision="float64")
    for a, b in zip(together.model(1).parameters(), alone.model(0).parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)
    assert together.table()["note"][1] == alone.table()["note"][0]


@pytest.mark.parametrize("dies_at", [25, 65, 125])
def test_resumed_early_stopping_is_uninterrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int) -> None:
    whole = train(tmp_path / "whole", seeds=[0, 1], patience=30)
    real, count = step_by_step.update, iter(range(10**9))

    def dies(*args: object) -> None:
        if next(count) == dies_at:
            raise RuntimeError("power cut")
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(step_by_step, "update", dies)
    with pytest.raises(RuntimeError, match="power cut"):
        train(tmp_path / "cut", seeds=[0, 1], patience=30, checkpoint_steps=10)
    monkeypatch.undo()
    again = resume(tmp_path / "cut")
    for member in (0, 1):
        for a, b in zip(whole.model(member).parameters(), again.model(member).parameters(), strict=True):
            assert torch.equal(a, b)
        assert whole.table()["note"][member] == again.table()["note"][member]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"holdout": 0.0}, "holdout=0.0 leaves none"),
        ({"watch": 0}, "watch=0 leaves none"),
        ({"patience": 5}, "patience=5 is less than log_every=10"),
        ({"patience": -1}, "patience=-1 must be at least 0"),
    ],
)
def test_patience_without_anything_to_go_by_is_refused(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        train(tmp_path / "run", **{"patience": 40, **settings})
    assert not (tmp_path / "run").exists()


def test_callbacks_see_what_is_logged_and_the_weights_of_that_step(tmp_path: Path) -> None:
    seen: list[LoggedStep] = []
    models = []

    def look(logged: LoggedStep) -> None:
        seen.append(logged)
        models.append(logged.model(1))

    run = train(tmp_path / "run", seeds=[0, 1], steps=30, snapshots=3, callbacks=look)
    assert [s.step for s in seen] == [0, 10, 20]
    assert seen[0].members == (0, 1)
    log = run.log()
    for s in seen:
        for name in ("loss", "kl", "held-out/loss"):
            rows = log[(log["step"] == s.step) & (log["name"] == name)].sort_values("member")
            assert list(rows["value"]) == pytest.approx(list(s.values[name]))
    for a, b in zip(models[1].parameters(), run.model(1, 10).parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(BadInput, match="member=7 is not one of"):
        seen[0].model(7)


def test_a_callback_that_returns_true_stops_the_run(tmp_path: Path) -> None:
    def enough(logged: LoggedStep) -> bool:
        return logged.step >= 20

    run = train(tmp_path / "run", callbacks=[enough])
    row = run.table().iloc[0]
    assert (row["step"], row["status"]) == (20, "finished")
    assert row["note"] == "the callback enough stopped training at step 20"
    assert resume(run.folder).table()["step"][0] == 20


def test_what_cannot_be_called_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="callbacks: 3 cannot be called"):
        train(tmp_path / "run", callbacks=[3])


def test_the_example_stops_by_patience_and_by_a_callback(capsys):
    path = Path(__file__).parents[2] / "examples" / "stop_training.py"
    spec = importlib.util.spec_from_file_location("stop_training", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(steps=1800)
    text = capsys.readouterr().out
    assert "so training stopped at step" in text
    (stopped,) = re.findall(r"^stopped at step (\d+) of 1800", text, re.MULTILINE)
    assert 300 < int(stopped) < 1800
    looked_at = re.findall(r"^step (\d+): \d of 3 latents active", text, re.MULTILINE)
    assert [int(step) for step in looked_at] == [300, 600, 900, 1200, 1500]
