"""The cohorts behind exhibits A2, A3, A9 and Z3, trained once and shared: a Gaussian and a Bernoulli likelihood.

Allen 2024 trains nothing, so both set-ups are ours: the synthetic square of Zietlow 2022 with its networks
(Table 3.1), and squares of 6 sizes at 16 x 16 places. Decoders are smooth (tanh), as the theory assumes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from unseam.models import Autoencoder, Diagonal, Full
from unseam.runs.diagnose import Seen, see
from unseam.train import Run
from unseam_papers.frame.exhibit import Work

SETUPS: dict[str, dict[str, Any]] = {
    "Gaussian": {
        "data": "synth-nonlinear",
        "latents": 2,
        "encoder": (60, 40, 20),
        "decoder": (60, 40, 20),
        "encoder_activation": "tanh",
        "batch": 64,
    },
    "Bernoulli": {
        "data": "sprites",
        "data_parameters": {"size": 16, "shapes": 1, "orientations": 1, "xs": 16, "ys": 16},
        "latents": 5,
        "encoder": (128, 128),
        "decoder": (128, 128),
        "batch": 32,
    },
}
SETUP_CHOICES = (
    "Allen 2024 trains no model here. Ours: Gaussian likelihood (s2 = 1/2) on Synth. Non-Lin. with the networks of "
    "Zietlow 2022, Table 3.1; Bernoulli likelihood on 16 x 16 sprites (squares, 6 sizes at 16 x 16 places, 5 "
    "latents, tanh decoder 128-128). Adam, learning rate 1e-3.",
)


@dataclass(frozen=True)
class Cohort:
    """How long the cohorts are trained, for how many seeds, at which betas (Gaussian, Bernoulli)."""

    steps: tuple[int, int] = (10_000, 5_000)
    seeds: int = 3
    gaussian: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2)
    bernoulli: tuple[float, ...] = (0.5, 1.0, 2.0)
    snapshots: int = 10

    def betas(self, name: str) -> tuple[float, ...]:
        return self.gaussian if name == "Gaussian" else self.bernoulli


MIDDLE = {"Gaussian": 1e-3, "Bernoulli": 1.0}  # the beta at which objectives are compared
TINY = Cohort((40, 20), 1, (1e-3, 1e-2), (1.0, 2.0), 2)
QUICK = Cohort()
PAPER = Cohort((100_000, 50_000), 8, (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), (0.5, 1.0, 2.0, 3.0), 20)


def train(work: Work, name: str, cohort: Cohort, objective: str = "beta-vae") -> Run:
    """Seeds x betas of one set-up; only the plain beta-VAE is swept, the others are trained at the middle beta."""
    settings = {"network": "mlp", "decoder_activation": "tanh", "snapshots": cohort.snapshots, **SETUPS[name]}
    betas = cohort.betas(name) if objective == "beta-vae" else (MIDDLE[name],)
    return work.train(
        settings.pop("data"),
        objective,
        seeds=list(range(cohort.seeds)),
        steps=cohort.steps[list(SETUPS).index(name)],
        **settings,
        **({} if objective == "ae" else {"beta": list(betas)}),
    )


def members(run: Run, beta: float) -> list[int]:
    """The members trained at this beta (all of them where there is none)."""
    return [m for m, member in enumerate(run.members) if member.hyper.get("beta", beta) == beta]


def look(run: Run, member: int, points: int, step: int | None = None) -> tuple[Autoencoder, Seen]:
    """A member in double precision, and what it says of held-out rows."""
    model = run.model(member, step).double()
    return model, see(run, model, points, seed=0)


def covariance(posterior: Diagonal | Full) -> torch.Tensor:  # (N, K, K)
    """Sigma_x at every point."""
    if isinstance(posterior, Full):
        L = posterior.cholesky()
        return L @ L.mT
    return torch.diag_embed(posterior.variance())
