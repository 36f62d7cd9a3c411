"""A step written out is the step: the same losses and gradients for every objective, or it is not used."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from unseam.axes import Pass, Terms
from unseam.data import config, load_data
from unseam.models import Architecture
from unseam.objectives import OBJECTIVES, Context, Objective, Optimiser
from unseam.run.config import RunConfig, Training, sweep_members
from unseam.train import compiled_step, fit, step_by_step
from unseam.train.batches import Feed
from unseam.train.compiled_step import LONG, agree, compile_step, trace_step
from unseam.train.job import Job, State, start
from unseam.train.stack import Forward, Stepper
from unseam.train.step_by_step import StepByStep

MEMBERS = 2


def prepare(kind: type[Objective], steps: int = LONG) -> tuple[Forward, State, Feed]:
    data = load_data("synth-nonlinear", size=200)
    members, static = sweep_members(kind, range(MEMBERS), {})
    architecture = Architecture("mlp", 3, encoder=(8,), decoder=(8,), posterior=kind.posterior)
    architecture = replace(architecture, likelihood="gaussian", decoder_activation="tanh", learned_s2=kind.learned_s2)
    run = RunConfig(config(data), "name", static, members, architecture, Training(batch=16, steps=steps))
    job, objective = Job(run, kind, tuple(range(MEMBERS)), 0, Path()), kind(**members[0].hyper, **static)
    state = start(job, objective, data.shape)
    seeds = list(range(MEMBERS))
    feed = Feed(data, torch.arange(200), seeds, 16 * kind.batches, pairing=objective.pairing())
    return Forward(job, objective, state, len(data)), state, feed


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_can_be_written_out_and_gives_the_same(name: str) -> None:
    forward, state, feed = prepare(OBJECTIVES[name])
    written = trace_step(forward, state, *feed(0, forward.shapes))
    assert written is not None
    state.step = 700  # a step, a batch and weights that it was not written on
    for stack in state.stacks.values():
        stack.flat.mul_(1.1)
    x, noise = feed(3, forward.shapes)
    losses = written(state, x, noise)
    gradients = {player: stack.gradient.clone() for player, stack in state.stacks.items()}
    expected, _ = forward(state, x, noise, logging=False)
    forward.backward(state, expected)
    for player, stack in state.stacks.items():
        torch.testing.assert_close(losses[player], expected[player].detach(), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(gradients[player], stack.gradient, rtol=1e-5, atol=1e-6)


@dataclass(frozen=True)
class LooksAtValues(Objective):
    def __call__(self, pass_: Pass, context: Context) -> Terms:
        loss = -context.model.likelihood.log_prob(pass_.x, pass_.theta)
        return Terms({"loss": loss if context.step < 1 else 2 * loss})


COUNT = {"calls": 0}


@dataclass(frozen=True)
class Remembers(Objective):
    def __call__(self, pass_: Pass, context: Context) -> Terms:
        COUNT["calls"] += 1
        return Terms({"loss": COUNT["calls"] * -context.model.likelihood.log_prob(pass_.x, pass_.theta)})


def test_a_step_that_looks_at_values_is_not_written_out(tmp_path: Path) -> None:
    forward, state, feed = prepare(LooksAtValues)
    assert compile_step(forward, state, feed) is None
    run = fit("synth-linear", LooksAtValues, network="linear", latents=2, steps=LONG, seeds=[0, 1], batch=8,
              data_parameters={"size": 100}, out=tmp_path / "run")  # fmt: skip
    assert set(run.table()["status"]) == {"finished"}


def test_a_step_that_changes_behind_our_back_is_found_out() -> None:
    forward, state, feed = prepare(Remembers)
    written = trace_step(forward, state, *feed(0, forward.shapes))
    assert written is not None
    assert not agree(written, forward, state, *feed(1, forward.shapes))
    assert compile_step(forward, state, feed) is None


def test_short_runs_are_not_written_out() -> None:
    short, long = (StepByStep(*prepare(OBJECTIVES["beta-vae"], steps), nullcontext) for steps in (LONG - 1, LONG))
    for _ in range(2):
        short.run(1), long.run(1)
    assert (short.compiled, short.state.engine) == (None, "eager")
    assert long.compiled is not None
    assert long.state.engine == "written-out"


def test_it_is_written_once_and_not_before_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(forward: Forward, state: State, feed: Feed) -> None:
        asked.append(state.step)

    monkeypatch.setattr(compiled_step, "LONG", 1)
    monkeypatch.setattr(step_by_step, "compile_step", counted)
    fit("synth-linear", "beta-vae", network="linear", latents=2, steps=7, batch=8, data_parameters={"size": 100},
        log_every=3, workers=1, out=tmp_path / "run")  # fmt: skip
    assert asked == [1]


def test_training_with_and_without_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(name: str) -> torch.Tensor:
        run = fit("synth-nonlinear", "annealed-vae", network="mlp", encoder=(8,), decoder=(8,), latents=2, steps=60,
                  seeds=[0, 1], batch=16, data_parameters={"size": 100}, precision="float64", log_every=7,
                  out=tmp_path / name)  # fmt: skip
        return torch.cat([p.flatten() for p in run.model(1).parameters()])

    plain = train("plain")
    monkeypatch.setattr(compiled_step, "LONG", 1)
    torch.testing.assert_close(train("written"), plain, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["adam", "adagrad", "sgd"])
def test_steps_are_those_of_torch(name: str) -> None:
    settings = Optimiser(name, lr=0.03, weight_decay=0.1 if name == "adam" else 0.0)
    ours, theirs = torch.linspace(-1, 1, 9), torch.linspace(-1, 1, 9)
    ours.grad, theirs.grad = torch.zeros(9), torch.zeros(9)
    kind = {
        "adam": lambda p: torch.optim.AdamW(p, 0.03, (settings.b1, settings.b2), settings.eps, 0.1),
        "adagrad": lambda p: torch.optim.Adagrad(p, 0.03),
        "sgd": lambda p: torch.optim.SGD(p, 0.03),
    }[name]
    stepper, reference = Stepper(settings, ours), kind([theirs])
    for step in range(20):
        gradient = torch.sin(torch.arange(9.0) + step)
        ours.grad.copy_(gradient)
        theirs.grad.copy_(gradient)
        stepper.step()
        reference.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["adam", "adagrad"])
def test_steps_are_those_of_torchs_fused_optimisers_to_the_bit(name: str) -> None:
    settings = Optimiser(name, lr=0.03, eps=1e-6)
    ours, theirs = torch.linspace(-1, 1, 99), torch.linspace(-1, 1, 99)
    ours.grad = theirs.grad = torch.sin(torch.arange(99.0))
    kind = {
        "adam": lambda p: torch.optim.AdamW(p, 0.03, (settings.b1, settings.b2), 1e-6, 0.0, fused=True),
        "adagrad": lambda p: torch.optim.Adagrad(p, 0.03, fused=True),
    }[name]
    stepper, reference = Stepper(settings, ours), kind([theirs])
    for _ in range(5):
        stepper.step()
        reference.step()
        ours.grad.mul_(-0.7)
    assert torch.equal(ours, theirs)
    assert stepper.state.keys() == reference.state[theirs].keys()
    assert all(torch.equal(value, stepper.state[key]) for key, value in reference.state[theirs].items())
