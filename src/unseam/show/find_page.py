"""findings.html: what was found, on one small page without a script: sentence, factors with their moves, rivals."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from unseam.files import write_atomic
from unseam.find import Findings, FoundFactor
from unseam.find.findings import MEANING
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
    ax.set_xlabel("standard deviations of the column, per one of the factor")
    return figure


def write_find_page(findings: Findings, name: str, path: Path) -> Path:
    """One file, whole or not at all."""
    pictures = {f.latent: svg(moves_figure(f), f"moves{f.latent}") for f in findings.factors if f.moves}
    columns = ("variance_kept", "stability", "log_likelihood", "mcc")
    page = template("find.html").render(
        name=Path(name).name, f=findings, pictures=pictures, columns=columns, meaning=MEANING
    )
    write_atomic(path, page)
    return path
