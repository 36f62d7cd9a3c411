"""Functions of the user's own that are called while a cohort trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unseam.errors import BadInput
from unseam.models import Architecture, Autoencoder


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
    _architecture: Architecture
    _shape: tuple[int, ...]

    def model(self, member: int) -> Autoencoder:
        """A copy of a member's model with the weights of this step, in evaluation mode."""
        if member not in self.members:
            raise BadInput(f"member={member} is not one of these members: {', '.join(map(str, self.members))}")
        model = self._architecture.build(self._shape, 0)
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
