"""Devices: nothing of a step stays on the CPU, a word becomes a device that is here, a run opens on any."""

import ast
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import unseam
from unseam.device import available_devices, device, recorded_device
from unseam.errors import BadInput
from unseam.models import Architecture
from unseam.objectives import OBJECTIVES
from unseam.run.config import RunConfig, Training, sweep_members
from unseam.study import load_grid, study
from unseam.study.pieces import Place, open_piece, places
from unseam.train import cohort
from unseam.train.cohort import one_step
from unseam.train.job import Job

SOURCE = Path(unseam.__file__).parent
ROOMS = ("train", "objectives", "models", "geometry")
MAKERS = {"zeros", "ones", "empty", "full", "arange", "linspace", "logspace", "eye", "tensor", "randn", "rand",
          "randint", "randperm", "tril_indices", "triu_indices"}  # fmt: skip
ACCELERATORS = [name for name in available_devices() if name != "cpu"]


class OneDevice(TorchDispatchMode):
    """Refuses an operation on tensors of two devices; a number (a tensor without axes) may come from the CPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is not torch.ops.aten._to_copy.default:
            found = {t.device for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.ndim}
            assert len(found) <= 1, f"{func} mixes {sorted(map(str, found))}"
        return func(*args, **(kwargs or {}))


class OnMeta(Job):
    """A group on the device that computes shapes only."""

    device = torch.device("meta")


def configured(name: str, network: str) -> RunConfig:
    kind = OBJECTIVES[name]
    members, static = sweep_members(kind, [0, 1], {})
    likelihood = "gaussian" if kind.learned_s2 else "bernoulli"
    made = Architecture(latents=4, network=network, encoder=(8,), decoder=(8,), learned_s2=kind.learned_s2)
    architecture = replace(made, posterior=kind.posterior).for_data((1, 16, 16), likelihood)
    return RunConfig({"name": "sprites"}, name, static, members, architecture, Training(batch=8, device="cpu"))


@pytest.mark.parametrize("network", ["mlp", "conv"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_tensor_of_a_step_is_made_on_the_devices_side(name, network):
    config, kind = configured(name, network), OBJECTIVES[name]
    objective = kind(**config.members[0].hyper, **config.static)
    with OneDevice():
        state = one_step(OnMeta(config, kind, (0, 1), 0, Path()), objective, (1, 16, 16))
    assert {stack.flat.device.type for stack in state.stacks.values()} == {"meta"}


def test_the_check_sees_a_tensor_left_behind():
    with OneDevice(), pytest.raises(AssertionError, match="mixes"):
        torch.zeros(2, device="meta") + torch.zeros(2)


def unplaced(path: Path) -> list[str]:
    """Tensors made without saying where, but for the initial values of a parameter (modules are moved as a whole)."""
    tree = ast.parse(path.read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    initial = {id(part) for call in calls if ast.unparse(call.func) == "nn.Parameter" for part in ast.walk(call)}
    made = [c for c in calls if ast.unparse(c.func) in {f"torch.{m}" for m in MAKERS} and id(c) not in initial]
    return [f"{path.name}:{c.lineno} {ast.unparse(c)}" for c in made if "device" not in {k.arg for k in c.keywords}]


@pytest.mark.parametrize("room", ROOMS)
def test_tensors_are_made_where_their_neighbours_are(room):
    assert [line for path in sorted((SOURCE / room).rglob("*.py")) for line in unplaced(path)] == []


def test_the_word_becomes_a_device_that_is_here(monkeypatch):
    monkeypatch.setattr("unseam.device.available_devices", lambda: ["cuda:0", "cuda:1", "cpu"])
    assert [str(device(name)) for name in ("auto", "cuda", "cuda:1", "cpu")] == ["cuda:0", "cuda:0", "cuda:1", "cpu"]
    with pytest.raises(BadInput, match="'cuda:7' is not on this machine, which has cuda:0, cuda:1, cpu"):
        device("cuda:7")
    assert str(recorded_device("mps")) == "cuda:0"  # a run from elsewhere goes on with what there is
    for wrong in ("gpu", "cpu:0", "cuda:", "cuda:x", ""):
        with pytest.raises(BadInput, match="device="):
            device(wrong)


def test_gpus_take_groups_in_turn_and_stacks_fit_their_memory(monkeypatch, tmp_path):
    for place in (
        "unseam.device.available_devices",
        "unseam.train.cohort.available_devices",
        "unseam.train.job.available_devices",
    ):
        monkeypatch.setattr(place, lambda: ["cuda:0", "cuda:1", "cpu"])
    monkeypatch.setattr(cohort, "members_at_once", lambda *_: 3)
    config = configured("beta-vae", "mlp")
    members = tuple(replace(config.members[0], seed=s) for s in range(10))
    config = replace(config, members=members, training=replace(config.training, device="auto"))
    planned = cohort.plan(config, OBJECTIVES["beta-vae"](), (1, 16, 16))
    assert (planned.training.device, planned.training.how, planned.training.workers) == ("cuda", "stacked", 2)
    assert [len(group) for group in planned.groups] == [2, 3, 2, 3]
    jobs = [Job(planned, OBJECTIVES["beta-vae"], g, i, tmp_path) for i, g in enumerate(planned.groups)]
    assert [str(job.device) for job in jobs] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]


def test_a_run_says_where_it_was_trained_and_opens_elsewhere(tmp_path):
    run = unseam.fit("synth-linear", steps=3, network="linear", latents=2, data_parameters={"size": 200},
                     out=tmp_path / "run")  # fmt: skip
    assert run.config.training.device == available_devices()[0].partition(":")[0]
    elsewhere = replace(run.config, training=replace(run.config.training, device="cuda:9"))
    assert str(Job(elsewhere, OBJECTIVES["beta-vae"], (0,), 0, tmp_path).device) == str(device("auto"))
    old = run.config.to_json()
    del old["training"]["device"]
    assert RunConfig.from_json(old).training.device == "cpu"  # all were, before there was a choice


def test_a_run_goes_on_where_it_is_told(tmp_path, monkeypatch):
    """On another machine than it was begun on, by the device that is asked for; its configuration stays."""
    run = unseam.fit("synth-linear", steps=3, network="linear", latents=2, data_parameters={"size": 200},
                     out=tmp_path / "run", show=False)  # fmt: skip
    place, told = tmp_path / "run" / "config.json", []
    place.write_text(place.read_text().replace(f'"device": "{run.config.training.device}"', '"device": "cuda:9"'))
    monkeypatch.setattr("unseam.train.fitting.run_cohort", lambda folder, config, *_: told.append(config))
    assert unseam.resume(run.folder, steps=6, device="cpu").config.training.device == "cuda:9"
    assert [config.training.device for config in told] == ["cpu"]


NO_GPU = [pytest.param("none", marks=pytest.mark.skip(reason="no GPU on this machine"))]


@pytest.mark.gpu
@pytest.mark.parametrize("name", OBJECTIVES if ACCELERATORS else NO_GPU)
def test_the_contract_on_a_gpu(name, tmp_path):
    """The same initial weights; trained there, stopped and resumed, opened and scored on the CPU."""
    settings = {"steps": 40, "checkpoint_steps": 20, "latents": 4, "encoder": (16,), "decoder": (16,), "network": "mlp"}
    data = {"size": 16, "shapes": 1}
    run = unseam.fit("sprites", name, data_parameters=data, device=ACCELERATORS[0], out=tmp_path / "gpu", **settings)
    assert set(run.table()["status"]) == {"finished"}
    again = unseam.fit("sprites", name, data_parameters=data, device=ACCELERATORS[0], out=tmp_path / "2", **settings)
    for a, b in zip(run.weights(0).values(), again.weights(0).values(), strict=True):
        np.testing.assert_array_equal(a, b)
    x = run.data.batch(torch.arange(8))
    here_, there = run.model(0).encode(x).mean, run.on(ACCELERATORS[0]).model(0).encode(x.to(ACCELERATORS[0])).mean
    torch.testing.assert_close(there.cpu(), here_, rtol=1e-2, atol=1e-2)


def test_find_and_study_train_where_they_are_told(monkeypatch, tmp_path):
    """The word reaches the training; one that is not here is refused before any work."""
    told = []
    network = import_module("unseam.finding.network")
    monkeypatch.setattr(network, "fit", lambda *_, **settings: told.append(settings["device"]) or 1 / 0)
    angle = np.random.default_rng(0).uniform(0, 5, 600)
    curve = np.stack([np.cos(angle), np.sin(angle), angle], 1) + 0.01 * np.random.default_rng(1).normal(size=(600, 3))
    with pytest.raises(ZeroDivisionError):
        unseam.find(curve, effort="thorough", device="cpu", show=False)
    assert told == ["cpu"]
    with pytest.raises(BadInput, match="device='cuda:9' is not on this machine"):
        unseam.find(curve, device="cuda:9")
    piece = load_grid("minute").pieces[0]
    run = open_piece(Place(piece, tmp_path / "a", "cpu"))
    assert run.config.training.device == "cpu"
    with pytest.raises(BadInput, match="device='cuda:9' is not on this machine"):
        study("minute", tmp_path / "b", device="cuda:9")
    named = [place.piece.name for place in places(tmp_path, load_grid("minute"), "cpu")]
    assert named == [piece.name for piece in load_grid("minute").pieces]  # no part of what a piece is
