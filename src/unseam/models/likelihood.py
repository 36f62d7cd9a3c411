"""p(x|z): exponential families with natural parameter theta = d(z). Sums over dimensions; nothing is averaged.

`curvature` is A^2 = -E d^2 log p / d theta^2 (MATHS: Gaussian I/s2, Bernoulli diag(mean (1 - mean))), of which only the
diagonal is given. `inputs` is what the encoder is shown: logarithms of counts, the data itself otherwise.

`moved` says what a small change of the data does, where values can change by a little (counts and classes cannot):
x' = x + e t for t ~ N(0, 1), back into the range that values have. `perturb/stress.py` has the derivation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, Union, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional

from unseam.errors import BadInput

if TYPE_CHECKING:
    from unseam.models.mixed_likelihood import Mixed

LARGEST_LOG_RATE = 15.0  # largest log mean of a count: e^15 is three million
HALF = math.sqrt(2 / math.pi)  # E|t|, t ~ N(0, 1)
CHANGES, _LEAST = 32, 1e-4  # how many changes of a value in [0, 1] are tried, and the smallest


class Moved(NamedTuple):
    """Values of mean m under x' = x + e t, each (..., B, n): E over t ~ N(0, 1)."""

    weight: Tensor  # W = 1 / E variance(m')
    squared_slope: Tensor  # E (dm'/dm)^2
    odd: Tensor  # E dm'/d(e t): 1, or 0 where the change looks the same for t and -t
    square: Tensor  # E (dm'/d(e t))^2


@runtime_checkable
class Moves(Protocol):
    """A likelihood whose values can change by a little."""

    changes: ClassVar[tuple[float, ...]]  # the e between which `moved` is interpolated; what holds for all e: one, inf

    def mean(self, theta: Tensor) -> Tensor: ...
    def curvature(self, theta: Tensor) -> Tensor: ...
    def moved(self, theta: Tensor, e: Tensor, x: Tensor) -> Moved: ...


class Gaussian(nn.Module):
    """x ~ N(theta, s2 I): log p = -|x - theta|^2 / (2 s2) - n/2 log(2 pi s2). `learned` makes s2 a parameter.

    Parameters
    ----------
    s2 : float
        Its variance.
    learned : bool
        Whether the variance is a parameter.

    Examples
    --------
    >>> round(Gaussian(s2=1.0).log_prob(torch.zeros(1, 1), torch.zeros(1, 1)).item(), 4)  # -1/2 log(2 pi)
    -0.9189
    """

    changes: ClassVar[tuple[float, ...]] = (math.inf,)

    def __init__(self, s2: float = 0.5, learned: bool = False) -> None:
        super().__init__()
        log_s2 = torch.tensor(
            math.log(s2), dtype=torch.float64, device="cpu"
        )  # so that a model in double precision has s2 itself
        if learned:
            self.log_s2 = nn.Parameter(log_s2.float())
        else:
            self.register_buffer("log_s2", log_s2, persistent=False)

    def log_prob(self, x: Tensor, theta: Tensor) -> Tensor:  # (B, ...), (B, ...) -> (B,)
        """log p(x|z) of each row, in nats."""
        squares = (x - theta).square().flatten(1).sum(1)
        n = theta[0].numel()
        return -0.5 * (squares * torch.exp(-self.log_s2) + n * (self.log_s2 + math.log(2 * math.pi)))

    def mean(self, theta: Tensor) -> Tensor:
        """E[x|z], theta itself."""
        return theta

    def curvature(self, theta: Tensor) -> Tensor:
        """A^2 = 1 / s2, the same for all columns."""
        return torch.exp(-self.log_s2) * torch.ones_like(theta)

    def moved(self, theta: Tensor, e: Tensor, x: Tensor) -> Moved:  # (B, n), (E, 1, 1), (B, n) -> (1, B, n)
        """The variance is what it was, and m' = m + e t."""
        one = torch.ones_like(theta)[None]
        return Moved(self.curvature(theta)[None], one, one, one)

    def inputs(self, x: Tensor) -> Tensor:
        """What the encoder sees of x."""
        return x


class Bernoulli(nn.Module):
    """x in [0, 1], mean = sigmoid(theta): log p = x theta - log(1 + e^theta), exact for x exactly 0 or 1.

    Examples
    --------
    >>> Bernoulli().mean(torch.zeros(1))
    tensor([0.5000])
    """

    changes: ClassVar[tuple[float, ...]] = tuple(
        _LEAST * (HALF / 2 / _LEAST) ** (i / (CHANGES - 1)) for i in range(CHANGES)
    )

    def log_prob(self, x: Tensor, theta: Tensor) -> Tensor:  # (B, ...), (B, ...) -> (B,)
        """log p(x|z) of each row, in nats."""
        return (x * theta - functional.softplus(theta)).flatten(1).sum(1)

    def mean(self, theta: Tensor) -> Tensor:
        """E[x|z], between 0 and 1."""
        return torch.sigmoid(theta)

    def curvature(self, theta: Tensor) -> Tensor:
        """A^2, the variance of each pixel."""
        mean = torch.sigmoid(theta)
        return mean * (1 - mean)

    def moved(self, theta: Tensor, e: Tensor, x: Tensor) -> Moved:  # (B, n), (E, 1, 1), (B, n) -> (E, B, n)
        """Within e of 0 or 1 it is folded back: m' = m + (1 - 2m) d, variance v + (1 - 2m)^2 d (1 - d), for d = e|t|.

        Elsewhere m' = m + e t and the variance stays v; it is at least e (1 - e), since x lies e inside.
        """
        v, e = self.curvature(theta), e.clamp(max=HALF / 2)  # beyond it e (HALF - e) falls again
        sure = 1 - 4 * v  # (1 - 2m)^2
        folded = (x < e) | (x > 1 - e)
        variance = torch.where(folded, v + sure * e * (HALF - e), torch.maximum(v, e * (1 - e)))
        squared_slope = torch.where(folded, 1 - 4 * e * (HALF - e), 1.0)
        return Moved(1 / variance, squared_slope, (~folded).to(v), torch.where(folded, sure, 1.0))

    def inputs(self, x: Tensor) -> Tensor:
        """What the encoder sees of x."""
        return x


class Poisson(nn.Module):
    """Counts of mean e^theta: log p = x theta - e^theta - log x!."""

    def log_prob(self, x: Tensor, theta: Tensor) -> Tensor:  # (B, ...), (B, ...) -> (B,)
        theta = theta.clamp(max=LARGEST_LOG_RATE)
        return (x * theta - theta.exp() - torch.lgamma(x + 1)).flatten(1).sum(1)

    def mean(self, theta: Tensor) -> Tensor:
        return theta.clamp(max=LARGEST_LOG_RATE).exp()

    def curvature(self, theta: Tensor) -> Tensor:
        return self.mean(theta)

    def inputs(self, x: Tensor) -> Tensor:
        return torch.log1p(x)


def negative_binomial(x: Tensor, theta: Tensor, log_r: Tensor) -> Tensor:  # cells of one shape
    """log p = log G(x + r) - log G(r) - log x! + r log(r / (r + m)) + x log(m / (r + m)), m = e^theta, of each cell."""
    theta, r = theta.clamp(max=LARGEST_LOG_RATE), log_r.exp()
    below = torch.logaddexp(theta, log_r)  # log(m + r)
    ways = torch.lgamma(x + r) - torch.lgamma(r) - torch.lgamma(x + 1)
    return ways + r * (log_r - below) + x * (theta - below)


class NegativeBinomial(nn.Module):
    """Counts of mean m = e^theta and variance m + m^2 / r, r learned."""

    def __init__(self, r: float = 10.0) -> None:
        super().__init__()
        self.log_r = nn.Parameter(torch.tensor(math.log(r)))

    def log_prob(self, x: Tensor, theta: Tensor) -> Tensor:  # (B, ...), (B, ...) -> (B,)
        return negative_binomial(x, theta, self.log_r).flatten(1).sum(1)

    def mean(self, theta: Tensor) -> Tensor:
        return theta.clamp(max=LARGEST_LOG_RATE).exp()

    def curvature(self, theta: Tensor) -> Tensor:
        m, r = self.mean(theta), self.log_r.exp()
        return m * r / (m + r)

    def inputs(self, x: Tensor) -> Tensor:
        return torch.log1p(x)


class Categorical(nn.Module):
    """One of n classes (a row of 0 and one 1), or counts given their sum l, the library size: shares softmax(theta).

    log p = log l! - sum log x_i! + sum x_i log softmax(theta)_i; for l = 1 the first two are 0.
    """

    def log_prob(self, x: Tensor, theta: Tensor) -> Tensor:  # (B, ...), (B, ...) -> (B,)
        x, logs = x.flatten(1), theta.flatten(1).log_softmax(1)
        return torch.lgamma(x.sum(1) + 1) - torch.lgamma(x + 1).sum(1) + (x * logs).sum(1)

    def mean(self, theta: Tensor) -> Tensor:
        return theta.flatten(1).softmax(1).view_as(theta)

    def curvature(self, theta: Tensor) -> Tensor:
        mean = self.mean(theta)
        return mean * (1 - mean)

    def inputs(self, x: Tensor) -> Tensor:
        return torch.log1p(x)


Likelihood = Union[Gaussian, Bernoulli, Poisson, NegativeBinomial, Categorical, "Mixed"]
LIKELIHOODS: dict[str, type[Gaussian | Bernoulli | Poisson | NegativeBinomial | Categorical]] = {
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "poisson": Poisson,
    "negative-binomial": NegativeBinomial,
    "categorical": Categorical,
}
COUNTS = ("poisson", "negative-binomial", "categorical")


def movable(likelihood: Likelihood) -> Moves:
    """The likelihood, if its values can change by a little.

    >>> movable(Poisson())
    Traceback (most recent call last):
    unseam.errors.BadInput: likelihood='poisson': counts and classes cannot change by a little; bernoulli, gaussian can
    """
    if isinstance(likelihood, Moves):
        return likelihood
    name = next((name for name, kind in LIKELIHOODS.items() if isinstance(likelihood, kind)), "mixed")
    able = ", ".join(sorted(name for name, kind in LIKELIHOODS.items() if hasattr(kind, "moved")))
    raise BadInput(f"likelihood={name!r}: counts and classes cannot change by a little; {able} can")
