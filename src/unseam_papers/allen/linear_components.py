"""A1: Allen 2024, Corollary 1.1: a linear VAE finds the independent components of PPCA data; a full posterior does not.

x = W z + noise,  W = U S V^T;   diagonal posterior: columns of W_VAE = U (L - s2 I)^{1/2} R, R a signed permutation
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from unseam.geometry import haar
from unseam.geometry.orthogonality import distances
from unseam.linear import linear_vae, ppca
from unseam.rng import numpy_generator
from unseam.train import Run
from unseam.types import Array
from unseam_papers.frame.axes import angles, averaged, decoder
from unseam_papers.frame.draw import BLUE, GREY, INK, ORANGE, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Work, holds, plus_minus

S2, DISTINCT, EQUAL, DIMS = 0.25, (2.0, 1.4, 1.0), (1.4, 1.4, 1.0), 6
DEGREES = 1.0  # the bound that the corollary is held to
KINDS = {
    "diagonal": ("vae", DISTINCT),
    "full": ("beta-vae-sigma", DISTINCT),
    "equal": ("vae", EQUAL),
}


@dataclass(frozen=True)
class Settings:
    """PPCA data of this size; restarts of each kind."""

    size: int
    seeds: int
    steps: int
    snapshots: int
    batch: int = 128
    lr: float = 1e-2


def truth(singular: Sequence[float]) -> tuple[Array, Array]:  # (n, d), (n, d)
    """W = U S V^T with random U and V, and its left singular vectors U."""
    draw = numpy_generator(0, "A1")
    U = np.linalg.qr(draw.standard_normal((DIMS, len(singular))))[0]
    V = np.linalg.qr(draw.standard_normal((len(singular), len(singular))))[0]
    return U * singular @ V.T, U


def sample(singular: Sequence[float], size: int) -> Array:  # (N, n)
    W, _ = truth(singular)
    x, _ = ppca.PPCA(W, S2, np.zeros(DIMS)).sample(size, numpy_generator(1, "A1"))
    return x.astype(np.float32)


def compute(settings: Settings, work: Work) -> Numbers:
    """Train each kind; then its matrices against the truth and against what is best on this sample."""
    return {kind: work.once(kind, lambda kind=kind: measure(kind, settings, work)) for kind in KINDS}  # type: ignore[misc]


def measure(kind: str, settings: Settings, work: Work) -> dict[str, Any]:
    objective, singular = KINDS[kind]
    x, (_, U) = sample(singular, settings.size), truth(singular)
    S = np.cov(x.T.astype(float), bias=True)
    best = linear_vae.optimum(S, len(singular), S2)
    members = [compare(W, S, U, best) for W in trained(kind, objective, x, settings, work)]
    return {
        "steps": [round(settings.steps * (i + 1) / settings.snapshots) for i in range(settings.snapshots)],
        "members": members,
        "closed": angles(best.W, ppca.principal_axes(S)[1][:, : len(singular)]).max(),
        "sampling": angles(best.W, U).max(),
        "haar": haar(len(singular)),
    }


def trained(kind: str, objective: str, x: Array, settings: Settings, work: Work) -> list[list[Array]]:
    """The decoder's matrix of each member at each snapshot."""
    run: Run = work.train(
        x,
        objective,
        network="linear",
        latents=len(DISTINCT),
        s2=S2,
        seeds=list(range(settings.seeds)),
        **{name: getattr(settings, name) for name in ("steps", "batch", "lr", "snapshots")},
        **({} if objective == "vae" else {"beta": 1.0}),
    )
    return [[decoder(run, m, step) for step in run.snapshots()] for m in range(len(run.members))]


def compare(path: list[Array], S: Array, U: Array, best: linear_vae.LinearVAE) -> dict[str, Any]:
    """One member: the largest angle to U over training, and what is left when the noise of training is averaged out."""
    W = averaged(path)
    R = ppca.rotation_of(W, S, S2)
    losses = {kind: linear_vae.best_encoder(W, S2, posterior=kind).loss(S) for kind in ("diagonal", "full")}
    lengths = np.sort(np.linalg.norm(W, axis=0)) / np.sort(np.linalg.norm(best.W, axis=0)) - 1
    return {
        "path": [angles(each, U).max() for each in path],
        "angle": angles(W, U).max(),
        "distance": distances(R[None])[0],  # |R - P|_F, P the nearest signed permutation
        "length": np.abs(lengths).max(),
        "behind": {kind: loss - best.loss(S) for kind, loss in losses.items()},  # nats, the best encoder for this W
    }


def column(numbers: Numbers, kind: str, name: str) -> Array:
    return np.array([member[name] for member in numbers[kind]["members"]])


def judge(numbers: Numbers) -> list[Row]:
    angle, full, equal = (column(numbers, kind, "angle") for kind in KINDS)
    distance, arbitrary = column(numbers, "diagonal", "distance"), column(numbers, "full", "distance")
    mean, spread = numbers["full"]["haar"]
    chance = f"random rotations {mean:.2f} +- {spread:.2f}"
    closed, length = numbers["diagonal"]["closed"], column(numbers, "diagonal", "length").max()
    return [
        Row(
            "closed form: largest angle to a principal axis", "0 degrees", f"{closed:.1g} degrees", holds(closed < 1e-3)
        ),
        Row(
            "trained, diagonal posterior: angle of a column to its left singular vector of the true W",
            "0 (here: below 1 degree)",
            f"worst column {np.median(angle):.2f} degrees (median of {len(angle)} seeds; largest {angle.max():.2f})",
            holds(bool(np.median(angle) < DEGREES)),
            f"the sample's own principal axes are off by up to {numbers['diagonal']['sampling']:.2f} degrees",
        ),
        Row(
            "diagonal posterior: R",
            "a signed permutation",
            f"|R - P| = {plus_minus(distance)}; {chance}",
            holds(bool(distance.max() < mean / 10)),
        ),
        Row(
            "diagonal posterior: lengths of the columns",
            "(l_i - s2)^1/2",
            f"within {100 * length:.1f} %",
            holds(bool(length < 0.05)),
        ),
        Row(
            "full posterior: R",
            "arbitrary",
            f"|R - P| = {plus_minus(arbitrary, '.2f')}; {chance}",
            holds(bool(arbitrary.min() > distance.max() and abs(arbitrary.mean() - mean) < 2 * spread)),
            f"columns off by {full.min():.0f} to {full.max():.0f} degrees",
        ),
        Row(
            "two equal singular values, diagonal posterior",
            "not identified",
            f"worst column {np.median(equal):.1f} degrees (median; smallest {equal.min():.1f})",
            holds(bool(np.median(equal) > 5 * DEGREES)),
        ),
    ]


def draw(numbers: Numbers) -> Figure:
    """Left: the angle over training. Right: |R - P| of every restart, with what chance gives."""
    fig = figure()
    left, right = fig.subplots(1, 2, width_ratios=(3, 2))
    for kind, colour in (("full", ORANGE), ("diagonal", BLUE)):
        steps = np.array(numbers[kind]["steps"])
        for member in numbers[kind]["members"]:
            left.plot(steps, member["path"], color=colour, lw=0.9, alpha=0.7)
            left.plot(1.03 * steps[-1], member["angle"], "o", color=colour, ms=4, mew=0)
    left.axhline(DEGREES, color=INK, lw=0.8, ls="--")
    left.text(0, DEGREES * 1.08, "1 degree", color=INK, fontsize=8)
    left.text(steps[len(steps) // 3], 75, "full posterior", color=ORANGE, va="bottom")
    left.text(0, 3.5, "diagonal posterior", color=BLUE, va="bottom")
    left.set(yscale="log", xlabel="training step (dot: weights averaged over the last half)")
    left.set(ylabel="worst column, degrees from true axis", ylim=(0.1, 130))
    for place, (kind, colour) in enumerate((("diagonal", BLUE), ("full", ORANGE))):
        values = np.sort(column(numbers, kind, "distance"))
        right.plot(place + np.linspace(-0.15, 0.15, len(values)), values, "o", color=colour, ms=5, mew=0)
    mean, spread = numbers["full"]["haar"]
    right.axhspan(mean - spread, mean + spread, color=GREY, alpha=0.2, lw=0)
    right.text(-0.4, mean, "random\nrotations", color=INK, fontsize=8, va="center")
    right.set(xticks=(0, 1), xticklabels=("diagonal posterior", "full posterior"), xlim=(-0.5, 1.5), ylim=(-0.03, None))
    right.set_ylabel("|R - nearest signed permutation|")
    right.grid(axis="x", visible=False)
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    last = np.array([member["path"][-1] for member in numbers["diagonal"]["members"]])
    own, other = (np.mean([m["behind"][kind] for m in numbers["full"]["members"]]) for kind in ("full", "diagonal"))
    angle = column(numbers, "diagonal", "angle")
    return (
        f"In closed form the columns are the principal axes. Trained with a diagonal posterior, the last weights point "
        f"{np.median(last):.1f} degrees away from the true axes (worst column, median), and {np.median(angle):.2f} "
        "degrees once the noise of stochastic training is averaged out over the last half of the steps. "
        f"The decoders trained with a full posterior lose {own:.4f} nats against the optimum, so to that objective "
        f"they are {'as good as' if own < 0.01 else 'short of'} the principal axes; a diagonal posterior would lose "
        f"{other:.2f} nats with them. Nothing else in the two losses tells one rotation of the latents from another."
    )


A1 = Exhibit(
    id="A1",
    title="A linear VAE identifies the components of PPCA data",
    claim="On data from the linear PPCA model the columns of a linear VAE's decoder are the left singular vectors of "
    "the true W, up to sign and order; with a full posterior they are any rotation of them.",
    source="Allen 2024, Corollary 1.1 and eq. 4; Lucas et al. 2019",
    choices=(
        f"The data: 6 dimensions, 3 components with singular values {DISTINCT}, noise variance {S2} (known to the "
        f"model), random U and V; the control has singular values {EQUAL}.",
        "How close is identified: a median over seeds below 1 degree for the worst column. Weights are averaged over "
        "the second half of training, because at a constant learning rate the last weights are the optimum plus noise.",
        "R is the least-squares R in W = U (L - s2 I)^1/2 R, with U and L of the sample's covariance.",
    ),
    scales={
        "tiny": Settings(size=500, seeds=2, steps=40, snapshots=4),
        "quick": Settings(size=100_000, seeds=8, steps=8_000, snapshots=80),
        "paper": Settings(size=1_000_000, seeds=20, steps=60_000, snapshots=120, lr=3e-3),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
