"""What Z11 to Z13 share: a data set, the same perturbed, the same with noise, and cohorts of every method on each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from unseam.data import config, load_data
from unseam.data.base import Dataset
from unseam.perturb import Settings as Game
from unseam.perturb import perturb
from unseam.run import Run
from unseam.runs.evaluate import evaluate
from unseam.runs.represent import represent, some
from unseam.train import fit, resume
from unseam_papers.frame.draw import BLUE, GREY, ORANGE
from unseam_papers.frame.exhibit import OFFICIAL, Numbers, Work, as_in_the_study, official

_EPS = 0.1
_SMALL = {"size": 16, "shapes": 1, "orientations": 1, "without": "x<8|x>23|y<13|y>18", "grey": _EPS}
_MLP = {"network": "mlp", "encoder": (128, 128), "decoder": (128, 128), "decoder_activation": "tanh", "lr": 2e-3}
FRESH = 200  # the first seed of the models that are compared; trials used others
METRIC_TABLES = {
    "mig": "Table 4.2, MIG",
    "dci-disentanglement": "Table 4.3, DCI",
    "factor-vae": "Table 4.4, FactorVAE score",
    "sap": "Table 4.5, SAP",
}
PLACES = {"original": BLUE, "perturbed": ORANGE, "noise": GREY}
VARIATIONAL = ("beta-vae", "beta-tcvae", "factor-vae", "slow-vae")
NAMES = {
    "ae": "AE",
    "beta-vae": "beta-VAE",
    "factor-vae": "FactorVAE",
    "beta-tcvae": "TC-VAE",
    "slow-vae": "SlowVAE",
    "ada-gvae": "Ada-GVAE",
    "pcl": "PCL",
    "weak-gan": "weak GAN",
}
PUBLISHED = {  # (original, perturbed, noise) means on dSprites, then on Shapes3D
    "mig": {
        "ae": ((0.09, 0.05, 0.06), (0.06, 0.05, 0.07)),
        "beta-vae": ((0.23, 0.07, 0.14), (0.60, 0.09, 0.66)),
        "factor-vae": ((0.27, 0.20, 0.16), (0.27, 0.07, 0.33)),
        "beta-tcvae": ((0.25, 0.14, 0.20), (0.58, 0.24, 0.60)),
        "slow-vae": ((0.39, 0.27, 0.37), (0.53, 0.13, 0.60)),
        "pcl": ((0.21, 0.24, 0.24), (0.44, 0.47, 0.40)),
        "weak-gan": ((0.45, 0.36, 0.36), (0.69, 0.66, 0.77)),
    },
    "dci-disentanglement": {
        "beta-vae": ((0.11, 0.08, 0.14), (0.73, 0.43, 0.56)),
        "factor-vae": ((0.37, 0.27, 0.24), (0.39, 0.25, 0.57)),
        "beta-tcvae": ((0.34, 0.19, 0.27), (0.67, 0.41, 0.59)),
        "slow-vae": ((0.47, 0.40, 0.47), (0.65, 0.33, 0.73)),
        "pcl": ((0.28, 0.30, 0.29), (0.70, 0.67, 0.71)),
    },
    "factor-vae": {
        "beta-vae": ((0.47, 0.38, 0.50), (0.80, 0.54, 0.71)),
        "factor-vae": ((0.67, 0.62, 0.60), (0.63, 0.48, 0.71)),
        "beta-tcvae": ((0.68, 0.53, 0.60), (0.76, 0.57, 0.71)),
        "slow-vae": ((0.77, 0.77, 0.76), (0.87, 0.62, 0.85)),
        "pcl": ((0.77, 0.82, 0.77), (0.80, 0.77, 0.80)),
    },
    "sap": {
        "beta-vae": ((0.04, 0.02, 0.03), (0.16, 0.03, 0.09)),
        "factor-vae": ((0.07, 0.06, 0.08), (0.07, 0.04, 0.08)),
        "beta-tcvae": ((0.08, 0.06, 0.05), (0.08, 0.04, 0.06)),
        "slow-vae": ((0.08, 0.07, 0.07), (0.09, 0.04, 0.09)),
        "pcl": ((0.07, 0.10, 0.10), (0.07, 0.07, 0.07)),
    },
}
CHOICES = (
    "Data below the paper scale: sprites of 16 x 16 pixels stand in for dSprites and Shapes3D: one square, 6 scales, "
    "x over half the width, y over a sixth of the height (unequal reach: equal singular values have no axes to lose), "
    "values between 0.1 and 0.9 (so that a change of 0.1 is not folded back, which would only dim the picture).",
    "m below the paper scale: learned on ELBOs, not on reconstructions alone: both sides choose the precision of "
    "their latents anew. With reconstructions alone m won by making the factor of an imprecise latent matter more, "
    "and beta-VAEs that were trained again kept their axes. The entangled side is the disentangled model turned by 45 "
    "degrees (`turned`).",
    "With the printed gap (reconstructions) and teacher (the restart of the lowest MIG) m had no effect on small "
    "sprites: `unseam perturb sprites --data.size 16 --gap reconstruction --teacher restart` took the gap from 0.03 to "
    "-0.70 nats and turned the preferred axes by 2 degrees, and six fresh beta-VAEs had a MIG of 0.46 against 0.48 on "
    "the original. That is one m, with networks and sizes of ours; at the printed size it was not tried.",
    "At scale paper all is as printed: reconstructions, five draws, the restarts of the highest and of the lowest MIG "
    "(four of each on Shapes3D). Not printed, so ours: 10 restarts to choose from, 30,000 rounds on 20,000 images, "
    "the strengths of Z12, holding out a tenth; our drawings where the official files are not in the data folder.",
    "Networks but at paper: MLP 128-128 with a tanh decoder, Gaussian likelihood of variance 0.05, 3,000 steps at a "
    "learning rate of 2e-3. Strengths were chosen on the original data so that all latents stay in use (of the "
    "beta-VAE over eight seeds, of the others over two). At large FactorVAE's critic has 3 layers of 100 units "
    "(published: 6 of 1000). Noise: U(-eps, eps) in every pixel, drawn once for each image (the data set is changed "
    "once, as by m). Scores are taken on all 576 images; a tenth was not trained on.",
    "What was seen before this run: data, network and beta were chosen by the MIG of beta-VAEs on original data; two m "
    "were tried on six beta-VAEs each (beta 1.2; beta 0.8 with more images). Of the other methods only original data "
    "was seen. Rules, m's settings and all else were fixed then; the models shown have seeds that no trial had. Only "
    "FactorVAE and SlowVAE were moved from quick to large and the GAN from large to paper, for time, before any of "
    "them was scored on perturbed data. A review asked for twenty restarts at large; the page shows six, so this size "
    "has six: its command makes what the page shows.",
)


@dataclass(frozen=True)
class World:
    """A data set of the tables as printed."""

    data: str  # ours, with its factors
    eps: float
    latents: int
    ensemble: int  # models on each side of m
    methods: dict[str, dict[str, Any]]


_FREE: dict[str, dict[str, Any]] = {"ae": {}, "slow-vae": {"beta": 1.0}, "pcl": {}, "weak-gan": {}}
WORLDS = {
    "dSprites": World(
        "sprites",
        0.1,
        5,
        1,
        _FREE | {"beta-vae": {"beta": 8.0}, "factor-vae": {"gamma": 35.0}, "beta-tcvae": {"beta": 6.0}},
    ),
    "Shapes3D": World(
        "rooms",
        0.175,
        6,
        4,
        _FREE | {"beta-vae": {"beta": 32.0}, "factor-vae": {"gamma": 7.0}, "beta-tcvae": {"beta": 32.0}},
    ),
}


@dataclass(frozen=True)
class Settings:
    """How much is trained: methods with their hyperparameters, scales of the strength, and how m is learned."""

    methods: dict[str, dict[str, Any]]
    restarts: int
    steps: int
    rounds: int
    factors: tuple[float, ...] = (0.75, 1.0, 1.5, 2.0)  # of beta, Z12
    teachers: int = 6  # restarts that m is learned from
    learned: int = 3000  # their steps; all else as `unseam perturb sprites --data.size 16` has it
    world: str = ""  # a name of WORLDS: all as printed there; else small sprites stand in
    also: Settings | None = None  # and the same on other data


STRENGTHS: dict[str, dict[str, Any]] = {
    "beta-vae": {"beta": 1.0},
    "beta-tcvae": {"beta": 1.5},
    "pcl": {},
    "factor-vae": {"gamma": 10.0, "width": 100, "depth": 3},
    "slow-vae": {"beta": 1.0, "gamma": 2.0},
    "weak-gan": {},
    "ae": {},
}
_FEW = ("beta-vae", "beta-tcvae", "pcl")  # a quarter of an hour is enough for
_MORE = ("factor-vae", "slow-vae", "ae")  # the GAN takes an hour: at paper alone
SCALES = {
    "tiny": Settings({m: STRENGTHS[m] for m in ("beta-vae",)}, 1, 20, 5, (1.0, 2.0), 2, learned=20),
    "quick": Settings({m: STRENGTHS[m] for m in _FEW}, restarts=6, steps=3000, rounds=800),
    "large": Settings({m: STRENGTHS[m] for m in (*_FEW, *_MORE)}, restarts=6, steps=3000, rounds=800),
}
PAPER = "as published, on our drawings where official files are not here; restarts, rounds and Z12's strengths are ours"


def printed(world: str) -> Settings:
    """As on one of the two data sets of the tables."""
    return Settings(
        WORLDS[world].methods, 10, 300_000, rounds=30_000, factors=(0.75, 1.0, 1.25, 1.5, 2.0), teachers=10, world=world
    )


def base(settings: Settings, **more: Any) -> Dataset:
    if settings.world:
        return load_data(official(WORLDS[settings.world].data), **more)
    return load_data("sprites", **_SMALL, **more)


def largest_change(settings: Settings) -> float:
    """The largest change of a pixel."""
    return WORLDS[settings.world].eps if settings.world else _EPS


def image_source(settings: Settings) -> str:
    """Whose images they are, where they are not the thesis'."""
    if not settings.world:
        return "small sprites stand in"
    return f"our drawing of {settings.world}" if base(settings).name in OFFICIAL else ""


def training(settings: Settings) -> dict[str, Any]:
    """Network and likelihood of all models."""
    if settings.world:
        latents = WORLDS[settings.world].latents
        return {**as_in_the_study(), "lr": 1e-4, "batch": 64, "latents": latents, "steps": settings.steps}
    return {**_MLP, "latents": 3, "steps": settings.steps, "likelihood": "gaussian", "s2": 0.05}


def named(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:10]


def broken(settings: Settings, work: Work) -> Dataset:
    """The perturbed data set, made once."""
    data, game = base(settings), Game(eps=_EPS, rounds=settings.rounds)
    options: dict[str, Any] = {"steps": settings.learned}
    how: dict[str, Any] = {}
    if settings.world:
        game = replace(game, eps=largest_change(settings), samples=5, lr=1e-4, gap="reconstruction")
        options = {**training(settings), **settings.methods["beta-vae"]}
        how = {"how": "restart", "ensemble": WORLDS[settings.world].ensemble}
    folder = work.runs / f"perturbed-{named(config(data), asdict(game), options, settings.teachers)}"
    if (folder / "perturbed.json").exists():
        return load_data(folder)
    return perturb(data, folder, game, seeds=range(settings.teachers), **how, **options).data


def data_at(settings: Settings, work: Work, place: str) -> Dataset:
    """Original, perturbed, noise of the same largest change, or noise of the same root mean square."""
    if place == "perturbed":
        return broken(settings, work)
    if place == "original":
        return base(settings)
    largest = largest_change(settings) if place == "noise" else round(float(np.sqrt(3) * size(settings, work)[1]), 4)
    return base(settings, noise=largest, noise_fixed=True)


def _train(settings: Settings, work: Work, place: str, data: Dataset, method: str, **hyper: Any) -> Run:
    """A cohort of fresh seeds, trained once."""
    options = {**training(settings), **settings.methods[method], **hyper}
    seeds = [FRESH + seed for seed in range(settings.restarts)]
    where = data.folder if hasattr(data, "folder") else config(data)
    folder = work.runs / f"{place}-{method}-{named(where, method, options, seeds)}"
    if (folder / "config.json").exists():
        return work.noted(resume(folder))
    return work.noted(fit(data, method, out=folder, **work.how({"seeds": seeds, **options})))


def _scored(run: Run, metrics: Sequence[str] = tuple(METRIC_TABLES)) -> Numbers:
    """Of every restart the scores, MIG of each factor, and how many latents are in use (mean variance below 0.8)."""
    found = evaluate(run, list(metrics))
    return {
        **{name: [found[m][name].value for m in sorted(found)] for name in metrics},
        "mig_per_factor": [np.asarray(found[m]["mig"].per_factor).tolist() for m in sorted(found)],
        "active": [_active(run, m) for m in sorted(found)],
    }


def _active(run: Run, member: int) -> int:
    if run.config.objective in ("ae", "pcl", "weak-gan"):
        return run.config.architecture.latents  # their noise says nothing
    posterior = represent(run.model(member), run.data, some(torch.arange(len(run.data)), 2000)).posterior
    return int((posterior.variance().mean(0) < 0.8).sum())


def at(settings: Settings, work: Work, place: str, method: str, **hyper: Any) -> Numbers:
    """The scores of one cohort, remembered; "noise-rms" is noise whose mean square is the perturbation's."""
    data = [base(settings).name] if settings.world else []
    name = "-".join([*data, place, method, *(f"{key}{value:g}" for key, value in hyper.items())])
    return work.once(name, partial(_at, settings, work, place, method, hyper))


def _at(settings: Settings, work: Work, place: str, method: str, hyper: dict[str, Any]) -> Numbers:
    return _scored(_train(settings, work, place, data_at(settings, work, place), method, **hyper))


def size(settings: Settings, work: Work) -> tuple[float, float]:
    """The largest change, and its root mean square."""
    made = broken(settings, work)
    rows = some(torch.arange(len(made)), 2000)
    change = made.batch(rows) - base(settings).batch(rows)
    return float(change.abs().max()), float(change.square().mean().sqrt())
