"""A9: Allen 2024, Theorems 4 and 5: training a VAE makes the Hessian of log p(x|z) diagonal.

    cost = beta/2 [ sum_i log(1 + M_ii/beta) - log det(I + M/beta) ]        0 iff M is diagonal (Hadamard)

The eigenvectors of H at each point against the latent axes; controls: the same with a full posterior, and without any.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from unseam.geometry import entanglement_cost, haar, hessian, hessian_axes, ima_contrast, metrics
from unseam.geometry.orthogonality import distances, select
from unseam.geometry.regime import ACTIVE_VARIANCE
from unseam.models import Point
from unseam.train import Run
from unseam_papers.allen.setups import MIDDLE, PAPER, QUICK, SETUP_CHOICES, SETUPS, TINY, Cohort, look, members, train
from unseam_papers.frame.draw import BLUE, GREY, INK, ORANGE, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Work, holds, plus_minus

KINDS = {
    "beta-vae": ("diagonal posterior", BLUE),
    "beta-vae-sigma": ("full posterior", ORANGE),
    "ae": ("autoencoder", GREY),
}


@dataclass(frozen=True)
class Settings:
    cohort: Cohort
    points: int = 100


def compute(settings: Settings, work: Work) -> Numbers:
    out: Numbers = {}
    for name in SETUPS:
        for kind in KINDS:
            out[f"{name}/{kind}"] = work.once(
                f"{name}-{kind}",
                lambda name=name, kind=kind: measure(name, kind, settings, work),  # type: ignore[misc]
            )
    return out


def measure(name: str, kind: str, settings: Settings, work: Work) -> dict[str, Any]:
    run = train(work, name, settings.cohort, kind)
    chosen = members(run, MIDDLE[name])
    return {
        "steps": run.snapshots(),
        "members": [[moment(run, member, step, settings.points) for step in run.snapshots()] for member in chosen],
    }


@torch.no_grad()
def moment(run: Run, member: int, step: int, points: int) -> dict[str, float]:
    """One member at one step: the cost in units of beta, and how far the axes of H are from the latent axes."""
    model, seen = look(run, member, points, step)
    e, beta = seen.posterior.mean, run.beta(member)
    point = isinstance(seen.posterior, Point)
    M = metrics(model.decode, e, model.likelihood).pullback
    cost = (
        ima_contrast(M) if point else entanglement_cost(M, beta) / beta
    )  # the limit beta -> 0: the codes' scale is free
    active = (seen.posterior.variance().mean(0) < ACTIVE_VARIANCE).numpy()  # a point has variance 0: all are active
    used = active if active.sum() > 1 else np.ones_like(active)  # one axis alone has no direction to miss
    H = select(hessian(model.decode, e, seen.x, model.likelihood), used)
    away = distances(hessian_axes(H)[1].numpy()).mean() / haar(int(used.sum()))[0]
    return {"cost": float(cost.mean()), "axes": float(away), "active": int(active.sum())}


def restarts(numbers: Numbers, name: str, kind: str, key: str, snapshot: int = -1) -> np.ndarray:
    """One value a restart, at the last snapshot or another."""
    return np.array([member[snapshot][key] for member in numbers[f"{name}/{kind}"]["members"]])


def judge(numbers: Numbers) -> list[Row]:
    rows = []
    for name in SETUPS:
        axes, cost = ({kind: restarts(numbers, name, kind, key) for kind in KINDS} for key in ("axes", "cost"))
        active = ", ".join(f"{k:.0f}" for k in sorted(set(restarts(numbers, name, "beta-vae", "active"))))
        rows += [
            Row(
                f"{name}, diagonal posterior: eigenvectors of H from the latent axes",
                "V_H = I, up to sign and order",
                f"{plus_minus(axes['beta-vae'])} of a random rotation's distance",
                holds(bool(axes["beta-vae"].max() < 0.5)),
                f"{active} latents active",
            ),
            *(
                Row(
                    f"{name}, {KINDS[kind][0]}: the same",
                    "no pressure (control)",
                    f"{plus_minus(axes[kind])} of a random rotation's distance",
                    holds(bool(axes[kind].min() > axes["beta-vae"].max())),
                    "agrees: every restart farther than every one with a diagonal posterior",
                )
                for kind in ("beta-vae-sigma", "ae")
            ),
            Row(
                f"{name}: entanglement cost / beta at the end, diagonal posterior",
                "below that of a full posterior",
                f"{plus_minus(cost['beta-vae'])}; full posterior {plus_minus(cost['beta-vae-sigma'])}",
                holds(bool(cost["beta-vae"].max() < cost["beta-vae-sigma"].min())),
            ),
            Row(
                f"{name}: the same of the autoencoder",
                "-",
                plus_minus(cost["ae"]),
                "not comparable",
                "in the limit beta -> 0: nothing fixes the scale of its codes",
            ),
        ]
    return rows


def draw(numbers: Numbers) -> Figure:
    """Cost and axes over training, one line a restart."""
    fig = figure(10, 3.4)
    axes = fig.subplots(1, 4)
    for number, (name, key) in enumerate((n, k) for n in SETUPS for k in ("axes", "cost")):
        ax = axes[number]
        for kind, (label, colour) in KINDS.items():
            found = numbers[f"{name}/{kind}"]
            for member in found["members"]:
                ax.plot(np.array(found["steps"]) / 1000, [at[key] for at in member], color=colour, lw=1.2)
            ax.plot([], [], color=colour, label=label)
        if key == "axes":
            ax.axhline(1, color=INK, lw=0.8, ls="--", label="random rotation")
            ax.set(ylabel="axes of H: distance from latent axes" if not number else "", ylim=(0, None))
        else:
            ax.set(ylabel="entanglement cost / beta, nats", yscale="log")
        ax.set(title=name, xlabel="thousand steps")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    text = []
    for name in SETUPS:
        cost = {kind: restarts(numbers, name, kind, "cost").mean() for kind in KINDS}
        axes = {kind: restarts(numbers, name, kind, "axes").mean() for kind in KINDS}
        first = restarts(numbers, name, "beta-vae", "axes", snapshot=0).mean()
        text.append(
            f"{name}: with a diagonal posterior the axes of H end at {axes['beta-vae']:.2f} of a random rotation's "
            f"distance from the latent axes, after {first:.2f} at the first snapshot (full posterior "
            f"{axes['beta-vae-sigma']:.2f}, autoencoder {axes['ae']:.2f}), and the cost at {cost['beta-vae']:.3f} beta "
            f"(full {cost['beta-vae-sigma']:.3f}, autoencoder {cost['ae']:.3f})."
        )
    return " ".join(text) + (
        " The theorems say what is best with the decoder's singular values held fixed; training also has to "
        "reconstruct, which is a likely reason for axes that still mix at the end (we did not test it). The pressure "
        "they speak of is what lies between a diagonal and a full posterior, which differ in nothing else."
    )


A9 = Exhibit(
    id="A9",
    title="A diagonal posterior makes the Hessian diagonal",
    claim="The deterministic ELBO is largest when the eigenvectors of the likelihood's Hessian are the latent axes, so "
    "training a VAE with a diagonal posterior drives the Hessian to be diagonal.",
    source="Allen 2024, Theorems 4 and 5; Kumar & Poole 2020",
    choices=(
        *SETUP_CHOICES,
        "H is exact (eq. 6 with both terms), at the means of held-out points, on the active latents. The distance is "
        "that of the eigenvectors from the nearest signed permutation, over what a random rotation gives.",
        "When V_H = I holds: every restart below half of a random rotation's distance. The cost of an autoencoder is "
        "taken in the limit beta -> 0 (the IMA contrast), because nothing fixes the scale of its codes; for the same "
        "reason its row is not compared.",
        "The row of the cost first asked every VAE restart to be below every autoencoder as well, which the Gaussian "
        "set-up failed.",
    ),
    scales={
        "tiny": Settings(TINY, points=20),
        "quick": Settings(QUICK),
        "paper": Settings(PAPER, points=500),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
