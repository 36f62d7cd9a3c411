"""A1: Allen 2024, Corollary 1.1: a linear VAE finds the independent components of PPCA data; a full posterior does not.

x = W z + noise,  W = U S V^T;   diagonal posterior: columns of W_VAE = U (L - s2 I)^{1/2} R, R a signed permutation
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.geometry import haar
from unseam.geometry.orthogonality import distances
from unseam.linear import linear_vae, ppca
from unseam.rng import numpy_generator
from unseam_papers.allen.setups import LARGER
from unseam_papers.frame.axes import angles, average_snapshots, decoder
from unseam_papers.frame.draw import BLUE, DARK, GREY, ORANGE, Figure, dots, panels
from unseam_papers.frame.exhibit import Numbers, Work, pick, training_arguments
from unseam_papers.frame.rows import VerdictRow, VerdictRows, plus_minus
from unseam_papers.frame.verdicts import as_kind, identity, limit, ordering

ID, TITLE = "A1", "A linear VAE identifies the components of PPCA data"
CLAIM = (
    "On data from the linear PPCA model the columns of a linear VAE's decoder are the left singular vectors of the "
    "true W, up to sign and order; with a full posterior they are any rotation of them."
)
SOURCE = "Allen 2024, Corollary 1.1 and eq. 4; Lucas et al. 2019"
PAPER = LARGER
_S2, DISTINCT, _EQUAL, DIMS = 0.25, (2.0, 1.4, 1.0), (1.4, 1.4, 1.0), 6
_DEGREES, _LENGTH, ROTATION = 1.0, 0.05, 0.1  # how close is identified: ours
RULES = {  # what a row compares, and what the paper says of it
    "angle": ("trained, diagonal posterior: worst column to its left singular vector of the true W",
              "columns are scalar multiples of left singular vectors"),
    "R": ("diagonal posterior: |R - nearest signed permutation|", "R = I up to axis permutation and sign"),
    "length": ("diagonal posterior: largest relative error of a column's length", "W = U (S - s2 I)^1/2"),
    "full": ("|R - nearest signed permutation|, full posterior above diagonal",
             "R ambiguous; the diagonal Sigma breaks the symmetry"),
    "equal": ("worst column, degrees, two equal singular values above distinct ones", "identified if distinct"),
}  # fmt: skip
_KINDS = {"diagonal": ("vae", DISTINCT), "full": ("beta-vae-sigma", DISTINCT), "equal": ("vae", _EQUAL)}
CHOICES = (
    f"The data: 6 dimensions, 3 components with singular values {DISTINCT}, noise variance {_S2} (known to the model), "
    f"random U and V; the control has singular values {_EQUAL}.",
    "How close is identified: the worst column within 1 degree, lengths within 5 %, |R - P| below 0.1 (a random "
    "rotation: 0.97), each in the median over seeds. Weights are averaged over the second half of training: at a "
    "constant learning rate the last weights are the optimum plus noise.",
    "R is the least-squares R in W = U (L - s2 I)^1/2 R, with U and L of the sample's covariance.",
)


@dataclass(frozen=True)
class Settings:
    """PPCA data of this size; restarts of each kind."""

    size: int
    seeds: int
    steps: int
    snapshots: int
    batch: int = 128
    lr: float = 1e-2
    first: int = 0  # seed


SCALES = {
    "tiny": Settings(size=500, seeds=2, steps=40, snapshots=4),
    "quick": Settings(size=100_000, seeds=8, steps=8_000, snapshots=80),
    "large": Settings(size=1_000_000, seeds=20, steps=40_000, snapshots=80, lr=3e-3, first=100),
    "paper": Settings(size=1_000_000, seeds=20, steps=60_000, snapshots=120, lr=3e-3),
}


def _truth(singular: Sequence[float]) -> tuple[Array, Array]:  # (n, d), (n, d)
    """W = U S V^T with random U and V, and its left singular vectors U."""
    draw = numpy_generator(0, "A1")
    U = np.linalg.qr(draw.standard_normal((DIMS, len(singular))))[0]
    V = np.linalg.qr(draw.standard_normal((len(singular), len(singular))))[0]
    return U * singular @ V.T, U


def _sample(singular: Sequence[float], size: int) -> Array:  # (N, n)
    W, _ = _truth(singular)
    x, _ = ppca.PPCA(W, _S2, np.zeros(DIMS)).sample(size, numpy_generator(1, "A1"))
    return x.astype(np.float32)


def compute(settings: Settings, work: Work) -> Numbers:
    """Train each kind; then its matrices against the truth and against what is best on this sample."""
    return work.each(_KINDS, lambda kind: _measure(kind, settings, work))


def _measure(kind: str, settings: Settings, work: Work) -> dict[str, Any]:
    objective, singular = _KINDS[kind]
    x, (_, U) = _sample(singular, settings.size), _truth(singular)
    S = np.cov(x.T.astype(float), bias=True)
    best = linear_vae.optimum(S, len(singular), _S2)
    return {
        "steps": [round(settings.steps * (i + 1) / settings.snapshots) for i in range(settings.snapshots)],
        "members": [_compare(W, S, U, best) for W in _trained(objective, x, settings, work)],
        "closed": angles(best.W, ppca.principal_axes(S)[1][:, : len(singular)]).max(),
        "sampling": angles(best.W, U).max(),
        "haar": haar(len(singular)),
    }


def _trained(objective: str, x: Array, settings: Settings, work: Work) -> list[list[Array]]:
    """The decoder's matrix of each member at each snapshot."""
    seeds = list(range(settings.first, settings.first + settings.seeds))
    network = {"network": "linear", "latents": len(DISTINCT), "s2": _S2, "seeds": seeds}
    own, beta = (
        training_arguments(settings, "steps", "batch", "lr", "snapshots"),
        {} if objective == "vae" else {"beta": 1.0},
    )
    run = work.train(x, objective, **network, **own, **beta)
    return [[decoder(run, m, step) for step in run.snapshots()] for m in range(len(run.members))]


def _compare(path: list[Array], S: Array, U: Array, best: linear_vae.LinearVAE) -> dict[str, Any]:
    """One member: the largest angle to U over training, and what is left when the noise of training is averaged out."""
    W = average_snapshots(path)
    losses = {kind: linear_vae.best_encoder(W, _S2, posterior=kind).loss(S) for kind in ("diagonal", "full")}
    lengths = np.sort(np.linalg.norm(W, axis=0)) / np.sort(np.linalg.norm(best.W, axis=0)) - 1
    return {
        "path": [angles(each, U).max() for each in path],
        "angle": angles(W, U).max(),
        "distance": distances(ppca.rotation_of(W, S, _S2)[None])[0],  # |R - P|_F, P the nearest signed permutation
        "length": np.abs(lengths).max(),
        "behind": {kind: loss - best.loss(S) for kind, loss in losses.items()},  # nats, the best encoder for this W
    }


def judge(numbers: Numbers) -> list[VerdictRow]:
    angle, full, equal = (pick(numbers[kind]["members"], "angle") for kind in _KINDS)
    distance, arbitrary = (pick(numbers[kind]["members"], "distance") for kind in ("diagonal", "full"))
    length, closed = pick(numbers["diagonal"]["members"], "length"), numbers["diagonal"]["closed"]
    off = f"the sample's own principal axes are off by up to {numbers['diagonal']['sampling']:.2f} degrees"
    mean, spread = numbers["full"]["haar"]
    turned = f"columns off by {full.min():.0f} to {full.max():.0f} degrees; random rotations {mean:.2f} +- {spread:.2f}"
    what, same = "closed form: largest angle to a principal axis", "both sides come from one eigendecomposition"
    return [
        identity("closed", what, f"{closed:.1g} degrees", closed < 1e-3, f"below 0.001 degrees; {same}"),
        limit("angle", *RULES["angle"], angle, below=_DEGREES, unit=" degrees", note=off),
        limit("R", *RULES["R"], distance, below=ROTATION, form=".3f"),
        limit("length", *RULES["length"], length, below=_LENGTH, form=".3f"),
        ordering("full", *RULES["full"], arbitrary, distance, note=turned),
        as_kind(ordering("equal", *RULES["equal"], equal, angle), "own control"),
    ]


def draw(numbers: Numbers) -> Figure:
    """Left: the angle over training. Right: |R - P| of every restart, with what chance gives."""
    fig, (left, right) = panels(columns=2, width_ratios=(3, 2))
    for place, (kind, colour) in enumerate((("diagonal", BLUE), ("full", ORANGE))):
        steps = np.array(numbers[kind]["steps"])
        for member in numbers[kind]["members"]:
            left.plot(steps, member["path"], color=colour, lw=0.9, alpha=0.7)
            left.plot(1.03 * steps[-1], member["angle"], "o", color=colour, ms=4, mew=0)
        dots(right, place, np.sort(pick(numbers[kind]["members"], "distance")), colour)
    left.axhline(_DEGREES, color=DARK, lw=0.8, ls="--")
    left.text(0, _DEGREES * 1.08, "1 degree", color=DARK, fontsize=8)
    left.text(steps[len(steps) // 3], 75, "full posterior", color=ORANGE, va="bottom")
    left.text(0, 3.5, "diagonal posterior", color=BLUE, va="bottom")
    left.set(yscale="log", xlabel="training step (dot: weights averaged over the last half)", ylim=(0.1, 130))
    left.set_ylabel("worst column, degrees from true axis")
    mean, spread = numbers["full"]["haar"]
    right.axhspan(mean - spread, mean + spread, color=GREY, alpha=0.2, lw=0)
    right.text(-0.4, mean, "random\nrotations", color=DARK, fontsize=8, va="center")
    right.set(xticks=(0, 1), xticklabels=("diagonal posterior", "full posterior"), xlim=(-0.5, 1.5), ylim=(-0.03, None))
    right.set_ylabel("|R - nearest signed permutation|")
    right.grid(axis="x", visible=False)
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    last = np.array([member["path"][-1] for member in numbers["diagonal"]["members"]])
    own, other = (np.mean([m["behind"][kind] for m in numbers["full"]["members"]]) for kind in ("full", "diagonal"))
    angle = pick(numbers["diagonal"]["members"], "angle")
    return (
        f"Trained with a diagonal posterior, the last weights point {np.median(last):.1f} degrees away from the true "
        f"axes (worst column, median), and {np.median(angle):.2f} (mean and deviation {plus_minus(angle, '.2f')}) once "
        "the noise of stochastic training is averaged out over the last half of the steps. The decoders trained with a "
        f"full posterior lose {own:.4f} nats against the optimum, so to that objective they are "
        f"{'as good as' if own < 0.01 else 'short of'} the principal axes; a diagonal posterior would lose "
        f"{other:.2f} nats with them. Nothing else in the two losses tells one rotation of the latents from another."
    )
