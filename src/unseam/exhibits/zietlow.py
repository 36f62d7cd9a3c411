"""The set-ups of Zietlow 2022, Table 3.1, which exhibits Z4 to Z9 train."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from unseam.exhibits.base import Work
from unseam.train import Run

BATCH = 64
HOLDOUT = 0.2  # 80 % training; evaluation and test (10 % each) are one held-out part here: nothing is chosen on it
EVERY = 500  # batches between evaluations of Delta_KL
CHOICES = (
    "The batch size: not given. Ours: 64. Table 3.2's 99.9 % at one evaluation in 500 batches needs at least 333,000 "
    "batches in 600 epochs of 40,000 samples, so at most 72 samples a batch.",
    "The loss: |x - xhat|^2 + beta KL for the synthetic data, which is a Gaussian of variance 1/2.",
)


@dataclass(frozen=True)
class Setup:
    """One row of Table 3.1."""

    data: str
    latents: int
    epochs: int
    beta: float
    network: dict[str, Any]
    optimiser: dict[str, Any]
    betas: tuple[float, ...] = ()  # of the search over beta (Figure 3.7); beta is one of them
    data_parameters: dict[str, Any] = field(default_factory=dict)
    rows: int = 50_000


ADAM, ADAGRAD = {"optimiser": "adam", "lr": 1e-3}, {"optimiser": "adagrad", "lr": 1e-2}
DIGITS = {"network": "mlp", "encoder": (400,), "decoder": (500, 500), "decoder_activation": "tanh"}
SETUPS: dict[str, Setup] = {
    "Synth. Lin.": Setup(
        "synth-linear",
        latents=2,
        epochs=600,
        beta=1e-4,
        network={"network": "linear"},
        optimiser=ADAM,
        betas=(1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.14, 0.2, 0.4, 0.6, 0.75, 1.0),
    ),
    "Synth. Non-Lin.": Setup(
        "synth-nonlinear",
        latents=2,
        epochs=600,
        beta=1e-3,
        network={
            "network": "mlp",
            "encoder": (60, 40, 20),
            "decoder": (60, 40, 20),
            "encoder_activation": "tanh",
            "decoder_activation": "tanh",
        },
        optimiser=ADAM,
        betas=(1e-5, 1e-4, 1e-3, 5e-3, 2e-2, 6e-2),
    ),
    "MNIST": Setup("mnist", 6, 400, 1.0, DIGITS, ADAGRAD, rows=70_000),
    "fMNIST": Setup("fashion-mnist", 6, 500, 1.0, DIGITS, ADAGRAD, rows=70_000),
}


def train(
    work: Work,
    name: str,
    objective: str,
    restarts: int,
    epochs: int,
    betas: Sequence[float] = (),
    latents: int = 0,
    **more: Any,
) -> Run:
    """A cohort of one set-up: restarts x betas members; Delta_KL every 500 batches, weights at ten moments."""
    setup = SETUPS[name]
    strength = {"beta": list(betas or (setup.beta,))} if objective.startswith("beta") else {}
    return work.train(
        setup.data,
        objective,
        seeds=list(range(restarts)),
        latents=latents or setup.latents,
        steps=round(epochs * setup.rows * (1 - HOLDOUT) / BATCH),
        batch=BATCH,
        holdout=HOLDOUT,
        log_every=EVERY,
        snapshots=10,
        **setup.network,
        **setup.optimiser,
        **strength,
        **({"data_parameters": setup.data_parameters} if setup.data_parameters else {}),
        **more,
    )
