"""The non-linear model: a cohort of VAEs over seeds, its axes by geometry and by independence.

The decoder's variances are learned (Rybkin et al. 2021), so that the KL has weight 1 and the loss is a bound on
-log p(x), comparable with the linear models'. The bound used is the importance-weighted one (Burda et al. 2016).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from unseam.axes import Array
from unseam.finding.simplicity import SimpleStructure, simple_structure
from unseam.finding.spacings import rotation_by_entropy
from unseam.geometry import align, jacobian
from unseam.geometry.align import Frame
from unseam.geometry.polarized import active_latents
from unseam.models import Autoencoder
from unseam.progress import stage
from unseam.rng import generator
from unseam.run import Run
from unseam.train import fit, resume

_FALLING = 0.1  # nats by which a held-out loss that still falls goes down in the last third of the training
_RISEN = 0.1  # nats above its lowest that count as overfitting
_ERRORS = 2.0  # standard errors of a slope, and standard deviations of a loss about it, that noise hardly reaches


@dataclass(frozen=True)
class Effort:
    """How much is spent on the cohort."""

    seeds: int = 4
    steps: int = 3000
    width: int = 64
    again: int = 4  # times that training goes on while the held-out loss falls
    beta: float = 1.0  # weight of the KL
    linear: bool = False  # a decoder without hidden layers
    device: str = "auto"
    stage: str = ""  # what the progress bar calls it


EFFORTS = {"quick": Effort(2, 2000, 64), "normal": Effort(), "thorough": Effort(6, 6000, 128)}
HELD_OUT = 0.2  # of the rows
_POINTS = 50  # rows at which the Jacobian's simplicity is asked
_FAINT = 0.02  # share of a column's variance below which its direction is noise
_SNAPSHOTS = 6  # weights are kept this often, to see whether axes still turn
START = 0.1  # the variance that learning begins with: rather too small than too large, or latents die early
LINEAR_START = 1.0  # the same for a linear decoder, which has no latents to lose
_LR, _LINEAR_LR = 3e-3, 1e-2  # a linear decoder stands larger steps, and has settled after 2,000 of them


def train(
    y: Array, latents: int, effort: Effort, likelihood: Mapping[str, Any], seed: int, folder: Path, show: bool | None
) -> Run:  # fmt: skip
    """One stacked training of all seeds."""
    widths = (effort.width, effort.width)
    with stage(effort.stage):
        return fit(
            y.astype(np.float32), "beta-vae", beta=effort.beta, **likelihood, scale="none",
            seeds=range(seed, seed + effort.seeds), out=folder, latents=latents, encoder=widths,
            decoder=() if effort.linear else widths, encoder_activation="tanh", decoder_activation="tanh",
            steps=effort.steps, batch=min(64 if likelihood["likelihood"] == "bernoulli" else 256, len(y) // 2),
            holdout=HELD_OUT, log_every=max(1, effort.steps // 60), watch=2048, workers=1, how="stacked", show=show,
            lr=_LINEAR_LR if effort.linear else _LR, snapshots=_SNAPSHOTS, device=effort.device,
        )  # fmt: skip


def train_longer(run: Run, effort: Effort, show: bool | None) -> Run:
    """Train for as long again, up to `effort.again` times, while the held-out loss of any member falls."""
    for times in range(2, 2 + effort.again):
        if all(member_loss_state(run, m).word != "still falling" for m in range(effort.seeds)):
            break
        with stage(effort.stage):
            run = resume(run.folder, steps=times * effort.steps, show=show)
    return run


def until_settled(
    y: Array, latents: int, effort: Effort, likelihood: Mapping[str, Any], seed: int, folder: Path, show: bool | None
) -> Run:  # fmt: skip
    """One training, which goes on until the held-out losses rest."""
    return train_longer(train(y, latents, effort, likelihood, seed, folder, show), effort, show)


class LossState(NamedTuple):
    """What the held-out loss did last."""

    word: str  # settled, still falling or overfitting
    per_1000: float  # nats that it falls by per 1,000 steps (negative: rises)
    above_best: float  # nats of the last value above the lowest

    def says(self) -> str:
        if self.word == "still falling":
            return f"the held-out loss still fell by {self.per_1000:.2g} nats per 1,000 steps"
        if self.word == "overfitting":
            return f"overfitting: the held-out loss ended {self.above_best:.2g} nats above its lowest"
        return "the held-out loss had settled"


def loss_state(steps: Array, losses: Array) -> LossState:  # (T,), (T,)
    """Judge a held-out loss over time: its slope over the last third, and how far it rose from its lowest, each beyond
    what the noise about that slope explains.

    >>> t = np.arange(0, 3000, 50)
    >>> losses = np.exp(-t / 100.0), -t / 1000, np.abs(t - 1000) / 1000
    >>> [loss_state(t, each).word for each in losses]
    ['settled', 'still falling', 'overfitting']
    """
    smooth = np.convolve(losses, np.ones(3) / 3, "valid") if len(losses) >= 6 else losses
    last = max(3, len(losses) // 3)
    above = float(smooth[-1] - smooth.min())
    if last <= 4:
        return LossState("settled", 0.0, above)
    (slope, start), spread = np.polyfit(steps[-last:], losses[-last:], 1, cov=True)
    per_1000, error = float(-1000 * slope), float(1000 * np.sqrt(abs(spread[0, 0])))
    noise = float(np.std(losses[-last:] - start - slope * steps[-last:]))
    if per_1000 < -_ERRORS * error and above > max(_RISEN, _ERRORS * noise):
        return LossState("overfitting", per_1000, above)
    falls = per_1000 * (steps[-1] - steps[-last]) / 1000 > _FALLING and per_1000 > _ERRORS * error
    return LossState("still falling" if falls else "settled", per_1000, above)


def member_loss_state(run: Run, member: int) -> LossState:
    log = run.log()
    rows = log[(log["member"] == member) & (log["name"] == "held-out/loss")].sort_values("step")
    return loss_state(rows["step"].to_numpy(float), rows["value"].to_numpy(float))


def rested_step(run: Run, member: int) -> int:
    """The step whose weights are used: the last one, or, where the held-out loss rose again, the kept one at which it
    was lowest."""
    kept = run.snapshot_steps(member)
    if member_loss_state(run, member).word != "overfitting":
        return int(kept[-1])
    log = run.log()
    rows = log[(log["member"] == member) & (log["name"] == "held-out/loss")].sort_values("step")
    steps, losses = rows["step"].to_numpy(float), rows["value"].to_numpy(float)
    near = [losses[np.argsort(np.abs(steps - step))[:3]].mean() for step in kept]
    return int(kept[int(np.argmin(near))])


def rested_model(run: Run, member: int) -> Autoencoder:
    """The member with its weights of `rested_step`."""
    return run.model(member, rested_step(run, member))


def _tensor(model: Autoencoder, x: Array | torch.Tensor) -> torch.Tensor:
    """Rows in the model's own precision."""
    return torch.as_tensor(x).to(next(model.parameters()).dtype)


@torch.no_grad()
def log_bound(
    model: Autoencoder, x: Array, seed: int = 0, samples: int = 64, shared: bool = False
) -> Array:  # (N, n) -> (N,)
    """log 1/S sum_s p(x|z_s) p(z_s) / q(z_s|x), z_s ~ q(z|x): a lower bound on log p(x).

    With `shared` noise a row's bound does not depend on the rows beside it.
    """
    data = _tensor(model, x)
    q, draws = model.encode(data), generator(seed, "bound")
    weights = []
    for _ in range(samples):
        noise = torch.randn((1, q.mean.shape[1]) if shared else q.mean.shape, generator=draws).to(q.mean)
        z = q.sample(noise)
        log_p = model.likelihood.log_prob(data, model.decode(z)) - 0.5 * z.square().sum(1)
        weights.append(log_p + 0.5 * (noise.square() + q.log_variance()).sum(1))
    return (torch.stack(weights).logsumexp(0) - math.log(samples)).double().numpy()


@dataclass(frozen=True)
class RotatedModel:
    """A trained model with axes: z' = (z - shift) T R for the latents in use."""

    model: Autoencoder
    frame: Frame
    kept: Array  # (k,) which of the new latents are in use, the most informative first
    sign: Array  # (k,)

    def encode(self, x: Array) -> Array:  # (N, n) -> (N, k)
        with torch.no_grad():
            codes = self.model.encode(_tensor(self.model, x)).mean
        return self.frame.new(codes.double()).numpy()[:, self.kept] * self.sign

    def decode(self, u: Array) -> Array:  # (N, k) -> (N, n)
        z = torch.zeros(len(u), len(self.frame.shift), dtype=torch.float64)
        z[:, self.kept] = torch.as_tensor(u * self.sign)
        with torch.no_grad():
            old = self.frame.old(z)
            return self.model.mean(_tensor(self.model, old)).double().numpy()

    @torch.no_grad()
    def nats(self, x: Array) -> Array:  # (N, n) -> (k,)
        """Mean KL of each new latent's posterior from its prior, both as these axes have them:

        z' = (z - shift) A,  z ~ N(0, I):   z'_j ~ N(-(shift A)_j, (A'A)_jj)
        """
        q = self.model.encode(_tensor(self.model, x))
        A = self.frame.linear()
        prior = A.square().sum(0).numpy()[self.kept]
        variance = (q.variance().double() @ A.square()).numpy()[:, self.kept] / prior
        mean = self.frame.new(q.mean.double()) - self.frame.new(torch.zeros_like(self.frame.shift))
        square = mean.numpy()[:, self.kept] ** 2 / prior
        return np.asarray(0.5 * (square + variance - np.log(variance) - 1).mean(0))

    def columns(self, x: Array, points: int = 500) -> tuple[Array, Array]:  # -> (n, k), (p, k, k)
        """What one standard deviation of each factor does to x on average; and J'J in these axes, at some rows."""
        with torch.no_grad():
            z = self.model.encode(_tensor(self.model, x[:points])).mean
            J = jacobian(self.model.mean, z).double()  # (p, n, K)
        J = (J @ (self.frame.scale @ self.frame.rotation))[:, :, torch.as_tensor(self.kept)] * torch.as_tensor(
            self.sign
        )
        spread = self.encode(x).std(0)
        return J.mean(0).numpy() * spread, (J.mT @ J).numpy()


def model_latents_in_use(model: Autoencoder, x: Array) -> Array:  # -> (K,) bool
    with torch.no_grad():
        q = model.encode(_tensor(model, x))
    return np.asarray(active_latents(q.mean.std(0).numpy(), q.variance().mean(0).numpy()))


def by_geometry(model: Autoencoder, x: Array, seed: int = 0) -> RotatedModel:
    """The axes that the decoder's Jacobian prefers (`align`)."""
    with torch.no_grad():
        q = model.encode(_tensor(model, x))
    found = align(model, q.mean.double(), q.variance().double(), likelihood=model.likelihood, points=1000, seed=seed)
    return _ordered(model, found.frame, model_latents_in_use(model, x), x)


def by_independence(model: Autoencoder, x: Array, seed: int = 0) -> RotatedModel:
    """The axes that make the codes most independent, of the latents in use."""
    used = np.flatnonzero(model_latents_in_use(model, x))
    with torch.no_grad():
        codes = model.encode(_tensor(model, x)).mean.double().numpy()
    K, mean = codes.shape[1], codes.mean(0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(codes[:, used].T)))
    root = (vectors * np.sqrt(np.maximum(values, 1e-9))) @ vectors.T
    R = rotation_by_entropy((codes[:, used] - mean[used]) @ np.linalg.inv(root), seed)
    T, whole = np.eye(K), np.eye(K)
    T[np.ix_(used, used)], whole[np.ix_(used, used)] = root, R
    frame = Frame(torch.as_tensor(whole), torch.as_tensor(T), torch.as_tensor(mean))
    return _ordered(model, frame, model_latents_in_use(model, x), x)


def by_simplicity(model: Autoencoder, x: Array, seed: int = 0) -> RotatedModel:
    """The axes in which each column is moved by few latents."""
    return simplest(model, x, seed, draws=0)[0]


def simplest(
    model: Autoencoder, x: Array, seed: int = 0, draws: int | None = None
) -> tuple[RotatedModel, SimpleStructure]:
    """Axes by simple structure of the decoder's Jacobian at some rows, and their test, in the order of the axes.

    Only rotations of the latents in use are looked at, under which the prior N(0, I) stays what it is. Columns that
    the latents hardly move have no direction.
    """
    used = np.flatnonzero(model_latents_in_use(model, x))
    with torch.no_grad():
        z = model.encode(_tensor(model, x[:_POINTS])).mean
        J = jacobian(model.mean, z).double().numpy()[:, :, used]  # (p, n, k)
    moved = (J**2).mean(0).sum(1) > _FAINT * x.var(0)[: J.shape[1]]
    found = simple_structure(np.where(moved[:, None], J, 0.0), seed=seed, draws=draws)
    K = z.shape[1]
    R = np.eye(K)
    R[np.ix_(used, used)] = found.rotation
    eye = torch.eye(K, dtype=torch.float64)
    turned = _ordered(model, Frame(torch.as_tensor(R), eye, 0 * eye[0]), model_latents_in_use(model, x), x)
    order = np.searchsorted(used, turned.kept)
    planes, rotation = found.planes[np.ix_(order, order)], found.rotation[:, order] * turned.sign
    return turned, replace(found, planes=planes, rotation=rotation)


def _ordered(model: Autoencoder, frame: Frame, used: Array, x: Array) -> RotatedModel:
    """The latents in use, the most informative first, each with the sign of what it moves most."""
    kept = np.flatnonzero(used)
    first = RotatedModel(model, frame, kept, np.ones(len(kept)))
    order = np.argsort(-first.nats(x), kind="stable")
    second = RotatedModel(model, frame, kept[order], np.ones(len(kept)))
    moves = second.columns(x)[0]
    sign = np.where(moves[np.abs(moves).argmax(0), np.arange(len(kept))] < 0, -1.0, 1.0)
    return RotatedModel(model, frame, kept[order], sign)


def variance_kept(model: Autoencoder, y: Array, mean: Array) -> float:  # (M, n)
    """Share of the variance of unseen rows that their reconstructions keep."""
    with torch.no_grad():
        again = model.mean(model.encode(_tensor(model, y)).mean).double().numpy()
    return 1 - float(((y - again) ** 2).sum() / ((y - mean) ** 2).sum())
