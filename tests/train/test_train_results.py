"""What a run writes down is what it says: columns by name, held-out rows, an objective's own KL weight, old files."""

import errno
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from unseam.atomic import MARK, remove_leftovers
from unseam.axes import Pass, Terms
from unseam.errors import BadInput, Failed
from unseam.objectives import Context, Objective
from unseam.run import Run, load_run
from unseam.run.config import split
from unseam.run.results import TABLE_COLUMNS, Results
from unseam.train import cohort, fit, resume

SETTINGS: dict[str, Any] = {"network": "mlp", "encoder": (8,), "decoder": (8,), "latents": 2, "batch": 16, "steps": 30,
                            "log_every": 10, "workers": 1}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """320 rows, 32 of them held out: two whole batches, so the last numbers are of all of them."""
    out = tmp_path_factory.mktemp("results") / "run"
    return fit("synth-nonlinear", "beta-vae", seeds=[0, 1], data_parameters={"size": 320}, out=out, **SETTINGS)


def by_hand(run: Run, member: int) -> pd.DataFrame:
    """Latent statistics from the member's own posterior on the held-out rows."""
    with torch.no_grad():
        q = run.model(member).encode(run.data.batch(split(len(run.data), 0.1)[1]))
    mu, s2 = q.mean, q.log_var.exp()
    kl = 0.5 * (mu**2 + s2 - s2.log() - 1)
    columns = {"kl": kl.mean(0), "mu_std": mu.std(0, correction=0), "mu2": (mu**2).mean(0), "sigma2": s2.mean(0),
               "log_sigma2": s2.log().mean(0)}  # fmt: skip
    return pd.DataFrame({name: value.numpy().astype(float) for name, value in columns.items()})


@pytest.mark.parametrize("member", [0, 1])
def test_logged_latents_are_those_of_the_posterior_on_held_out_rows(run: Run, member: int) -> None:
    latents = run.latents()
    last = latents[(latents["member"] == member) & (latents["step"] == 30)].sort_values("latent")
    expected = by_hand(run, member)
    assert abs(expected["mu2"] - expected["sigma2"]).min() > 0.05  # so that swapped columns would be seen
    np.testing.assert_allclose(last[list(expected)], expected, rtol=2e-3, atol=1e-5)
    assert run.table()["kl"][member] == pytest.approx(expected["kl"].sum(), rel=1e-4)


def test_final_numbers_are_of_rows_never_trained_on(tmp_path: Path) -> None:
    """Every held-out row lies 30 away from the others: 4 x 30^2 nats that no training row has (s2 = 1/2)."""
    x = np.random.default_rng(0).normal(size=(320, 4))
    x[split(320, 0.1)[1].numpy()] += 30
    run = fit(x, "ae", out=tmp_path / "run", **{**SETTINGS, "network": "linear"})
    log = run.log().query("step == 20").set_index("name")["value"]
    assert log["loss"] < 50
    assert log["held-out/loss"] > 1000
    assert run.table()["loss"][0] > 1000
    assert run.table()["reconstruction"][0] > 1000


@dataclass(frozen=True)
class Weighed(Objective):
    """Its KL is weighed by three times what its field says, and its field is not called beta."""

    strength: float = 2.0

    def kl_weight(self) -> float:
        return 3 * float(self.strength)

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        terms = {"reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta)}
        return Terms({**terms, "kl": pass_.posterior.kl()}, {"kl": 3 * self.strength})


def test_beta_of_an_own_objective_is_what_the_objective_says(tmp_path: Path) -> None:
    made = fit("synth-nonlinear", Weighed, strength=[2.0, 0.5], data_parameters={"size": 320}, out=tmp_path / "run",
               **{**SETTINGS, "steps": 2})  # fmt: skip
    assert [made.beta(0), made.beta(1)] == [6.0, 1.5]
    again = load_run(tmp_path / "run")
    assert [again.beta(0), again.beta(1)] == [6.0, 1.5]
    config = json.loads((tmp_path / "run/config.json").read_text())
    for member in config["members"]:
        del member["kl_weight"]  # as a run of an earlier version has it
    (tmp_path / "run/config.json").write_text(json.dumps(config))
    assert load_run(tmp_path / "run").beta(0) is None


def test_rows_are_written_by_name(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.create()
    results.write("latents", [{"sigma2": 0.2, "latent": 3, "mu2": 1.5, "step": 7, "member": 1}, {"member": 0, "step": 7,
                  "latent": 3, "kl": 4.0}])  # fmt: skip
    frame = results.read("latents").set_index("member")
    assert list(frame.columns) == list(TABLE_COLUMNS["latents"])[1:]
    assert frame.loc[1, ["mu2", "sigma2"]].tolist() == [1.5, 0.2]
    assert frame.loc[0, "kl"] == 4.0
    assert np.isnan(frame.loc[0, "mu2"])
    with pytest.raises(BadInput, match="'mu3' is not a column of latents"):
        results.write("latents", [{"member": 0, "step": 0, "latent": 0, "mu3": 1.0}])
    with pytest.raises(BadInput, match="did you mean 'latents'"):
        results.write("latent", [])


def test_a_row_written_again_replaces_the_first(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.create()
    for value in (1.0, 2.0):
        results.write("log", [{"member": 0, "step": 0, "name": "loss", "value": value}])
    assert results.read("log")["value"].tolist() == [2.0]


def test_files_of_earlier_versions_open(tmp_path: Path) -> None:
    """Tables as they were made before columns had names, one of them without a column of today."""
    with sqlite3.connect(tmp_path / "results.sqlite") as old:
        old.execute("create table latents (member integer, step integer, latent integer, kl real, mu_std real, mu2 real"
                    ", sigma2 real, primary key (member, step, latent)) without rowid")  # fmt: skip
        old.execute("insert into latents values (0, 5, 1, 0.5, 0.9, 0.8, 0.1)")
        old.execute("create table scores (member integer, name text, value real, detail text, extra text)")
    results = Results(tmp_path)
    frame = results.read("latents")
    assert frame[["latent", "mu2", "sigma2"]].iloc[0].tolist() == [1, 0.8, 0.1]
    assert frame["log_sigma2"].isna().all()
    assert list(results.read("scores").columns) == [*TABLE_COLUMNS["scores"], "extra"]
    results.create()
    results.write("latents", [{"member": 0, "step": 6, "latent": 1, "log_sigma2": -2.0}])
    assert results.read("latents")["log_sigma2"].tolist()[1] == -2.0
    assert results.read("runs").empty


@pytest.mark.parametrize("content", [b"not a database, but long enough to look at" * 30, b""])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "results.sqlite").write_bytes(content)
    with pytest.raises(BadInput, match=r"results\.sqlite is damaged"):
        Results(tmp_path).read("runs")


def test_reading_needs_no_right_to_write(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way but that of a file said not to change is barred, as in a read-only folder."""
    real = sqlite3.connect

    def barred(place: Any, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        if "immutable" not in str(place):
            raise sqlite3.OperationalError("unable to open database file")
        return real(place, *args, **kwargs)

    expected = run.table()
    monkeypatch.setattr(sqlite3, "connect", barred)
    pd.testing.assert_frame_equal(run.table(), expected)


def small(out: Path, **settings: Any) -> Run:
    return fit("synth-nonlinear", data_parameters={"size": 320}, out=out, **{**SETTINGS, **settings})


def kill_before(step: str, monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    """A process that dies before the named part of laying out a run folder."""

    def dies(*_: Any) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr(*{"config": (cohort, "write_atomic"), "tables": (Results, "create")}[step], dies)
    with pytest.raises(RuntimeError, match="power cut"):
        small(out)
    monkeypatch.undo()


def lose_tables(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    small(out)
    for path in out.glob("results.sqlite*"):
        path.unlink()


@pytest.mark.parametrize(
    "harm",
    [lambda m, o: kill_before("config", m, o), lambda m, o: kill_before("tables", m, o), lose_tables],
    ids=["before config.json", "before the tables", "tables lost"],
)
def test_a_run_can_be_started_or_resumed_wherever_it_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[..., None]
) -> None:
    out = tmp_path / "run"
    harm(monkeypatch, out)
    again = resume(out) if (out / "config.json").exists() else small(out)
    whole = small(tmp_path / "whole")
    assert again.table()["loss"].tolist() == whole.table()["loss"].tolist()


def test_a_full_disk_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "group-000.safetensors")

    monkeypatch.setattr("unseam.train.loop.save_checkpoint", full)
    with pytest.raises(Failed) as told:
        small(tmp_path / "my run")
    way = f"continue with: unseam train --resume '{tmp_path}/my run'"
    assert (
        str(told.value) == f"group-000.safetensors: No space left on device; free some space and try again; then {way}"
    )
    monkeypatch.undo()
    assert resume(tmp_path / "my run").table()["status"].tolist() == ["finished"]


DIES_WRITING = """
import os, sys
from pathlib import Path
from unseam.atomic import atomic_file
with atomic_file(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print(temporary.name, flush=True)
    os._exit(9)
"""


def test_temporary_files_of_dead_processes_go_when_a_run_is_resumed(tmp_path: Path) -> None:
    run = small(tmp_path / "run", steps=2)
    target = run.folder / "checkpoints/group-000.safetensors"
    dead = subprocess.run(
        [sys.executable, "-c", DIES_WRITING, str(target)], capture_output=True, text=True, check=False
    )
    left = target.with_name(dead.stdout.strip())
    assert left.exists()
    at_work = target.with_name(f".group-000.{MARK}-{os.getpid()}.abcdefgh.safetensors")
    elsewhere = target.with_name(f".group-000.ffffff-{dead.stdout.split('-')[-1].split('.')[0]}.abcdefgh.safetensors")
    for path in (at_work, elsewhere):
        path.touch()
    before = target.read_bytes()
    resume(run.folder)
    assert not left.exists()
    assert at_work.exists()
    assert elsewhere.exists()
    assert target.read_bytes() == before
    assert remove_leftovers(run.folder) == []


@pytest.mark.skipif(not hasattr(os, "fork") or not Path("/proc/self/stat").exists(), reason="needs fork and /proc")
def test_a_temporary_file_of_a_process_that_nobody_buried_is_removed(tmp_path: Path) -> None:
    """A killed worker stays in the list of processes until its parent asks for it; it writes nothing more."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is still listed
    left = tmp_path / f".group-000.{MARK}-{pid}.abcdefgh.safetensors"
    left.touch()
    assert remove_leftovers(tmp_path) == [left.name]
    os.waitpid(pid, 0)
