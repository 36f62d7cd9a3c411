"""N7: does the local structure of real data prefer axes? Robustness radii against Gaussian twins.

Zietlow 2022 leaves open (6.3) whether real data have local structure that aligns latents. If the axes of a VAE on real
data rested on second moments alone, its robustness radius, the smallest change that turns them by 15 degrees, would be
that of a VAE on a twin: Gaussian rows with the same mean and covariance. For the twin the radius is known without a
free number, from the best linear VAE:

    W = U (L - beta s2 I)^(1/2)        of the covariance's largest eigenvalues above beta s2
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from unseam.axes import Array
from unseam.linear.linear_vae import optimum
from unseam.perturb.stress import stress, stress_run
from unseam.rng import numpy_generator
from unseam_papers.allen.setups import length
from unseam_papers.frame.draw import BLUE, DARK, GREY, Figure, dots, panels
from unseam_papers.frame.exhibit import Numbers, Work, both
from unseam_papers.frame.rows import VerdictRow, VerdictRows, join_parts
from unseam_papers.frame.verdicts import as_kind, beyond, ordering

ID, TITLE = "N7", "Robustness radii of real data against Gaussian twins"
CLAIM = (
    "The axes that VAEs find on real data survive larger changes than those on Gaussian data of the same covariance."
)
SOURCE = "a question that Zietlow 2022 leaves open (6.3: local structure of real data)"
PAPER = "our own: longer and with more seeds"
_S2, _LATENTS = 0.1, 4
CHOICES = (
    "The data come with scikit-learn: digits (1,797 images of 8 x 8), breast cancer (569 rows, 30 columns), wine (178 "
    "rows, 13 columns) and diabetes (442 rows, 10 columns), every column in its own standard deviations; columns that "
    "do not vary are left out. A twin has as many rows.",
    "The models: beta-VAEs, MLPs 64-64 with tanh, four latents, Gaussian likelihood of variance 0.1, beta 1, Adam at "
    "1e-3, batches of 64; the same for the twin.",
    "The radius is `unseam stress`'s, over all rows that were trained on and the latents in use, in standard "
    "deviations of the data; it holds to first order. Rule, fixed before the first run: real above twin by the "
    "one-sided Mann-Whitney test over seeds at 5 %.",
)


@dataclass(frozen=True)
class Settings:
    seeds: int
    steps: int
    names: tuple[str, ...] = ("digits", "breast_cancer", "wine", "diabetes")


SCALES = {
    "tiny": Settings(seeds=2, steps=4, names=("wine",)),
    "quick": Settings(seeds=6, steps=2500),
    "paper": Settings(seeds=20, steps=40_000),
}


def real_table(name: str) -> Array:  # (N, n)
    """Columns in standard deviations, without those that do not vary.

    >>> real_table("wine").shape
    (178, 13)
    """
    from sklearn import datasets

    x = np.asarray(getattr(datasets, f"load_{name}")().data, float)
    x = x[:, x.std(0) > 0]
    return ((x - x.mean(0)) / x.std(0)).astype(np.float32)


def gaussian_twin(x: Array, seed: int = 0) -> Array:
    """As many Gaussian rows, with exactly the same mean and covariance where rows allow it.

    >>> x = real_table("wine")
    >>> bool(np.allclose(np.cov(gaussian_twin(x).T), np.cov(x.T), atol=1e-4))
    True
    """
    draw = numpy_generator(seed, "N7").standard_normal(x.shape)
    draw -= draw.mean(0)
    white = draw @ np.linalg.inv(np.linalg.cholesky(draw.T @ draw / len(draw))).T
    values, axes = np.linalg.eigh(np.cov(x.T.astype(float), bias=True))
    return (x.mean(0) + white * np.sqrt(np.maximum(values, 0)) @ axes.T).astype(np.float32)


def linear_radius(x: Array) -> float:
    """Of the best linear VAE, in standard deviations of the data.

    >>> 0 < linear_radius(real_table("wine")) < 1
    True
    """
    S = np.cov(x.T.astype(float), bias=True)
    vae = optimum(S + 1e-9 * np.eye(len(S)), _LATENTS, _S2)
    W = torch.as_tensor(vae.W[:, np.linalg.norm(vae.W, axis=0) > 0]).float()
    codes = torch.as_tensor((x - x.mean(0)) @ vae.V.T)[:, : W.shape[1]].float()
    found = stress(lambda z: z @ W.T, codes, s2=_S2, spread=float(x.std(0).mean()))
    return float(found.relative)


def _at(settings: Settings, work: Work, name: str) -> dict[str, Any]:
    x = real_table(name)
    found: dict[str, Any] = {"linear": linear_radius(x)}
    for place, rows in (("real", x), ("twin", gaussian_twin(x))):
        run = work.train(
            rows, "beta-vae", beta=[1.0], latents=_LATENTS, batch=64, lr=1e-3, scale="none", holdout=0.0,
            network="mlp", likelihood="gaussian", s2=_S2, **both((64, 64)), **both("tanh", "activation"),
            **length(settings.seeds, settings.steps),
        )  # fmt: skip
        each = stress_run(run, points=len(rows)).values()
        found[place] = [float(one.relative) for one in each if one.breaks and np.isfinite(one.radius)]
    return found


def compute(settings: Settings, work: Work) -> Numbers:
    return {"sets": work.each(settings.names, partial(_at, settings, work)), "seeds": settings.seeds}


def judge(numbers: Numbers) -> list[VerdictRow]:
    return [row for name, found in numbers["sets"].items() for row in _of_set(name, found, numbers["seeds"])]


def _of_set(name: str, found: Mapping[str, Any], seeds: int) -> list[VerdictRow]:
    words = name.replace("_", " ")
    left = [
        f"{seeds - len(found[p])} of {seeds} {p} models have no radius"
        for p in ("real", "twin")
        if len(found[p]) < seeds
    ]
    what, real, twins = f"{words}: radius of real data above its twin's", found["real"], found["twin"]
    row = ordering(f"{name} above", what, "yes", real, twins, ".3f", ("real", "twin"), join_parts(*left))
    return [
        as_kind(row, "beyond the paper"),
        beyond(
            f"{name} linear",
            f"{words}: radius of the best linear VAE",
            f"{found['linear']:.3f}; twin, median: {_middle(twins)}",
        ),
    ]


def _middle(radii: Sequence[float]) -> str:
    """The median in words.

    >>> _middle([0.1, 0.3]), _middle([])
    ('0.200', 'none')
    """
    return f"{np.median(radii):.3f}" if radii else "none"


def draw(numbers: Numbers) -> Figure:
    """Radii of real data, of twins, and of the best linear VAE."""
    fig, ax = panels(6.4, 3.2)
    for place, found in enumerate(numbers["sets"].values()):
        for shift, which, colour in ((-0.15, "real", BLUE), (0.15, "twin", GREY)):
            dots(ax, place + shift, found[which], colour, width=0.06)
        ax.plot([place - 0.3, place + 0.3], [found["linear"]] * 2, color=DARK, lw=1)
    ax.set_xticks(range(len(numbers["sets"])), [name.replace("_", " ") for name in numbers["sets"]])
    ax.set(ylabel="radius, in standard deviations", ylim=(0, None), title="blue: real, grey: twin, line: linear VAE")
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    text = "; ".join(
        f"{name.replace('_', ' ')} {_middle(found['real'])} against {_middle(found['twin'])}, linear "
        f"{found['linear']:.3f}"
        for name, found in numbers["sets"].items()
    )
    held = [name for name in numbers["sets"] if rows[f"{name} above"].verdict == "holds"]
    against = [name for name in numbers["sets"] if rows[f"{name} above"].verdict == "fails"]
    return (
        f"Median radius of real data against its twin's: {text}. Shown above the twin in {len(held)} of "
        f"{len(numbers['sets'])} sets and below it in {len(against)}."
    )
