"""The seed axis, and the only place that knows it: S modules of one shape as one flat parameter.

Every parameter of a player is a contiguous block (S, *shape) of one flat buffer, and its gradient the same block
of a second buffer: one optimiser call steps all members, whatever their number. `lift` runs a function written for
one member on all of them by vmap; the backward pass is ordinary autograd through the batched operations. `Forward` is
the pass of all members of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.optim.adagrad import adagrad
from torch.optim.adamw import adamw

from unseam.axes import Pass
from unseam.objectives import Context, Objective, Optimiser

if TYPE_CHECKING:
    from unseam.train.job import Job, State


class Stack:
    """S modules of one architecture; `bind` gives a module the parameters of one member (inside `lift`)."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self.members = len(modules)
        self.names = [name for name, _ in modules[0].named_parameters()]
        columns = zip(*(module.parameters() for module in modules), strict=True)
        blocks = [torch.stack([p.detach() for p in column]) for column in columns]
        self.flat = torch.cat([b.flatten() for b in blocks]) if blocks else torch.zeros(0, device="cpu")
        self.gradient = torch.zeros_like(self.flat)
        self.before = torch.empty_like(self.flat)  # as they were before the last step
        self.flat.grad = self.gradient
        self.blocks = _views(self.flat, [b.shape for b in blocks])  # (S, *shape) each
        self.gradients = _views(self.gradient, [b.shape for b in blocks])
        self.leaves = [self._leaf(b, g) for b, g in zip(self.blocks, self.gradients, strict=True)]
        self.module = modules[0]
        known = self.module.state_dict() if self.members == 1 else {}  # a stack of several has none
        self.buffers = {name: value[None] for name, value in known.items() if name not in self.names}
        self._slots = [_slot(self.module, name) for name in self.names]

    def _leaf(self, block: Tensor, gradient: Tensor) -> Tensor:
        """What autograd differentiates: the block itself, without the member axis when there is one member."""
        one = self.members == 1
        leaf = (block[0] if one else block).detach().requires_grad_()
        leaf.grad = gradient[0] if one else gradient
        return leaf

    def bind(self, parameters: Iterable[Tensor]) -> nn.Module:
        for (owner, key), parameter in zip(self._slots, parameters, strict=True):
            owner[key] = parameter
        return self.module

    def like(self, flat: Tensor) -> list[Tensor]:
        """A copy of the flat buffer as blocks (S, *shape)."""
        return _views(flat, [block.shape for block in self.blocks])

    def state(self) -> dict[str, Tensor]:
        """name -> (S, *shape), sharing memory with the flat buffer; constants of the module (buffers) among them."""
        return dict(zip(self.names, self.blocks, strict=True)) | self.buffers


def lift(function: Callable[..., Any], members: int) -> Callable[..., Any]:
    """A function of one member -> the same function of all of them, member axis first; plain when there is one."""
    return vmap(function) if members > 1 else function


def _views(flat: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    parts = flat.split([shape.numel() for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def _slot(module: nn.Module, name: str) -> tuple[dict[str, Any], str]:
    """Where a parameter is stored: its owner's dictionary and its key there."""
    *path, key = name.split(".")
    for part in path:
        module = getattr(module, part)
    return module._parameters, key


# One optimiser step of a whole stack: torch's fused kernel, once over its flat buffer.
#
# torch's own functions of the steps are called (`torch.optim.adamw.adamw`), not its classes: the first object of a
# class loads torch's compiler, which costs a second of processor time before the first step.


_MOMENTS = {"adam": ("exp_avg", "exp_avg_sq"), "adagrad": ("sum",), "sgd": ()}  # by torch's names
ADAGRAD_EPS = 1e-10  # torch's


class Stepper:
    """p <- p - step(g), for a parameter p whose gradient is p.grad.

    >>> p = torch.ones(2)
    >>> p.grad = torch.tensor([0.5, -3.0])
    >>> Stepper(Optimiser(lr=0.1), p).step()  # Adam's first step is lr times the sign
    >>> p
    tensor([0.9000, 1.1000])
    """

    def __init__(self, settings: Optimiser, parameter: Tensor) -> None:
        self.settings, self.parameter = settings, parameter
        self.fused = settings.name == "adam" or parameter.device.type == "cpu"  # AdaGrad's kernel is the CPU's alone
        self.moments = {name: torch.zeros_like(parameter) for name in _MOMENTS[settings.name]}
        if self.moments:
            self.moments["step"] = torch.zeros((), device=parameter.device if self.fused else "cpu")

    @torch.no_grad()
    def step(self) -> None:
        assert self.parameter.grad is not None
        s, p, g = self.settings, [self.parameter], [self.parameter.grad]
        m = {name: [value] for name, value in self.moments.items()}
        if s.name == "adam":
            # eps 0: Adam's 0/0 of a gradient that was never there is 0; to any other step, tiny adds nothing
            eps = s.eps or torch.finfo(self.parameter.dtype).tiny
            adamw(p, g, m["exp_avg"], m["exp_avg_sq"], [], m["step"], fused=True, amsgrad=False, beta1=s.b1,
                  beta2=s.b2, lr=s.lr, weight_decay=s.weight_decay, eps=eps, maximize=False)  # fmt: skip
        elif s.name == "adagrad":
            adagrad(p, g, m["sum"], m["step"], fused=self.fused, lr=s.lr, weight_decay=0.0, lr_decay=0.0,
                    eps=ADAGRAD_EPS, maximize=False)  # fmt: skip
        else:
            self.parameter.add_(g[0], alpha=-s.lr)

    @property
    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must hold, by torch's names; nothing for SGD."""
        return dict(self.moments)

    @state.setter
    def state(self, moments: dict[str, Tensor]) -> None:
        self.moments |= {
            name: moments[name].to(value.device) for name, value in self.moments.items() if name in moments
        }


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
