"""The cohorts behind exhibits A2, A3, A9 and Z3, trained once and shared: a Gaussian and a Bernoulli likelihood.

Allen 2024 trains nothing, so both set-ups are ours: the synthetic square of Zietlow 2022 with its networks
(Table 3.1), and squares of 6 sizes at 16 x 16 places. Decoders are smooth (tanh), as the theory assumes.
"""

from dataclasses import dataclass
from typing import Any

import torch

from unseam.axes import Array
from unseam.geometry.polarized import ACTIVE_STD, ACTIVE_VARIANCE
from unseam.models import Autoencoder
from unseam.run import Run
from unseam.runs.diagnose import EncodedRows, see
from unseam_papers.frame.exhibit import Work, beta_argument, both

MODEL_SETUPS: dict[str, dict[str, Any]] = {
    "Gaussian": {
        "data": "synth-nonlinear",
        "latents": 2,
        "batch": 64,
        "encoder": (60, 40, 20),
        "decoder": (60, 40, 20),
        "encoder_activation": "tanh",
    },
    "Bernoulli": {
        "data": "sprites",
        "latents": 5,
        "batch": 32,
        "encoder": (128, 128),
        "decoder": (128, 128),
        "data_parameters": {"size": 16, "shapes": 1, "orientations": 1, "xs": 16, "ys": 16},
    },
}
MODELS_CHOICES = (
    "Gaussian likelihood (s2 = 1/2) on Synth. Non-Lin. with the networks of Zietlow 2022, Table 3.1; Bernoulli "
    "likelihood on 16 x 16 sprites (squares, 6 sizes at 16 x 16 places, 5 latents, tanh decoder 128-128). Adam, "
    "learning rate 1e-3."
)
SETUP_CHOICES = (f"Allen 2024 trains no model here. Ours: {MODELS_CHOICES}",)
LARGER = "nothing is published about sizes: our larger scale"


@dataclass(frozen=True)
class Cohort:
    """How long the cohorts are trained, for how many seeds, at which betas (Gaussian, Bernoulli)."""

    steps: tuple[int, int] = (10_000, 5_000)
    seeds: int = 6
    gaussian: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2)
    bernoulli: tuple[float, ...] = (0.5, 1.0, 2.0)
    snapshots: int = 10
    first: int = 0  # seed

    def betas(self, name: str) -> tuple[float, ...]:
        return self.gaussian if name == "Gaussian" else self.bernoulli


MIDDLE = {"Gaussian": 1e-3, "Bernoulli": 1.0}  # the beta at which objectives are compared
TINY_COHORT = Cohort((40, 20), 1, (1e-3, 1e-2), (1.0, 2.0), 2)
QUICK = Cohort()
LARGE = Cohort((24_000, 12_000), 8, first=100)  # longer, on seeds that no rule was made on
PAPER = Cohort((100_000, 50_000), 8, (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), (0.5, 1.0, 2.0, 3.0), 20)


@dataclass(frozen=True)
class Settings:
    """Of A2, A3 and A9: the cohort, held-out points, and draws of z where the posterior is sampled."""

    cohort: Cohort
    points: int
    draws: int = 0


def train_setup(work: Work, name: str, cohort: Cohort, objective: str = "beta-vae") -> Run:
    """Seeds x betas of one set-up; only the plain beta-VAE is swept, the others are trained at the middle beta."""
    settings = {"network": "mlp", "decoder_activation": "tanh", "snapshots": cohort.snapshots, **MODEL_SETUPS[name]}
    betas = cohort.betas(name) if objective == "beta-vae" else (MIDDLE[name],)
    settings |= {
        "seeds": list(range(cohort.first, cohort.first + cohort.seeds)),
        "steps": cohort.steps[list(MODEL_SETUPS).index(name)],
    }
    return work.train(settings.pop("data"), objective, **settings, **beta_argument(objective, list(betas)))


def length(restarts: int, steps: int) -> dict[str, Any]:
    """So many seeds for so many steps, logged at the end, as settings of a run."""
    return {"seeds": list(range(restarts)), "steps": steps, "log_every": steps}


def mlp(*widths: int, activation: str = "tanh") -> dict[str, Any]:
    """Encoder and decoder of these hidden layers, as settings of a run.

    >>> mlp(24, 24)["decoder"], mlp(8, activation="relu")["encoder_activation"]
    ((24, 24), 'relu')
    """
    return {"network": "mlp", **both(widths), **both(activation, "activation")}


def members_at_beta(run: Run, beta: float) -> list[int]:
    """The members trained at this beta (all of them where there is none)."""
    return [m for m, member in enumerate(run.members) if member.hyper.get("beta", beta) == beta]


def look_at_setup(run: Run, member: int, points: int, step: int | None = None) -> tuple[Autoencoder, EncodedRows]:
    """A member in double precision, and what it says of held-out rows."""
    model = run.model(member, step).double()
    return model, see(run, model, points, seed=0)


def active(mean: torch.Tensor, variance: torch.Tensor) -> Array:  # (N, K), (N, K) -> (K,) bool
    """Which latents are in use: std(mu_j) > 0.5 or E[sigma_j^2] < 0.8 (Zietlow 2022 has both).

    >>> mean = torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    >>> active(mean, torch.tensor([[0.9, 0.1, 0.9]] * 2))
    array([ True,  True, False])
    """
    return ((mean.std(0) > ACTIVE_STD) | (variance.mean(0) < ACTIVE_VARIANCE)).numpy()
