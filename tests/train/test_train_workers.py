"""Workers may die: the group goes on in another process, to the same result; a group that kills twice is given up."""

import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from unseam.axes import Pass, Terms
from unseam.errors import Failed
from unseam.objectives import Context, Objective
from unseam.run import Run
from unseam.run.checkpoint import load_checkpoint
from unseam.sklearn_api import VAE
from unseam.train import cohort, fit
from unseam.train.workers import resume_command

LIVES = "UNSEAM_TEST_LIVES"  # a file with one letter for every death still to come
PLACES = "UNSEAM_TEST_PLACES"  # a folder, the first process, how many there are, a signal


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
               check=False, workers=workers, data_parameters={"size": 100}, out=out)  # fmt: skip


def test_the_group_of_a_killed_worker_goes_on_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run = train(tmp_path / "killed", 1, monkeypatch, (0, 1), 2)
    assert run.table()["status"].tolist() == ["finished", "finished"]
    assert "exit code -9" in capfd.readouterr().err
    alone = train(tmp_path / "alone", 0, monkeypatch, (0, 1), 1)
    assert run.table()["loss"].tolist() == alone.table()["loss"].tolist()


def test_a_group_that_kills_twice_is_given_up_with_the_way_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failed, match="continue with: unseam train --resume") as told:
        train(tmp_path / "run", 99, monkeypatch, (0, 1), 2)
    assert resume_command(tmp_path / "run") in str(told.value)


@dataclass(frozen=True)
class Complains(Objective):
    """Its process says why, and ends."""

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        os.write(2, b"driver: the card has fallen off\n")
        os._exit(3)


def test_a_dead_process_is_reported_with_its_own_last_words(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"exit code 3; its last words: driver: the card has fallen off\)") as told:
        fit("synth-linear", Complains, seeds=(0, 1), network="linear", latents=2, steps=5, batch=8, how="side-by-side",
            check=False, workers=2, data_parameters={"size": 100}, out=tmp_path / "run")  # fmt: skip
    assert "memory" not in str(told.value)


@dataclass(frozen=True)
class Signals(Objective):
    """An autoencoder; once as many processes as PLACES says have begun, the first of them gets the signal."""

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        place, first, count, number = os.environ[PLACES].split(":")
        Path(place, str(os.getpid())).touch()
        asked = Path(place, "asked")
        if not asked.exists() and len(list(Path(place).iterdir())) == int(count):
            asked.touch()
            os.kill(int(first), int(number))
        time.sleep(0.005)  # so that it does not end before it is stopped
        return Terms({"reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta)})


@pytest.mark.parametrize(
    ("workers", "number"), [(1, "SIGINT"), (1, "SIGTERM"), (1, "SIGHUP"), (2, "SIGTERM"), (2, "SIGHUP")]
)
def test_a_signal_to_the_first_process_leaves_a_checkpoint_of_every_worker(
    workers: int, number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No checkpoint is due by itself: those that are there were written because of the signal."""
    (tmp_path / "begun").mkdir()
    told = (tmp_path / "begun", os.getpid(), workers, int(signal.Signals[number]))
    monkeypatch.setenv(PLACES, ":".join(map(str, told)))
    with pytest.raises(KeyboardInterrupt, match="continue with: unseam train --resume"):
        fit("synth-linear", Signals, seeds=range(workers), network="linear", latents=2, steps=900, batch=8, watch=0,
            check=False, how="side-by-side", workers=workers, data_parameters={"size": 100}, checkpoint_seconds=1e9,
            out=tmp_path / "run")  # fmt: skip
    found = [load_checkpoint(path)[1]["step"] for path in (tmp_path / "run" / "checkpoints").iterdir()]
    assert len(found) == workers
    assert all(0 < step < 900 for step in found)


@dataclass(frozen=True)
class Counts(Objective):
    """An autoencoder that says with how many threads its process works, and whether denormals are zero there."""

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        os.write(2, f"threads: torch {torch.get_num_threads()}, JAX {os.environ.get('PJRT_NPROC')}\n".encode())
        os.write(2, f"denormals are zero: {sys.float_info.min / 2 == 0}\n".encode())
        return Terms({"reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta)})


def test_workers_compute_with_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """JAX would start a pool of as many threads as there are cores in each of them."""
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    fit("synth-linear", Counts, seeds=(0, 1), network="linear", latents=2, steps=3, batch=8, how="side-by-side",
        check=False, workers=2, data_parameters={"size": 100}, out=tmp_path / "run")  # fmt: skip
    assert set(re.findall("threads: .*", capfd.readouterr().err)) == {"threads: torch 1, JAX 1"}
    assert "PJRT_NPROC" not in os.environ


@pytest.mark.parametrize("workers", [1, 2])
def test_denormals_are_zero_while_a_member_trains_and_only_then(
    workers: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Adam's second moments fall below 1e-38: a member must get the same bits here and in a process of its own."""
    fit("synth-linear", Counts, seeds=(0, 1), network="linear", latents=2, steps=3, batch=8, how="side-by-side",
        check=False, workers=workers, data_parameters={"size": 100}, out=tmp_path / "run")  # fmt: skip
    assert set(re.findall("denormals are zero: .*", capfd.readouterr().err)) == {"denormals are zero: True"}
    assert sys.float_info.min / 2 > 0


def test_small_networks_train_with_one_thread_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where several processes share the cores, threads on small matrices wait for each other."""
    seen: list[int] = []
    real = cohort.train_group

    def counted(*arguments: object) -> None:
        seen.append(torch.get_num_threads())
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(cohort, "train_group", counted)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        fit("synth-linear", network="linear", latents=2, steps=3, batch=8, data_parameters={"size": 100},
            out=tmp_path / "run", show=False)  # fmt: skip
        VAE(2, steps=3, settings={"batch": 8}).fit(np.random.default_rng(0).normal(size=(50, 4)))
        assert (seen, torch.get_num_threads()) == ([1, 1], 2)
    finally:
        torch.set_num_threads(threads)
