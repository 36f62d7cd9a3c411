"""The XLA engine gives what the step gives, up to rounding, for every objective; within it all promises hold."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import fx

from unseam.axes import Pass, Terms
from unseam.errors import BadInput
from unseam.objectives import OBJECTIVES, Context, Objective
from unseam.run import Run
from unseam.run.checkpoint import load_checkpoint
from unseam.train import cohort, fit, resume, workers, xla
from unseam.train.job import Job

jax = pytest.importorskip("jax")

TINY = {"network": "mlp", "encoder": (8,), "decoder": (8,), "decoder_activation": "tanh", "latents": 3, "batch": 16,
        "steps": 50, "log_every": 20, "watch": 32, "workers": 1, "precision": "float64"}  # fmt: skip
# Objectives that use all operators of all objectives; UNSEAM_XLA=all tests every one of them (minutes of compiling)
REPRESENTATIVES = ("beta-vae-sigma", "annealed-vae", "factor-vae", "ortho-vae", "ada-gvae", "pcl", "tripod", "hfs")
SMALLER = {"factor-vae": {"width": 32, "depth": 2}, "weak-gan": {"width": 8}}  # critics
AMPLIFIES = {"weak-gan": 10}  # steps after which rounding is still rounding: 50 steps of this GAN multiply it by 1e10


QUICK = {**xla._OPTIONS, "xla_backend_optimization_level": 0}


@pytest.fixture(autouse=True)
def _compiled_quickly(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiling is most of the time of these tests: the same program is compiled once, and without optimisations."""
    monkeypatch.setattr(xla, "_OPTIONS", QUICK)
    cache = {"jax_compilation_cache_dir": str(tmp_path_factory.getbasetemp() / "xla"),
             "jax_persistent_cache_min_compile_time_secs": 0.0}  # fmt: skip
    before = {name: getattr(jax.config, name) for name in cache}
    for name, value in cache.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def train(out: Path, objective: object = "beta-vae", **settings: object) -> Run:
    settings = {**TINY, "engine": "xla", "seeds": [0, 1], **settings}
    return fit("synth-nonlinear", objective, out=out, data_parameters={"size": 200}, show=False, **settings)  # type: ignore[arg-type]


def checkpoint(run: Run) -> dict[str, torch.Tensor]:
    return load_checkpoint(run.folder / "checkpoints/group-000.safetensors")[0]


def rows(run: Run) -> list[tuple[object, ...]]:
    log = run.log()
    log = log[log["name"] != "throughput"].sort_values(["member", "step", "name"])
    return list(log.itertuples(index=False, name=None)) + list(run.latents().itertuples(index=False, name=None))


def engines(run: Run) -> set[str]:
    return set(run.table()["engine"])


def assert_same(a: Run, b: Run, rtol: float = 1e-7) -> None:
    """Weights, the optimiser's memory, logged numbers and final ones.

    Adam divides by 1e-8 where a gradient cancels to nothing, so that 1e-16 of rounding is 1e-8 of a step.
    """
    ours, theirs = checkpoint(a), checkpoint(b)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=rtol, atol=rtol, msg=lambda m, n=name: f"{n}: {m}")
    assert len(rows(a)) == len(rows(b))
    for one, other in zip(rows(a), rows(b), strict=True):
        numbers = [[value for value in row if not isinstance(value, str)] for row in (one, other)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e2 * rtol, abs=1e2 * rtol, nan_ok=True), (one, other)


def operators_of(name: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The operators of an objective's step and report, traced in a run whose engine is not started."""
    graphs: list[fx.GraphModule] = []
    real = xla.translated

    class NotStarted(Exception):
        pass

    def kept(graph: fx.GraphModule) -> object:
        graphs.append(graph)
        return real(graph)

    def not_started(engine: xla.XLA) -> None:
        raise NotStarted

    monkeypatch.setattr(xla, "translated", kept)
    monkeypatch.setattr(xla.XLA, "load", not_started)
    run = train(out, name, steps=1, check=False, **SMALLER.get(name, {}))
    assert len(graphs) == 2, load_checkpoint(run.folder / "checkpoints/group-000.safetensors")[1]
    return {str(node.target) for graph in graphs for node in graph.graph.nodes if node.op == "call_function"}


def test_every_objective_is_translated_and_its_operators_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {name: operators_of(name, tmp_path / name, monkeypatch) for name in OBJECTIVES}
    tested = set().union(*(found[name] for name in REPRESENTATIVES)) | {f"aten.{name}" for name in ALONE}
    missing = {name: operators - tested for name, operators in found.items() if operators - tested}
    assert missing == {}, "add an objective with them to REPRESENTATIVES, or the operators to ALONE"


ALONE: dict[str, tuple[object, ...]] = {  # operators that no representative uses, with arguments
    "linalg_vector_norm.default": (torch.arange(6.0).reshape(2, 3), 2, [1]),
    "select_backward.default": (torch.arange(3.0), [2, 3], 0, 1),
}


@pytest.mark.parametrize("name", ALONE)
def test_an_operator_is_that_of_torch(name: str) -> None:
    base, overload = name.split(".")
    target = getattr(getattr(torch.ops.aten, base), overload)
    arguments = [a.numpy() if isinstance(a, torch.Tensor) else a for a in ALONE[name]]
    found = xla.operators()[target](*arguments)
    np.testing.assert_allclose(np.asarray(found), target(*ALONE[name]).numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", OBJECTIVES if os.environ.get("UNSEAM_XLA") == "all" else REPRESENTATIVES)
def test_an_objective_is_what_it_is_without_xla(tmp_path: Path, name: str) -> None:
    """An operator that xla_operators.py does not have, or has wrong, turns up here."""
    settings = {"objective": name, "steps": AMPLIFIES.get(name, 50), **SMALLER.get(name, {})}
    found = train(tmp_path / "xla", **settings)
    assert engines(found) == {"xla"}
    assert_same(found, train(tmp_path / "eager", engine="eager", **settings))


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name not in REPRESENTATIVES])
def test_three_steps_of_every_other_objective_are_what_they_are_without_xla(tmp_path: Path, name: str) -> None:
    settings = {"objective": name, "steps": 3, "check": False, **SMALLER.get(name, {})}
    found = train(tmp_path / "xla", **settings)
    assert engines(found) == {"xla"}
    assert_same(found, train(tmp_path / "eager", engine="eager", **settings))


@pytest.mark.parametrize("settings", [
    {"likelihood": "bernoulli", "scale": "unit", "encoder_activation": "elu", "decoder_activation": "softplus"},
    {"network": "linear", "precision": "float32", "optimiser": "sgd"},
    {"optimiser": "adam", "eps": 0.0, "weight_decay": 0.1, "seeds": [3]},
    {"objective": "annealed-vae", "optimiser": "adagrad", "learned_s2": True},
])  # fmt: skip
def test_settings_are_what_they_are_without_xla(tmp_path: Path, settings: dict) -> None:
    found = train(tmp_path / "xla", **settings)
    assert engines(found) == {"xla"}
    rtol = 1e-4 if settings.get("precision") == "float32" else 1e-7
    assert_same(found, train(tmp_path / "eager", engine="eager", **settings), rtol)


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial", "categorical"])
def test_likelihoods_of_counts_are_what_they_are_without_xla(tmp_path: Path, likelihood: str) -> None:
    counts = np.random.default_rng(0).poisson(3.0, size=(100, 5))
    settings = {**TINY, "steps": 20, "likelihood": likelihood, "scale": "none", "show": False, "seeds": [0, 1]}
    found = [fit(counts, out=tmp_path / e, engine=e, **settings) for e in ("xla", "eager")]  # type: ignore[arg-type]
    assert engines(found[0]) == {"xla"}
    assert_same(*found)


def test_members_of_one_seed_and_a_member_alone(tmp_path: Path) -> None:
    """Members of one seed share what is drawn; member 3 is what it is alone."""
    together = train(tmp_path / "all", beta=[0.5, 2.0])
    alone = train(tmp_path / "one", beta=2.0, seeds=[1])
    assert [(m.seed, m.hyper["beta"]) for m in together.members][3] == (1, 2.0)
    ours, theirs = checkpoint(together), checkpoint(alone)
    for name in theirs:
        if name.startswith("model/"):
            torch.testing.assert_close(ours[name][3], theirs[name][0], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("optimiser", ["adam"])
def test_resumed_is_uninterrupted_bit_for_bit_however_it_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimiser: str
) -> None:
    settings = {"optimiser": optimiser, "precision": "float32"}
    whole = train(tmp_path / "whole", **settings)
    real = xla.XLA.run

    def dies_at_35(engine: xla.XLA, count: int) -> int:
        if engine.state.step >= 35:
            raise RuntimeError("power cut")
        return real(engine, count)

    monkeypatch.setattr(xla.XLA, "run", dies_at_35)
    with pytest.raises(RuntimeError, match="power cut"):
        train(tmp_path / "cut", checkpoint_steps=7, **settings)
    monkeypatch.setattr(xla.XLA, "run", real)
    again = resume(tmp_path / "cut")
    assert engines(again) == {"xla"}
    ours, theirs = checkpoint(whole), checkpoint(again)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert rows(whole) == rows(again)


KILLED = """
import os, signal, sys
from pathlib import Path
from unseam.train import fit, xla
xla._OPTIONS = {options}
def power_cut(logged):
    if logged.step == 40:
        os.kill(os.getpid(), signal.SIGKILL)
fit("synth-nonlinear", out=Path({out!r}), callbacks=power_cut, **{settings!r})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_killed_training_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """Killed at step 40, resumed in another process from the checkpoint of step 36: the tensors of the uninterrupted
    run, bit for bit, and the same logged rows, none of them twice."""
    settings = {"precision": "float32", "checkpoint_steps": 12, "objective": "beta-vae", "engine": "xla"}
    given = {**TINY, "seeds": [0, 1], "data_parameters": {"size": 200}, "show": False, **settings}
    script = KILLED.format(options=xla._OPTIONS, out=str(tmp_path / "killed"), settings=given)
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert load_checkpoint(tmp_path / "killed/checkpoints/group-000.safetensors")[1]["step"] == 36
    again = resume(tmp_path / "killed")
    assert engines(again) == {"xla"}
    whole = train(tmp_path / "whole", **settings)
    ours, theirs = checkpoint(whole), checkpoint(again)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert rows(whole) == rows(again)


LIVES = "UNSEAM_TEST_LIVES_OF_XLA"  # a file with one letter for every death still to come


@dataclass(frozen=True)
class DiesInAChunk(Objective):
    """An autoencoder. The process that watches its step to translate it is killed once 35 steps are done."""

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        if xla.XLA.run.__name__ != "killed":
            xla.XLA.run, xla._OPTIONS = killed(xla.XLA.run), QUICK  # type: ignore[method-assign]
        return Terms({"reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta)})


def killed(run: Callable[[xla.XLA, int], int]) -> Callable[[xla.XLA, int], int]:
    def killed(engine: xla.XLA, count: int) -> int:
        lives = Path(os.environ[LIVES])
        if engine.state.step >= 35 and (left := lives.read_text()):
            lives.write_text(left[1:])
            os.kill(os.getpid(), signal.SIGKILL)
        return run(engine, count)

    return killed


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_the_group_of_a_killed_worker_goes_on_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A worker is killed between two checkpoints: the bytes of the other one's result are those of this process."""
    monkeypatch.setattr(xla.XLA, "run", xla.XLA.run)  # put back when the test ends
    monkeypatch.setenv(LIVES, str(tmp_path / "lives"))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

    def trained(name: str) -> Run:
        return train(tmp_path / name, DiesInAChunk, network="linear", checkpoint_steps=12, check=False)

    def in_a_worker(job: Job, data: object, tick: object) -> None:
        workers.train_in_processes([job], 1, lambda *_: None)

    (tmp_path / "lives").write_text("")
    here = trained("here")
    (tmp_path / "lives").write_text("x")
    monkeypatch.setattr(cohort, "train_group", in_a_worker)
    there = trained("there")
    assert "exit code -9" in capfd.readouterr().err
    assert engines(there) == {"xla"}
    ours, theirs = checkpoint(here), checkpoint(there)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert rows(here) == rows(there)


def test_chunks_are_bounded_by_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(tmp_path / "whole")
    monkeypatch.setattr(xla, "_MEMORY", 3 * 2 * 16 * (4 + 3 * 4))  # of three steps: rows, and noise of three latents
    sizes = []
    real = xla.XLA.run
    monkeypatch.setattr(xla.XLA, "run", lambda engine, count: (sizes.append(real(engine, count)), sizes[-1])[1])
    cut = train(tmp_path / "cut")
    assert max(sizes) == 3
    ours, theirs = checkpoint(whole), checkpoint(cut)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_means_over_held_out_batches_do_not_depend_on_how_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven batches are looked at in calls of four and three, or of two, two, two and one."""
    found = []
    for size in (4, 2):
        monkeypatch.setattr(xla, "HELD_OUT_BATCHES", size)
        run = train(tmp_path / f"{size}", steps=10, holdout=0.6, watch=112)
        assert len(run.split("held-out")) // TINY["batch"] == 7
        log = run.log().sort_values(["member", "step", "name"])
        found.append(log[log["name"].str.startswith("held-out/")]["value"].to_numpy())
    assert len(found[0])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@dataclass(frozen=True)
class Fuse(Objective):
    """An autoencoder whose loss stops being finite after `fuse` steps."""

    fuse: float = 1e9

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        loss = -context.model.likelihood.log_prob(pass_.x, pass_.theta)
        lit = torch.as_tensor(context.step < self.fuse).double()  # 1, then 0
        return Terms({"reconstruction": loss / lit})


def test_members_that_leave_the_finite_numbers_are_frozen_as_ever(tmp_path: Path) -> None:
    settings = {"objective": Fuse, "fuse": [12.0, 33.0, 1e9], "seeds": [0, 1], "check": False}
    found, eager = train(tmp_path / "xla", **settings), train(tmp_path / "eager", engine="eager", **settings)
    assert engines(found) == {"xla"}
    assert found.table()["status"].tolist() == ["diverged"] * 4 + ["finished"] * 2
    assert found.table()["note"].tolist() == eager.table()["note"].tolist()
    assert "loss was not finite at step 12" in found.table()["note"][0]
    short = train(tmp_path / "short", steps=12, **settings)
    whole, before, theirs = checkpoint(found), checkpoint(short), checkpoint(eager)
    for name in (name for name in whole if name.startswith("model/")):
        assert torch.equal(whole[name][:2], before[name][:2])
        torch.testing.assert_close(whole[name], theirs[name], rtol=1e-9, atol=1e-10)


def test_a_group_of_frozen_members_ends_there(tmp_path: Path) -> None:
    found, eager = (train(tmp_path / e, Fuse, fuse=12.0, engine=e, check=False) for e in ("xla", "eager"))
    assert found.table()[["step", "note"]].values.tolist() == eager.table()[["step", "note"]].values.tolist()


def test_early_stopping_stops_at_the_same_steps(tmp_path: Path) -> None:
    settings = {"steps": 200, "log_every": 10, "patience": 20, "lr": 0.05, "seeds": [0, 1, 2]}
    found, eager = (train(tmp_path / e, engine=e, **settings) for e in ("xla", "written-out"))
    assert found.table()["note"].str.contains("stopped").any()
    assert found.table()["note"].tolist() == eager.table()["note"].tolist()
    ours, theirs = checkpoint(found), checkpoint(eager)
    for name in (name for name in ours if name.startswith(("model/", "best/"))):
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-6, atol=1e-7)


def test_callbacks_see_the_weights_of_their_step(tmp_path: Path) -> None:
    def look(logged):
        return logged.model(0).state_dict(), logged.step

    seen: dict[str, list] = {"xla": [], "eager": []}
    for engine, found in seen.items():
        train(tmp_path / engine, engine=engine, steps=30, callbacks=lambda logged, f=found: f.append(look(logged)))
    assert [step for _, step in seen["xla"]] == [0, 20]
    for (ours, _), (theirs, _) in zip(*seen.values(), strict=True):
        for name, value in ours.items():
            torch.testing.assert_close(value, theirs[name])


@dataclass(frozen=True)
class Unusual(Objective):
    """An operator that the table does not have."""

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        loss = -context.model.likelihood.log_prob(pass_.x, pass_.theta)
        return Terms({"reconstruction": loss + torch.special.i0e(pass_.z).sum(1)})


def test_what_xla_cannot_run_is_run_without_it_and_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = train(tmp_path / "xla", Unusual, steps=20)
    assert capsys.readouterr().err.count("xla_operators.py has no aten.special_i0e.default") == 1
    assert engines(found) == {"eager"}
    eager = train(tmp_path / "eager", Unusual, steps=20, engine="eager")
    assert all(torch.equal(a, b) for a, b in zip(checkpoint(found).values(), checkpoint(eager).values(), strict=True))


def test_a_translation_that_gives_other_numbers_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = xla.operators()
    wrong = {**real, torch.ops.aten.tanh.default: lambda x: 1.001 * real[torch.ops.aten.tanh.default](x)}
    monkeypatch.setattr(xla, "operators", lambda: wrong)
    assert engines(train(tmp_path / "run", steps=20)) == {"eager"}


def test_long_runs_of_small_networks_choose_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def chosen(**settings: object) -> str:
        given = {**TINY, "precision": "auto", "steps": 10_000, **settings}
        monkeypatch.setattr(fit.__module__ + ".run_cohort", lambda *_: None)
        run = fit("sprites", out=tmp_path / str(len(list(tmp_path.iterdir()))), show=False,
                  data_parameters={"size": 16, "shapes": 1}, **given)  # fmt: skip
        return json.loads((run.folder / "config.json").read_text())["training"]["engine"]

    assert chosen() == chosen(network="linear") == chosen(seeds=range(30)) == "xla"
    assert chosen(steps=1000) == chosen(network="conv") == "written-out"
    assert chosen(encoder=(1000, 1000), steps=3000) == "xla"  # wide layers win more at each step
    assert chosen(steps=3000) == chosen(encoder=(1000, 1000), steps=500) == "written-out"
    assert chosen(engine="written-out") == "written-out"
    monkeypatch.setattr(cohort, "installed", lambda: False)
    assert chosen() == "written-out"
    with pytest.raises(BadInput, match=r"engine='xla' needs JAX.*unseam\[xla\]"):
        chosen(engine="xla")


def test_the_users_own_jax_stays_as_it_was(tmp_path: Path) -> None:
    train(tmp_path / "run", steps=10)
    assert jax.numpy.ones(1, dtype=float).dtype == "float32"
