"""How much change does a layout survive? The robustness radius, in closed form for a linear decoder.

Move every observation by at most eps along one scalar of the latents, x' = x + eps u s(a . z) with |u_p| <= 1 and
|s| <= 1. To first order the columns of the decoder become c_k + e a_k u, e = k eps, k = E s'(t) for t ~ N(0, 1). In the
plane of latents i and j the axes a diagonal posterior prefers are the eigenvectors of the 2 x 2 part of M, at the angle

    t = 1/2 atan2(2 M_ij, M_ii - M_jj),        M = E[J^T W J], W = 1/variance

They have turned by more than T when F = cos(f) 2 M_ij - sin(f) (M_ii - M_jj) >= 0 for f = 2 (t0 + T). With a = (cos b,
sin b) in that plane F is a sum over pixels, so the worst u is known pixel by pixel, u_p = sign g_p:

    F(e) = F0 + 2 e sum_p W_p |g_p| + e^2 sin(2 b - f) sum_p W_p,        g = sin(b - f) c_i + cos(b - f) c_j

The radius is the smallest root over b, over both senses of turning and over all pairs (of latents in use). For a linear
decoder this is exact; for another one c and M are means over the data, so it holds to first order.

A Bernoulli's variance v = m (1 - m) depends on its mean m, and values live in [0, 1]: what leaves is folded back. Where
x is 0 or 1 (or within e of it), fold(x + e u t) = x + (1 - 2x) d with d = e |u t|, for either sign of u t. So there

    m' = m + (1 - 2m) d,        v' = v + (1 - 2m)^2 d (1 - d),        J' = (1 - 2d) J + (1 - 2m) e |u| sign(t) a

- A pixel that the decoder was sure of no longer is: W(e) = 1/E v' = 1/(v + (1 - 2m)^2 e (h - e)), h = E|t|, is finite.
- The change is even in t, so its linear term has mean 0. The squared one stays. It is largest where |t| and so v' are
  small, but the posterior rounds the kink off: under noise n the mean of |t + noise| is T(t), and its square counts
  k = E[T'(t)^2 / T(t)] / (1/h) times as much (T' = 2 Phi(t/n) - 1, T = t T' + 2 n phi(t/n)).
- What the decoder did before shrinks, by (1 - 2d)^2 in M.

With E over data and t, and o = 0, q = k (1 - 2m)^2 where x is folded, o = q = 1 where it is not,

    F(e) = F0 + sum_p d_p + 2 e sum_p |E[W o g]_p| + e^2 sin(2 b - f) sum_p E[W q]_p

over the pixels for which this is a gain; the others are left alone, u_p = 0. d_p is what W(e) (1 - 2d)^2 J J^T adds to
pixel p's share of F0. `moved` of a likelihood gives W, o, q / k and (1 - 2d)^2. A Gaussian's W is the same at every e,
and with its o = q = 1, d_p = 0 this is the formula above. With the weights of a change e, F has the root r(e): the
radius is the e with r(e) = e.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import erf
from torch import Tensor
from torch.func import jvp

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.jacobian import Decoder, as_likelihood, jacobian_slices
from unseam.models.likelihood import HALF, Likelihood, Moves, movable
from unseam.run import Run
from unseam.runs.diagnose import diagnose, see

_TURN = 15.0  # degrees by which axes must turn to count as lost
SLOPE = 0.6057  # E[1 - tanh(t)^2], t ~ N(0, 1): what a scalar s = tanh keeps of a unit slope
_ANGLES = 360  # mixtures a of the two latents that are tried
_LEAST_NOISE, KINK = 1e-3, 400  # noise below this is taken for it; at how many places the kink of |t| is evaluated
HALVINGS = 9  # of 45 degrees: a turn is known to a tenth of a degree


@dataclass(frozen=True)
class Break:
    """The smallest change that turns one pair of axes."""

    pair: tuple[int, int]
    radius: float  # eps, in the data's units
    mix: tuple[float, float]  # how the scalar mixes the two latents
    image: Array  # (n,) u: the sign of the change of each value
    turn: float | None = None  # degrees by which a change of the requested eps can turn them, 45 at most


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


class Folded(NamedTuple):
    """What a change does to two latents where it is folded; nothing, for a Gaussian."""

    e: float  # the change
    ij: Array  # (n,) what it adds to M_ij, pixel by pixel
    difference: Array  # (n,) and to M_ii - M_jj
    even: Array  # (n,) E[W q] of what is folded
    noise: Array  # (2,) of the posterior, in standard deviations of the codes


@dataclass(frozen=True)
class _Columns:
    """Means over the codes, all but M at each of E changes. A Gaussian's c is E[J], its W 1/s2; the rest is 0."""

    M: Array  # (K, K) E[D^T A^2 D]
    c: Array  # (E, n, K) E[W o J] / E[W q]
    W: Array  # (E, n) E[W q]
    even: Array  # (E, n) the part of it that is folded
    d: Array  # (E, n, P) what the change adds to M, pixel by pixel: its P entries on and above the diagonal
    scale: Array  # (K,) the units of latents

    def scaled(self, scale: Array) -> _Columns:  # (K,)
        """Of latents in other units: one of theirs is `scale` of ours."""
        return replace(self, M=self.M * np.outer(scale, scale), c=self.c * scale, scale=self.scale * scale)

    def pair(self, i: int, j: int, place: int) -> tuple[Array, Array, Array, Array]:
        """(c_i, c_j, M (2, 2), W) of two latents at one of the changes."""
        c = self.c[place]
        return c[:, i], c[:, j], self.M[np.ix_([i, j], [i, j])], self.W[place]

    def folded(self, i: int, j: int, place: int, e: float, noise: Array) -> Folded:
        entries = entry(i, i, len(self.scale)), entry(i, j, len(self.scale)), entry(j, j, len(self.scale))
        ii, ij, jj = self.d[place][:, entries].T * np.outer(self.scale[[i, i, j]] * self.scale[[i, j, j]], 1)
        return Folded(e, ij, ii - jj, self.even[place], noise[[i, j]])


def mean_columns(
    decode: Decoder,
    codes: Tensor,  # (N, K)
    likelihood: Moves,
    changes: Sequence[float],  # (E,)
    data: Tensor | None = None,  # (N, n) what is moved; the decoder's own means where it is not given
) -> _Columns:
    """All statistics in one pass over slices of the codes."""
    e = torch.tensor(changes, dtype=codes.dtype).view(-1, 1, 1)
    sums: tuple[Tensor, ...] = ()
    k, l = torch.triu_indices(codes.shape[1], codes.shape[1])
    unit, done = torch.ones(()), 0
    for theta, D in jacobian_slices(decode, codes):
        x = likelihood.mean(theta) if data is None else data[done : done + len(theta)]
        A2, slope = likelihood.curvature(theta), jvp(likelihood.mean, (theta,), (torch.ones_like(theta),))[1]
        W, squared_slope, odd, square = likelihood.moved(theta, e, x)
        J = slope.unsqueeze(-1) * D
        unit = unit if done else W.flatten()[0]  # it cancels; weights that are all the same become exactly 1
        parts = (
            torch.einsum("bnk,bn,bnl->kl", D, A2, D),
            torch.stack([(w.unsqueeze(-1) * J).sum(0) for w in W / unit * odd]),
            (W / unit * square).sum(1),
            (W * square).sum(1),
            (W * square * (1 - odd)).sum(1),
            torch.einsum("ebn,bnp->enp", W * squared_slope * slope**2 - A2, D[..., k] * D[..., l]),
        )
        sums = tuple(a.add_(b) for a, b in zip(sums, parts, strict=True)) if done else parts
        done += len(theta)
    M, linear, share, total, even, d = sums
    c = linear / share.unsqueeze(-1).clamp_min(torch.finfo(share.dtype).tiny)
    whole = [mean.double().numpy() for mean in (M / done, c, total / done, even / done)]
    return _Columns(whole[0], whole[1], whole[2], whole[3], d.div_(done).numpy(), np.ones(codes.shape[1]))


def entry(i: int, j: int, K: int) -> int:
    """Where a K x K matrix's (i, j), i <= j, stands among those on and above the diagonal, row by row.

    >>> [entry(i, j, 3) for i, j in ((0, 0), (0, 2), (1, 1), (2, 2))]
    [0, 2, 3, 5]
    """
    return i * K - i * (i - 1) // 2 + j - i


def break_pair(
    c_i: Array,  # (n,)
    c_j: Array,  # (n,)
    M: Array,  # (2, 2)
    W: Array,  # (n,)
    degrees: float = _TURN,
    folded: Folded | None = None,  # at the change that W belongs to
) -> tuple[float, float, Array]:
    """(r, b, u) of the smallest change that turns the two axes by `degrees`, all weights being as given.

    >>> r, b, u = break_pair(np.array([2.0, 0.0]), np.array([0.0, 1.0]), np.diag([4.0, 1.0]), np.ones(2))
    >>> a = np.array([np.cos(b), np.sin(b)])
    >>> J = np.diag([2.0, 1.0]) + r * np.outer(u, a)
    >>> round(float(abs(turn_of(J.T @ J) - turn_of(np.diag([4.0, 1.0])))), 6)
    15.0
    """
    none = np.zeros_like(W)
    e, ij, difference, even, noise = folded or Folded(math.inf, none, none, none, np.zeros(2))
    d0, m0 = M[0, 0] - M[1, 1], M[0, 1]
    b = np.linspace(0, 2 * np.pi, _ANGLES, endpoint=False)
    k = rounded(np.cos(b) ** 2 * noise[0] ** 2 + np.sin(b) ** 2 * noise[1] ** 2)  # (A,)
    best: tuple[float, float, Array] = (math.inf, 0.0, np.zeros_like(c_i))
    for sense in (1, -1):
        f = math.atan2(2 * m0, d0) + sense * 2 * math.radians(degrees)
        g = np.sin(b - f)[:, None] * c_i + np.cos(b - f)[:, None] * c_j  # (A, n)
        sine = sense * np.sin(2 * b - f)
        F0 = sense * (math.cos(f) * 2 * m0 - math.sin(f) * d0)
        added = sense * (math.cos(f) * 2 * ij - math.sin(f) * difference)
        alone = left_alone(added, W, g, sine, e)  # (A, n)
        linear = 2 * (np.abs(g) * ~alone) @ W
        square = sine * (W.sum() - alone @ W + (k - 1) * (even.sum() - alone @ even))
        r = smallest_root(F0 + (added.sum() - alone @ added), linear, square)
        place = int(np.argmin(r))
        if r[place] < best[0]:
            u = np.where(alone[place], 0.0, np.where(sense * g[place] < 0, -1.0, 1.0))
            best = (float(r[place]), float(b[place]), u)
    return best


def rounded(variance: Array) -> Array:  # (A,) -> (A,)
    """k = h E[T'^2 / T], t ~ N(0, 1), T the mean of |t + noise| under noise of this variance n^2.

    >>> rounded(np.array([0.01, 0.04, 0.25])).round(2)
    array([1.46, 1.03, 0.5 ])
    """
    n = np.maximum(np.sqrt(variance), _LEAST_NOISE)[:, None]
    t = np.geomspace(_LEAST_NOISE / 100, 9, KINK)
    slope = erf(t / n / math.sqrt(2))  # 2 Phi - 1
    T = t * slope + n * HALF * np.exp(-((t / n) ** 2) / 2)
    density = HALF * np.exp(-(t**2) / 2)  # of |t|
    return np.asarray(HALF * np.trapezoid(density * slope**2 / T, t, axis=1))


def left_alone(added: Array, W: Array, g: Array, sine: Array, e: float) -> Array:  # (n,), (n,), (A, n), (A,)
    """(A, n) The pixels that lose more by what a change e does to their weight than they gain by the change."""
    losing = added < 0
    out = np.zeros(g.shape, dtype=bool)
    if losing.any():
        gain = W[losing] * e * (2 * np.abs(g[:, losing]) + e * np.maximum(sine, 0)[:, None])
        out[:, losing] = added[losing] + gain < 0
    return out


def break_at(
    columns: _Columns, changes: Sequence[float], i: int, j: int, degrees: float, noise: Array
) -> tuple[float, float, Array]:
    """(e, b, u) with r(e) = e, by halving: a larger change has smaller weights. Between two changes r is a line."""

    def at(place: int) -> tuple[float, float, Array]:
        return break_pair(*columns.pair(i, j, place), degrees, columns.folded(i, j, place, changes[place], noise))

    low, high = -1, len(changes) - 1
    before, found = None, at(high)
    if found[0] > changes[high]:
        return math.inf, *found[1:]
    while high - low > 1:
        middle = (low + high) // 2
        tried = at(middle)
        if tried[0] <= changes[middle]:
            high, found = middle, tried
        else:
            low, before = middle, tried
    if before is None:  # even the smallest does it
        return found
    return _crossing((changes[low], before[0]), (changes[high], found[0])), *found[1:]


def _crossing(before: tuple[float, float], after: tuple[float, float]) -> float:
    """Where r(e) = e on the line between two (e, r), the first above and the second not.

    >>> _crossing((1.0, 2.0), (3.0, 2.0)), _crossing((1.0, math.inf), (3.0, 2.0))
    (2.0, 2.0)
    """
    (e1, r1), (e2, r2) = before, after
    if math.isinf(r1):
        return max(e1, r2)
    return r1 + (r2 - r1) * (r1 - e1) / (r1 - e1 + e2 - r2)


def turn_by(c_i: Array, c_j: Array, M: Array, W: Array, e: float, folded: Folded | None = None) -> float:
    """The largest turn, in degrees up to 45, that a change of size e can make: the inverse of `break_pair`.

    >>> pair = np.array([2.0, 0.0]), np.array([0.0, 1.0]), np.diag([4.0, 1.0]), np.ones(2)
    >>> round(turn_by(*pair, break_pair(*pair, degrees=20.0)[0]))
    20
    """
    low, high = 0.0, 45.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = break_pair(c_i, c_j, M, W, middle, folded)[0] <= e
        low, high = (middle, high) if enough else (low, middle)
    return high if high == 45.0 else low


def turn_at(columns: _Columns, i: int, j: int, e: float, noise: Array) -> float:
    """The same for two latents of columns that were taken at e."""
    return turn_by(*columns.pair(i, j, 0), e, columns.folded(i, j, 0, e, noise))


def smallest_root(F0: Array, linear: Array, square: Array) -> Array:
    """The smallest e >= 0 with F0 + linear e + square e^2 >= 0; infinite where there is none or u is not `sign g`."""
    disc = linear**2 - 4 * square * F0
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.where(disc >= 0, 2 * -F0 / (linear + np.sqrt(np.maximum(disc, 0))), np.inf)
    return np.where(F0 >= 0, 0.0, np.where((square >= 0) & (root > 0), root, np.inf))


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
    degrees: float = _TURN,
    eps: float | None = None,
    data: Array | Tensor | None = None,  # (N, ...) the observations of the codes
    noise: Array | Tensor | None = None,  # (K,) standard deviations of the posterior, in the codes' units
) -> Stress:
    """The robustness radius of a decoder at these codes; `latents` are those in use (all by default).

    With `eps` also how far a change of that size can turn each pair. `data` and `noise` matter to a Bernoulli: which
    values lie at 0 or 1, where changes are folded back (else the decoder's means say so), and how far the posterior
    rounds the fold off (else as far as the Sigma law with beta = 1 has it).

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
    x = None if data is None else torch.as_tensor(data).to(z).flatten(1)
    if x is not None and len(x) != len(z):
        raise BadInput(f"data has {len(x)} rows and codes {len(z)}; give the observation of each code")
    p = movable(as_likelihood(likelihood, s2))
    scale = z.std(0).double().numpy()  # latents of unit variance: a scalar sees each in its own spread
    with torch.no_grad():
        columns = mean_columns(decoder, z, p, p.changes, x).scaled(scale)
        probe = None if eps is None else mean_columns(decoder, z, p, (eps * SLOPE,), x).scaled(scale)
    law = (1 + np.diag(columns.M) / scale**2) ** -0.5
    blur = (law if noise is None else np.asarray(noise, dtype=float)) / scale
    breaks = []
    for i, j in combinations(latents or range(z.shape[1]), 2):
        e, b, u = break_at(columns, p.changes, i, j, degrees, blur)
        turn = None if probe is None or eps is None else turn_at(probe, i, j, eps * SLOPE, blur)
        breaks.append(Break((i, j), e / SLOPE, (math.cos(b), math.sin(b)), u, turn))
    return Stress(tuple(sorted(breaks, key=lambda found: found.radius)), spread, degrees)


def caveat(likelihood: str) -> str:
    """What a radius under this likelihood is; empty where it is what it is called.

    >>> caveat("gaussian"), caveat("bernoulli")[:20]
    ('', 'Bernoulli: an estima')
    """
    if likelihood != "bernoulli":
        return ""
    return (
        "Bernoulli: an estimate, with the weights that pixels have after the change; models trained again had turned "
        "that far at half to one and a half of the radius, where seeds agree on axes (docs/perturb.md)"
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
    degrees: float = _TURN,
    eps: float | None = None,
    show: bool | None = None,
) -> dict[int, Stress]:
    """The radius of each member, at held-out rows, over the latents in use."""
    movable(run.model(0).likelihood)  # refused before anything is computed
    out = {}
    for member, diagnosis in diagnose(run, members, show=show).items():
        model = run.model(member)
        encoded = see(run, model, points, 0)
        latents = tuple(i for i, latent in enumerate(diagnosis.latents) if latent.active)
        spread = float(encoded.x.flatten(1).var(0).mean().sqrt())
        if len(latents) < 2:
            out[member] = Stress((), spread, degrees)
            continue
        q, used = encoded.posterior, {"latents": latents, "spread": spread, "degrees": degrees, "eps": eps}
        noise = q.variance().mean(0).sqrt() if q.has_prior else None
        out[member] = stress(model.decode, q.mean, model.likelihood, data=encoded.x, noise=noise, **used)  # type: ignore[arg-type]
    return out
