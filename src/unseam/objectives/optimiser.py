"""How parameters step: a run's configuration holds it, and can be read without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unseam.errors import BadInput, check_literals


@dataclass(frozen=True)
class Optimiser:
    """How a player steps. Adam by default; AdaGrad as in Zietlow 2022."""

    name: Literal["adam", "adagrad", "sgd"] = "adam"
    """adam, adagrad or sgd"""
    lr: float = 1e-3
    """learning rate"""
    b1: float = 0.9
    """Adam's first-moment decay"""
    b2: float = 0.999
    """Adam's second-moment decay"""
    eps: float = 1e-8
    """Adam's epsilon; 0 makes it blind to the loss's scale (Allen 2024, Theorem 3)"""
    weight_decay: float = 0.0
    """decoupled weight decay, as in AdamW (Adam only); Hsu 2023 trains QLAE with 0.1"""

    def __post_init__(self) -> None:
        check_literals(self, {"name": "optimiser"})
        if not self.lr > 0:
            raise BadInput(f"lr={self.lr} must be positive")
        if not (0 <= self.b1 < 1 and 0 <= self.b2 < 1):
            raise BadInput(f"b1={self.b1} and b2={self.b2} must be at least 0 and below 1: they are Adam's memories")
        if not self.eps >= 0:
            raise BadInput(f"eps={self.eps} must be 0 or positive: it is added to the root of Adam's second moment")
        if self.weight_decay < 0 or (self.weight_decay and self.name != "adam"):
            raise BadInput(f"weight_decay={self.weight_decay} must be 0, or positive with name='adam'")
