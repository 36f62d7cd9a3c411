"""The same data under each objective: its terms over training, and what its latents do, side by side.

Every model has the same seed, architecture and number of steps. A traversal moves one latent of one held-out sample
through the range that the codes of the data take (2nd to 98th percentile); the latents that change the image most
come first.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.errors import BadInput
from unseam.objectives import OBJECTIVES
from unseam.show.contact import strip
from unseam.train import Run, fit, resume

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOT_TERMS = ("throughput", "active", "loss")
COLOURS = {"reconstruction": "black", "kl": "grey"}  # the same on every panel
CODES = 2000  # samples that set the range of a traversal
STYLE = "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}img{max-width:100%}code{color:#333}"


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
    out.write_bytes(picture(runs) if out.suffix == ".png" else page(runs).encode())
    return out


def traversals(run: Run, rows: int = 5, columns: int = 7) -> list[Tensor]:
    """Images (columns, C, H, W) along each of the `rows` latents that change them most."""
    model = run.model(0)
    with torch.no_grad():
        codes = model.encode(run.data.batch(run.held_out()[:CODES])).mean
        ends = torch.quantile(codes, torch.tensor([0.02, 0.98]), dim=0)  # (2, K)
        line = torch.linspace(0, 1, columns)[:, None]
        images = []
        for k in range(codes.shape[1]):
            z = codes[:1].repeat(columns, 1)
            z[:, k] = (ends[0, k] + line * (ends[1, k] - ends[0, k])).squeeze(1)
            images.append(model.mean(z))
    change = torch.stack([(i[1:] - i[:-1]).square().sum() for i in images])
    return [images[int(k)].clamp(0, 1) for k in change.argsort(descending=True)[:rows]]


def draw(figure: Any, name: str, run: Run, rows: int = 5) -> None:
    """One objective: its terms on the left, traversals on the right."""
    left, right = figure.subplots(1, 2)
    terms_over_time(left, run)
    left.set_title(name, loc="left", fontsize=10, fontweight="bold")
    lines = [strip(images, len(images)) for images in traversals(run, rows)]
    gap = np.ones_like(lines[0][:2])
    sheet = np.concatenate([part for line in lines for part in (line, gap)])
    right.imshow(sheet, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    right.set_axis_off()


def terms_over_time(axes: Axes, run: Run) -> None:
    """Each logged term, on a scale that is linear below 1 nat and logarithmic above."""
    log = run.log()
    log = log[(log["member"] == 0) & ~log["name"].isin(NOT_TERMS) & ~log["name"].str.startswith("loss/")]
    for name in sorted(log["name"].unique(), key=lambda n: (COLOURS.get(n, "z"), n)):
        rows = log[log["name"] == name]
        axes.plot(rows["step"], rows["value"], label=name, linewidth=1, color=COLOURS.get(name))
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_xlabel("step", fontsize=7)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=6, loc="upper right", framealpha=0.6)


def picture(runs: dict[str, Run]) -> bytes:
    """All objectives on one PNG."""
    from matplotlib.figure import Figure

    across = 1 if len(runs) == 1 else 2
    down = -(-len(runs) // across)
    figure = Figure(figsize=(7 * across, 2.5 * down), layout="constrained", dpi=90)
    parts = figure.subfigures(down, across, squeeze=False).ravel()
    for part, (name, run) in zip(parts, runs.items(), strict=False):
        draw(part, name, run)
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def page(runs: dict[str, Run]) -> str:
    """One self-contained HTML document."""
    first = next(iter(runs.values())).config
    facts = f"{first.data['name']}, {first.training.steps} steps, {first.architecture.latents} latents, seed 0"
    parts = [
        f"<title>Objectives on the same data</title><style>{STYLE}</style>",
        "<h1>Objectives on the same data</h1>",
    ]
    parts.append(f"<p>{escape(facts)}. Left: terms over training. Right: traversals, strongest latent first.</p>")
    for name, run in runs.items():
        kind, row = OBJECTIVES[name], run.table().loc[0]
        parts += [
            f"<h2>{escape(name)}</h2><p>{escape((kind.__doc__ or '').strip())}<br><code>{escape(kind.formula)}</code>",
            f"<br>{escape(kind.paper)}</p><p>held out: loss {row['loss']:.2f}, reconstruction "
            f"{row['reconstruction']:.2f}, KL {row['kl']:.2f} nats, {row['active']} active latents</p>",
            f'<img alt="{escape(name)}" src="data:image/png;base64,{base64.b64encode(picture({name: run})).decode()}">',
        ]
    return '<!doctype html><html lang="en"><meta charset="utf-8">' + "\n".join(parts) + "</html>\n"
