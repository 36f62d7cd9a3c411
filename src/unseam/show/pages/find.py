"""findings.html: what was found, on one small page without a script: sentence, factors with their moves, rivals."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

from matplotlib.figure import Figure

from unseam.atomic import write_atomic
from unseam.finding import Findings, FoundFactor
from unseam.finding.findings import MEANING
from unseam.show.style import ACCENT, CHOSEN, INK, new, plain, styled, svg, template


@styled
def moves_figure(factor: FoundFactor) -> Figure:
    """The columns a factor moves, as bars in shares of their own spread."""
    moves = factor.moves[::-1]
    figure, ax = new(4.6, 0.5 + 0.26 * max(len(moves), 1))
    colours = [ACCENT if move.share >= 0 else CHOSEN for move in moves]
    ax.barh(range(len(moves)), [move.share for move in moves], color=colours, height=0.7)
    ax.set_yticks(range(len(moves)), [plain(move.name[:32]) for move in moves])
    ax.axvline(0, color=INK, lw=0.6)
    ax.set_xlabel("standard deviations")
    return figure


def strips(findings: Findings) -> dict[int, str]:
    """Images: each factor's traversal as one picture, a data URI."""
    import torch

    from unseam.show.pictures import png, strip

    frames = torch.as_tensor(findings.traversals())
    return {j: f"data:image/png;base64,{b64encode(png(strip(row, gap=1))).decode()}" for j, row in enumerate(frames)}


def write_find_page(findings: Findings, name: str, path: Path) -> Path:
    """One file, whole or not at all."""
    images = findings.prepared.shape is not None and findings.count
    pictures = (
        {} if images else {f.latent: svg(moves_figure(f), f"moves{f.latent}") for f in findings.factors if f.moves}
    )
    page = template("find.html").render(
        name=Path(name).name, f=findings, pictures=pictures, columns=findings.compared, meaning=MEANING,
        strips=strips(findings) if images else {},
    )  # fmt: skip
    write_atomic(path, page)
    return path
