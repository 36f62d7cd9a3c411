"""Training one step at a time: the step as it is, or as one list of operations (compiled_step.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from math import isfinite

import torch
from torch import Tensor

from unseam.train import compiled_step
from unseam.train.batches import Feed
from unseam.train.compiled_step import CompiledStep, compile_step
from unseam.train.job import State, hold
from unseam.train.stack import Forward


class StepByStep:
    """The engines `eager` and `written-out`.

    Logged steps run the objective itself, which also reports its terms. The others run its compiled step where there
    is one; it is compiled at the first of them, so that the first step, which is logged, does not wait for it.
    """

    def __init__(
        self,
        forward: Forward,
        state: State,
        feed: Feed,
        paused: Callable[[], AbstractContextManager[None]],
        may_compile: bool = True,
    ) -> None:
        self.forward, self.state, self.feed, self.paused = forward, state, feed, paused
        self.compiled: CompiledStep | None = None
        self.is_compiled = not may_compile or forward.steps < compiled_step.LONG  # or was tried
        self.losses: dict[str, Tensor] | None = None  # of this step, whose gradients are in the stacks
        state.engine = "eager"

    def report(self) -> dict[str, Tensor]:
        """What is logged of this step's batch."""
        self.losses, report = self._gradients(logging=True)
        return report

    def run(self, count: int) -> int:
        """One step, whatever `count` allows; returns 1."""
        if self.losses is None:
            self.losses = self._by_list() or self._gradients(logging=False)[0]
        update(self.state, self.losses)
        self.state.step += 1
        self.losses = None
        return 1

    def held_out(self, feed: Feed, batches: int) -> dict[str, Tensor]:
        """Means of what is logged over the first batches of a feed."""
        return mean_report(self.forward, self.state, feed, batches)

    def members_held(self) -> None:
        """Members were stopped: their weights are put back after every step anyway."""

    def _gradients(self, logging: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        losses, report = self.forward(self.state, *self.feed(self.state.step, self.forward.shapes), logging)
        self.forward.backward(self.state, losses)
        return losses, report

    def _by_list(self) -> dict[str, Tensor] | None:
        if not self.is_compiled:
            with self.paused():
                self.compiled = compile_step(self.forward, self.state, self.feed)
            self.is_compiled = True
        if self.compiled is None:
            return None
        self.state.engine = "written-out"
        return self.compiled(self.state, *self.feed(self.state.step, self.forward.shapes))


@torch.no_grad()
def mean_report(forward: Forward, state: State, feed: Feed, batches: int) -> dict[str, Tensor]:
    """Means of what is logged over the first batches of a feed."""
    reports = [forward(state, *feed(i, forward.shapes), logging=True)[1] for i in range(batches)]
    return {name: torch.stack([report[name] for report in reports]).mean(0) for name in reports[0]}


def update(state: State, losses: Mapping[str, Tensor]) -> None:
    """One optimiser step of every player; a member whose loss, gradient or new weights are not finite is frozen
    at its last finite weights."""
    healthy = all(isfinite((losses[n].detach().sum() + state.stacks[n].gradient.sum()).item()) for n in losses)
    if not healthy:
        freeze(state, losses)
    before = {name: state.stacks[name].before.copy_(state.stacks[name].flat) for name in losses}
    for name in losses:
        state.optimisers[name].step()
    if not all(isfinite(state.stacks[name].flat.sum().item()) for name in losses):
        step_back(state, before)
    put_held(state)


def put_held(state: State) -> None:
    """Members that are held get the weights at which they are held."""
    for position, held in state.held.items():
        for name, stack in state.stacks.items():
            for block, value in zip(stack.blocks, held[name], strict=True):
                block[position] = value


def step_back(state: State, before: Mapping[str, Tensor]) -> None:
    """Members that the step itself took out of the finite numbers are held where they were before it."""
    old = {name: stack.like(before[name]) for name, stack in state.stacks.items() if name in before}
    for position in range(next(iter(state.stacks.values())).members):
        here = [block[position] for stack in state.stacks.values() for block in stack.blocks]
        if position in state.frozen or all(torch.isfinite(block).all() for block in here):
            continue
        for name, blocks in old.items():
            for block, value in zip(state.stacks[name].blocks, blocks, strict=True):
                block[position] = value[position]
        state.frozen[position] = f"its weights were not finite after step {state.step}"
        hold(state, position)


def freeze(state: State, losses: Mapping[str, Tensor]) -> None:
    """Hold the members that left the finite numbers at their last parameters and silence their gradients."""
    for position in range(next(iter(losses.values())).shape[0]):
        if not (cause := culprit(state, losses, position)):
            continue
        for stack in state.stacks.values():
            for gradient in stack.gradients:
                gradient[position].zero_()
        if position not in state.frozen:
            state.frozen[position] = f"its {cause} was not finite at step {state.step}"
            hold(state, position)


def culprit(state: State, losses: Mapping[str, Tensor], position: int) -> str:
    """What of a member is not finite, its loss or its gradient; nothing if both are."""
    if not all(torch.isfinite(loss[position]) for loss in losses.values()):
        return "loss"
    gradients = [gradient[position] for stack in state.stacks.values() for gradient in stack.gradients]
    return "" if all(torch.isfinite(gradient.sum()) for gradient in gradients) else "gradient"
