"""p(x|z) of a table whose columns are of several kinds, over the cells that are known:

    log p(x|theta) = sum_i m_i log p_i(x_i|theta_i)                    m_i = 1 if cell i is known, 0 if it is missing

Columns of one kind are adjacent; `columns` lists the kinds with their numbers, from left to right:

    gaussian:5            N(theta, s2_i), every column with a variance of its own, learned
    bernoulli:2           0 or 1, mean sigmoid(theta)
    negative-binomial:3   counts, mean e^theta, variance m + m^2 / r_i, every column with an r of its own, learned
    library:12            counts given their sum L over the row's known cells: a Dirichlet-multinomial of shares
                          softmax(theta), with one learned concentration c that says how far rows scatter about them
    categorical:3         one variable of four classes, a column each but for the first: shares softmax(0, theta)
    seen:26               the mask m, last, one column for each before; without it every cell is known

Missing cells hold a guess, which the encoder sees; it does not see the mask, so new rows need none.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unseam.errors import BadInput, unknown
from unseam.models.likelihood import LARGEST_LOG_RATE, negative_binomial

_KINDS = ("gaussian", "bernoulli", "negative-binomial", "library", "categorical", "seen")
START_R = 10.0
MOST_LOG_C = 10.0  # a concentration of 22,000: nearly multinomial
_LEAST_A = 1e-6
MOST_LOG_R = 8.0  # an r of 3,000 is Poisson; more only loses digits


class ColumnBlock(NamedTuple):
    """Neighbouring columns of one kind."""

    kind: str
    first: int
    size: int

    def of(self, x: Tensor) -> Tensor:  # (..., n) -> (..., size)
        return x.narrow(-1, self.first, self.size)


def parts_of(columns: tuple[str, ...], width: int | None = None) -> tuple[ColumnBlock, ...]:
    """What `columns` says, checked; with a `width`, against the data's.

    >>> parts_of(("gaussian:2", "categorical:3"))
    (ColumnBlock(kind='gaussian', first=0, size=2), ColumnBlock(kind='categorical', first=2, size=3))
    """
    parts, first = [], 0
    for word in columns:
        kind, _, size = word.partition(":")
        if kind not in _KINDS:
            raise unknown("columns", kind, _KINDS)
        if not (size.isdigit() and int(size)):
            raise BadInput(f"columns: {word!r} must be KIND:NUMBER, for instance gaussian:5")
        parts.append(ColumnBlock(kind, first, int(size)))
        first += int(size)
    _check(parts, first, width)
    return tuple(parts)


def _check(parts: list[ColumnBlock], total: int, width: int | None) -> None:
    masks = [p for p in parts if p.kind == "seen"]
    if masks and (masks != parts[-1:] or 2 * masks[0].size != total):
        raise BadInput("columns: the mask stands last and has a column for each of the others: seen:N, once")
    if not parts or (width is not None and total != width):
        raise BadInput(f"likelihood='mixed': columns describe {total} columns, the data has {width or 'some'}")


class Mixed(nn.Module):
    """A likelihood for each column of a table.

    >>> p = Mixed(("gaussian:1", "bernoulli:1"), s2=1.0)
    >>> p.log_prob(torch.tensor([[0.0, 1.0]]), torch.zeros(1, 2)).exp().item()  # 1 / sqrt(2 pi) * 1 / 2
    0.199...
    """

    def __init__(self, columns: tuple[str, ...], s2: float = 0.5) -> None:
        super().__init__()
        self.parts = parts_of(columns)
        self.own: list[str] = []  # the learned parameter of each part, if it has one
        for i, part in enumerate(self.parts):
            start = _start(part, s2)
            self.own.append("" if start is None else f"own{i}")
            if start is not None:
                self.register_parameter(f"own{i}", nn.Parameter(start))

    def log_prob(self, x: Tensor, theta: Tensor) -> Tensor:  # (B, n), (B, n) -> (B,)
        observed = self._observed(x)
        cells = torch.cat([self._cells(i, p.of(x), p.of(theta), p.of(observed)) for i, p in self._modelled()], -1)
        return (cells * observed).sum(-1)

    def _modelled(self) -> list[tuple[int, ColumnBlock]]:
        return [(i, part) for i, part in enumerate(self.parts) if part.kind != "seen"]

    def _observed(self, x: Tensor) -> Tensor:  # (B, n) -> (B, modelled columns)
        last = self.parts[-1]
        return last.of(x) if last.kind == "seen" else torch.ones_like(x)

    def _cells(self, i: int, x: Tensor, theta: Tensor, observed: Tensor) -> Tensor:  # (B, size) -> (B, size)
        """log p of each cell; of a categorical variable and of counts given their sum, the columns' sum."""
        kind = self.parts[i].kind
        if kind == "gaussian":
            log_s2 = getattr(self, self.own[i])
            return -0.5 * ((x - theta).square() * torch.exp(-log_s2) + log_s2 + math.log(2 * math.pi))
        if kind == "bernoulli":
            return x * theta - functional.softplus(theta)
        if kind == "categorical":
            return x * theta - _log_sum(theta) / self.parts[i].size
        if kind == "library":
            return _dirichlet_multinomial(x, theta, observed, getattr(self, self.own[i]).clamp(max=MOST_LOG_C))
        return negative_binomial(x, theta, getattr(self, self.own[i]).clamp(max=MOST_LOG_R))

    def mean(self, theta: Tensor) -> Tensor:  # of counts given their sum: if that is one per column; of the mask: 0
        return torch.cat([_mean(part.kind, part.of(theta)) for part in self.parts], -1)

    def curvature(self, theta: Tensor) -> Tensor:
        return torch.cat([self._curvature(i, part.of(theta)) for i, part in enumerate(self.parts)], -1)

    def _curvature(self, i: int, theta: Tensor) -> Tensor:
        kind, mean = self.parts[i].kind, _mean(self.parts[i].kind, theta)
        if kind == "gaussian":
            return torch.exp(-getattr(self, self.own[i])) * torch.ones_like(theta)
        if kind in ("bernoulli", "categorical"):
            return mean * (1 - mean)
        if kind == "seen":
            return torch.zeros_like(theta)
        if kind == "library":  # (dm/dtheta)^2 / variance, for L = n: the information that first two moments have
            n, c = theta.shape[-1], getattr(self, self.own[i]).clamp(max=MOST_LOG_C).exp()
            share = mean / n
            return n * share * (1 - share) * (1 + c) / (n + c)
        r = getattr(self, self.own[i]).clamp(max=MOST_LOG_R).exp()
        return mean * r / (mean + r)

    def inputs(self, x: Tensor) -> Tensor:
        """Logarithms of counts; the mask is not shown."""
        return torch.cat([_shown(part.kind, part.of(x)) for part in self.parts], -1)


def _start(part: ColumnBlock, s2: float) -> Tensor | None:
    """Logarithms that learning begins with: variances, or how little counts scatter."""
    if part.kind == "gaussian":
        return torch.full((part.size,), math.log(s2), device="cpu")
    if part.kind == "negative-binomial":
        return torch.full((part.size,), math.log(START_R), device="cpu")
    return torch.full((1,), math.log(START_R * part.size), device="cpu") if part.kind == "library" else None


def _dirichlet_multinomial(x: Tensor, theta: Tensor, observed: Tensor, log_c: Tensor) -> Tensor:  # (B, n) -> (B, n)
    """a = c softmax(theta), L and A the sums of x and a over known cells (given their sum, these have a
    Dirichlet-multinomial distribution of their own a):

    log p(x | L) = log L! + log G(A) - log G(L + A) + sum_i [log G(x_i + a_i) - log G(a_i) - log x_i!]
    """
    a = (theta.log_softmax(-1) + log_c).exp().clamp(min=_LEAST_A)
    L, A = (x * observed).sum(-1, keepdim=True), (a * observed).sum(-1, keepdim=True).clamp(min=_LEAST_A)
    whole = torch.lgamma(L + 1) + torch.lgamma(A) - torch.lgamma(L + A)
    cells = torch.lgamma(x + a) - torch.lgamma(a) - torch.lgamma(x + 1)
    return cells + whole / observed.sum(-1, keepdim=True).clamp(min=1)


def _log_sum(theta: Tensor) -> Tensor:  # (..., size) -> (..., 1)
    """log(1 + sum e^theta)."""
    return functional.pad(theta, (1, 0)).logsumexp(-1, keepdim=True)


def _shown(kind: str, x: Tensor) -> Tensor:
    if kind == "seen":
        return torch.zeros_like(x)
    return torch.log1p(x) if kind in ("negative-binomial", "library") else x


def _mean(kind: str, theta: Tensor) -> Tensor:
    if kind == "bernoulli":
        return torch.sigmoid(theta)
    if kind == "categorical":
        return (theta - _log_sum(theta)).exp()
    if kind == "seen":
        return torch.zeros_like(theta)
    if kind == "library":
        return theta.shape[-1] * theta.softmax(-1)
    return theta if kind == "gaussian" else theta.clamp(max=LARGEST_LOG_RATE).exp()
