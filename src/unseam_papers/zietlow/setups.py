"""What exhibits Z4 to Z7, Z9 and Z10 share: the set-ups of Zietlow 2022, Table 3.1, their cohorts, and DS and DtO."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unseam.data import load_data
from unseam.errors import BadInput
from unseam.geometry import dto, metrics
from unseam.metrics import score
from unseam.rng import generator
from unseam.runs.diagnose import moment
from unseam.runs.represent import represent, without_constants
from unseam.train import Run
from unseam_papers.frame.exhibit import Verdict, Work

BATCH = 64
HOLDOUT = 0.2  # 80 % training; evaluation and test (10 % each) are one held-out part here: nothing is chosen on it
EVERY = 500  # batches between evaluations of Delta_KL
WATCH = 1000  # fixed held-out samples behind each of them
MOMENTS = 10  # of training at which weights are kept
POINTS = 1000  # held-out samples behind a DtO
TREND = 200  # and behind one on the way
ROWS = 5000  # held-out samples behind a DS
CHOICES = (
    "The batch size: not given. Ours: 64. Table 3.2's 99.9 % at one evaluation in 500 batches needs at least 333,000 "
    "batches in 600 epochs of 40,000 samples, so at most 72 samples a batch.",
    "The loss of the synthetic data: |x - xhat|^2 + beta KL, which is a Gaussian of variance 1/2.",
    "The decoder of Synth. Non-Lin.: 60-40-20 as printed, not reversed. Its random network: entries U(-1, 1) over the "
    "root of the fan-in, one network for all restarts.",
    "MNIST and fMNIST: the 60,000 training images, Bernoulli likelihood, fewer epochs than the 400 and 500 printed.",
    "dSprites: our renderer at 16 x 16, one shape, one orientation (scale, x, y); 128-128 networks and Adam, because "
    "1,200-wide ones on 737,280 images of 64 x 64 need days here. Images are 16 times smaller, so the same beta weighs "
    "more: we search over beta. These rows show an ordering; their numbers cannot be compared.",
)


@dataclass(frozen=True)
class Setup:
    """One row of Table 3.1."""

    data: str
    latents: int
    epochs: int  # as published
    beta: float
    network: dict[str, Any]
    rows: int
    betas: tuple[float, ...] = ()  # of the search over beta (Figure 3.7); `beta` is one of them
    data_parameters: tuple[tuple[str, Any], ...] = ()
    stands_in: bool = False  # for data we do not have

    def label(self, name: str) -> str:
        """What figures call it."""
        return "sprites" if self.stands_in else name

    def steps(self, epochs: float) -> int:
        return round(epochs * self.rows * (1 - HOLDOUT) / BATCH)


ADAM, ADAGRAD = {"optimiser": "adam", "lr": 1e-3}, {"optimiser": "adagrad", "lr": 1e-2}
DIGITS = {"network": "mlp", "encoder": (400,), "decoder": (500, 500), "decoder_activation": "tanh", **ADAGRAD}
SMALL = {"network": "mlp", "encoder": (128, 128), "decoder": (128, 128), "decoder_activation": "tanh", **ADAM}
TANH = {"encoder_activation": "tanh", "decoder_activation": "tanh"}
SETUPS: dict[str, Setup] = {
    "dSprites": Setup(
        "sprites", 5, 50, 2.0, SMALL, 1536, (0.25, 0.5, 1.0, 2.0, 4.0),
        (("size", 16), ("shapes", 1), ("orientations", 1), ("xs", 16), ("ys", 16)), stands_in=True,
    ),
    "Synth. Lin.": Setup(
        "synth-linear", 2, 600, 1e-4, {"network": "linear", **ADAM}, 50_000,
        (1e-5, 1e-4, 3e-4, 1e-3, 1e-2, 0.05, 0.1, 0.14, 0.2, 0.4, 0.6, 0.75, 1.0),
    ),
    "Synth. Non-Lin.": Setup(
        "synth-nonlinear", 2, 600, 1e-3,
        {"network": "mlp", "encoder": (60, 40, 20), "decoder": (60, 40, 20), **TANH, **ADAM}, 50_000,
        (1e-5, 1e-4, 1e-3, 6e-3, 2e-2, 6e-2),
    ),
    "MNIST": Setup("mnist", 6, 400, 1.0, DIGITS, 60_000),
    "fMNIST": Setup("fashion-mnist", 6, 500, 1.0, DIGITS, 60_000),
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How much of a set-up is trained."""

    restarts: int
    epochs: float


WITH_FACTORS = {"dSprites": Size(10, 500), "Synth. Lin.": Size(10, 600), "Synth. Non-Lin.": Size(10, 600)}
SIZES = {  # of the tables, by scale: exhibits that ask for the same train it once
    "tiny": {"dSprites": Size(2, 2), "Synth. Lin.": Size(2, 0.1)},
    "quick": {"dSprites": Size(4, 120), "Synth. Lin.": Size(4, 10), "Synth. Non-Lin.": Size(4, 10)},
    "paper": WITH_FACTORS | {"MNIST": Size(5, 5), "fMNIST": Size(5, 5)},
}


def available(name: str) -> str:
    """Why the files of a set-up's data are not here; empty when they are."""
    setup = SETUPS[name]
    try:
        load_data(setup.data, **dict(setup.data_parameters)).batch(torch.arange(1))
    except BadInput as error:
        return str(error)
    return ""


def train(
    work: Work, name: str, objective: str, size: Size, betas: Sequence[float] = (), latents: int = 0, **data: Any
) -> Run:
    """A cohort of one set-up, restarts x betas: Delta_KL every 500 batches, weights at ten moments."""
    setup = SETUPS[name]
    strength = {"beta": list(betas or (setup.beta,))} if objective.startswith("beta") else {}
    parameters = dict(setup.data_parameters) | data
    return work.train(
        setup.data,
        objective,
        seeds=list(range(size.restarts)),
        latents=latents or setup.latents,
        steps=setup.steps(size.epochs),
        batch=BATCH,
        holdout=HOLDOUT,
        log_every=EVERY,
        watch=WATCH,
        snapshots=MOMENTS,
        **setup.network,
        **strength,
        **({"data_parameters": parameters} if parameters else {}),
    )


def search(work: Work, name: str, size: Size) -> Run:
    """The cohort of Figure 3.7: beta-VAEs over all betas; Tables 3.2 to 3.4 read their members from it."""
    return train(work, name, "beta-vae", size, SETUPS[name].betas)


def members(run: Run, beta: float) -> list[int]:
    """The restarts at one beta."""
    return [i for i, member in enumerate(run.members) if member.hyper.get("beta") == beta]


def trend(run: Run, chosen: Sequence[int]) -> dict[str, Any]:
    """DtO of members at the kept moments of training."""
    steps = run.snapshots()
    return {"steps": steps, "trend": [[moment(run, m, step, TREND, 0)[1] for m in chosen] for step in steps]}


def scores(run: Run, chosen: Iterable[int], step: int | None = None, ds: bool = True) -> dict[str, list[float]]:
    """DtO and, where factors are known, DS of members on held-out samples; at a snapshot when a step is given."""
    out: dict[str, list[float]] = {"DtO": [], "DS": []} if ds else {"DtO": []}
    rows = run.held_out()[:ROWS]
    for member in chosen:
        out["DtO"].append(moment(run, member, step, POINTS, 0)[1])
        if ds:
            seen = without_constants(represent(run.model(member, step), run.data, rows))
            found = score(seen.codes, seen.factors, seen.space, metrics="ds")["ds"]
            out["DS"].append(found.extra["bounded"] if run.data.space.discrete else found.value)  # type: ignore[union-attr]
    return out


def random_decoders(run: Run, restarts: int) -> list[float]:
    """DtO of untrained decoders at draws from the prior."""
    out = []
    for seed in range(restarts):
        model = run.config.architecture.build(run.data.shape, seed).eval()
        z = torch.randn(POINTS, model.latents, generator=generator(seed, "prior"))
        with torch.no_grad():
            out.append(dto(metrics(model.decode, z, model.likelihood, dtype=torch.float64).gram))
    return out


def within(mean: float, deviation: float, samples: Sequence[float], rounding: float = 0.005) -> Verdict:
    """Does our mean lie in the published mean +- deviation, as printed with two digits?

    >>> within(0.5, 0.1, [0.55, 0.65]), within(0.5, 0.0, [0.8, 0.82, 0.81])
    ('agrees', 'differs')
    """
    return "agrees" if abs(float(np.mean(samples)) - mean) <= deviation + rounding + 1e-9 else "differs"
