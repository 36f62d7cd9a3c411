"""The bar of each source: how many of its published rows agree, are open, differ, or could not be tried."""

from collections.abc import Mapping, Sequence
from typing import Any

from unseam_papers.frame.draw import GREEN, GREY, ORANGE, RED, Figure, figure
from unseam_papers.frame.rows import counts
from unseam_papers.frame.sources import by_source, entry_rows

SOURCE_BARS = "sources"  # the name of the figure
_PARTS = (("agree", GREEN), ("open", ORANGE), ("against", RED), ("not tried", GREY))


def draw_bars(entries: Sequence[Mapping[str, Any]]) -> Figure:
    """A bar a source that prints something, longest part first; the numbers are rows."""
    found = [(source.name, counts(entry_rows(own))) for source, own in by_source(entries)]
    found = [(name, count) for name, count in found if sum(count)][::-1]
    fig = figure(9.0, 0.8 + 0.42 * len(found))
    ax = fig.subplots()
    for part, (label, colour) in enumerate(_PARTS):
        left = [sum(count[:part]) for _, count in found]
        width = [count[part] for _, count in found]
        ax.barh(range(len(found)), width, left=left, color=colour, label=label, height=0.7)
        for place, (start, size) in enumerate(zip(left, width, strict=True)):
            if size:
                ax.text(start + size / 2, place, str(size), ha="center", va="center", color="white", fontsize=9)
    ax.set_yticks(range(len(found)), [name for name, _ in found])
    ax.set(xlabel="published rows")
    ax.grid(False)
    fig.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=len(_PARTS))
    return fig
