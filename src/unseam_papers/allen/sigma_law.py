"""A3: Allen 2024, eq. 7: the posterior variances that a VAE learns follow from its decoder.

    1 / Sigma_ii = 1 + M_ii / beta,     M = D^T A^2 D at z = e(x)      (diagonal posterior)

The stationary point of the ELBO itself has the curvature averaged over the posterior (Price's theorem),
1 / Sigma_ii = 1 - E_q[H_ii] / beta. Eq. 7 takes H at the mean, and without the decoder's second derivative.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from unseam.geometry import hessian, law_fit, metrics, sigma_law
from unseam.geometry.regime import ACTIVE_VARIANCE
from unseam.models import Autoencoder
from unseam.rng import generator
from unseam.train import Run
from unseam.types import Array
from unseam_papers.allen.setups import MIDDLE, PAPER, QUICK, SETUP_CHOICES, SETUPS, TINY, Cohort, look, members, train
from unseam_papers.frame.draw import INK, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Work, holds

LEAST_R, MOST_ERROR = 0.95, 0.10  # when the law holds
LAWS = ("law", "no beta", "exact H", "averaged")
CURVATURE = 1e-3  # the averaged curvature of a latent that nothing depends on may come out just above 0
SHADES = ("#0b3c6f", "#1f6fb4", "#d9731a", "#b43a3a", "#2d8a4e")


@dataclass(frozen=True)
class Settings:
    cohort: Cohort
    points: int = 200
    draws: int = 16  # of z, for the averaged curvature


def compute(settings: Settings, work: Work) -> Numbers:
    found = {name: work.once(name, lambda name=name: measure(name, settings, work)) for name in SETUPS}  # type: ignore[misc]
    return found | {"det": work.once("det", lambda: trained_without_noise(settings, work))}


def measure(name: str, settings: Settings, work: Work) -> list[dict[str, Any]]:  # one entry a beta
    run = train(work, name, settings.cohort)
    out = []
    for beta in settings.cohort.betas(name):
        found = [laws(run, member, beta, settings) for member in members(run, beta)]
        fits = {law: [fit(each["learned"], each[law]) for each in found] for law in LAWS}
        start = laws(run, members(run, beta)[0], beta, settings, step=run.snapshots()[0])
        out.append(
            {
                "beta": beta,
                "fits": fits,
                "shuffled": [within(each["learned"], each["law"][::-1]) for each in found],  # another point's M
                "early": fit(start["learned"], start["law"]),
                "points": {key: found[0][key] for key in ("learned", "law")},  # (N, K), the first seed, to draw
            }
        )
    return out


def trained_without_noise(settings: Settings, work: Work) -> list[dict[str, float]]:
    """Members trained on the det-ELBO with H = -M, of which eq. 7 is exactly the stationary point."""
    run, beta = train(work, "Gaussian", settings.cohort, "det-vae"), MIDDLE["Gaussian"]
    found = [laws(run, member, beta, settings) for member in members(run, beta)]
    return [fit(each["learned"], each["law"]) for each in found]


@torch.no_grad()
def laws(run: Run, member: int, beta: float, settings: Settings, step: int | None = None) -> dict[str, Array]:  # (N, K)
    """Learned variances, and what each form of the law makes of the decoder."""
    model, seen = look(run, member, settings.points, step)
    M = metrics(model.decode, seen.posterior.mean, model.likelihood).pullback
    H = averaged(model, seen.x, seen.posterior.mean, seen.posterior.variance(), settings.draws)
    at_mean = hessian(model.decode, seen.posterior.mean, seen.x, model.likelihood).diagonal(dim1=1, dim2=2)
    return {
        "learned": seen.posterior.variance().numpy(),
        "law": sigma_law(M, beta).numpy(),
        "no beta": sigma_law(M, 1.0).numpy(),
        "exact H": (1 / (1 - at_mean / beta).clamp(min=CURVATURE)).numpy(),
        "averaged": (1 / (1 - H / beta).clamp(min=CURVATURE)).numpy(),
    }


def averaged(model: Autoencoder, x: Tensor, e: Tensor, variance: Tensor, draws: int) -> Tensor:  # (N, K)
    """E_q[H_ii] over pairs of opposite draws of z."""
    half = torch.randn(max(1, draws // 2), *e.shape, generator=generator(0, "A3"), dtype=e.dtype)
    H = [
        hessian(model.decode, e + sign * variance.sqrt() * one, x, model.likelihood) for one in half for sign in (1, -1)
    ]
    return torch.stack(H).mean(0).diagonal(dim1=1, dim2=2)


def fit(learned: Array, law: Array) -> dict[str, float]:
    found = law_fit(learned, law)
    return {"r": found.r or 0.0, "error": found.error, "within": within(learned, law)}


def within(learned: Array, law: Array) -> float:
    """The correlation over points inside one latent, the mean over active latents: who is active is no help here."""
    active = learned.mean(0) < ACTIVE_VARIANCE
    if not active.any():
        return 0.0
    return float(np.nan_to_num(law_fit(learned[:, active], law[:, active]).per_latent).mean())


def mean(fits: Sequence[dict[str, float]], key: str) -> float:
    return float(np.mean([each[key] for each in fits]))


def judge(numbers: Numbers) -> list[Row]:
    rows = [row for name in SETUPS for entry in numbers[name] for row in _rows(name, entry)]
    r, error = (mean(numbers["det"], key) for key in ("r", "error"))
    verdict = holds(r > LEAST_R and error < MOST_ERROR)
    what = f"Gaussian, beta = {MIDDLE['Gaussian']:g}, trained on the det-ELBO: the same"
    return [*rows, Row(what, "equal", f"r = {r:.3f}, median error {100 * error:.1f} %", verdict)]


def _rows(name: str, entry: dict[str, Any]) -> list[Row]:
    law, better, wrong = (entry["fits"][key] for key in ("law", "averaged", "no beta"))
    r, error, inside = (mean(law, key) for key in ("r", "error", "within"))
    what = f"{name}, beta = {entry['beta']:g}"
    note = "" if entry["beta"] == 1 else f"; beta left out: error {100 * mean(wrong, 'error'):.0f} %"
    return [
        Row(
            f"{what}: learned variances against 1 / (1 + M_ii / beta)",
            "equal",
            f"r = {r:.3f}, median error {100 * error:.1f} %",
            holds(r > LEAST_R and error < MOST_ERROR),
            f"within a latent r = {inside:.2f}; with another point's M {np.mean(entry['shuffled']):.2f}{note}",
        ),
        Row(
            f"{what}: with H averaged over the posterior",
            "-",
            f"r = {mean(better, 'r'):.3f}, median error {100 * mean(better, 'error'):.1f} %",
            "not comparable",
            f"with the exact H at the mean {100 * mean(entry['fits']['exact H'], 'error'):.1f} %",
        ),
    ]


def draw(numbers: Numbers) -> Figure:
    """Learned against predicted variances, one colour a beta; the law is the diagonal."""
    fig = figure()
    for ax, name in zip(fig.subplots(1, 2), SETUPS, strict=True):
        for entry, colour in zip(numbers[name], SHADES, strict=False):
            x, y = (np.ravel(entry["points"][key]) for key in ("law", "learned"))
            ax.plot(x, y, ".", color=colour, ms=3, alpha=0.5, mew=0, rasterized=True)
            ax.plot([], [], "o", color=colour, ms=5, label=f"beta = {entry['beta']:g}")
        low = min(np.min(entry["points"][key]) for entry in numbers[name] for key in ("law", "learned"))
        ax.plot([low, 1.2], [low, 1.2], color=INK, lw=0.8, label="eq. 7")
        ax.set(xscale="log", yscale="log", title=f"{name} likelihood")
        ax.set(xlabel="predicted variance 1 / (1 + M_ii / beta)", ylabel="learned posterior variance")
        ax.legend(loc="upper left")
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    text = []
    for name in SETUPS:
        entries = numbers[name]
        errors = [mean(entry["fits"]["law"], "error") for entry in entries]
        better = [mean(entry["fits"]["averaged"], "error") for entry in entries]
        early = np.mean([entry["early"]["error"] for entry in entries])
        text.append(
            f"{name}: over {len(entries)} betas the law misses a learned variance by {100 * min(errors):.1f} to "
            f"{100 * max(errors):.1f} % (median), after {100 * early:.0f} % at the first snapshot; with the curvature "
            f"averaged over the posterior it is {100 * min(better):.1f} to {100 * max(better):.1f} %."
        )
    return " ".join(text) + (
        f" Eq. 7 is the optimum of the det-ELBO with H = -M: trained on that, variances miss it by "
        f"{100 * mean(numbers['det'], 'error'):.1f} %. The sampled ELBO has its optimum where the curvature is "
        "averaged over the posterior, and the two are the same only as far as the decoder is linear across a posterior."
    )


A3 = Exhibit(
    id="A3",
    title="The Sigma law",
    claim="At the optimum the posterior precision is I + D^T A^2 D / beta, so the variances a VAE learns are given by "
    "the decoder's Jacobian.",
    source="Allen 2024, eq. 7; Kumar & Poole 2020",
    choices=(
        *SETUP_CHOICES,
        f"When the law holds: correlation of log variances above {LEAST_R} and a median relative error below "
        f"{100 * MOST_ERROR:.0f} %, over held-out points and all latents, the mean over seeds.",
        "Controls: the M of another point (correlation within a latent must go), beta left out, the first snapshot.",
        "The row trained on the det-ELBO was added after the Gaussian rows had differed.",
    ),
    scales={
        "tiny": Settings(TINY, points=20, draws=2),
        "quick": Settings(QUICK),
        "paper": Settings(PAPER, points=500, draws=64),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
