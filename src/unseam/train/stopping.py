"""What can end training before its last step: early stopping, a callback of the user's, a signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

from torch import Tensor

from unseam.errors import BadInput
from unseam.models import Autoencoder
from unseam.run.config import Training
from unseam.train.stack import Stack


class BestWeights:
    """The weights of every member at its lowest held-out loss so far, and the members that have stopped.

    The loss is that of the logged steps, always on the same held-out samples. A member stops when its loss has not
    reached a new minimum for `patience` steps. No member's result depends on the other members of its stack.
    """

    def __init__(self, stacks: Mapping[str, Stack], patience: int) -> None:
        members = next(iter(stacks.values())).members
        self.patience = patience
        self.flat = {name: stack.flat.clone() for name, stack in stacks.items()}
        self.blocks = {name: stack.like(self.flat[name]) for name, stack in stacks.items()}  # (S, *shape) each
        self.losses, self.steps = [inf] * members, [0] * members
        self.stopped: dict[int, int] = {}  # position in the group -> the step at which it stopped

    def see(self, stacks: Mapping[str, Stack], step: int, losses: Tensor, diverged: Mapping[int, str]) -> list[int]:
        """Compare the held-out losses (S,) at this step; returns the members that stop now."""
        stopping = []
        for position, loss in enumerate(losses.tolist()):
            if position in self.stopped or position in diverged:
                continue
            if loss < self.losses[position]:
                self.losses[position], self.steps[position] = loss, step
                for name, stack in stacks.items():
                    for best, block in zip(self.blocks[name], stack.blocks, strict=True):
                        best[position] = block[position]
            elif step - self.steps[position] >= self.patience:
                self.stopped[position] = step
                stopping.append(position)
        return stopping

    def of(self, position: int) -> dict[str, list[Tensor]]:
        """The best weights of one member, by player."""
        return {name: [block[position].clone() for block in blocks] for name, blocks in self.blocks.items()}

    def restore(self, stacks: Mapping[str, Stack], diverged: Mapping[int, str]) -> None:
        """Every member that did not diverge gets its best weights."""
        for position in range(len(self.losses)):
            if position not in diverged and self.losses[position] < inf:
                for name, stack in stacks.items():
                    for best, block in zip(self.blocks[name], stack.blocks, strict=True):
                        block[position] = best[position]

    def note(self, position: int, last: int) -> str:
        """What the results say of a member; nothing if its last weights were its best.

        >>> from torch import nn
        >>> best = BestWeights({"model": Stack([nn.Linear(1, 1)])}, 10)
        >>> best.steps, best.stopped = [20], {0: 30}
        >>> best.note(0, 100)
        'its held-out loss was lowest at step 20, so training stopped at step 30'
        """
        if self.losses[position] == inf and position not in self.stopped:
            return ""
        if position in self.stopped:
            at = self.stopped[position]
            return f"its held-out loss was lowest at step {self.steps[position]}, so training stopped at step {at}"
        if self.steps[position] < last:
            return f"its held-out loss was lowest at step {self.steps[position]} of {last}"
        return ""

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold, by player."""
        return {f"best/{name}": flat for name, flat in self.flat.items()}

    def meta(self) -> dict[str, Any]:
        stopped = {str(position): step for position, step in self.stopped.items()}
        return {"losses": [None if loss == inf else loss for loss in self.losses], "steps": self.steps,
                "stopped": stopped}  # fmt: skip

    def fits(self, meta: Any) -> bool:
        """Whether a checkpoint's own words are those of such a group."""
        if not isinstance(meta, dict):
            return False
        losses, steps, stopped = (meta.get(name) for name in ("losses", "steps", "stopped"))
        both = isinstance(losses, list) and isinstance(steps, list) and len(losses) == len(steps) == len(self.losses)
        return both and isinstance(stopped, dict) and {int(p) for p in stopped} <= set(range(len(self.losses)))

    def load(self, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
        """Take up what a checkpoint holds."""
        for name, flat in self.flat.items():
            flat.copy_(tensors[f"best/{name}"])
        self.losses = [inf if loss is None else float(loss) for loss in meta["losses"]]
        self.steps = [int(step) for step in meta["steps"]]
        self.stopped = {int(position): int(step) for position, step in meta["stopped"].items()}


def check_patience(training: Training, held_out: int) -> None:
    """Refuse early stopping that has nothing to go by."""
    if not training.patience:
        return
    empty = f"holdout={training.holdout}" if not held_out else f"watch={training.watch}"
    if not held_out or not training.watch:
        raise BadInput(
            f"patience={training.patience} stops by the loss of held-out samples, and {empty} leaves none; raise it"
        )
    if training.patience < training.log_every:
        raise BadInput(
            f"patience={training.patience} is less than log_every={training.log_every}, the steps between two "
            "measurements of the held-out loss; choose a larger patience or a smaller log_every"
        )


@dataclass(frozen=True)
class LoggedStep:
    """What a callback sees: one logged step of the members that are trained together.

    Attributes
    ----------
    step : int
        Optimiser steps done.
    members : tuple of int
        Which members of the run these are.
    values : dict
        What is logged, by name (`loss`, `kl`, `held-out/loss`), each with one number per member.
    """

    step: int
    members: tuple[int, ...]
    values: Mapping[str, Sequence[float]]
    _weights: Mapping[str, Tensor]  # (S, ...) each
    _build: Callable[[], Autoencoder]  # a model of these members, with any weights

    def model(self, member: int) -> Autoencoder:
        """A copy of a member's model with the weights of this step, in evaluation mode."""
        if member not in self.members:
            raise BadInput(f"member={member} is not one of these members: {', '.join(map(str, self.members))}")
        model = self._build()
        position = self.members.index(member)
        model.load_state_dict({name: block[position] for name, block in self._weights.items()}, strict=False)
        return model.eval()


Callback = Callable[[LoggedStep], Any]


def check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """A sequence of functions, or one function; anything else is refused."""
    found = tuple(callbacks) if isinstance(callbacks, (tuple, list)) else (callbacks,) if callbacks is not None else ()
    for callback in found:
        if not callable(callback):
            raise BadInput(f"callbacks: {callback!r} cannot be called; give functions of one argument, the LoggedStep")
    return found


def stopped_by(callbacks: Sequence[Callback], logged: LoggedStep) -> str:
    """Call every function; the name of the first that returned True, which asks to stop training."""
    answers = [(callback, callback(logged)) for callback in callbacks]
    return next((getattr(c, "__name__", type(c).__name__) for c, answer in answers if answer is True), "")


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Ctrl-C, SIGTERM and a closed terminal set an event instead of tearing a step apart (main thread only)."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    signals = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = [signal.signal(s, lambda *_: event.set()) for s in signals]
    try:
        yield event
    finally:
        for s, handler in zip(signals, previous, strict=True):
            signal.signal(s, handler)
