"""An objective and networks that are the user's own are tried on one batch before the first step.

    g . v  against  (loss(w + h v) - loss(w - h v)) / 2h        for random directions v of each player's weights

in double precision. A difference is a warning: a stop-gradient on purpose shows it too.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.errors import BadInput
from unseam.models import Architecture
from unseam.models.own_networks import MakeNetworks, Networks, check_networks, maker
from unseam.models.posterior import POSTERIORS
from unseam.objectives import Objective
from unseam.rng import generator
from unseam.run.config import RunConfig, split
from unseam.train.batches import Feed
from unseam.train.job import Job, State, start
from unseam.train.stack import Forward

_BATCH = 16  # samples on which it is tried
_DIRECTIONS = 3
_STEP = 1e-6  # of the central difference, in weights
_APART = 0.01  # relative difference above which there is a warning


def with_networks(
    architecture: Architecture, networks: Networks | None, data: Dataset, seeds: int
) -> tuple[Architecture, MakeNetworks]:
    """The architecture with the user's own networks, checked on a few observations, and what makes them."""
    if networks is None:
        raise BadInput("network='own' needs fit(networks=(encoder, decoder)); leave it out, or choose mlp or conv")
    make = maker(networks)
    if seeds > 1 and isinstance(networks, (tuple, list)):
        raise BadInput(
            f"networks are two modules, whose weights would be the same for all {seeds} seeds; give a function that "
            "makes them, so that every seed has its own: networks=lambda: (Encoder(), Decoder())"
        )
    x = data.batch(torch.arange(min(4, len(data)), device="cpu"))
    bernoulli = architecture.likelihood == "bernoulli"
    wanted = architecture.latents if architecture.latents != Architecture.latents else None
    K = check_networks(make, POSTERIORS[architecture.posterior], x, bernoulli, wanted)
    return replace(architecture, network="own", latents=K), make


def check_gradient(
    config: RunConfig, kind: type[Objective], data: Dataset, networks: MakeNetworks | None = None
) -> None:
    """Try an objective on one batch: refuse one that fails, warn if its gradient is not that of its loss."""
    training = replace(
        config.training, batch=max(kind.smallest_batch, min(_BATCH, config.training.batch)), precision="float64",
        device="cpu", patience=0,
    )  # fmt: skip
    job = Job(replace(config, training=training, groups=((0,),)), kind, (0,), 0, Path(), networks=networks)
    objective = kind(**config.members[0].hyper, **config.static)
    rows, _ = split(len(data), training.holdout)
    state = start(job, objective, data.shape)
    state.step = training.steps // 2
    feed = Feed(data, rows, [config.members[0].seed], training.batch * objective.batches, 1, objective.pairing())
    forward = Forward(job, objective, state, len(rows))
    name = kind.__name__
    try:
        x, noise = feed(state.step, forward.shapes)
        losses, _ = forward(state, x, noise, logging=False)
        again, _ = forward(state, x, noise, logging=False)
        check_losses(name, losses, again)
        forward.backward(state, losses)
    except BadInput:
        raise
    except Exception as error:  # a user's objective is any Python
        raise BadInput(
            f"objective {name} fails on a batch of {training.batch} ({type(error).__name__}: {error}); check=False "
            "leaves this check out"
        ) from error
    for player in losses:
        compare(name, player, state, forward, x, noise)


def check_losses(name: str, losses: Mapping[str, Tensor], again: Mapping[str, Tensor]) -> None:
    """Each loss one finite number, the same for the same batch, and with a gradient."""
    for player, loss in losses.items():
        if loss.shape != (1,):
            raise BadInput(f"objective {name}: the loss of {player!r} has shape {tuple(loss.shape[1:])}; it must be ()")
        if not torch.isfinite(loss).all():
            raise BadInput(
                f"objective {name}: its loss is {loss.item()} at the initial weights; look for log(0) or 0/0"
            )
        if not torch.equal(loss, again[player]):
            raise BadInput(
                f"objective {name} gives two losses for one batch; take its random numbers from context.noise "
                "(`noise_shapes`), so that a run can be resumed"
            )
        if not loss.requires_grad:
            raise BadInput(
                f"objective {name}: the loss of {player!r} does not depend on the weights (detach, .item()?)"
            )


def compare(name: str, player: str, state: State, forward: Forward, x: Tensor, noise: Mapping[str, Tensor]) -> None:
    """Warn if a player's gradient is not the derivative of its loss."""
    stack = state.stacks[player]
    flat, gradient = stack.flat.clone(), stack.gradient.clone()
    directions = torch.randn(_DIRECTIONS, len(flat), generator=generator(0, "check"), dtype=flat.dtype, device="cpu")
    directions = directions.to(flat.device)

    def loss(weights: Tensor) -> Tensor:
        with torch.no_grad():
            stack.flat.copy_(weights)
            return forward(state, x, noise, logging=False)[0][player][0].detach()

    slopes = torch.stack([(loss(flat + _STEP * v) - loss(flat - _STEP * v)) / (2 * _STEP) for v in directions])
    loss(flat)  # leaves the weights as they were
    found = directions @ gradient
    apart = float((found - slopes).norm() / torch.maximum(found.norm(), slopes.norm()).clamp_min(1e-12))
    if apart > _APART:
        warnings.warn(
            f"objective {name}: the gradient of {player!r} differs from the slope of its loss by {apart:.0%} (finite "
            "differences); look for detach, rounding or a formula of its own in the backward pass, or pass check=False "
            "if that is meant",
            stacklevel=4,
        )
