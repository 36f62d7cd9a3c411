"""Z14: cartesian against polar (Zietlow 2022, Figures 4.10 and 4.11): a hue and an angle of view, two ways.

Cartesian: one latent each. Polar: the hue is the angle around a centre, the angle of view the distance from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch

from unseam.axes import Array
from unseam.geometry import labelled_coordinates, metrics, pair_coordinates
from unseam.metrics import mig
from unseam.rng import numpy_generator
from unseam.run import Run
from unseam.runs.diagnose import kl_weight_of
from unseam.runs.represent import represent, sample_rows, some
from unseam.show.pictures import frames_table
from unseam.show.traversals import traverse_pair
from unseam.stats import discrete_information, entropy
from unseam_papers.frame.draw import BLUE, DARK, GREY, ORANGE, Figure, panels
from unseam_papers.frame.exhibit import Numbers, Work, as_in_the_study, both, official, pick, training_arguments
from unseam_papers.frame.rows import RowKind, Verdict, VerdictRow, VerdictRows, join_parts
from unseam_papers.frame.verdicts import because, beyond, control, ordering, share, unrun

ID, TITLE = "Z14", "Cartesian or polar: two ways to encode a hue and an angle of view"
CLAIM = (
    "Restarts of one beta-VAE encode wall hue and orientation either in one latent each (cartesian, high MIG) or as "
    "angle and radius (polar, low MIG)."
)
SOURCE = "Zietlow 2022, section 4.3.6, Figures 4.10 and 4.11"
_WALL, VIEW = 1, 5  # the two factors, of floor, wall, object, scale, shape, orientation
_LATENTS = 6  # as many as factors (4.3.2)
_BETA, SIDE = 32.0, 64  # of the thesis, for Shapes3D's 64 x 64 pixels
EXTREME = 4  # restarts of the highest and of the lowest MIG
HELD = 0.25  # share of a factor's entropy that a pair must know for it to hold the factor
_CELLS = 8  # of a latent, in the information of a pair
_SHUFFLES = 20  # of the labels: what information a code has by chance
_TABLE = 7  # pictures a side of a traversal
_FACTORS = ("floor", "wall", "object", "scale", "shape", "orientation")
ORDERING: RowKind = "published ordering"
_KINDS = ("cartesian", "undecided", "polar")
_COLOURS = dict(zip(_KINDS, (BLUE, GREY, ORANGE), strict=True))
CHOICES = (
    "The data: Shapes3D in the thesis, and here at scale paper where its file is in the data folder. Else: `rooms`, "
    "the same six factors with the same numbers of values (480,000 images), at the quick scale 16 x 16 pixels.",
    "Networks and steps: convolutional in the thesis, and here at scale paper (those of Locatello 2019, as the thesis "
    "says, with its 300,000 steps of 64 images at 1e-4); 50 restarts, whose number is not printed. Quick: MLPs and few "
    "steps.",
    "beta: 32 there, for 64 x 64 pixels. Ours at the quick scale: 0.5 and 15,000 steps, chosen after a look: with 2, "
    "the share of 16 x 16 pixels, and 6,000 steps no pair of latents in 8 restarts knew the orientation.",
    "The pair of latents: hand-picked among six in the thesis. Ours: the two that know most about wall hue and "
    f"orientation together; it holds a factor when it knows {HELD:.0%} of the factor's entropy.",
    "Told apart: `geometry.pair_coordinates` without and `geometry.labelled_coordinates` with labels; a frame wins "
    "when its cost is at least 20 % below the other's. The thesis looks at pictures.",
    "An earlier version had two factors and two latents; all of its restarts were polar.",
)
PAPER = "as published, on our drawing of Shapes3D where its file is not here; the number of restarts is not printed"


@dataclass(frozen=True)
class Settings:
    restarts: int
    steps: int
    size: int
    beta: float
    widths: tuple[int, ...] = (128, 128)  # of an MLP; none: the convolutions of Locatello 2019
    lr: float = 2e-3
    batch: int = 64
    samples: int = 6000


SCALES = {
    "tiny": Settings(restarts=2, steps=20, size=8, beta=0.5, widths=(16,), samples=400),
    "quick": Settings(restarts=8, steps=15_000, size=16, beta=0.5),
    "paper": Settings(restarts=50, steps=300_000, size=SIDE, beta=_BETA, widths=(), lr=1e-4, samples=10_000),
}


def _train(settings: Settings, work: Work) -> Run:
    data = official("rooms") if settings.size == SIDE else "rooms"
    return work.train(
        data,
        "beta-vae",
        seeds=list(range(settings.restarts)),
        **training_arguments(settings, "beta", "steps", "batch", "lr"),
        latents=_LATENTS,
        **(as_in_the_study() if not settings.widths else {"network": "mlp", **both(settings.widths)}),
        **({"data_parameters": {"size": settings.size}} if data == "rooms" else {}),
    )


def pair_information(z: Array, v: Array) -> Array:  # (N, 2), (N, F) -> (F,)
    """The share of each factor's entropy that two latents know together: plug-in over CELLS x CELLS quantile cells.

    >>> v = np.repeat(np.arange(8), 100)[:, None]
    >>> pair_information(np.hstack([v, v % 2]), v).round(2)
    array([1.])
    """
    edges = np.quantile(z, np.linspace(0, 1, _CELLS + 1)[1:-1], axis=0)
    i, j = (np.searchsorted(e, column) for e, column in zip(edges.T, z.T, strict=True))
    return np.array([discrete_information(i * _CELLS + j, f) / entropy(f) for f in v.T])


def holders(z: Array, v: Array) -> tuple[list[int], Array]:  # (N, K), (N, 2) -> the pair, (2,)
    """The two latents that know most about both factors, and how much more than they know of shuffled labels."""
    known = {pair: pair_information(z[:, list(pair)], v) for pair in combinations(range(z.shape[1]), 2)}
    best = max(known, key=lambda pair: float(known[pair].sum()))
    chance = [pair_information(z[:, list(best)], shuffled) for shuffled in shufflings(v)]
    return list(best), known[best] - np.mean(chance, axis=0)


def shufflings(v: Array) -> list[Array]:
    return [numpy_generator(i, "z14").permutation(v) for i in range(_SHUFFLES)]


def _cut(z: Array, hue: Array) -> int:  # (N,), (N,) int
    """Where a line has cut the circle of hues: after which hue the mean code jumps most.

    >>> _cut(np.array([3.0, 4.0, 0.0, 1.0, 2.0]), np.arange(5))
    1
    """
    mean = np.array([z[hue == h].mean() for h in range(hue.max() + 1)])
    return int(np.abs(np.roll(mean, -1) - mean).argmax())


def _look(run: Run, member: int, samples: int) -> dict[str, Any]:
    """The pair that holds wall hue and orientation, both verdicts on it, the MIG, and a table of pictures over it."""
    model = run.model(member)
    seen = represent(model, run.data, sample_rows(run, "all", samples).rows)
    assert seen.factors is not None
    codes, v, beta = seen.codes, seen.factors[:, [_WALL, VIEW]], kl_weight_of(run, member)
    pair, known = holders(codes, v)
    z, some = codes[:, pair], codes[:1000]
    M = metrics(model.decode, torch.from_numpy(some), model.likelihood, dtype=torch.float64).pullback.detach().numpy()
    free, with_labels = pair_coordinates(some[:, pair], M[:, pair][:, :, pair], beta), labelled_coordinates(z, v)
    by_hue, by_view = roles(z - np.array(free.centre), v)
    score = mig(codes, seen.factors)
    return {
        "mig": score.value,
        "per_factor": np.asarray(score.per_factor).tolist(),
        "pair": pair,
        "known": known.tolist(),
        "kind": free.kind,
        "labelled": with_labels.kind,
        "hue": by_hue,
        "view": by_view,
        "cut": _cut(codes[:, int(np.argmax(np.asarray(score.matrix)[_WALL]))], v[:, 0]),
        "pictures": _pictures(model, codes, pair),
    }


def roles(shifted: Array, v: Array) -> tuple[bool, bool]:  # (N, 2), (N, 2)
    """Is the hue told best by the angle, the view by the radius, and better than any shuffling of the labels is?"""
    polar = np.stack([np.arctan2(shifted[:, 1], shifted[:, 0]), np.hypot(*shifted.T)], -1)
    knows = np.asarray(mig(polar, v).matrix)
    chance = [np.asarray(mig(polar, shuffled).matrix) for shuffled in shufflings(v)]
    clear = (knows > np.max(chance, axis=0)).diagonal() & (knows.argmax(1) == [0, 1])
    return bool(clear[0]), bool(clear[1])


@torch.no_grad()
def _pictures(model: Any, codes: Array, pair: Sequence[int]) -> list[Any]:  # (N, K)
    """TABLE x TABLE decoded images over the middle 90 % of the pair's codes, the others at their medians, as bytes."""
    low, high = np.quantile(codes, [0.05, 0.95], axis=0)
    values = torch.from_numpy(np.linspace(low, high, _TABLE, axis=1)).float()  # (K, T)
    z = torch.from_numpy(np.median(codes, axis=0)).float()
    return frames_table(traverse_pair(model.mean, z, pair[0], pair[1], values)).tolist()


def compute(settings: Settings, work: Work) -> Numbers:
    run = _train(settings, work)
    names = [str(m) for m in range(len(run.members))]
    step = f"{run.config.data['name']}-"
    found = work.each(names, lambda m: _look(run, int(m), settings.samples), prefix=f"{step}member-")
    moved = work.once(f"{step}moved", lambda: _moves(run.data, settings.samples))
    options = {"data": run.config.data["name"], **training_arguments(settings, "beta", "size")}
    return {**options, "moved": moved, "members": list(found.values())}


def _moves(data: Any, samples: int) -> list[float]:
    """How far each factor moves the pixels: half the mean squared change when it alone is drawn anew, as shares."""
    v = data.factors(some(torch.arange(len(data)), samples))
    other, out = v[some(torch.arange(len(v)), len(v), seed=1)], []
    for f in range(v.shape[1]):
        changed = v.clone()
        changed[:, f] = other[:, f]
        out.append(float((data.observe(changed) - data.observe(v)).square().sum()))
    return (np.array(out) / sum(out)).tolist()


def _held(numbers: Numbers) -> list[dict[str, Any]]:
    """The restarts with a pair of latents that holds both factors: in the others there is nothing to tell apart."""
    return [m for m in numbers["members"] if min(m["known"]) >= HELD]


def spelled(members: Sequence[Mapping[str, Any]]) -> str:
    kinds = [m["kind"] for m in members]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in _KINDS) + f" of {len(kinds)}"


def best_and_worst(numbers: Numbers) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The restarts of the highest and of the lowest MIG."""
    order = sorted(numbers["members"], key=lambda m: -m["mig"])
    few = min(EXTREME, len(order) // 2)
    return order[:few], order[-few:]


def both_kinds(numbers: Numbers) -> VerdictRow:
    """Both kinds among the restarts: not finding one says something only of as many restarts as the thesis shows."""
    members, every = _held(numbers), numbers["members"]
    found = {m["kind"] for m in members} >= {"cartesian", "polar"}
    enough = len(members) >= 2 * EXTREME
    verdict: Verdict = "agrees" if found else "differs" if enough else "open"
    rule = f"both among the restarts in which a pair of latents holds both factors, of which {2 * EXTREME} are needed"
    note = f"a pair holds both factors in {len(members)} of {len(every)} restarts"
    what = "kinds of code among the restarts"
    row = VerdictRow("both", what, "cartesian and polar", spelled(members), ORDERING, verdict, note, rule)
    if verdict == "differs":
        return because(row, "stand-in", f"{len(members)} restarts of smaller networks on smaller images show one kind")
    return because(row, "few restarts", f"{note}; {2 * EXTREME} such restarts would decide")


def _gaps(numbers: Numbers) -> VerdictRow:
    """MIG of cartesian against polar restarts, and who is at the ends."""
    high, low = ([m["mig"] for m in _held(numbers) if m["kind"] == kind] for kind in ("cartesian", "polar"))
    (top, bottom), every = best_and_worst(numbers), pick(numbers["members"], "mig")
    ends = f"of the {len(top)} highest MIGs {spelled(top)}; of the lowest {spelled(bottom)}"
    note = f"MIG {every.min():.2f} to {every.max():.2f}; {ends}"
    what, published = "MIG of cartesian above that of polar restarts", "highest against lowest MIG"
    if high and low:
        return ordering("mig", what, published, high, low, note=note)
    none = "not both kinds found"
    return unrun("mig", what, published, join_parts("not both kinds occur", note), none, ORDERING, "few restarts")


def counted(key: str, what: str, published: str, hits: Sequence[bool]) -> VerdictRow:
    """More than half of the restarts of one kind, where there are any."""
    if len(hits):
        return share(key, what, published, sum(hits), len(hits))
    return unrun(key, what, published, "no restart of this kind", "none", ORDERING, "few restarts")


def judge(numbers: Numbers) -> list[VerdictRow]:
    members = _held(numbers)
    cartesian, polar = ([m for m in members if m["kind"] == kind] for kind in ("cartesian", "polar"))
    cuts = [m["cut"] for m in cartesian]
    commonest = max(cuts, key=cuts.count, default=0)
    decided = [m for m in members if "undecided" not in (m["kind"], m["labelled"])]
    same = sum(m["kind"] == m["labelled"] for m in decided)
    hue, view = pick(numbers["members"], "known").mean(0)
    knows = f"{hue:.0%} of the hue's and {view:.0%} of the orientation's entropy"
    reliably = "cartesian restarts: the circle of hues is cut at the commonest hue"
    return [
        both_kinds(numbers),
        _gaps(numbers),
        counted("hue", "polar restarts: the hue is the angle", "the angular component", [m["hue"] for m in polar]),
        counted("view", "polar restarts: the view is the radius", "the radial component", [m["view"] for m in polar]),
        counted("cut", reliably, "reliably encode the color in the same way", [c == commonest for c in cuts]),
        control("labels", "told apart without labels as with them", f"{same} of {len(decided)} decided pairs"),
        beyond("known", "what the pair knows, mean over restarts", knows),
    ]


def draw(numbers: Numbers) -> Figure:
    """Traversals of the pair, the restarts of the highest MIG above, of the lowest below, as in Figures 4.10, 4.11."""
    fig, axes = panels(9.6, 5.4, 2, EXTREME, squeeze=False)
    for line, group, label in zip(axes, best_and_worst(numbers), ("highest MIG", "lowest MIG"), strict=True):
        for ax in line:
            ax.set_axis_off()
        for ax, m in zip(line, group, strict=False):
            ax.imshow(np.array(m["pictures"], np.uint8), rasterized=True)
            kind, colour = (m["kind"], _COLOURS[m["kind"]]) if min(m["known"]) >= HELD else ("not both held", DARK)
            knows = "hue {:.0%}, view {:.0%}".format(*m["known"])
            ax.set_title(f"{label}: {m['mig']:.2f}\n{kind} ({knows})", color=colour, fontsize=8)
    fig.suptitle("the two latents that know most about wall hue and orientation, middle 90 % of each", fontsize=9)
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    members, every = _held(numbers), numbers["members"]
    factors = np.mean([m["per_factor"] for m in every], axis=0)
    best = ", ".join(f"{name} {value:.2f}" for name, value in zip(_FACTORS, factors, strict=True))
    what = {
        "agrees": "Both kinds occur among restarts of one model, as in the thesis.",
        "differs": "Only one of the two kinds, or none, occurs, where the thesis has both.",
        "open": "In too few restarts two latents hold both factors, so the kinds cannot be compared.",
    }
    weak = numbers["moved"][VIEW]
    return (
        f"beta-VAEs with {_LATENTS} latents on {numbers['data']}, all six factors, {numbers['size']} pixels a side, "
        f"beta {numbers['beta']:g}. In {len(members)} of {len(every)} restarts a pair of latents holds wall hue and "
        f"orientation: {spelled(members)}. {what[rows['both'].verdict]} {rows['labels'].ours} get the same verdict "
        f"from the decoder's metric alone and from the labels. MIG by factor: {best}. Of what the factors move in the "
        f"pixels, the orientation has {weak:.1%} and the wall's hue {numbers['moved'][_WALL]:.0%}."
    )
