"""N6: where does a latent of a non-linear VAE collapse? Where the local variance falls below beta s2.

Zietlow 2022 calls training polarised when a latent is in use or not, and leaves open where that comes from (6.2). In a
linear VAE it is known: a latent collapses when its variance l falls below beta s2, and else its posterior has the
variance beta s2 / l. Decoder and encoder of a non-linear VAE see the other latents, so the same should hold point by
point. Here

    x = (6 u, g(u) w),    u, w ~ N(0, 1),    g(u)^2 from 0.01 to 1

the second latent carries w, whose variance at u is g(u)^2. Two predictions without a free number:

    local     posterior variance min(1, beta s2 / g(u)^2): in use at some u as long as beta s2 < 1
    global    the variance of the whole, E g^2 = 0.41:     collapsed from beta s2 = 0.41 on
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unseam.axes import Array
from unseam.rng import numpy_generator
from unseam.run import Run
from unseam.runs.represent import represent
from unseam_papers.allen.setups import length
from unseam_papers.frame.draw import BLUE, DARK, ORANGE, Figure, panel_each
from unseam_papers.frame.exhibit import Numbers, Work, both
from unseam_papers.frame.rows import VerdictRow, VerdictRows, plus_minus
from unseam_papers.frame.verdicts import as_kind, beyond, limit, share

ID, TITLE = "N6", "A latent collapses point by point, where the local variance falls below beta s2"
CLAIM = "The posterior variance of a latent is beta s2 over the variance that it explains at that point, at most 1."
SOURCE = "a question that Zietlow 2022 leaves open (6.2: the origin of the polarised regime)"
PAPER = "our own: longer and with more seeds"
_ROWS, _LONG, _S2 = 20_000, 6.0, 0.05
_BINS = 24
_CLOSE, _AWAKE = 0.1, 0.8  # of the posterior variance: mean error allowed; below it a latent is in use
CHOICES = (
    "The data: 20,000 rows of (6 u, g(u) w), g = 0.55 + 0.45 tanh(1.5 u). The first value is long, so that u is known "
    "well.",
    "The models: MLPs 64-64 with tanh on both sides, two latents, Gaussian likelihood of variance 0.05, Adam at 2e-3, "
    "batches of 128. The latent that follows u less is the second one.",
    f"The rules, fixed before the first run: over u from -2 to 2 the mean error of the local prediction is below "
    f"{_CLOSE:g} (sign test over seeds), and between the two thresholds the latent is in use somewhere (posterior "
    f"variance below {_AWAKE:g} at the u where the prediction is lowest) in more than half of the seeds.",
)


@dataclass(frozen=True)
class Settings:
    seeds: int
    steps: int
    thresholds: tuple[float, ...] = (0.02, 0.1, 0.25, 0.5, 0.7, 1.2)  # beta s2


SCALES = {
    "tiny": Settings(seeds=2, steps=4, thresholds=(0.1, 0.5)),
    "quick": Settings(seeds=6, steps=8000),
    "paper": Settings(seeds=20, steps=60_000),
}


def local_deviation(u: Array) -> Array:
    """g(u): how far w moves the data there."""
    return np.asarray(0.55 + 0.45 * np.tanh(1.5 * u))


def uneven_rows() -> tuple[Array, Array]:  # (N, 2), (N, 2)
    """The data, and u and w."""
    hidden = numpy_generator(0, "N6").standard_normal((_ROWS, 2))
    x = np.stack([_LONG * hidden[:, 0], local_deviation(hidden[:, 0]) * hidden[:, 1]], axis=1)
    return x.astype(np.float32), hidden


def predicted(u: Array, threshold: float) -> Array:
    """The local prediction of the posterior variance.

    >>> predicted(np.array([-9.0, 9.0]), 0.1).round(2)
    array([1. , 0.1])
    """
    return np.minimum(1, threshold / local_deviation(u) ** 2)


def whole_variance() -> float:
    """E g^2, at which the latent collapses by the global prediction.

    >>> round(whole_variance(), 2)
    0.41
    """
    places, weights = np.polynomial.hermite_e.hermegauss(60)
    return float(weights @ local_deviation(places) ** 2 / weights.sum())


def _second(run: Run, member: int, hidden: Array) -> Array:  # (bins,)
    """The mean posterior variance, in bins of u, of the latent that follows u less."""
    seen = represent(run.model(member), run.data, torch.arange(len(hidden)))
    follows = [abs(np.corrcoef(code, hidden[:, 0])[0, 1]) if np.ptp(code) else 0.0 for code in seen.codes.T]
    variance = np.asarray(seen.variances)[:, int(np.argmin(follows))]
    place = np.digitize(hidden[:, 0], edges()) - 1
    return np.array([variance[place == i].mean() for i in range(_BINS)])


def edges() -> Array:
    """Ends of the bins of u."""
    return np.linspace(-2, 2, _BINS + 1)


def _middles() -> Array:
    return (edges()[1:] + edges()[:-1]) / 2


def compute(settings: Settings, work: Work) -> Numbers:
    x, hidden = uneven_rows()
    run = work.train(
        x, "beta-vae", beta=[round(t / _S2, 6) for t in settings.thresholds], latents=2, batch=128, lr=2e-3,
        scale="none", holdout=0.0, network="mlp", likelihood="gaussian", s2=_S2, **both((64, 64)),
        **both("tanh", "activation"), **length(settings.seeds, settings.steps),
    )  # fmt: skip

    def at(threshold: float) -> list[list[float]]:
        wanted = round(threshold / _S2, 6)
        members = [i for i, member in enumerate(run.members) if member.hyper["beta"] == wanted]
        return [_second(run, member, hidden).tolist() for member in members]

    found = work.each(settings.thresholds, at, prefix="at-")
    return {"at": [{"threshold": threshold, "variances": each} for threshold, each in found.items()]}


def judge(numbers: Numbers) -> list[VerdictRow]:
    return [row for one in numbers["at"] for row in _of_threshold(one)]


def _errors(one: Mapping[str, Any], expected: Array) -> list[float]:
    """Mean error of a prediction over u, a seed each."""
    return [float(np.abs(np.array(each) - expected).mean()) for each in one["variances"]]


def _of_threshold(one: Mapping[str, Any]) -> list[VerdictRow]:
    at = one["threshold"]
    what = f"beta s2 = {at:g}"
    whole = np.full(_BINS, min(1.0, at / whole_variance()))
    note = f"the global prediction, {whole[0]:.2f} everywhere: mean error {np.mean(_errors(one, whole)):.2f}"
    close = limit(f"local {at:g}", f"{what}: mean error of the local prediction over u", "0",
                  _errors(one, predicted(_middles(), at)), below=_CLOSE, form=".3f", note=note)  # fmt: skip
    rows = [as_kind(close, "beyond the paper")]
    there = int(predicted(_middles(), at).argmin())
    awake = sum(each[there] < _AWAKE for each in one["variances"])
    if whole_variance() < at < _AWAKE:
        row = share(f"awake {at:g}", f"{what}, above E g^2 = {whole_variance():.2f}: in use somewhere", "yes", awake,
                    len(one["variances"]))  # fmt: skip
        rows.append(as_kind(row, "beyond the paper"))
    elif at > 1:
        rows.append(
            beyond(f"collapsed {at:g}", f"{what}, above the largest g^2: in use somewhere",
                   f"{awake} of {len(one['variances'])} seeds", awake == 0, "none")
        )  # fmt: skip
    return rows


def draw(numbers: Numbers) -> Figure:
    """Posterior variance over u, a panel a beta: seeds, and the two predictions."""
    fig, axes = panel_each([one["threshold"] for one in numbers["at"]], 2.1, 2.6, sharey=True)
    for ax, one in zip(axes, numbers["at"], strict=True):
        for each in one["variances"]:
            ax.plot(_middles(), each, color=BLUE, lw=0.8, alpha=0.7)
        ax.plot(_middles(), predicted(_middles(), one["threshold"]), "--", color=DARK, label="local")
        ax.axhline(min(1.0, one["threshold"] / whole_variance()), color=ORANGE, ls=":", label="global")
        ax.set(title=f"beta s2 = {one['threshold']:g}", xlabel="u", ylim=(0, 1.1))
    axes[0].set_ylabel("posterior variance")
    axes[0].legend()
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    text = "; ".join(
        f"{one['threshold']:g}: {plus_minus(_errors(one, predicted(_middles(), one['threshold'])), '.2f')} against "
        f"{np.mean(_errors(one, np.full(_BINS, min(1.0, one['threshold'] / whole_variance())))):.2f}"
        for one in numbers["at"]
    )
    held = [row.verdict == "holds" for key, row in rows.items() if key.startswith("local")]
    awake = [row for key, row in rows.items() if key.startswith("awake")]
    return (
        f"Mean error of the local prediction against that of the global one, by beta s2: {text}. The local one is met "
        f"at {sum(held)} of {len(held)} strengths. Above the variance of the whole the latent is still in use where "
        f"the local variance is large: {', '.join(row.ours for row in awake) or 'not tried'}."
    )
