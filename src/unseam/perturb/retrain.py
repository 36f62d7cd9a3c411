"""Does a model that is trained again turn as predicted? `unseam stress --confirm`.

x' = x + eps u tanh(a . z), the change that `stress` found for a member's weakest pair, at `TIMES` its radius. A small
cohort is trained on x' and another on x, with the member's own settings; of each new model the latent that knows most
of the pair is regressed on the old latents, and its angle to the nearer of the two old axes is the turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from unseam.axes import Array
from unseam.data.wrap import fold
from unseam.errors import BadInput
from unseam.perturb.stress import Stress
from unseam.run import Run
from unseam.run.settings import NOT_A_FLAG
from unseam.runs.represent import represent, some
from unseam.train import fit, resume

TIMES = 2.0  # of the radius, where no eps is given: beyond it, since it holds to first order where decoders are curved
_ROWS = 5000  # observations that are trained on at most
_OWN = ("learned_s2", *NOT_A_FLAG)  # what an objective or `align` sets by itself


@dataclass(frozen=True)
class Confirmed:
    """Turns of the models trained again, degrees between 0 and 45."""

    eps: float
    changed: list[float]
    unchanged: list[float]  # the same seeds on the data as it was

    def agreed(self, degrees: float) -> bool:
        """Whether models on the data as it was have these axes at all: else there is nothing that a change could turn.

        >>> Confirmed(0.1, [30.0], [2.0, 5.0]).agreed(15), Confirmed(0.1, [30.0], [2.0, 40.0]).agreed(15)
        (True, False)
        """
        return max(self.unchanged) <= degrees


def confirm(
    run: Run,
    member: int,
    found: Stress,
    seeds: Sequence[int] = (0, 1, 2),
    show: bool | None = None,
    eps: float | None = None,
) -> Confirmed:
    """Train again on the changed and on the original data; RUN/confirm-member-S holds both; a stopped training is
    resumed.

    The change is `TIMES` the radius, or `eps`.
    """
    if not found.breaks:
        raise BadInput(f"member {member} has fewer than two latents in use: there are no axes to turn")
    if eps is None and not math.isfinite(found.radius):
        raise BadInput(f"member {member}: no change turns its axes, so there is no radius to confirm; give eps")
    rows = some(torch.arange(len(run.data)), _ROWS)
    x, z = run.data.batch(rows), scaled(represent(run.model(member), run.data, rows).codes)
    weakest, eps = found.breaks[0], TIMES * found.radius if eps is None else eps
    scalar = torch.as_tensor(np.tanh(z[:, list(weakest.pair)] @ np.array(weakest.mix))).float()
    moved = x + eps * scalar.view(-1, *[1] * (x.ndim - 1)) * torch.as_tensor(weakest.image).float().view(x.shape[1:])
    bounded = "bernoulli" in (run.data.likelihood, run.config.architecture.likelihood)  # values in [0, 1]
    kinds = {"changed": fold(moved) if bounded else moved, "unchanged": x}
    turns: dict[str, list[float]] = {}
    for name, data in kinds.items():
        place = name if name == "unchanged" else f"{name}-{eps:.6g}"
        again = train_again(run, member, data, seeds, run.folder / f"confirm-member-{member}" / place, show)
        codes = [represent(again.model(m), again.data, torch.arange(len(again.data))).codes for m in range(len(seeds))]
        turns[name] = [_turn(new, z, weakest.pair) for new in codes]
    return Confirmed(eps, **turns)


def train_again(
    run: Run, member: int, x: torch.Tensor, seeds: Sequence[int], folder: Path, show: bool | None = None
) -> Run:
    """The member's objective, network and optimiser on other observations."""
    if (folder / "config.json").exists():
        return resume(folder, show=show)
    c = run.config
    network = {name: value for name, value in asdict(c.architecture).items() if name not in _OWN}
    optimiser = {("optimiser" if name == "name" else name): value for name, value in asdict(c.optimiser).items()}
    all_settings = {**network, **optimiser, **c.static, **run.members[member].hyper}
    steps = {"steps": c.training.steps, "batch": c.training.batch}
    return fit(x.numpy(), c.objective, seeds=list(seeds), out=folder, show=show, **{**all_settings, **steps})


def scaled(codes: Array) -> Array:  # (N, K) -> (N, K)
    return (codes - codes.mean(0)) / (codes.std(0) + 1e-12)


def _turn(new: Array, old: Array, pair: tuple[int, int]) -> float:  # (N, K'), (N, K)
    """The angle between the axis nearest to it and the new latent that knows most of the pair, degrees: at most 45.

    >>> old = scaled(np.random.default_rng(0).normal(size=(100, 3)))
    >>> t = math.radians(30)
    >>> round(_turn(old @ np.array([[math.cos(t), 0], [math.sin(t), 0], [0, 1]]), old, (0, 1)), 6)
    30.0
    """
    B = np.linalg.lstsq(old, scaled(new), rcond=None)[0][list(pair)]  # (2, K')
    first, second = np.abs(B[:, np.argmax((B**2).sum(0))])
    angle = math.degrees(math.atan2(second, first))
    return min(angle, 90 - angle)
