"""p(x|z): exponential families with natural parameter theta = d(z). Sums over dimensions; nothing is averaged.

`curvature` is A^2 = -d^2 log p / d theta^2 (MATHS: Gaussian I/s2, Bernoulli diag(mean (1 - mean))).
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Gaussian(nn.Module):
    """x ~ N(theta, s2 I): log p = -|x - theta|^2 / (2 s2) - n/2 log(2 pi s2). `learned` makes s2 a parameter."""

    def __init__(self, s2: float = 0.5, learned: bool = False) -> None:
        super().__init__()
        log_s2 = torch.tensor(math.log(s2), dtype=torch.float64)  # so that a model in double precision has s2 itself
        if learned:
            self.log_s2 = nn.Parameter(log_s2.float())
        else:
            self.register_buffer("log_s2", log_s2, persistent=False)

    def log_prob(self, x: Tensor, theta: Tensor) -> Tensor:  # (B, ...), (B, ...) -> (B,)
        squares = (x - theta).square().flatten(1).sum(1)
        n = theta[0].numel()
        return -0.5 * (squares * torch.exp(-self.log_s2) + n * (self.log_s2 + math.log(2 * math.pi)))

    def mean(self, theta: Tensor) -> Tensor:
        return theta

    def curvature(self, theta: Tensor) -> Tensor:
        return torch.exp(-self.log_s2) * torch.ones_like(theta)


class Bernoulli(nn.Module):
    """x in [0, 1], mean = sigmoid(theta): log p = x theta - log(1 + e^theta), exact for x exactly 0 or 1."""

    def log_prob(self, x: Tensor, theta: Tensor) -> Tensor:  # (B, ...), (B, ...) -> (B,)
        return (x * theta - functional.softplus(theta)).flatten(1).sum(1)

    def mean(self, theta: Tensor) -> Tensor:
        return torch.sigmoid(theta)

    def curvature(self, theta: Tensor) -> Tensor:
        mean = torch.sigmoid(theta)
        return mean * (1 - mean)


Likelihood = Gaussian | Bernoulli
LIKELIHOODS: dict[str, type[Likelihood]] = {"bernoulli": Bernoulli, "gaussian": Gaussian}
