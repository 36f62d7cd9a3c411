"""One forward pass of all members of a group: each player's losses, and what is logged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unseam.axes import Pass
from unseam.objectives import Context, Objective
from unseam.train.job import Job, State
from unseam.train.stack import lift


class Forward:
    """One forward pass of all members: losses (S,) of each player, and what is logged."""

    def __init__(self, job: Job, objective: Objective, state: State, size: int) -> None:
        self.objective, self.members, self.size = objective, len(job.members), size
        self.batch, self.steps = job.config.training.batch, job.config.training.steps
        latents = job.config.architecture.latents
        self.shapes = {"z": (self.batch, latents), **objective.noise_shapes(self.batch, latents)}
        flat = state.stacks["model"].flat
        self.dtype, self.device = flat.dtype, flat.device
        names = job.config.members[0].hyper
        values = {n: [job.config.members[m].hyper[n] for m in job.members] for n in names}
        self.hyper = {n: torch.tensor(v, dtype=self.dtype, device=flat.device) for n, v in values.items()}  # (S,) each

    def __call__(
        self, state: State, x: Tensor, noise: Mapping[str, Tensor], logging: bool
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        parameters = {name: stack.leaves for name, stack in state.stacks.items()}
        return self.run(state, parameters, x, noise, torch.tensor(state.step, device=x.device), logging)

    def run(
        self,
        state: State,
        parameters: dict[str, list[Tensor]],
        x: Tensor,
        noise: Mapping[str, Tensor],
        step: Tensor,
        logging: bool = False,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The same as a function of its tensors alone, so that it can be written out (train/compiled_step.py)."""

        def one(
            parameters: dict[str, list[Tensor]], hyper: dict[str, Tensor], x: Tensor, noise: dict[str, Tensor]
        ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
            modules: dict[str, Any] = {name: stack.bind(parameters[name]) for name, stack in state.stacks.items()}
            objective = replace(self.objective, **hyper)  # type: ignore[type-var]
            first, second = (x[: self.batch], x[self.batch :]) if objective.batches == 2 else (x, None)
            posterior = modules["model"].encode(first)
            z = posterior.sample(noise["z"])
            theta = modules["model"].decode(z) if objective.reads_theta else z.new_empty(0)
            pass_ = Pass(first, posterior, z, theta)
            context = Context(modules["model"], step, self.steps, self.size, modules, noise, second)
            terms = {name: terms(pass_, context) for name, terms in objective.losses().items()}
            losses = {name: t.loss() for name, t in terms.items()}
            if not logging:
                return losses, {}
            settled = {f"settled/{name}": value for name, value in objective.settled(pass_, context).items()}
            return losses, _summary(pass_, terms) | settled

        if self.dtype == torch.float64:
            x, noise = x.double(), {name: n.double() for name, n in noise.items()}
        if self.members > 1:
            return lift(one, self.members)(parameters, self.hyper, x, dict(noise))
        hyper = {name: h[0] for name, h in self.hyper.items()}
        losses, report = one(parameters, hyper, x[0], {name: n[0] for name, n in noise.items()})
        return {k: v[None] for k, v in losses.items()}, {k: v[None] for k, v in report.items()}

    @staticmethod
    def backward(state: State, losses: Mapping[str, Tensor]) -> None:
        """Each player's gradient of its own loss, into its stack."""
        players = list(losses)
        for name in players:
            stack = state.stacks[name]
            stack.gradient.zero_()
            more = name != players[-1]
            torch.autograd.backward(losses[name].sum(), inputs=stack.leaves, retain_graph=more)


def _summary(pass_: Pass, terms: Mapping[str, Any]) -> dict[str, Tensor]:
    """What is logged of a member: each loss and term, and the statistics of each latent (K,)."""
    out = {f"loss/{player}" if player != "model" else "loss": t.loss() for player, t in terms.items()}
    out |= {name: value.mean() for t in terms.values() for name, value in t.values.items()}
    mean = pass_.posterior.mean
    out["latent/kl"] = pass_.posterior.kl_per_latent().mean(0)
    out["latent/mu"] = mean.mean(0)
    out["latent/mu_std"] = mean.std(0, correction=0)
    out["latent/mu2"] = mean.square().mean(0)
    out["latent/sigma2"] = pass_.posterior.variance().mean(0)
    out["latent/log_sigma2"] = pass_.posterior.log_variance().mean(0)
    return {name: value.detach() for name, value in out.items()}
