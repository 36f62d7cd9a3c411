"""How much change does a layout survive? The robustness radius, in closed form for a linear decoder.

Move every observation by at most eps along one scalar of the latents, x' = x + eps u s(a . z) with |u_p| <= 1 and
|s| <= 1. To first order the columns of the decoder become c_k + e a_k u, e = k eps, k = E s'(t) for t ~ N(0, 1). In the
plane of latents i and j the axes a diagonal posterior prefers are the eigenvectors of the 2 x 2 part of M, at the angle

    t = 1/2 atan2(2 M_ij, M_ii - M_jj),        M = E[J^T W J], W = 1/s2, or 1/variance of a Bernoulli

They have turned by more than T when F = cos(f) 2 M_ij - sin(f) (M_ii - M_jj) >= 0 for f = 2 (t0 + T). With a = (cos b,
sin b) in that plane F is a sum over pixels, so the worst u is known pixel by pixel, u_p = sign g_p:

    F(e) = F0 + 2 e sum_p W_p |g_p| + e^2 sin(2 b - f) sum_p W_p,        g = sin(b - f) c_i + cos(b - f) c_j

The radius is the smallest root over b, over both senses of turning and over all pairs (of latents in use). For a linear
decoder this is exact; for another one c and M are means over the data, so it holds to first order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.errors import BadInput
from unseam.geometry.jacobian import Decoder, as_likelihood, slices
from unseam.models.likelihood import Likelihood
from unseam.runs.diagnose import diagnose, see
from unseam.train import Run
from unseam.types import Array

TURN = 15.0  # degrees by which axes must turn to count as lost
SLOPE = 0.6057  # E[1 - tanh(t)^2], t ~ N(0, 1): what a scalar s = tanh keeps of a unit slope
ANGLES = 360  # mixtures a of the two latents that are tried
HALVINGS = 9  # of 45 degrees: a turn is known to a tenth of a degree


@dataclass(frozen=True)
class Break:
    """The smallest change that turns one pair of axes."""

    pair: tuple[int, int]
    radius: float  # eps, in the data's units
    mix: tuple[float, float]  # how the scalar mixes the two latents
    image: Array  # (n,) u: the sign of the change of each value
    turn: float | None = None  # degrees by which a change of the eps that was asked for can turn them, 45 at most


@dataclass(frozen=True)
class Stress:
    """The radius of every pair, smallest first."""

    breaks: tuple[Break, ...]
    spread: float  # standard deviation of the data: what `relative` is measured in
    degrees: float

    @property
    def radius(self) -> float:
        return self.breaks[0].radius if self.breaks else math.inf

    @property
    def relative(self) -> float:
        return self.radius / self.spread

    @property
    def pair(self) -> tuple[int, int] | None:
        return self.breaks[0].pair if self.breaks else None


def mean_columns(decode: Decoder, codes: Tensor, likelihood: Likelihood) -> tuple[Array, Array, Array]:
    """Means over the codes: columns of J (n, K), M = E[J^T W J] (K, K), and W (n,)."""
    sums: tuple[Tensor, ...] = ()
    for theta, D in slices(decode, codes):
        curvature = likelihood.curvature(theta)  # A^2
        j = D if likelihood_is_gaussian(likelihood) else D * curvature.unsqueeze(-1)
        w = curvature if likelihood_is_gaussian(likelihood) else 1 / curvature.clamp_min(1e-6)
        parts = j.sum(0), torch.einsum("bnk,bn,bnl->kl", j, w, j), w.sum(0)
        sums = tuple(a + b for a, b in zip(sums, parts, strict=True)) if sums else parts
    J, M, W = ((total / len(codes)).double().numpy() for total in sums)
    return J, M, W


def likelihood_is_gaussian(likelihood: Likelihood) -> bool:
    return hasattr(likelihood, "log_s2")


def break_pair(c_i: Array, c_j: Array, M: Array, W: Array, degrees: float = TURN) -> tuple[float, float, Array]:
    """(e, b, u) of the smallest change that turns the two axes by `degrees`; M is their 2 x 2 part.

    >>> e, b, u = break_pair(np.array([2.0, 0.0]), np.array([0.0, 1.0]), np.diag([4.0, 1.0]), np.ones(2))
    >>> a = np.array([np.cos(b), np.sin(b)])
    >>> J = np.diag([2.0, 1.0]) + e * np.outer(u, a)
    >>> round(float(abs(turn_of(J.T @ J) - turn_of(np.diag([4.0, 1.0])))), 6)
    15.0
    """
    d0, m0 = M[0, 0] - M[1, 1], M[0, 1]
    b = np.linspace(0, 2 * np.pi, ANGLES, endpoint=False)
    best: tuple[float, float, Array] = (math.inf, 0.0, np.zeros_like(c_i))
    for sense in (1, -1):
        f = math.atan2(2 * m0, d0) + sense * 2 * math.radians(degrees)
        g = np.sin(b - f)[:, None] * c_i + np.cos(b - f)[:, None] * c_j  # (A, n)
        F0 = sense * (math.cos(f) * 2 * m0 - math.sin(f) * d0)
        linear, square = 2 * np.abs(g) @ W, sense * np.sin(2 * b - f) * W.sum()
        e = smallest_root(F0, linear, square)
        place = int(np.argmin(e))
        if e[place] < best[0]:
            best = (float(e[place]), float(b[place]), sense * np.sign(g[place]))
    return best


def turn_by(c_i: Array, c_j: Array, M: Array, W: Array, e: float) -> float:
    """The largest turn, in degrees up to 45, that a change of size e can make: the inverse of `break_pair`.

    >>> pair = np.array([2.0, 0.0]), np.array([0.0, 1.0]), np.diag([4.0, 1.0]), np.ones(2)
    >>> round(turn_by(*pair, break_pair(*pair, degrees=20.0)[0]))
    20
    """
    low, high = 0.0, 45.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if break_pair(c_i, c_j, M, W, middle)[0] <= e else (low, middle)
    return high if high == 45.0 else low


def smallest_root(F0: float, linear: Array, square: Array) -> Array:
    """The smallest e > 0 with F0 + linear e + square e^2 = 0; infinite where there is none or u is not `sign g`."""
    disc = linear**2 - 4 * square * F0
    root = np.where(disc >= 0, 2 * -F0 / (linear + np.sqrt(np.maximum(disc, 0))), np.inf)
    return np.where((square >= 0) & (root > 0), root, np.inf)


def turn_of(M: Array) -> float:  # (2, 2)
    """The angle of the preferred axes, degrees."""
    return math.degrees(0.5 * math.atan2(2 * M[0, 1], M[0, 0] - M[1, 1]))


def stress(
    decoder: Decoder,
    codes: Array | Tensor,  # (N, K)
    likelihood: Likelihood | str | None = None,
    s2: float = 0.5,
    spread: float = 1.0,
    latents: tuple[int, ...] | None = None,
    degrees: float = TURN,
    eps: float | None = None,
) -> Stress:
    """The robustness radius of a decoder at these codes; `latents` are those in use (all by default).

    With `eps` also how far a change of that size can turn each pair.

    >>> codes = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    >>> found = stress(lambda z: z * torch.tensor([3.0, 1.0]), codes)
    >>> found.pair, bool(0 < found.radius < 3)
    ((0, 1), True)
    """
    if not 0 < degrees < 45:
        raise BadInput(f"degrees={degrees} must be between 0 and 45: beyond that two axes have changed places")
    if eps is not None and not 0 < eps < math.inf:
        raise BadInput(f"eps={eps} must be positive and finite: no value changes by more")
    z = torch.as_tensor(codes).float()
    if z.ndim != 2 or z.shape[1] < 2:
        raise BadInput(
            f"codes have shape {tuple(z.shape)}; (N, K) with at least 2 latents is needed: one has no axes to turn"
        )
    with torch.no_grad():
        J, M, W = mean_columns(decoder, z, as_likelihood(likelihood, s2))
    scale = z.std(0).double().numpy()  # latents of unit variance: a scalar sees each in its own spread
    J, M = J * scale, M * np.outer(scale, scale)
    breaks = []
    for i, j in combinations(latents or range(z.shape[1]), 2):
        pair = J[:, i], J[:, j], M[np.ix_([i, j], [i, j])], W
        e, b, u = break_pair(*pair, degrees)
        turn = None if eps is None else turn_by(*pair, eps * SLOPE)
        breaks.append(Break((i, j), e / SLOPE, (math.cos(b), math.sin(b)), u, turn))
    return Stress(tuple(sorted(breaks, key=lambda found: found.radius)), spread, degrees)


def caveat(likelihood: str) -> str:
    """What a radius under this likelihood does not say; empty where it is what it is called.

    >>> caveat("gaussian"), caveat("bernoulli")[:27]
    ('', 'Bernoulli: pixels that the ')
    """
    if likelihood != "bernoulli":
        return ""
    return (
        "Bernoulli: pixels that the decoder is sure of weigh up to a million times more, and first order ends where a "
        "change reaches their variance; so a small radius shows sure pixels, not weak axes. Train with --likelihood "
        "gaussian for a radius in the data's units"
    )


def as_rows(found: Stress) -> list[dict[str, Any]]:
    """One row a pair, for tables and JSON."""
    return [
        {"pair": list(b.pair), "radius": b.radius, "radius_relative": b.radius / found.spread, "mix": list(b.mix)}
        | ({} if b.turn is None else {"turn": b.turn})
        for b in found.breaks
    ]


def stress_run(
    run: Run,
    members: Iterable[int] | None = None,
    points: int = 1000,
    degrees: float = TURN,
    eps: float | None = None,
    show: bool | None = None,
) -> dict[int, Stress]:
    """The radius of each member, at held-out rows, over the latents in use."""
    out = {}
    for member, diagnosis in diagnose(run, members, show=show).items():
        model = run.model(member)
        seen = see(run, model, points, 0)
        latents = tuple(i for i, latent in enumerate(diagnosis.latents) if latent.active)
        spread = float(seen.x.flatten(1).var(0).mean().sqrt())
        if len(latents) < 2:
            out[member] = Stress((), spread, degrees)
            continue
        z, used = seen.posterior.mean, {"latents": latents, "spread": spread, "degrees": degrees, "eps": eps}
        out[member] = stress(model.decode, z, model.likelihood, **used)  # type: ignore[arg-type]
    return out
