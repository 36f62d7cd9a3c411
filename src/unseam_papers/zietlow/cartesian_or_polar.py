"""Z14: cartesian against polar (Zietlow 2022, Figures 4.10 and 4.11): a hue and an angle of view, twice.

Cartesian: one latent each. Polar: the hue is the angle around a centre, the angle of view the distance from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from unseam.data import load_data
from unseam.geometry import labelled_coordinates, metrics, pair_coordinates
from unseam.geometry.regime import ACTIVE_VARIANCE
from unseam.metrics import mig
from unseam.rng import numpy_generator
from unseam.runs.represent import represent
from unseam.train import Run
from unseam.types import Array
from unseam_papers.frame.draw import BLUE, GREY, INK, ORANGE, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Verdict, Work, holds, p_above

HUES, VIEWS = 20, 15
ARC = 4  # hues of the control, from red towards yellow: a straight line in colour space, with two ends
TABLE = 7  # pictures a side of a traversal
SHUFFLES = 20  # of the labels: what information a code has by chance
KINDS = ("cartesian", "undecided", "polar")
NAMES = {"circle": "all hues", "arc": "few hues"}
COLOURS = dict(zip(KINDS, (BLUE, GREY, ORANGE), strict=True))


@dataclass(frozen=True)
class Settings:
    seeds: int
    steps: int
    betas: tuple[float, ...] = (0.03, 0.1, 0.3)
    control_seeds: int = 3
    size: int = 12
    latents: int = 2
    widths: tuple[int, ...] = (64, 64)
    network: str = "mlp"


def room_images(size: int, hues: int) -> tuple[Array, Array]:  # (N, 3, H, W), (N, 2)
    """Rooms that differ in wall hue and in the angle of view only."""
    rooms = load_data("rooms", size=size, colours=HUES, scales=1, shapes=1, orientations=VIEWS)
    pairs = np.stack(np.meshgrid(np.arange(hues), np.arange(VIEWS), indexing="ij"), -1).reshape(-1, 2)
    factors = np.zeros((len(pairs), 6), np.int64)
    factors[:, [1, 5]] = pairs  # wall, orientation
    return rooms.observe(torch.from_numpy(factors)).numpy(), pairs


def train(settings: Settings, work: Work, hues: int, seeds: int, betas: Sequence[float]) -> Run:
    x, pairs = room_images(settings.size, hues)
    return work.train(
        x,
        "beta-vae",
        beta=list(betas),
        seeds=list(range(seeds)),
        steps=settings.steps,
        batch=32,
        holdout=0.0,
        latents=settings.latents,
        network=settings.network,
        encoder=settings.widths,
        decoder=settings.widths,
        decoder_activation="tanh",
        data_parameters={"factors": pairs},
    )


def look(run: Run, member: int) -> dict[str, Any]:
    """Both verdicts on the two latents in use, the MIG, and a table of pictures over the pair."""
    model = run.model(member)
    seen = represent(model, run.data, torch.arange(len(run.data)))
    assert seen.variances is not None
    assert seen.factors is not None
    variance = seen.variances.mean(0)
    pair = np.sort(np.argsort(variance)[:2])
    z, v, beta = seen.codes[:, pair], seen.factors, run.beta(member)
    with torch.no_grad():
        M = metrics(model.decode, torch.from_numpy(seen.codes), model.likelihood, dtype=torch.float64).pullback.numpy()
    free = pair_coordinates(z, M[:, pair][:, :, pair], beta)
    told = labelled_coordinates(z, v)
    shifted = z - np.array(free.centre)
    polar = np.stack([np.hypot(*shifted.T), np.arctan2(shifted[:, 1], shifted[:, 0])], -1)
    knows = information(polar, v)  # (hue, view) x (radius, angle)
    chance = np.max([information(polar, numpy_generator(i, "z14").permutation(v)) for i in range(SHUFFLES)], axis=0)
    return {
        "beta": beta,
        "used": int((variance < ACTIVE_VARIANCE).sum()),
        "score": (free.cartesian - free.polar) / max(free.cartesian, free.polar, 1e-9),
        "kind": free.kind,
        "gap": told.polar - told.cartesian,
        "labelled": told.kind,
        "mig": mig(seen.codes, v).value,
        "hue": bool(knows[0].argmax() == 1 and knows[0, 1] > chance[0, 1]),
        "view": bool(knows[1].argmax() == 0 and knows[1, 0] > chance[1, 0]),
        "pictures": pictures(model, seen.codes, pair),
    }


def information(codes: Array, factors: Array) -> Array:  # (N, 2), (N, 2) -> (factors, codes), nats
    return np.asarray(mig(codes, factors).matrix)


@torch.no_grad()
def pictures(model: Any, codes: Array, pair: Array) -> list[Any]:  # (N, K), (2,)
    """TABLE x TABLE decoded images over the middle 90 % of the pair's codes, the others at 0, as bytes."""
    low, high = np.quantile(codes[:, pair], [0.05, 0.95], axis=0)
    across, down = torch.from_numpy(np.linspace(low, high, TABLE)).float().T
    z = torch.zeros(TABLE, TABLE, codes.shape[1])
    z[:, :, pair[0]], z[:, :, pair[1]] = across, down.flip(0)[:, None]
    images = model.mean(z.flatten(0, 1)).mul(255).round().byte()
    tiles = images.unflatten(0, (TABLE, TABLE)).permute(0, 3, 1, 4, 2)  # (T, H, T, W, 3)
    return tiles.reshape(TABLE * images.shape[2], TABLE * images.shape[3], 3).tolist()


def compute(settings: Settings, work: Work) -> Numbers:
    circle = train(settings, work, HUES, settings.seeds, settings.betas)
    arc = train(settings, work, ARC, settings.control_seeds, settings.betas[:2])
    return {
        name: [work.once(f"{name}-{m}", partial(look, run, m)) for m in range(len(run.members))]
        for name, run in (("circle", circle), ("arc", arc))
    }


def used(numbers: Numbers, name: str) -> list[dict[str, Any]]:
    """The restarts that use exactly two latents: the others have no pair to speak of."""
    return [m for m in numbers[name] if m["used"] == 2]


def count(members: Sequence[dict[str, Any]], key: str = "kind") -> dict[str, int]:
    return {kind: sum(m[key] == kind for m in members) for kind in KINDS}


def spelled(members: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in count(members).items()) + f" of {len(members)}"


def roles(what: str, polar: Sequence[dict[str, Any]], factor: str) -> Row:
    found = sum(m[factor] for m in polar)
    note = f"told best by that coordinate, and better than in {SHUFFLES} shufflings of the labels"
    return Row(what, "all of them", f"{found} of {len(polar)}", holds(bool(polar) and found >= 0.9 * len(polar)), note)


def gaps(circle: Sequence[dict[str, Any]], arc: Sequence[dict[str, Any]]) -> Row:
    """MIG by kind, on the data with all hues: a MIG of other data has other factors to tell apart."""
    high, low, other = (
        [m["mig"] for m in data if m["kind"] == kind]
        for data, kind in ((circle, "cartesian"), (circle, "polar"), (arc, "cartesian"))
    )
    mean = [f"{np.mean(group):.2f}" if group else "none" for group in (high, low, other)]
    p = p_above(high, low) if high and low else 1.0
    verdict: Verdict = holds(p < 0.05) if high and low else "not comparable"
    ours = f"{mean[0]} against {mean[1]}" + (f" (p = {p:.1g})" if high and low else "")
    return Row(
        "MIG of cartesian against polar restarts, all hues",
        "high against low",
        ours,
        verdict,
        f"cartesian ones on {ARC} hues, whose MIG cannot be compared: {mean[2]}",
    )


def judge(numbers: Numbers) -> list[Row]:
    circle, arc = used(numbers, "circle"), used(numbers, "arc")
    kinds = count(circle)
    both = [m for m in [*circle, *arc] if "undecided" not in (m["kind"], m["labelled"])]
    same = sum(m["kind"] == m["labelled"] for m in both)
    polar = [m for m in circle if m["kind"] == "polar"]
    left_out = len(numbers["circle"]) - len(circle)
    return [
        Row(
            "kinds among the restarts on one data set, all hues",
            "cartesian and polar",
            spelled(circle),
            holds(kinds["polar"] > 0 and kinds["cartesian"] > 0),
            f"{left_out} of {len(numbers['circle'])} restarts do not use exactly two latents",
        ),
        roles("polar restarts: the hue is the angle", polar, "hue"),
        roles("polar restarts: the view is the radius", polar, "view"),
        gaps(circle, arc),
        Row(
            "told apart without labels as with labels",
            "by eye",
            f"{same} of {len(both)} decided pairs",
            holds(bool(both) and same >= 0.9 * len(both)),
        ),
        Row(
            f"control, {ARC} of {HUES} hues, red towards yellow",
            "not published; theory: cartesian",
            spelled(arc),
            holds(bool(arc) and count(arc)["cartesian"] >= 0.9 * len(arc)),
            "a straight line in colour space: nothing asks for an angle",
        ),
    ]


def draw(numbers: Numbers) -> Figure:
    """The most cartesian and the most polar restart, and the score of all."""
    fig = figure(9.6, 3.5)
    axes = fig.subplots(1, 3, width_ratios=(1, 1, 1.35))
    every = [(name, m) for name in ("circle", "arc") for m in (used(numbers, name) or numbers[name])]
    ends = (min(every, key=lambda e: e[1]["score"]), max(every, key=lambda e: e[1]["score"]))
    for ax, (name, m) in zip(axes, ends, strict=False):
        ax.imshow(np.array(m["pictures"], np.uint8), rasterized=True)
        ax.set(
            xticks=(),
            yticks=(),
            xlabel="one latent, middle 90 %",
            ylabel="the other",
            title=f"{m['kind']}: MIG {m['mig']:.2f}\n({NAMES[name]}, β = {m['beta']:g})",
        )
        ax.grid(False)
    ax = axes[2]
    for row, name in enumerate(("circle", "arc")):
        for m in used(numbers, name):
            ax.plot(
                m["score"],
                row + 0.35 * np.clip(m["gap"], -1, 1),
                "o",
                color=COLOURS[m["labelled"]],
                ms=6,
                alpha=0.7,
                mew=0,
            )
    for limit in (-0.2, 0.2):
        ax.axvline(limit, color=INK, lw=0.8, ls="--")
    ax.set(
        yticks=(0, 1),
        yticklabels=[NAMES[n].replace(" ", "\n", 1) for n in ("circle", "arc")],
        xlim=(-1.08, 1.08),
        ylim=(-0.6, 1.6),
    )
    ax.set_xticks((-1, -0.5, 0, 0.5, 1))
    ax.set_xlabel("label-free score: cartesian −1 ... polar +1")
    ax.set_title("one dot a restart; colour, height: with labels")
    for kind, x in zip(KINDS, (-0.62, 0, 0.62), strict=True):
        ax.text(x, 1.5, kind, color=COLOURS[kind], ha="center", va="center", fontsize=8)
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    circle, arc = used(numbers, "circle"), used(numbers, "arc")
    found, verdict = count(circle), rows[0].verdict
    other = (
        "Both kinds occur on one data set, as in the thesis. "
        if verdict == "agrees"
        else "Only one of the two kinds, or none, occurs on the data with all hues. The thesis saw both on Shapes3D, "
        "where four more factors compete for the latents. A likely reason, which we did not test: here only hue and "
        "view vary, so that a cylinder, hue x view, has to be laid out in a plane, and an annulus does it without a "
        "cut. "
    )
    return (
        f"With all hues the restarts are {spelled(circle)}; with {ARC} neighbouring hues {spelled(arc)}. {other}"
        f"{rows[4].ours} get the same verdict from the decoder's metric alone and from the labels. "
        + (
            "So what looks like entanglement to MIG can be a regular code, and the geometry of the decoder says so."
            if found["polar"] and {r.verdict for r in rows[1:3]} == {"agrees"}
            else "Polar codes with the clean roles that the thesis shows were not found throughout."
        )
    )


Z14 = Exhibit(
    id="Z14",
    title="Cartesian or polar: two ways to encode a hue and an angle of view",
    claim="Restarts of one beta-VAE encode wall hue and orientation either in one latent each (cartesian, high MIG) or "
    "as angle and radius (polar, low MIG).",
    source="Zietlow 2022, section 4.3.6, Figures 4.10 and 4.11",
    choices=(
        f"The data: Shapes3D in the thesis. Ours: `rooms`, {HUES} wall hues x {VIEWS} views, all other factors fixed.",
        "The pair of latents: picked by hand among ten in the thesis. Ours: models with two latents, and of these the "
        "restarts that use both (mean posterior variance below 0.8).",
        "beta: 32 for the 64 x 64 images of the thesis. Ours: 0.03, 0.1 and 0.3 for 12 x 12 images, all shown.",
        "Settings changed after a look: with four latents and beta 1, 2, 4 most restarts did not use exactly two "
        "latents, and with 10 hues as the control (a bent line in colour space) both kinds and undecided ones came "
        "out.",
        "The row of the MIG first took the cartesian restarts of both data sets, and agreed; since a MIG depends on "
        "its data, it now takes those with all hues only.",
        "Told apart: `geometry.pair_coordinates` without and `geometry.labelled_coordinates` with labels; a frame wins "
        "when its cost is at least 20 % below the other's.",
    ),
    scales={
        "tiny": Settings(seeds=2, steps=20, betas=(0.3, 1.0), control_seeds=1, size=8, widths=(16,)),
        "quick": Settings(seeds=5, steps=2500),
        "paper": Settings(seeds=50, steps=20_000, control_seeds=20, size=32, widths=(256, 256)),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
