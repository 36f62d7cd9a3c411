"""One look for all figures: no toolkit, no global state, the same bytes for the same numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from unseam.show.style import BARE

DARK, BLUE, ORANGE, GREEN, GREY, RED = "#222222", "#1f6fb4", "#d9731a", "#2d8a4e", "#8a8a8a", "#b43a3a"
_STYLE: dict[Any, Any] = {
    **BARE,
    "axes.titlesize": 10,
    "axes.edgecolor": "#666666",
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.fontsize": 8,
}


@contextmanager
def style() -> Iterator[None]:
    """The look, for as long as the figure is drawn and saved."""
    with mpl.rc_context(_STYLE):
        yield


def figure(width: float = 9.0, height: float = 3.4) -> Figure:
    """An empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def panels(width: float = 9.0, height: float = 3.4, rows: int = 1, columns: int = 1, **how: Any) -> tuple[Figure, Any]:
    """A figure and its axes, as `subplots` gives them."""
    fig = figure(width, height)
    return fig, fig.subplots(rows, columns, **how)


def panel_each(names: Any, width: float, height: float, **how: Any) -> tuple[Figure, Any]:
    """A panel a name, side by side, each this wide."""
    fig, axes = panels(width * len(names), height, columns=len(names), squeeze=False, **how)
    return fig, axes[0]


def heat(ax: Any, rho: Any, rows: Any, columns: Any, size: float, turn: float, **how: Any) -> None:
    """Rank correlations as coloured cells, with 100 times their value inside."""
    ax.imshow(rho, vmin=-1, vmax=1, cmap="RdBu_r", **how)
    for i, row in enumerate(rho):
        for j, value in enumerate(row):
            ax.text(j, i, f"{100 * value:.0f}", ha="center", va="center", fontsize=size)
    ax.set_xticks(range(len(columns)), columns, rotation=turn, ha="right")
    ax.set_yticks(range(len(rows)), rows)
    ax.grid(False)


def blank(words: str) -> Figure:
    """A figure that says why there is none."""
    fig = figure(5.0, 1.0)
    fig.text(0.5, 0.5, words, ha="center", va="center")
    return fig


def save_figure(fig: Figure, path: Path) -> Path:
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


def column(ax: Any, x: float, values: Any, colour: str, marker: str = "o", **more: Any) -> None:
    """Restarts one above the other at the same x."""
    ax.plot([x] * len(values), values, marker, color=colour, **more)


def key(ax: Any, colour: str, label: str, style: str = "-", **more: Any) -> None:
    """An entry of the legend for what is drawn many times."""
    ax.plot([], [], style, color=colour, label=label, **more)


def ticks(ax: Any, places: Any, labels: Any = None) -> None:
    """Ticks of x at these places and no others, also on a logarithmic axis."""
    ax.set_xticks(places, [f"{place:g}" for place in places] if labels is None else labels)
    ax.minorticks_off()


def bare(ax: Any, **more: Any) -> None:
    """A picture: no ticks, no grid."""
    ax.set(xticks=[], yticks=[], **more)
    ax.grid(visible=False)
