"""One look for all figures: no toolkit, no global state, the same bytes for the same numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

INK, BLUE, ORANGE, GREEN, GREY, RED = "#222222", "#1f6fb4", "#d9731a", "#2d8a4e", "#8a8a8a", "#b43a3a"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "unseam",
}


@contextmanager
def style() -> Iterator[None]:
    """The look, for as long as the figure is drawn and saved."""
    with mpl.rc_context(STYLE):
        yield


def figure(width: float = 9.0, height: float = 3.4) -> Figure:
    """An empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def save(fig: Figure, path: Path) -> Path:
    """Write the figure as SVG (or PNG, by the name's ending)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=120)
    return path


def dots(
    ax: Any, place: float, values: Any, colour: str, across: bool = False, width: float = 0.2, **more: Any
) -> None:
    """A strip of restarts at one place, a little apart; lying when `across`."""
    values = list(values)
    places = [place + width * (2 * i / max(len(values) - 1, 1) - 1) for i in range(len(values))]
    more = {"ms": 3, "alpha": 0.7, "mew": 0, **more}
    ax.plot(*((values, places) if across else (places, values)), "o", color=colour, **more)
