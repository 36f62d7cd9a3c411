"""A member of a cohort is the member alone; a resumed run is the uninterrupted one; a bad member stops alone."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from unseam.axes import Pass, Terms
from unseam.errors import BadInput
from unseam.objectives import Context, Objective
from unseam.run import Run, load_run
from unseam.run.checkpoint import load_checkpoint, save_checkpoint
from unseam.train import fit, resume, step_by_step

SMALL = {"network": "mlp", "encoder": (8,), "decoder": (8,), "latents": 2, "batch": 16, "log_every": 10}
DATA = {"size": 300}


def weights(run: Run, member: int) -> list[torch.Tensor]:
    return [p.detach() for p in run.model(member).parameters()]


def small(out: Path, **settings: object) -> Run:
    return fit("synth-nonlinear", out=out, data_parameters=DATA, **{**SMALL, "steps": 40, **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize("objective", ["ae", "vae", "beta-vae", "beta-vae-sigma"])
def test_member_of_a_stack_is_the_member_alone(tmp_path: Path, objective: str) -> None:
    sweep = {"beta": [0.1, 2.0]} if objective.startswith("beta") else {}
    cohort = small(tmp_path / "all", objective=objective, seeds=[0, 1, 2], precision="float64", **sweep)
    member = cohort.members[-1]
    one = {name: value for name, value in member.hyper.items() if name in sweep}
    alone = small(tmp_path / "one", objective=objective, seeds=[member.seed], precision="float64", **one)
    assert cohort.config.groups == (tuple(range(len(cohort.members))),)
    for a, b in zip(weights(cohort, len(cohort.members) - 1), weights(alone, 0), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)
    last = cohort.table().iloc[-1]
    assert last["loss"] == pytest.approx(alone.table()["loss"][0], rel=1e-6)


def test_side_by_side_processes_give_the_member_alone_bit_for_bit(tmp_path: Path) -> None:
    cohort = small(tmp_path / "all", seeds=[0, 1, 2], how="side-by-side", workers=2)
    alone = small(tmp_path / "one", seeds=[2], how="side-by-side")
    assert len(cohort.config.groups) == 3
    for a, b in zip(weights(cohort, 2), weights(alone, 0), strict=True):
        assert torch.equal(a, b)


def rows(run: Run) -> list[tuple[object, ...]]:
    log = run.log()
    log = log[log["name"] != "throughput"].sort_values(["member", "step", "name"])
    return list(log.itertuples(index=False, name=None)) + list(run.latents().itertuples(index=False, name=None))


@pytest.mark.parametrize("optimiser", ["adam", "adagrad", "sgd"])
def test_resumed_is_uninterrupted_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimiser: str) -> None:
    whole = small(tmp_path / "whole", seeds=[0, 1], optimiser=optimiser)
    real, count = step_by_step.update, iter(range(10**9))

    def dies_at_25(*args: object) -> None:
        if next(count) == 25:
            raise RuntimeError("power cut")
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(step_by_step, "update", dies_at_25)
    with pytest.raises(RuntimeError, match="power cut"):
        small(tmp_path / "cut", seeds=[0, 1], optimiser=optimiser, checkpoint_steps=10)
    monkeypatch.undo()
    assert load_checkpoint(tmp_path / "cut/checkpoints/group-000.safetensors")[1]["step"] == 20
    again = resume(tmp_path / "cut")
    for member in (0, 1):
        assert all(torch.equal(a, b) for a, b in zip(weights(whole, member), weights(again, member), strict=True))
    assert rows(whole) == rows(again)


def command(out: Path, *more: str) -> list[str]:
    flags = "--data.size 300 --network mlp --encoder 8 --decoder 8 --latents 2 --batch 16 --seeds 0,1 --steps 900"
    base = [sys.executable, "-m", "unseam", "train", "synth-nonlinear", *flags.split(), "--out", str(out)]
    return [*base, "--checkpoint-steps", "20", "--how", "side-by-side", *more]


def test_killed_runs_go_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """`kill` reaches the first of three processes; other signals and SIGKILL are in tests/faults."""
    out = tmp_path / "run"
    process = subprocess.Popen(command(out, "--workers", "2"), stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 300
    while len(list(out.glob("checkpoints/group-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGTERM)
    whole = small(tmp_path / "whole", seeds=[0, 1], steps=900, log_every=100, how="side-by-side")
    _, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert f"unseam train --resume {out}" in told.decode()
    assert len(list(out.glob("checkpoints/group-*"))) == 2
    config = json.loads((out / "config.json").read_text())
    config["training"]["workers"] = 1  # go on in this process: to start others takes longer than to train
    (out / "config.json").write_text(json.dumps(config))
    run = resume(out)
    assert set(run.table()["status"]) == {"finished"}
    for member in (0, 1):
        for a, b in zip(weights(whole, member), weights(run, member), strict=True):
            assert torch.equal(a, b)


@dataclass(frozen=True)
class Bomb(Objective):
    """An autoencoder whose loss stops being finite after `fuse` steps."""

    fuse: float = 1e9

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        loss = -context.model.likelihood.log_prob(pass_.x, pass_.theta)
        lit = torch.as_tensor(context.step < self.fuse).double()  # 1, then 0
        return Terms({"reconstruction": loss / lit, "kl": pass_.posterior.kl()})


def test_a_diverging_member_is_frozen_and_the_rest_finish(tmp_path: Path) -> None:
    run = small(tmp_path / "bomb", objective=Bomb, check=False, fuse=[12.0, 1e9], seeds=[0, 1], precision="float64")
    alone = small(tmp_path / "alone", objective=Bomb, seeds=[1], precision="float64")
    table = run.table()
    assert table["status"].tolist() == ["diverged", "diverged", "finished", "finished"]
    assert "not finite at step 12" in table["note"][0]
    assert all(torch.isfinite(p).all() for member in range(4) for p in weights(run, member))
    for a, b in zip(weights(run, 3), weights(alone, 0), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


def test_frozen_weights_are_those_before_the_accident(tmp_path: Path) -> None:
    run = small(tmp_path / "bomb", objective=Bomb, check=False, fuse=[12.0, 1e9], seeds=[0], precision="float64")
    short = small(tmp_path / "short", objective=Bomb, seeds=[0], steps=12, precision="float64")
    for a, b in zip(weights(run, 0), weights(short, 0), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small(tmp_path_factory.mktemp("finished") / "run", seeds=[0, 1], steps=20, snapshots=2)


@pytest.mark.parametrize("harm", ["truncate", "alter", "header", "missing"])
def test_a_harmed_checkpoint_is_refused_with_its_name(tmp_path: Path, finished: Run, harm: str) -> None:
    path = tmp_path / "group-000.safetensors"
    content = bytearray((finished.folder / "checkpoints/group-000.safetensors").read_bytes())
    if harm == "alter":
        content[-20] ^= 1
    if harm == "header":
        content = bytearray(bytes(content).replace(b'\\"step\\": 20', b'\\"step\\": 21'))
        assert b"21" in content
    if harm != "missing":
        path.write_bytes(content[: len(content) // 2] if harm == "truncate" else content)
    with pytest.raises(BadInput, match="group-000"):
        load_checkpoint(path)


def test_checkpoints_are_never_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.safetensors"
    save_checkpoint(path, {"a": torch.ones(3)}, {"step": 1})
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk gone")))
    with pytest.raises(OSError, match="disk gone"):
        save_checkpoint(path, {"a": torch.zeros(3)}, {"step": 2})
    tensors, meta = load_checkpoint(path)
    assert meta["step"] == 1
    assert tensors["a"].tolist() == [1, 1, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["one.safetensors"]


def test_run_folder_holds_what_it_says(finished: Run) -> None:
    config = json.loads((finished.folder / "config.json").read_text())
    assert config["data"]["name"] == "synth-nonlinear"
    assert load_run(finished.folder).config == finished.config
    assert finished.snapshots() == [10, 20]
    final, kept = weights(finished, 1), finished.model(1, step=20).parameters()
    assert all(torch.equal(a, b) for a, b in zip(final, kept, strict=True))
    with sqlite3.connect(finished.folder / "results.sqlite") as rows:
        assert rows.execute("pragma journal_mode").fetchone() == ("wal",)
    names = set(finished.log()["name"])
    assert {"loss", "reconstruction", "kl", "active", "throughput"} <= names
    latents = finished.latents()
    assert set(latents["latent"]) == {0, 1}
    total = latents[(latents["member"] == 0) & (latents["step"] == 20)]["kl"].sum()
    assert total == pytest.approx(finished.table()["kl"][0], rel=1e-5)


def test_arrays_in_memory_become_files_of_the_run(tmp_path: Path) -> None:
    x, v = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 5
    settings = {**SMALL, "steps": 5, "batch": 8}
    run = fit(x, out=tmp_path / "run", data_parameters={"factors": v}, **settings)  # type: ignore[arg-type]
    again = load_run(tmp_path / "run").data
    assert torch.equal(again.batch(torch.arange(50)), torch.as_tensor(x, dtype=torch.float32))
    assert again.factors(torch.arange(50)).flatten().tolist() == v.tolist()
    assert run.table()["status"].tolist() == ["finished"]


def test_a_run_is_not_written_over(finished: Run) -> None:
    with pytest.raises(BadInput, match="already holds a run"):
        small(finished.folder)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 0}, "steps=0"),
        ({"holdout": 1.0}, "holdout=1.0"),
        ({"objective": "beta-vea"}, "did you mean 'beta-vae'"),
        ({"betta": 3}, "did you mean 'beta'"),
        ({"likelihood": "bernoulli"}, "needs values in"),
        ({"seeds": []}, "seeds is empty"),
        ({"seeds": [0, 0]}, "0 is repeated"),
        ({"seeds": [1.5]}, "not an integer"),
        ({"beta": "x"}, "beta='x'"),
        ({"precision": "float16"}, "precision='float16'"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(tmp_path: Path, settings: dict, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        small(tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_beta_scales_out_of_the_loss(tmp_path: Path) -> None:
    """Allen 2024, Theorem 3: loss(beta, s2) / beta = loss(1, beta s2) + const; Adam with eps = 0 cannot tell them."""
    smooth = {"encoder_activation": "tanh", "decoder_activation": "tanh"}  # a dead ReLU's gradient is 0, and 0/0
    same = {"precision": "float64", "eps": 0.0, "steps": 30, **smooth}
    one = small(tmp_path / "beta", objective="beta-vae", beta=0.25, s2=0.5, **same)
    two = small(tmp_path / "s2", objective="beta-vae", beta=1.0, s2=0.125, **same)
    other = small(tmp_path / "other", objective="beta-vae", beta=1.0, s2=0.5, **same)
    for a, b in zip(weights(one, 0), weights(two, 0), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)
    assert not all(torch.allclose(a, b) for a, b in zip(weights(one, 0), weights(other, 0), strict=True))
