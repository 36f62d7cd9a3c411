"""findings.html: what was found, on one page without a script: sentence, factors with their certificates, loadings,
spectrum, rivals."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unseam.atomic import write_atomic
from unseam.finding import Findings
from unseam.finding.findings import compared_text, measured_text
from unseam.finding.grades import MEANING
from unseam.finding.sentences import findings_headline
from unseam.show.pictures import png, strip
from unseam.show.style import ACCENT, CHOSEN, OTHER, new, styled, svg, template

_LARGE = 6  # factors with a card of their own; the others are folded away
_ROWS = 80  # columns in the table of loadings
_SPECTRUM = 30  # eigenvalues drawn


@styled
def _scree_figure(findings: Findings) -> Figure:
    """Eigenvalues of the correlations, the largest first, and what the same columns shuffled give."""
    numbers = findings.numbers
    l, null = numbers.eigenvalues[:_SPECTRUM], numbers.null[:_SPECTRUM]
    place = np.arange(1, len(l) + 1)
    figure, ax = new(5.4, 3.0)
    colours = [CHOSEN if i <= numbers.major else OTHER for i in place]
    ax.plot(place, l, color=OTHER, lw=0.8, zorder=1)
    ax.scatter(place, l, color=colours, s=26, zorder=2)
    ax.plot(place[: len(null)], null, color=ACCENT, ls="--", label="shuffled columns, 95 %")
    ax.set_xlabel("direction")
    ax.set_ylabel("variance, in columns")
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(loc="upper right")
    return figure


def loadings_table(findings: Findings) -> list[tuple[str, int, list[float]]]:
    """Columns sorted by the factor that moves them most, then by how much: name, that factor, all loadings."""
    frame = findings.loadings
    if frame.empty:
        return []
    values = frame.to_numpy()
    size = np.abs(np.nan_to_num(values))
    own = size.argmax(1)
    order = sorted(range(len(frame)), key=lambda i: (own[i], -size[i, own[i]]))
    largest = set(np.argsort(-size.max(1), kind="stable")[:_ROWS].tolist())
    return [(str(frame.index[i]), int(own[i]), values[i].tolist()) for i in order if i in largest]


def _strips(findings: Findings) -> dict[int, str]:
    """Images: each factor's traversal as one picture, a data URI."""
    import torch

    frames = torch.as_tensor(findings.traversals())
    return {j: f"data:image/png;base64,{b64encode(png(strip(row, gap=1))).decode()}" for j, row in enumerate(frames)}


def write_find_page(findings: Findings, name: str, path: Path) -> Path:
    """One file, whole or not at all."""
    images = bool(findings.prepared.shape is not None and findings.count)
    drawn = len(findings.numbers.eigenvalues) > 1 and not images
    differ = findings.numbers.disagreement() or ""
    page = template("find.html").render(
        name=Path(name).name, f=findings, columns=findings.compared, meaning=MEANING, large=_LARGE,
        strips=_strips(findings) if images else {}, loadings=[] if images else loadings_table(findings),
        left=max(0, len(findings.loadings) - _ROWS), scree=svg(_scree_figure(findings), "scree") if drawn else "",
        correlations=_correlations(findings), largest=_largest_share(findings), shown=measured_text,
        compared=compared_text, headline=findings_headline(findings.factors), differ=differ[:1].upper() + differ[1:],
        notes=[note for note in findings.notes if not drawn or note != differ],
    )  # fmt: skip
    write_atomic(path, page)
    return path


def _correlations(findings: Findings) -> list[list[float]]:
    """Of the factors, where they may correlate."""
    phi: Any = findings.factor_correlations
    return [] if phi is None or findings.count < 2 else np.asarray(phi).tolist()


def _largest_share(findings: Findings) -> float:
    """The longest bar: a column's change in its own standard deviations."""
    return max((abs(move.share) for factor in findings.factors for move in factor.moves), default=1.0) or 1.0
