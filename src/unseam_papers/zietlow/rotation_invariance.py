"""Z3: Zietlow 2022, Propositions 2 and 3: a rotation of the latents changes nothing, until the posterior is diagonal.

    Enc_U(x) = U Enc(x),  Dec_U(z) = Dec(U^T z);   log p(x) and the ELBO with posterior N(U e, U Sigma U^T) do not see U

A diagonal posterior cannot turn: for each U it takes the best diagonal Sigma, which solves 1/Sigma_ii = 1 - E_q[H_ii].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from unseam.geometry import entanglement_cost, metrics
from unseam.models.likelihood import Gaussian
from unseam.train import Run
from unseam_papers.allen.setups import (
    MIDDLE,
    PAPER,
    QUICK,
    SETUP_CHOICES,
    TINY,
    Cohort,
    covariance,
    look,
    members,
    train,
)
from unseam_papers.frame.draw import BLUE, GREEN, INK, ORANGE, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Work, holds
from unseam_papers.zietlow.turned import Turned, rotation

KINDS = {"beta-vae": "trained with a diagonal posterior", "beta-vae-sigma": "trained with a full posterior"}
SAME = 1e-6  # nats


@dataclass(frozen=True)
class Settings:
    cohort: Cohort
    points: int = 32
    degrees: int = 5  # between angles
    nodes: int = 16  # of Gauss-Hermite, in each direction
    mesh: float = 0.04  # of the trapezoids

    def angles(self) -> list[int]:
        return list(range(-45, 46, self.degrees))


def compute(settings: Settings, work: Work) -> Numbers:
    out: Numbers = {"angles": settings.angles()}
    for kind in KINDS:
        out[kind] = work.once(kind, lambda kind=kind: measure(kind, settings, work))  # type: ignore[misc]
    return out


def measure(kind: str, settings: Settings, work: Work) -> list[dict[str, Any]]:
    run = train(work, "Gaussian", settings.cohort, kind)
    return [curves(run, member, settings) for member in members(run, MIDDLE["Gaussian"])]


def curves(run: Run, member: int, settings: Settings) -> dict[str, Any]:
    """log p(x) and both ELBOs for every angle: means over held-out points, in nats of the VAE with variance beta s2."""
    model, seen = look(run, member, settings.points)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    likelihood = Gaussian(run.beta(member) * run.config.architecture.s2)
    turned = Turned(model.decode, likelihood, seen.x, settings.nodes, settings.mesh)
    e, Sigma = seen.posterior.mean, covariance(seen.posterior)  # type: ignore[arg-type]
    M = metrics(model.decode, e, likelihood).pullback
    out: dict[str, list[float]] = {"likelihood": [], "full": [], "diagonal": [], "cost": []}
    for angle in settings.angles():
        U = rotation(angle)
        out["likelihood"].append(turned.evidence(U))
        out["full"].append(turned.elbo(U, e @ U.T, U @ Sigma @ U.T))
        out["diagonal"].append(
            turned.best_diagonal(U, e @ U.T, (1 + (U @ M @ U.T).diagonal(dim1=1, dim2=2)).reciprocal())
        )
        out["cost"].append(float(entanglement_cost(U @ M @ U.T).mean()))
    return out


def change(numbers: Numbers, kind: str, what: str) -> np.ndarray:
    """Largest minus smallest over the angles, for each member."""
    return np.array([np.ptp(member[what]) for member in numbers[kind]])


def best_angle(numbers: Numbers, kind: str) -> np.ndarray:
    return np.abs([numbers["angles"][int(np.argmax(member["diagonal"]))] for member in numbers[kind]])


def judge(numbers: Numbers) -> list[Row]:
    rows = []
    for kind, label in KINDS.items():
        flat, full, diagonal = (change(numbers, kind, what) for what in ("likelihood", "full", "diagonal"))
        rows += [
            Row(
                f"{label}: log p(x) over rotations",
                "does not depend on U",
                f"changes by {flat.max():.1g} nats",
                holds(bool(flat.max() < SAME)),
            ),
            Row(
                f"{label}: ELBO, posterior turned (full)",
                "does not depend on U",
                f"changes by {full.max():.1g} nats",
                holds(bool(full.max() < SAME)),
            ),
            Row(
                f"{label}: ELBO, best diagonal posterior",
                "depends on U",
                f"changes by {diagonal.min():.2g} to {diagonal.max():.2g} nats",
                holds(bool(diagonal.min() > 1000 * SAME)),
            ),
        ]
    own, other = (best_angle(numbers, kind) for kind in KINDS)
    rows.append(
        Row(
            "best rotation for a diagonal posterior, from where training left the model",
            "-",
            f"trained with a diagonal posterior {own.tolist()} degrees; with a full one {other.tolist()}",
            "not comparable",
        )
    )
    return rows


def draw(numbers: Numbers) -> Figure:
    """ELBOs over the angle, relative to the full posterior's at 0; dotted: what the entanglement cost predicts."""
    fig = figure()
    axes = fig.subplots(1, 2, sharey=True)
    angles = numbers["angles"]
    for ax, (kind, label) in zip(axes, KINDS.items(), strict=True):
        for number, member in enumerate(numbers[kind]):
            start = member["full"][angles.index(0)]
            base = np.mean(np.add(member["diagonal"], member["cost"]))
            ax.plot(angles, np.subtract(member["diagonal"], start), "o-", color=BLUE, ms=3, lw=1)
            ax.plot(angles, np.subtract(base, member["cost"]) - start, ":", color=INK, lw=1)
            ax.plot(angles, np.subtract(member["full"], start), color=ORANGE, lw=2)
            if not number:
                ax.plot(
                    angles,
                    np.subtract(member["likelihood"], member["likelihood"][0]),
                    "--",
                    color=GREEN,
                    lw=1.2,
                    zorder=5,
                )
        ax.set(title=label, xlabel="rotation of the latents, degrees", xticks=range(-45, 46, 15))
    axes[0].set_ylabel("nats above the full posterior at 0")
    for colour, style, name in (
        (GREEN, "--", "log p(x), less its value at -45"),
        (ORANGE, "-", "ELBO, full posterior"),
        (BLUE, "-", "ELBO, best diagonal posterior"),
        (INK, ":", "predicted from the entanglement cost"),
    ):
        axes[1].plot([], [], style, color=colour, label=name)
    fig.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    flat = max(change(numbers, kind, what).max() for kind in KINDS for what in ("likelihood", "full"))
    diagonal = np.concatenate([change(numbers, kind, "diagonal") for kind in KINDS])
    own, other = (best_angle(numbers, kind) for kind in KINDS)
    fits = [np.corrcoef(m["diagonal"], np.negative(m["cost"]))[0, 1] for kind in KINDS for m in numbers[kind]]
    return (
        f"Turning encoder and decoder together moves the likelihood and the ELBO with a full posterior by at most "
        f"{flat:.1g} nats; on paper it is 0, and the sums that stand for the integrals have an error of their own. "
        f"With the best diagonal posterior for each angle it moves by {diagonal.min():.2g} to {diagonal.max():.2g}. "
        f"What the entanglement cost of the turned decoder predicts correlates with that over the angles at "
        f"{np.min(fits):.3f} or more. The best angle lies {np.mean(own):.0f} degrees (mean) from where training with a "
        f"diagonal posterior ended, and {np.mean(other):.0f} from where training with a full one did."
    )


Z3 = Exhibit(
    id="Z3",
    title="Only the diagonal posterior sees a rotation of the latents",
    claim="Log-likelihood and ELBO do not change when encoder and decoder are rotated together; a diagonal posterior "
    "breaks that symmetry.",
    source="Zietlow 2022, Propositions 2 and 3",
    choices=(
        *SETUP_CHOICES,
        "The model: the Gaussian one at beta = 1e-3, read as a VAE with variance beta s2 (Allen 2024, Theorem 3), so "
        "that values are nats of a true ELBO. Integrals are sums over a mesh of z and over Gauss-Hermite nodes.",
        "With a diagonal posterior the means turn with the model and the variances are chosen best for each angle and "
        "point; what counts as no change: below 1e-6 nats.",
    ),
    scales={
        "tiny": Settings(TINY, points=4, degrees=45, nodes=8, mesh=0.2),
        "quick": Settings(QUICK),
        "paper": Settings(PAPER, points=200, nodes=24, mesh=0.02),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
