"""The non-linear answer: a cohort of sigma-VAEs over seeds, its axes by geometry and by independence.

The decoder's variance is learned (Rybkin et al. 2021), so that the KL has weight 1 and the loss is a bound on
-log p(x), comparable with the linear models'. The bound used is the importance-weighted one (Burda et al. 2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from unseam.find.density import Gain, gain, log_marginals, rotation_by_independence
from unseam.geometry import align, jacobian
from unseam.geometry.align import Frame
from unseam.geometry.degeneracy import pairs_of, plane_differences
from unseam.geometry.regime import active_latents
from unseam.linear.ppca import principal_axes
from unseam.models import Autoencoder
from unseam.rng import generator, numpy_generator
from unseam.train import Run, fit
from unseam.types import Array

FALLING = 0.05  # nats of held-out loss per 1,000 steps that count as falling
RISEN = 0.1  # nats above its lowest that count as overfitting


@dataclass(frozen=True)
class Effort:
    """How much is spent on the cohort."""

    seeds: int = 4
    steps: int = 3000
    width: int = 64


EFFORTS = {"quick": Effort(2, 2000, 64), "normal": Effort(), "thorough": Effort(6, 12_000, 128)}
START = 0.01  # the variance that learning begins with: too small rather than too large, or latents die early
RESOLUTION = 0.05  # of the rows' spread: finer structure is not modelled, and tables without noise stay comparable


@dataclass(frozen=True)
class Projection:
    """y = (x - mean) U / c: leading principal axes, an isometry up to c, so that the geometry is that of x."""

    mean: Array  # (n,)
    U: Array  # (n, p)
    c: float

    def __call__(self, x: Array) -> Array:  # (N, n) -> (N, p)
        return (x - self.mean) @ self.U / self.c

    def back(self, y: Array) -> Array:  # (N, p) -> (N, n)
        return self.mean + self.c * y @ self.U.T


def project(x: Array, d: int) -> Projection:  # (N, n)
    """d dimensions for the factors and as many and two for curvature and noise."""
    l, U = principal_axes(np.atleast_2d(np.cov(x.T, bias=True)))
    p = min(x.shape[1], 2 * d + 2)
    return Projection(x.mean(0), U[:, :p], float(np.sqrt(l[: max(d, 1)].mean())))


def blurred(y: Array, seed: int) -> Array:  # (N, p)
    return y + RESOLUTION * numpy_generator(seed, "resolution").standard_normal(y.shape)


def train(x: Array, latents: int, effort: Effort, seed: int, folder: Path, holdout: float, show: bool | None) -> Run:
    """One stacked training of all seeds."""
    widths = (effort.width, effort.width)
    return fit(
        x.astype(np.float32), "sigma-vae", variance="learned", s2=START,
        seeds=range(seed, seed + effort.seeds), out=folder,
        latents=latents, encoder=widths, decoder=widths, encoder_activation="tanh", decoder_activation="tanh",
        steps=effort.steps, batch=min(256, len(x) // 2), holdout=holdout, log_every=max(1, effort.steps // 60),
        watch=2048, workers=1, how="stacked", show=show, lr=3e-3,
    )  # fmt: skip


class Settled(NamedTuple):
    """What the held-out loss did last."""

    word: str  # settled, still falling or overfitting
    per_1000: float  # nats that it falls by per 1,000 steps (negative: rises)
    above_best: float  # nats of the last value above the lowest

    def says(self) -> str:
        if self.word == "still falling":
            return f"training had not settled: the held-out loss still fell by {self.per_1000:.2g} nats per 1,000 steps"
        if self.word == "overfitting":
            return f"training overfits: the held-out loss ended {self.above_best:.2g} nats above its lowest"
        return "training had settled"


def settled(steps: Array, losses: Array) -> Settled:  # (T,), (T,)
    """Judge a held-out loss over time: its slope over the last third, and how far it rose from its lowest.

    >>> t = np.arange(0, 3000, 50)
    >>> settled(t, np.exp(-t / 100.0)).word, settled(t, -t / 1000).word, settled(t, np.abs(t - 1000) / 1000).word
    ('settled', 'still falling', 'overfitting')
    """
    smooth = np.convolve(losses, np.ones(3) / 3, "valid") if len(losses) >= 6 else losses
    last = max(3, len(losses) // 3)
    (slope, _), spread = np.polyfit(steps[-last:], losses[-last:], 1, cov=True) if last > 4 else ((0.0, 0.0), np.eye(2))
    per_1000, error = float(-1000 * slope), float(1000 * np.sqrt(abs(spread[0, 0])))
    above = float(smooth[-1] - smooth.min())
    if above > RISEN and per_1000 < 0:
        return Settled("overfitting", per_1000, above)
    return Settled("still falling" if per_1000 > max(FALLING, 2 * error) else "settled", per_1000, above)


def settled_run(run: Run, member: int) -> Settled:
    log = run.log()
    rows = log[(log["member"] == member) & (log["name"] == "held-out/loss")].sort_values("step")
    return settled(rows["step"].to_numpy(float), rows["value"].to_numpy(float))


@torch.no_grad()
def log_bound(model: Autoencoder, x: Array, seed: int = 0, samples: int = 64) -> Array:  # (N, n) -> (N,)
    """log 1/S sum_s p(x|z_s) p(z_s) / q(z_s|x), z_s ~ q(z|x): a lower bound on log p(x)."""
    data = torch.as_tensor(x, dtype=torch.float32)
    q, draws = model.encode(data), generator(seed, "bound")
    weights = []
    for _ in range(samples):
        noise = torch.randn(q.mean.shape, generator=draws)
        z = q.sample(noise)
        log_p = model.likelihood.log_prob(data, model.decode(z)) - 0.5 * z.square().sum(1)
        weights.append(log_p + 0.5 * (noise.square() + q.log_variance()).sum(1))
    return (torch.stack(weights).logsumexp(0) - math.log(samples)).double().numpy()


@dataclass(frozen=True)
class Turned:
    """A trained model with axes: z' = (z - shift) T R for the latents in use."""

    model: Autoencoder
    frame: Frame
    kept: Array  # (k,) which of the new latents are in use, the most informative first
    sign: Array  # (k,)

    def encode(self, x: Array) -> Array:  # (N, n) -> (N, k)
        with torch.no_grad():
            codes = self.model.encode(torch.as_tensor(x, dtype=torch.float32)).mean
        return self.frame.new(codes.double()).numpy()[:, self.kept] * self.sign

    def decode(self, u: Array) -> Array:  # (N, k) -> (N, n)
        z = torch.zeros(len(u), len(self.frame.shift), dtype=torch.float64)
        z[:, self.kept] = torch.as_tensor(u * self.sign)
        with torch.no_grad():
            return self.model.mean(self.frame.old(z).float()).double().numpy()

    @torch.no_grad()
    def nats(self, x: Array) -> Array:  # (N, n) -> (k,)
        """Mean KL of each latent's own posterior in these axes."""
        q = self.model.encode(torch.as_tensor(x, dtype=torch.float32))
        A = self.frame.linear()
        variance = (q.variance().double() @ A.square()).numpy()[:, self.kept]
        mean = self.frame.new(q.mean.double()).numpy()[:, self.kept]
        return np.asarray(0.5 * (mean**2 + variance - np.log(variance) - 1).mean(0))

    def columns(self, x: Array, points: int = 500) -> tuple[Array, Array]:  # -> (n, k), (p, k, k)
        """What one standard deviation of each factor does to x on average; and J'J in these axes, at some rows."""
        with torch.no_grad():
            z = self.model.encode(torch.as_tensor(x[:points], dtype=torch.float32)).mean
            J = jacobian(self.model.mean, z).double()  # (p, n, K)
        J = (J @ (self.frame.scale @ self.frame.rotation))[:, :, torch.as_tensor(self.kept)] * torch.as_tensor(
            self.sign
        )
        spread = self.encode(x).std(0)
        return J.mean(0).numpy() * spread, (J.mT @ J).numpy()


def in_use(model: Autoencoder, x: Array) -> Array:  # -> (K,) bool
    with torch.no_grad():
        q = model.encode(torch.as_tensor(x, dtype=torch.float32))
    return np.asarray(active_latents(q.mean.std(0).numpy(), q.variance().mean(0).numpy()))


def by_geometry(model: Autoencoder, x: Array, seed: int = 0) -> Turned:
    """The axes that the decoder's Jacobian prefers (`align`)."""
    with torch.no_grad():
        q = model.encode(torch.as_tensor(x, dtype=torch.float32))
    found = align(model, q.mean.double(), q.variance().double(), likelihood=model.likelihood, points=1000, seed=seed)
    return ordered(model, found.frame, in_use(model, x), x)


def by_independence(model: Autoencoder, x: Array, seed: int = 0) -> Turned:
    """The axes that make the codes most independent, of the latents in use."""
    used = np.flatnonzero(in_use(model, x))
    with torch.no_grad():
        codes = model.encode(torch.as_tensor(x, dtype=torch.float32)).mean.double().numpy()
    K, mean = codes.shape[1], codes.mean(0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(codes[:, used].T)))
    root = (vectors * np.sqrt(np.maximum(values, 1e-9))) @ vectors.T
    R = rotation_by_independence((codes[:, used] - mean[used]) @ np.linalg.inv(root), seed)
    T, whole = np.eye(K), np.eye(K)
    T[np.ix_(used, used)], whole[np.ix_(used, used)] = root, R
    frame = Frame(torch.as_tensor(whole), torch.as_tensor(T), torch.as_tensor(mean))
    return ordered(model, frame, in_use(model, x), x)


def ordered(model: Autoencoder, frame: Frame, used: Array, x: Array) -> Turned:
    """The latents in use, the most informative first, each with the sign of what it moves most."""
    kept = np.flatnonzero(used)
    first = Turned(model, frame, kept, np.ones(len(kept)))
    order = np.argsort(-first.nats(x), kind="stable")
    second = Turned(model, frame, kept[order], np.ones(len(kept)))
    moves = second.columns(x)[0]
    sign = np.where(moves[np.abs(moves).argmax(0), np.arange(len(kept))] < 0, -1.0, 1.0)
    return Turned(model, frame, kept[order], sign)


def separations(gram: Array) -> Array:  # (p, k, k) -> (k,)
    """For each factor the smallest relative difference of singular values with any other: 0 is a plane."""
    k = gram.shape[-1]
    if k < 2:
        return np.ones(k)
    i, j = pairs_of(k)
    d = plane_differences(torch.as_tensor(gram), i, j).numpy()
    return np.array([d[(i.numpy() == a) | (j.numpy() == a)].min() for a in range(k)])


def less_dependent(a: Turned, b: Turned, train: Array, test: Array) -> Gain:
    """TC of the codes in b's axes minus that in a's, on unseen rows: above 0 if a's are more independent.

    Both are whitened symmetrically, which turns no axis, so that the joint entropy is the same.
    """

    def logs(turned: Turned) -> Array:
        u, v = turned.encode(train), turned.encode(test)
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(u.T)))
        white = (vectors / np.sqrt(np.maximum(values, 1e-9))) @ vectors.T
        return np.asarray(log_marginals((u - u.mean(0)) @ white, (v - u.mean(0)) @ white).sum(1))

    return gain(logs(a) - logs(b))


@dataclass(frozen=True)
class Through:
    """A turned model of projected rows, as a model of the rows themselves."""

    onto: Projection
    turned: Turned

    def encode(self, x: Array) -> Array:  # (N, n) -> (N, k)
        return self.turned.encode(self.onto(x))

    def decode(self, u: Array) -> Array:  # (N, k) -> (N, n)
        return self.onto.back(self.turned.decode(u))
