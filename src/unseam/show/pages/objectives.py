"""The same data under each objective: its terms over training, and what its latents do, side by side.

Every model has the same seed, architecture and number of steps. A traversal moves one latent of one held-out sample
through the range that the codes of the data take (1st to 99th percentile); the latents that change the image most
come first.
"""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from unseam.atomic import write_atomic
from unseam.data.base import Dataset
from unseam.errors import BadInput
from unseam.objectives import OBJECTIVES
from unseam.run import Run
from unseam.runs.represent import represent
from unseam.show.pictures import strip
from unseam.show.style import content, save, styled, template
from unseam.show.traversals import latent_values, traversal_frames
from unseam.train import fit, resume

NOT_TERMS = ("throughput", "active", "loss")
_COLOURS = {"reconstruction": "black", "kl": "grey"}  # the same on every panel
_CODES = 2000  # samples that set the range of a traversal
_GAP = 2  # pixels between images


def objectives_page(data: Dataset, out: Path, names: Sequence[str], steps: int, **settings: Any) -> Path:
    """Train every objective on the data (runs that are there already are read, or finished) and write the page."""
    if len(data.shape) != 3:
        raise BadInput(f"the page shows images, the data has shape {data.shape}; choose image data such as sprites")
    if out.suffix not in (".html", ".png"):
        raise BadInput(f"out={str(out)!r} must end in .html or .png")
    runs = {}
    for name in names:
        folder = out.with_suffix("") / name
        done = (folder / "config.json").exists()
        runs[name] = resume(folder) if done else fit(data, name, steps=steps, out=folder, **settings)
    write_atomic(out, _page(runs)) if out.suffix == ".html" else save(_picture(runs), out, dpi=90)
    return out


@torch.no_grad()
def traversals(run: Run, rows: int = 5, columns: int = 7) -> list[Tensor]:
    """Images (columns, C, H, W) along each of the `rows` latents that change them most."""
    model = run.model(0)
    encoded = represent(model, run.data, run.held_out()[:_CODES])
    images = traversal_frames(
        model.mean, encoded.posterior.mean[0], latent_values(encoded.codes, prior=False, frames=columns)
    )
    change = (images[:, 1:] - images[:, :-1]).square().flatten(1).sum(1)
    return [images[int(k)].clamp(0, 1) for k in change.argsort(descending=True)[:rows]]


def draw(figure: Any, name: str, run: Run, rows: int = 5) -> None:
    """One objective: its terms on the left, traversals on the right."""
    left, right = figure.subplots(1, 2)
    terms_over_time(left, run)
    left.set_title(name, loc="left", fontsize=10, fontweight="bold")
    lines = [strip(images, gap=_GAP) for images in traversals(run, rows)]
    sheet = np.concatenate([np.pad(line, ((0, _GAP), (0, 0), (0, 0)), constant_values=255) for line in lines])
    right.imshow(sheet, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    right.set_axis_off()


def terms_over_time(axes: Axes, run: Run) -> None:
    """Each logged term, on a scale that is linear below 1 nat and logarithmic above."""
    log = run.log()
    log = log[(log["member"] == 0) & ~log["name"].isin(NOT_TERMS) & ~log["name"].str.startswith("loss/")]
    for name in sorted(log["name"].unique(), key=lambda n: (_COLOURS.get(n, "z"), n)):
        rows = log[log["name"] == name]
        axes.plot(rows["step"], rows["value"], label=name, linewidth=1, color=_COLOURS.get(name))
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_xlabel("step", fontsize=7)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=6, loc="upper right", framealpha=0.6)


@styled
def _picture(runs: Mapping[str, Run]) -> Figure:
    """All objectives in one figure."""
    across = 1 if len(runs) == 1 else 2
    down = -(-len(runs) // across)
    figure = Figure(figsize=(7 * across, 2.5 * down), layout="constrained")
    parts = figure.subfigures(down, across, squeeze=False).ravel()
    for part, (name, run) in zip(parts, runs.items(), strict=False):
        draw(part, name, run)
    return figure


def _page(runs: Mapping[str, Run]) -> str:
    """One self-contained HTML document."""
    first = next(iter(runs.values()))
    config = first.config
    facts = f"{config.data['name']}, {config.training.steps} steps, {config.architecture.latents} latents, seed 0"
    parts = [
        {"name": name, "kind": OBJECTIVES[name], "row": run.table().loc[0], "picture": _encoded(name, run)}
        for name, run in runs.items()
    ]
    where = "held out" if len(first.split("held-out")) else "on the training data (none was held out)"
    return template("objectives.html").render(facts=facts, parts=parts, where=where)


def _encoded(name: str, run: Run) -> str:
    return base64.b64encode(content(_picture({name: run}), "png", dpi=90)).decode()
