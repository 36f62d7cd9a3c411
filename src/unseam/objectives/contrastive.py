"""PCL: tell true pairs from shuffled ones, with a classifier that compares latent by latent.

    r(x, x') = -sum_k |w1_k h_k(x) + w2_k h_k(x') + b_k| + a sum_k h_k(x)^2 + c

loss = -E log sigmoid(r(x_t, x_t-1)) - E log sigmoid(-r(x_t, x_random))              (Hyvarinen & Morioka 2017)

h are the codes over their mean and standard deviation in the batch, w starts at (1, -1), a >= 0. The steps of a source
with a Laplace transition are distinguished from random ones latent by latent, so h must be the sources. No decoder is
trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from unseam.axes import Pass, Terms
from unseam.data.pairs import Pairing
from unseam.models import Autoencoder
from unseam.objectives.base import Context, Objective, Player


class Comparison(nn.Module):
    """r: a pair of codes (B, K), (B, K) -> (B,)."""

    def __init__(self, latents: int) -> None:
        super().__init__()
        self.w1, self.w2 = nn.Parameter(torch.ones(latents)), nn.Parameter(-torch.ones(latents))
        self.b, self.a, self.c = (
            nn.Parameter(torch.zeros(latents)),
            nn.Parameter(torch.zeros(1)),
            nn.Parameter(torch.zeros(1)),
        )

    def forward(self, h: Tensor, other: Tensor) -> Tensor:
        distance = (self.w1 * h + self.w2 * other + self.b).abs().sum(1)
        return -distance + softplus(self.a) * h.square().sum(1) + self.c


def _standardised(codes: Tensor) -> Tensor:  # (B, K)
    """Mean 0 and variance 1 in the batch, each latent on its own."""
    centred = codes - codes.mean(0)
    return centred / (centred.square().mean(0) + 1e-5).sqrt()


@dataclass(frozen=True)
class PCL(Objective):
    """Permutation-contrastive learning: an encoder and a classifier of true and shuffled pairs, no decoder.

    Examples
    --------
    >>> PCL()
    PCL(pairs='laplace', change=-1)
    """

    pairs: str = "laplace"
    """how the second image of a pair follows from the first: k, laplace, share, time, or a file of pairs"""
    change: int = -1
    """with pairs k: how many factors change; -1 for any number"""

    formula: ClassVar[str] = "-E log sigmoid(r(x_t, x_t-1)) - E log sigmoid(-r(x_t, x_random))"
    paper: ClassVar[str] = "Hyvarinen & Morioka 2017, Nonlinear ICA of temporally dependent stationary sources"
    has_beta: ClassVar[bool] = False
    reads_theta: ClassVar[bool] = False
    posterior: ClassVar[Literal["point"]] = "point"
    decodes: ClassVar[bool] = False
    cannot: ClassVar[str] = (
        "pcl trains no decoder, so nothing can be reconstructed, traversed, differentiated, aligned or exported, and "
        "no member be chosen without labels"
    )
    batches: ClassVar[int] = 2
    smallest_batch: ClassVar[int] = 2

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        assert context.second is not None
        codes = torch.cat([pass_.posterior.mean, context.model.encode(context.second).mean])
        first, second = _standardised(codes).chunk(2)
        compare = context.modules["classifier"]
        true, false = compare(first, second), compare(first, second.roll(1, 0))
        correct = 0.5 * ((true > 0).float() + (false <= 0).float())
        return Terms({"contrast": softplus(-true) + softplus(false), "correct": correct}, {"correct": 0.0})

    def players(self, model: Autoencoder) -> dict[str, Player]:
        return {"model": Player(model), "classifier": Player(Comparison(model.latents))}

    def losses(self) -> dict[str, Callable[[Pass, Context], Terms]]:
        return {"model": self, "classifier": self}

    def pairing(self) -> Pairing:
        return Pairing(self.pairs, self.change)
