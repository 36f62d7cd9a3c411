"""What a perturbation did, on one page: pictures, how the gap fell, and m along its one scalar."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unseam.atomic import write_atomic
from unseam.perturb.perturb_data import PerturbResult
from unseam.perturb.stress import Stress
from unseam.run import Run
from unseam.show.style import ACCENT, INK, new, save, styled, svg, template

_Pictures = NDArray[Any]


@styled
def gap_figure(result: PerturbResult) -> Figure:
    """L_ent - L_dis over the rounds."""
    figure, ax = new(5.2, 2.6)
    ax.plot(result.found.rounds, result.found.gaps, color=ACCENT)
    ax.axhline(result.found.gap_before, color=INK, lw=0.8, ls="--")
    ax.axhline(0, color=INK, lw=0.5)
    ax.set(xlabel="rounds", ylabel="L_ent - L_dis, nats", title="dashed: on the original data")
    return figure


@styled
def sheet(result: PerturbResult) -> Figure:
    """Original, perturbed and their difference, enlarged so that eps is full scale; below, m along its scalar."""
    shown, eps = result.pictures, result.data.eps
    rows = [
        ("original", shown["original"], 0.0, 1.0),
        ("perturbed", shown["perturbed"], 0.0, 1.0),
        (f"difference, +-{eps:g}", shown["perturbed"] - shown["original"], -eps, eps),
        ("m along its scalar, -1 to 1", shown["along"], -1.0, 1.0),
    ]
    columns = max(len(images) for _, images, _, _ in rows)
    figure = Figure(figsize=(0.9 * columns, 0.98 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, (label, images, low, high) in zip(axes, rows, strict=True):
        for ax in line:
            ax.axis("off")
        line[0].set_title(label, loc="left", fontsize=8)
        for ax, image in zip(line, images, strict=False):
            draw(ax, image, low, high)
    return figure


def draw(ax: Any, image: _Pictures, low: float, high: float) -> None:
    """A picture, or the bars of a vector."""
    colours = {"vmin": low, "vmax": high, "cmap": "gray" if low == 0 else "RdBu_r"}
    if image.ndim == 3 and image.shape[0] == 1:
        ax.imshow(image[0], **colours)
    elif image.ndim == 3:
        ax.imshow(np.clip((image.transpose(1, 2, 0) - low) / (high - low), 0, 1))
    else:
        ax.bar(range(image.size), image.ravel(), color=ACCENT)
        ax.set_ylim(low, high)


def write_perturb_page(result: PerturbResult, summary: dict[str, Any]) -> Path:
    """The page, and its contact sheet as a picture beside it."""
    folder = Path(result.data.folder)
    pictures = sheet(result)
    save(pictures, folder / "contact.png", dpi=150)
    page = template("perturb.html").render(
        name=result.data.base.name,
        folder=folder,
        s=summary,
        gap=svg(gap_figure(result), "gap"),
        sheet=svg(pictures, "sheet"),
    )
    write_atomic(folder / "perturb.html", page)
    return folder / "perturb.html"


# The change that breaks a layout, as a picture: for each pair of latents what would be added to the data.


_SHOWN = 6  # pairs


@styled
def stress_figure(found: Stress, shape: tuple[int, ...]) -> Figure:
    """The pictures u of the pairs that break first, each with its radius."""
    breaks = found.breaks[:_SHOWN]
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
