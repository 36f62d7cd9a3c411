"""One optimiser step of a whole stack: torch's fused kernel, once over its flat buffer.

torch's own functions of the steps are called (`torch.optim.adamw.adamw`), not its classes: the first object of a class
loads torch's compiler, which costs a second of processor time before the first step.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.optim.adagrad import adagrad
from torch.optim.adamw import adamw

from unseam.objectives import Optimiser

MOMENTS = {"adam": ("exp_avg", "exp_avg_sq"), "adagrad": ("sum",), "sgd": ()}  # by torch's names
ADAGRAD_EPS = 1e-10  # torch's


class Stepper:
    """p <- p - step(g), for a parameter p whose gradient stands in p.grad.

    >>> p = torch.ones(2)
    >>> p.grad = torch.tensor([0.5, -3.0])
    >>> Stepper(Optimiser(lr=0.1), p).step()  # Adam's first step is lr times the sign
    >>> p
    tensor([0.9000, 1.1000])
    """

    def __init__(self, settings: Optimiser, parameter: Tensor) -> None:
        self.settings, self.parameter = settings, parameter
        self.fused = settings.name == "adam" or parameter.device.type == "cpu"  # AdaGrad's kernel is the CPU's alone
        self.kept = {name: torch.zeros_like(parameter) for name in MOMENTS[settings.name]}
        if self.kept:
            self.kept["step"] = torch.zeros((), device=parameter.device if self.fused else "cpu")

    @torch.no_grad()
    def step(self) -> None:
        assert self.parameter.grad is not None
        s, p, g = self.settings, [self.parameter], [self.parameter.grad]
        kept = {name: [value] for name, value in self.kept.items()}
        if s.name == "adam":
            # eps 0: Adam's 0/0 of a gradient that was never there is 0; to any other step, tiny adds nothing
            eps = s.eps or torch.finfo(self.parameter.dtype).tiny
            adamw(p, g, kept["exp_avg"], kept["exp_avg_sq"], [], kept["step"], fused=True, amsgrad=False, beta1=s.b1,
                  beta2=s.b2, lr=s.lr, weight_decay=s.weight_decay, eps=eps, maximize=False)  # fmt: skip
        elif s.name == "adagrad":
            adagrad(p, g, kept["sum"], kept["step"], fused=self.fused, lr=s.lr, weight_decay=0.0, lr_decay=0.0,
                    eps=ADAGRAD_EPS, maximize=False)  # fmt: skip
        else:
            self.parameter.add_(g[0], alpha=-s.lr)

    @property
    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must hold, by torch's names; nothing for SGD."""
        return dict(self.kept)

    @state.setter
    def state(self, moments: dict[str, Tensor]) -> None:
        self.kept |= {name: moments[name].to(value.device) for name, value in self.kept.items() if name in moments}
