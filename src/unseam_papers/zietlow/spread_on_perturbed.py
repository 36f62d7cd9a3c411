"""Z13: Figures 4.8 and 4.9 of Zietlow 2022. MIG on perturbed data: its spread over runs, and which factors lose."""

import numpy as np

from unseam_papers.frame.draw import BLUE, ORANGE, Figure, dots, panels
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows
from unseam_papers.frame.verdicts import beyond, ordering
from unseam_papers.zietlow import broken
from unseam_papers.zietlow.broken import NAMES, VARIATIONAL, Settings, at

ID, TITLE = "Z13", "Figures 4.8 and 4.9: the spread of MIG on perturbed data, and MIG of each factor"
CLAIM = "On perturbed data the mean MIG of VAEs is low while some runs stay high, and every factor loses."
SOURCE = "Zietlow 2022, Figures 4.8 and 4.9"
PAPER = broken.PAPER
SCALES = broken.SCALES | {"paper": broken.printed("Shapes3D")}  # the figures show that set only
CHOICES = (*broken.CHOICES, "No numbers are printed with the two figures; a factor that does not vary is left out.")


def compute(settings: Settings, work: Work) -> Numbers:
    methods = [m for m in VARIATIONAL if m in settings.methods]
    found = {m: {p: at(settings, work, p, m) for p in ("original", "perturbed")} for m in methods}
    space = broken.base(settings).space
    assert space is not None
    names = [factor.name for factor in space if factor.size != 1]
    return {"scores": found, "factors": names, "whose": broken.image_source(settings)}


def pooled(numbers: Numbers, place: str) -> list[float]:
    return [value for found in numbers["scores"].values() for value in found[place]["mig"]]


def per_factor(numbers: Numbers, place: str) -> dict[str, list[float]]:
    """Factor -> MIG of every restart of the beta-VAE."""
    rows = np.array(numbers["scores"]["beta-vae"][place]["mig_per_factor"])
    return {name: rows[:, i].tolist() for i, name in enumerate(numbers["factors"])}


def judge(numbers: Numbers) -> list[VerdictRow]:
    before, after = per_factor(numbers, "original"), per_factor(numbers, "perturbed")
    high, low = pooled(numbers, "original"), pooled(numbers, "perturbed")
    rows = [
        ordering(
            f"factor-{name}", f"beta-VAE, MIG of {name}: original above perturbed", "every factor loses",
            before[name], after[name], names=("original", "perturbed"), note=numbers.get("whose", ""),
        )
        for name in numbers["factors"]
    ]  # fmt: skip
    all_ = ordering("mean", "all VAEs: MIG on original above perturbed data", "mean low on perturbed data", high, low)
    some = sum(value > np.median(high) for value in low)
    return [all_, *rows, beyond("high", "runs on perturbed data above the original's median", f"{some} of {len(low)}")]


def draw(numbers: Numbers) -> Figure:
    """Left: histograms over all VAEs; right: MIG of each factor."""
    fig, (left, right) = panels(9.0, 3.0, columns=2)
    bins = np.linspace(0, 1, 21)
    for i, (place, colour) in enumerate((("original", BLUE), ("perturbed", ORANGE))):
        left.hist(pooled(numbers, place), bins=bins.tolist(), color=colour, alpha=0.6, label=place)
        for j, values in enumerate(per_factor(numbers, place).values()):
            dots(right, j + 0.3 * (i - 0.5), values, colour, width=0.08)
    left.legend()
    left.set(title=", ".join(NAMES[m] for m in numbers["scores"]), xlabel="MIG", ylabel="runs")
    right.set_xticks(range(len(numbers["factors"])), numbers["factors"])
    right.set(title="beta-VAE, MIG of each factor")
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    low, high = pooled(numbers, "perturbed"), pooled(numbers, "original")
    return (
        f"MIG of {len(low)} VAEs on perturbed data: mean {np.mean(low):.2f}, from {min(low):.2f} to {max(low):.2f} "
        f"(original data: mean {np.mean(high):.2f}). Above the original's median: {rows['high'].ours}."
    )
