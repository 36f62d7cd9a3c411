"""A9: Allen 2024, Theorems 4 and 5: does training a VAE make the Hessian of log p(x|z) diagonal?

    cost = beta/2 [ sum_i log(1 + M_ii/beta) - log det(I + M/beta) ]        0 iff M is diagonal (Hadamard)

The cost, the cosines |M_ij| / sqrt(M_ii M_jj) of the decoder's columns and the eigenvectors of H against the latent
axes, from the first snapshot to the last; controls: the same with a full posterior, and without any.
"""

from typing import Any

import numpy as np
import torch

from unseam.geometry import entanglement_cost, haar, hessian, hessian_axes, ima_contrast, metrics
from unseam.geometry.orthogonality import distances, select
from unseam.run import Run
from unseam_papers.allen import setups
from unseam_papers.allen.setups import MIDDLE, MODEL_SETUPS, Settings, look_at_setup, members_at_beta, train_setup
from unseam_papers.frame.draw import BLUE, DARK, GREY, ORANGE, Figure, key, panels
from unseam_papers.frame.exhibit import Numbers, Work, pick
from unseam_papers.frame.rows import VerdictRow, VerdictRows, plus_minus
from unseam_papers.frame.verdicts import as_kind, beyond, limit, ordering, paired

ID, TITLE = "A9", "Does a diagonal posterior make the Hessian diagonal?"
CLAIM = (
    "The deterministic ELBO is largest when the eigenvectors of the likelihood's Hessian are the latent axes, so "
    "training a VAE with a diagonal posterior should drive the Hessian to be diagonal."
)
SOURCE = "Allen 2024, Theorems 4 and 5, section 2; Kumar & Poole 2020"
PAPER = setups.LARGER
_NEAR = 0.1  # mean |cosine| of two columns below which H counts as diagonal: 84 degrees
MODEL_KINDS = {
    "beta-vae": ("diagonal posterior", BLUE),
    "beta-vae-sigma": ("full posterior", ORANGE),
    "ae": ("autoencoder", GREY),
}
CHOICES = (
    *setups.SETUP_CHOICES,
    "H is exact (eq. 6 with both terms), at the means of held-out points, on the active latents. The distance is that "
    "of the eigenvectors from the nearest signed permutation, over what a random rotation gives.",
    f"H is diagonal: the mean |cosine| of two columns of A D is below {_NEAR}. Driven there: cost and cosine are lower "
    "at the last snapshot than at the first, which is after a tenth of the steps. Until a review the measure was the "
    "distance of H's eigenvectors from the latent axes (limit: 0.1 of a random rotation's), and all four rows "
    "differed. That distance is small where one singular value is far above the others, whatever the columns do, so "
    "early decoders looked aligned. The new measure was fixed before the longer trainings on fresh seeds (large).",
    "The cost of an autoencoder is taken in the limit beta -> 0 (the IMA contrast), because nothing fixes the scale of "
    "its codes; for the same reason it is only shown.",
)
_DRIVE = "should drive the Hessian to also be diagonal"
_MEASURES = {
    "cost": "entanglement cost / beta",
    "cosine": "mean |cosine| of two columns of A D",
    "axes": "distance of H's eigenvectors from the latent axes",
}
UNIT = "1 is a random rotation's"


SCALES = {
    "tiny": Settings(setups.TINY_COHORT, points=20),
    "quick": Settings(setups.QUICK, points=100),
    "large": Settings(setups.LARGE, points=100),
    "paper": Settings(setups.PAPER, points=500),
}


def compute(settings: Settings, work: Work) -> Numbers:
    names = [f"{name}/{kind}" for name in MODEL_SETUPS for kind in MODEL_KINDS]
    return work.each(names, lambda name: _measure(name, settings, work))


def _measure(pair: str, settings: Settings, work: Work) -> dict[str, Any]:
    name, kind = pair.split("/")
    run = train_setup(work, name, settings.cohort, kind)
    steps, chosen = run.snapshots(), members_at_beta(run, MIDDLE[name])
    return {"steps": steps, "members": [[_moment(run, m, step, settings.points) for step in steps] for m in chosen]}


@torch.no_grad()
def _moment(run: Run, member: int, step: int, points: int) -> dict[str, float]:
    """One member at one step: the cost in units of beta, and how far the axes of H are from the latent axes."""
    model, seen = look_at_setup(run, member, points, step)
    e, beta = seen.posterior.mean, run.beta(member)
    M = metrics(model.decode, e, model.likelihood).pullback
    cost = ima_contrast(M) if beta is None else entanglement_cost(M, beta) / beta  # a point: the limit beta -> 0
    active = setups.active(e, seen.posterior.variance())  # a point has variance 0: all are active
    used = active if active.sum() > 1 else np.ones_like(active)  # one axis alone has no direction to miss
    H = select(hessian(model.decode, e, seen.x, model.likelihood), used)
    away = distances(hessian_axes(H)[1].numpy()).mean() / haar(int(used.sum()))[0]
    cosine = _cosine(select(M, used))
    return {"cost": float(cost.mean()), "axes": float(away), "cosine": cosine, "active": int(active.sum())}


def _cosine(M: torch.Tensor) -> float:  # (N, K, K)
    """Mean |cosine| of two columns of A D; 0 where there is only one.

    >>> _cosine(torch.tensor([[[4.0, 1.0], [1.0, 1.0]]]))
    0.5
    """
    length = M.diagonal(dim1=1, dim2=2).sqrt()
    cosine = (M / length[:, :, None] / length[:, None, :]).abs()
    i, j = torch.triu_indices(M.shape[1], M.shape[1], 1)
    return float(cosine[:, i, j].mean()) if len(i) else 0.0


def _restarts(numbers: Numbers, name: str, kind: str, key: str, snapshot: int = -1) -> np.ndarray:
    """One value a restart, at the last snapshot or another."""
    return np.array([member[snapshot][key] for member in numbers[f"{name}/{kind}"]["members"]])


def judge(numbers: Numbers) -> list[VerdictRow]:
    return [row for name in MODEL_SETUPS for row in _of_one(name, numbers)]


def _of_one(name: str, numbers: Numbers) -> list[VerdictRow]:
    axes, cost = ({kind: _restarts(numbers, name, kind, key) for kind in MODEL_KINDS} for key in ("axes", "cost"))
    early, end = ({key: _restarts(numbers, name, "beta-vae", key, at) for key in _MEASURES} for at in (0, -1))
    active = ", ".join(str(k) for k in sorted({int(k) for k in _restarts(numbers, name, "beta-vae", "active")}))
    driven = [
        paired(f"{name} driven {key}", f"{name}, diagonal posterior: {text}, first snapshot above the last", _DRIVE,
               early[key], end[key], ".3f", note="" if key != "axes" else UNIT)
        for key, text in _MEASURES.items()
    ]  # fmt: skip
    what = f"{name}, diagonal posterior: {_MEASURES['cosine']} at the end"
    diagonal = limit(f"{name} I", what, "V_H = I", end["cosine"], below=_NEAR, note=f"{active} latents active")
    vae = axes["beta-vae"]
    what = f"{name}: entanglement cost / beta at the end, full posterior above diagonal"
    more = ordering(f"{name} cost", what, "above", cost["beta-vae-sigma"], cost["beta-vae"], ".3f")
    farther = {
        kind: f"{name}, {label}: distance of H's eigenvectors above that of a diagonal one"
        for kind, (label, _) in MODEL_KINDS.items()
    }
    others = [ordering(f"{name} {kind}", farther[kind], "above", axes[kind], vae) for kind in ("beta-vae-sigma", "ae")]
    free, scale = f"{name}: the same of the autoencoder", "in the limit beta -> 0: nothing fixes the scale of its codes"
    return [
        *driven[:2],
        diagonal,
        as_kind(driven[2], "own control"),
        *(as_kind(row, "own control") for row in (*others, more)),
        beyond(f"{name} ae cost", free, plus_minus(cost["ae"]), note=scale),
    ]


def draw(numbers: Numbers) -> Figure:
    """Cost and axes over training, one line a restart."""
    fig, axes = panels(10, columns=4)
    shown = [(name, what) for name in MODEL_SETUPS for what in ("axes", "cost")]
    for ax, (name, what) in zip(axes, shown, strict=True):
        for kind, (label, colour) in MODEL_KINDS.items():
            found = numbers[f"{name}/{kind}"]
            for member in found["members"]:
                ax.plot(np.array(found["steps"]) / 1000, pick(member, what), color=colour, lw=1.2)
            key(ax, colour, label)
        if what == "axes":
            ax.axhline(1, color=DARK, lw=0.8, ls="--", label="random rotation")
            ax.set(ylabel="axes of H: distance from latent axes" if ax is axes[0] else "", ylim=(0, None))
        else:
            ax.set(ylabel="entanglement cost / beta, nats", yscale="log")
        ax.set(title=name, xlabel="thousand steps")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    text = []
    for name in MODEL_SETUPS:
        cost = {kind: _restarts(numbers, name, kind, "cost").mean() for kind in MODEL_KINDS}
        moves = [[_restarts(numbers, name, "beta-vae", key, at).mean() for at in (0, -1)] for key in _MEASURES]
        (c0, c1), (a0, a1), (e0, e1) = moves
        text.append(
            f"{name}: over training the cost goes from {c0:.3f} to {c1:.3f} beta and the mean |cosine| of two columns "
            f"from {a0:.2f} to {a1:.2f} (a full posterior ends at a cost of {cost['beta-vae-sigma']:.3f}, an "
            f"autoencoder at {cost['ae']:.3f}); H's eigenvectors go from {e0:.2f} to {e1:.2f} of a random rotation's "
            "distance."
        )
    return " ".join(text) + (
        " Eigenvectors mislead while one singular value is far above the others: they then lie near the latent axes "
        "whatever the columns do. The pressure that the theorems speak of is what lies between a diagonal and a full "
        "posterior, which differ in nothing else."
    )
