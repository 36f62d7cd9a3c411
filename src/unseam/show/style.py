"""One look for every figure: one small style, no global state, whole files; SVG for pages that have light and dark.

Ink is the page's own text colour (`currentColor`), fills are translucent: the same SVG suits light and dark. `save`
writes any figure as SVG, PDF or PNG.
"""

import io
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import jinja2
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unseam.atomic import write_atomic

_P = ParamSpec("_P")
INK = "#010203"  # a placeholder for the page's text colour
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
ANCHOR = r"(?:run-\d+-)?member-\d+"  # `View.anchor`
LATENT_COLOURS = (
    *PALETTE[:7],
    "#332288",
    "#aa4499",
    "#117733",
    "#882255",
)  # after eleven they come again; grey is for passive ones
CHOSEN, OTHER, ACCENT = "#d55e00", "#7f8a99", "#0072b2"
BARE: Any = {  # of every figure, the papers' too
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "legend.frameon": False,
    "svg.hashsalt": "unseam",
}
_STYLE: Any = {
    **BARE,
    "font.family": "sans-serif",
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "grid.color": "#8888884d",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "svg.fonttype": "none",
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}


def styled(draw: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Draw in the report's style, independent of the caller's matplotlib settings."""

    @wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with rc_context(_STYLE):
            return draw(*args, **kwargs)

    return drawn


def new(width: float = 3.6, height: float = 2.7) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def latent_colour(k: int) -> str:
    """The colour of a latent, on every figure and page."""
    return LATENT_COLOURS[k % len(LATENT_COLOURS)]


def shade(k: int, active: bool) -> str:
    """The colour of a latent of a trained model: its own, or grey where it is passive."""
    return latent_colour(k) if active else OTHER


def frameless(axes: Axes) -> None:
    """No grid, no frame, no ticks' marks."""
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def plain(text: str) -> str:
    """A name as it is: matplotlib would read dollars as mathematics, and draws no half of a character.

    >>> plain("a$b"), plain("\\ud800")
    ('a\\\\$b', '\\\\ud800')
    """
    return text.encode("utf-8", "backslashreplace").decode().replace("$", r"\$")


def template(name: str, **filters: Callable[..., str]) -> jinja2.Template:
    """A page's template; what is put into it is text, never markup, unless it says so."""
    loader = jinja2.PackageLoader("unseam.show", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(filters)
    return environment.get_template(name)


def svg(figure: Figure, name: str) -> str:
    """Inline SVG: scales with the page, its ids are its own, its ink is the page's."""
    buffer = io.StringIO()
    with rc_context({**_STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(rf'<a xlink:href="#({ANCHOR})"[^>]*>', _link, text)
    text = re.sub(rf'(id="|href="#|url\(#)(?!{ANCHOR}")', rf"\g<1>{name}-", text)
    width, height = figure.get_size_inches() * 72
    return re.sub(r"<svg [^>]*>", _opening(width, height), text, count=1)


def _link(found: re.Match[str]) -> str:
    """The caption of a point's link: run-2-member-3 -> run 2, member 3."""
    caption = found[1].replace("-member", ", member").replace("-", " ")
    return f'<a href="#{found[1]}" aria-label="{caption}">'


def _opening(width: float, height: float) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" style="max-width:{width * 1.6:.0f}px">'


def content(figure: Figure, kind: str, dpi: float = 200, **how: Any) -> bytes:
    """The bytes of a figure's file (svg, pdf, png); only a PNG has a background."""
    buffer = io.BytesIO()
    with rc_context({**_STYLE, "savefig.facecolor": "white" if kind == "png" else "none"}):
        figure.savefig(buffer, format=kind, dpi=dpi, **how)
    return buffer.getvalue()


def save(figure: Figure, path: Path, dpi: float = 200, **how: Any) -> Path:
    """Write a figure by its suffix (.svg, .pdf, .png), whole or not at all."""
    write_atomic(path, content(figure, path.suffix[1:], dpi, **how))
    return path
