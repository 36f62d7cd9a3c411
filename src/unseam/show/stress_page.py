"""The change that breaks a layout, as a picture: for each pair of latents what would be added to the data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from unseam.perturb.stress import Stress
from unseam.show.perturb_page import draw
from unseam.show.style import save, styled
from unseam.train import Run

SHOWN = 6  # pairs


@styled
def stress_figure(found: Stress, shape: tuple[int, ...]) -> Figure:
    """The pictures u of the pairs that break first, each with its radius."""
    breaks = found.breaks[:SHOWN]
    figure = Figure(figsize=(1.7 * max(len(breaks), 1) + 0.4, 2.4), layout="constrained")
    axes = figure.subplots(1, max(len(breaks), 1), squeeze=False)[0]
    for ax in axes:
        ax.axis("off")
    for ax, one in zip(axes, breaks, strict=False):
        draw(ax, np.asarray(one.image).reshape(shape), -1.0, 1.0)
        change = f"{one.radius:.3g}" if math.isfinite(one.radius) else "nothing"
        ax.set_title(f"latents {one.pair[0]}, {one.pair[1]}\n{change} turns {found.degrees:g}°", fontsize=8)
    return figure


def write_stress_page(run: Run, member: int, found: Stress) -> Path:
    """RUN/stress-member-S.png."""
    return save(stress_figure(found, run.data.shape), run.folder / f"stress-member-{member}.png", dpi=150)
