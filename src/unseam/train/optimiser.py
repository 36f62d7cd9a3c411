"""One optimiser step of a whole stack: one kernel over its flat buffer, without torch.optim's bookkeeping around it."""

from __future__ import annotations

import torch
from torch import Tensor

from unseam.objectives import Optimiser


class Stepper:
    """p <- p - step(g), for a parameter p whose gradient stands in p.grad.

    >>> p = torch.ones(2)
    >>> p.grad = torch.tensor([0.5, -3.0])
    >>> Stepper(Optimiser(lr=0.1), p).step()  # Adam's first step is lr times the sign
    >>> p
    tensor([0.9000, 1.1000])
    """

    def __init__(self, settings: Optimiser, parameter: Tensor) -> None:
        assert parameter.grad is not None
        self.settings, self.parameter = settings, parameter
        moments = {"adam": ("exp_avg", "exp_avg_sq"), "adagrad": ("sum",), "sgd": ()}[settings.name]
        self.state = {name: torch.zeros_like(parameter) for name in moments} | {"step": torch.zeros(())}

    def step(self) -> None:
        s, p, state = self.settings, [self.parameter], self.state
        assert self.parameter.grad is not None
        gradient = [self.parameter.grad]
        state["step"] += 1
        if s.name == "adam":
            torch._fused_adamw_(
                p, gradient, [state["exp_avg"]], [state["exp_avg_sq"]], [], [state["step"]], lr=s.lr, beta1=s.b1,
                beta2=s.b2, weight_decay=s.weight_decay, eps=s.eps, amsgrad=False, maximize=False,
            )  # fmt: skip
        elif s.name == "adagrad":
            torch._fused_adagrad_(
                p, gradient, [state["sum"]], [state["step"]], lr=s.lr, lr_decay=0.0, weight_decay=0.0, eps=1e-10,
                maximize=False,
            )  # fmt: skip
        else:
            self.parameter.add_(gradient[0], alpha=-s.lr)
