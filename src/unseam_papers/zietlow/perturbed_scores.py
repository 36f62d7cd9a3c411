"""Z11: Tables 4.2 to 4.5 of Zietlow 2022. Scores on original, perturbed and noisy data, for every method."""

from dataclasses import replace
from typing import Any

import numpy as np

from unseam_papers.frame.draw import Figure, dots, figure
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows, join_parts, plus_minus
from unseam_papers.frame.verdicts import alike, as_kind, beyond, control, ordering, p_above, unrun
from unseam_papers.zietlow import broken
from unseam_papers.zietlow.broken import METRIC_TABLES, NAMES, PLACES, PUBLISHED, VARIATIONAL, Settings, at, size

ID, TITLE = "Z11", "Tables 4.2 to 4.5: scores on perturbed data"
CLAIM = (
    "On perturbed data every variational method loses its scores; PCL and a weakly supervised GAN do similarly well as "
    "before, and noise of the same size has little effect."
)
SOURCE = "Zietlow 2022, Tables 4.2 to 4.5 and section 4.3"
PAPER, CHOICES = broken.PAPER, broken.CHOICES
SCALES = broken.SCALES | {"paper": replace(broken.printed("dSprites"), also=broken.printed("Shapes3D"))}
SIMILAR = 0.1  # of a score: what "similarly well" and "little effect" allow
_LARGER = "left out at this size"
UNRUN = ("ae", "factor-vae", "slow-vae", "weak-gan")  # left for a larger scale


def compute(settings: Settings, work: Work) -> Numbers:
    largest, rms = size(settings, work)
    return {
        "scores": {method: {p: at(settings, work, p, method) for p in PLACES} for method in settings.methods},
        "rms": at(settings, work, "noise-rms", "beta-vae"),
        "largest": largest,
        "change": rms,
        "eps": broken.largest_change(settings),
        "world": settings.world,
        "whose": broken.image_source(settings),
        **({"also": compute(settings.also, work)} if settings.also else {}),
    }


def _printed(metric: str, method: str, first: int, second: int, world: str = "") -> str:
    """What the tables print for two of the three places, on one data set or on both.

    >>> _printed("mig", "beta-vae", 0, 1)
    '0.23 -> 0.07 dSprites, 0.60 -> 0.09 Shapes3D'
    """
    pairs = zip(broken.WORLDS, PUBLISHED[metric][method], strict=True)
    return ", ".join(f"{v[first]:.2f} -> {v[second]:.2f} {name}" for name, v in pairs if world in ("", name))


def judge(numbers: Numbers) -> list[VerdictRow]:
    """The rows of the data set, and those of the other one where there is one, by its name."""
    rows, also = _rows_of(numbers), numbers.get("also")
    named = (
        [replace(r, key=f"{also['world']} {r.key}", what=f"{also['world']}: {r.what}") for r in _rows_of(also)]
        if also
        else []
    )
    return rows + named


def _rows_of(numbers: Numbers) -> list[VerdictRow]:
    scores, about = numbers["scores"], (numbers["world"], numbers["whose"])
    rows = [_dropped(m, metric, scores[m], *about) for m in VARIATIONAL if m in scores for metric in METRIC_TABLES]
    others = [m for m in ("pcl", "weak-gan") if m in scores]
    rows += [
        _kept(m, metric, scores[m], "perturbed", *about)
        for m in others
        for metric in METRIC_TABLES
        if m in PUBLISHED[metric]
    ]
    rows += [_kept(m, "mig", scores[m], "noise", *about) for m in (*VARIATIONAL, *others) if m in scores]
    rows += [
        unrun(
            f"unrun-{m}", f"{NAMES[m]}: MIG on perturbed data", _printed("mig", m, 0, 1), _LARGER,
            reason="too long here",
        )
        for m in UNRUN
        if m not in scores
    ]  # fmt: skip
    return rows + _controls(numbers)


def _dropped(method: str, metric: str, found: Numbers, world: str, whose: str) -> VerdictRow:
    """(a) a variational method drops."""
    what = f"(a) {NAMES[method]}, {METRIC_TABLES[metric]}: original above perturbed"
    high, low = found["original"][metric], found["perturbed"][metric]
    published = _printed(metric, method, 0, 1, world)
    return ordering(f"{method}-{metric}", what, published, high, low, names=("original", "perturbed"), note=whose)


def _kept(method: str, metric: str, found: Numbers, place: str, world: str, whose: str) -> VerdictRow:
    """(b) PCL does similarly well, (c) noise has little effect."""
    letter, words = ("b", "similarly well") if place == "perturbed" else ("c", "little effect of noise on Shapes3D")
    expected = float(np.mean(found["original"][metric]))
    what = f"({letter}) {NAMES[method]}, {METRIC_TABLES[metric]}: {place} as on the original ({expected:.2f})"
    printed_ = _printed(metric, method, 0, 1 if place == "perturbed" else 2, world)
    return alike(
        f"{method}-{metric}-{place}", what, f"{words}: {printed_}", found[place][metric], expected, SIMILAR,
        note=whose,
    )  # fmt: skip


def _controls(numbers: Numbers) -> list[VerdictRow]:
    """Is it the perturbation, and does it do what it must?"""
    vae = numbers["scores"]["beta-vae"]
    before, after = vae["original"]["mig"], vae["perturbed"]["mig"]
    p = p_above(before, after)
    half = ordering("above-noise", "beta-VAE, MIG: noise above perturbed", "no effect", vae["noise"]["mig"], after)
    rms = ordering(
        "above-rms", "beta-VAE, MIG: noise of the same root mean square above perturbed", "no effect",
        numbers["rms"]["mig"], after,
    )  # fmt: skip
    actives = {p: vae[p]["active"] for p in PLACES}
    return [
        control("halved", "beta-VAE, MIG: on perturbed data at most half",
                f"{plus_minus(before, '.2f')} -> {plus_minus(after, '.2f')}",
                np.mean(after) <= np.mean(before) / 2 and p < 0.05,
                f"mean at most half, one-sided Mann-Whitney test p = {p:.2g}"),
        as_kind(half, "own control"),
        as_kind(rms, "own control"),
        control("size", "the largest change of any pixel, and its root mean square",
                f"{numbers['largest']:.3f}, {numbers['change']:.3f}", numbers["largest"] <= numbers["eps"] + 1e-6,
                f"at most {numbers['eps']:g} everywhere"),
        beyond("active", "beta-VAE: latents in use", "; ".join(f"{p} {n}" for p, n in actives.items())),
    ]  # fmt: skip


def draw(numbers: Numbers) -> Figure:
    """One panel a metric: every restart of every method in the three places; below it the other data set."""
    worlds = [numbers, *([numbers["also"]] if "also" in numbers else [])]
    fig = figure(10.0, 5.6 * len(worlds))
    for axes, one in zip(fig.subplots(2 * len(worlds), 2).reshape(len(worlds), 4), worlds, strict=True):
        draw_one(one, axes)
    fig.axes[0].legend()
    return fig


def draw_one(numbers: Numbers, axes: Any) -> None:
    for ax, metric in zip(axes, METRIC_TABLES, strict=True):
        for i, found in enumerate(numbers["scores"].values()):
            for j, (place, colour) in enumerate(PLACES.items()):
                values = found[place][metric]
                dots(ax, i + 0.25 * (j - 1), values, colour, width=0.08)
                label = place if i == 0 else None
                ax.plot([i + 0.25 * (j - 1)], [np.mean(values)], "_", color=colour, ms=10, mew=2, label=label)
        ax.set_xticks(range(len(numbers["scores"])), [NAMES[m] for m in numbers["scores"]])
        ax.set(title=join_parts(numbers["world"], METRIC_TABLES[metric]))
        ax.set_ylim(bottom=0)


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    first = conclude_one(numbers, rows["halved"])
    if "also" not in numbers:
        return first
    world = numbers["also"]["world"]
    return f"{numbers['world']}: {first} {world}: {conclude_one(numbers['also'], rows[f'{world} halved'])}"


def conclude_one(numbers: Numbers, halved: VerdictRow) -> str:
    scores = numbers["scores"]
    means = {m: [f"{np.mean(found[place]['mig']):.2f}" for place in PLACES] for m, found in scores.items()}
    text = "; ".join(f"{NAMES[m]} {' / '.join(values)}" for m, values in means.items())
    verdict = "falls to half or less" if halved.verdict == "holds" else "does not fall to half"
    same = np.mean(numbers["rms"]["mig"])
    return (
        f"Mean MIG on original / perturbed / noisy data: {text}. No pixel moved by more than {numbers['eps']:g}. MIG "
        f"of the beta-VAE {verdict}; noise of the same root mean square leaves it at {same:.2f}."
    )
