"""Workers may die: the group goes on in another process, to the same result; a group that kills twice is given up."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from unseam.errors import Failed
from unseam.objectives import Context, Objective
from unseam.train import Run, fit
from unseam.train.cohort import way_on
from unseam.types import Pass, Terms

LIVES = "UNSEAM_TEST_LIVES"  # a file with one letter for every death still to come


@dataclass(frozen=True)
class Dies(Objective):
    """An autoencoder; where there are deaths left, its process is killed as the kernel kills when memory is short."""

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        lives = Path(os.environ[LIVES])
        if left := lives.read_text():
            lives.write_text(left[1:])
            os.kill(os.getpid(), signal.SIGKILL)
        return Terms({"reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta)})


def train(out: Path, deaths: int, monkeypatch: pytest.MonkeyPatch, seeds: tuple[int, ...], workers: int) -> Run:
    lives = out.with_suffix(".lives")
    lives.write_text("x" * deaths)
    monkeypatch.setenv(LIVES, str(lives))
    return fit("synth-linear", Dies, seeds=seeds, network="linear", latents=2, steps=5, batch=8, how="side-by-side",
               workers=workers, data_parameters={"size": 100}, out=out)  # fmt: skip


def test_the_group_of_a_killed_worker_goes_on_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run = train(tmp_path / "killed", 1, monkeypatch, (0, 1), 2)
    assert run.table()["status"].tolist() == ["finished", "finished"]
    assert "exit code -9" in capfd.readouterr().err
    alone = train(tmp_path / "alone", 0, monkeypatch, (0, 1), 1)
    assert run.table()["loss"].tolist() == alone.table()["loss"].tolist()


def test_a_group_that_kills_twice_is_given_up_with_the_way_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failed, match="go on with: unseam train --resume") as told:
        train(tmp_path / "run", 99, monkeypatch, (0, 1), 2)
    assert way_on(tmp_path / "run") in str(told.value)
