"""Progress without a terminal: plain lines on stderr, how far, how long still, and what is said beside it."""

import pytest

from unseam import progress
from unseam.train import fit


def test_lines_come_every_ten_seconds_and_hold_the_note(monkeypatch, capsys):
    now = iter([0.0, 0.0, 4.0, 11.0, 12.0, 22.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    with progress.bar("counting", 100) as advance:
        for n, note in ((10, "a"), (10, None), (10, "b"), (20, "c")):
            advance(n, note)
    assert capsys.readouterr().err.splitlines() == [
        "counting: 20 of 100 (20%), 0:11 so far, 0:44 left, a",
        "counting: 50 of 100 (50%), 0:22 so far, 0:22 left, c",
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_training_says_its_losses(monkeypatch, capsys, tmp_path, workers):
    monkeypatch.setattr(progress, "REPORT_EVERY", 0.0)
    run = fit("synth-linear", seeds=[0, 1], steps=30, log_every=10, workers=workers, network="linear", latents=2,
              data_parameters={"size": 500}, out=tmp_path / "run")  # fmt: skip
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("training 2 x beta-vae: 60 of 60 (100%)")
    held = run.log().query("name == 'held-out/loss' and step == 20")["value"].mean()
    assert f"held-out {held:.4g}" in last


def test_show_false_is_silent(monkeypatch, capsys):
    monkeypatch.setattr(progress, "REPORT_EVERY", 0.0)
    with progress.bar("counting", 2, show=False) as advance:
        advance()
    assert capsys.readouterr().err == ""
