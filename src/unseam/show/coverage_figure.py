"""Quality over coverage of a matching: the mean of the best m matches, beside what chance gives."""

import numpy as np
from matplotlib.figure import Figure

from unseam.matching import Match
from unseam.show.style import INK, OTHER, PALETTE, styled


@styled
def coverage_figure(found: Match) -> Figure:
    """One curve for each pair of sets: how alike the best m pairs are on average; dashed, hard negatives."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, pair in enumerate(found.pairs):
        curve = pair.to_json(found.at)["coverage"]
        colour = PALETTE[number % len(PALETTE)]
        label = f"{found.names[pair.one]} - {found.names[pair.two]}"
        axes.plot(curve["count"], curve["mean"], color=colour, label=label)
        axes.plot(curve["count"], np.array(curve["negatives"], float), color=colour, ls="--", lw=0.9)
    limits = [pair.limit for pair in found.pairs]
    axes.axhline(float(np.mean(limits)), color=OTHER, lw=0.9, ls=":", label="99 % of random axes are below")
    axes.axhline(found.at, color=INK, lw=0.5, label=f"the same direction ({found.at:g})")
    axes.plot([], [], color=INK, ls="--", lw=0.9, label="hard negatives")
    what = "|rank correlation|" if found.of == "codes" else "cosine" if found.signed else "|cosine|"
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="number of matches, best first", ylabel=f"mean {what}")
    axes.legend(fontsize=8, loc="lower left")
    return figure
