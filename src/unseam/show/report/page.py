"""What the reports share: one self-contained page from a template, and as many members as fit."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure

from unseam.progress import bar
from unseam.run import Run
from unseam.show.pictures import Album
from unseam.show.report.cohort import CRITERIA
from unseam.show.report.collect import View
from unseam.show.report.member import MemberPage, member_page
from unseam.show.style import save, svg, template

BUDGET = 3_000_000  # characters of pictures and drawings after which no further member is shown in full
CAPTIONS = (  # of a member's figures, in the order of the page
    ("information", "What each latent knows of each factor: mutual information as a share of the factor's entropy."),
    ("importance", "What boosted trees rely on to tell each factor (the importances behind DCI), as shares."),
    (
        "cosines",
        "Root mean square cosine between the decoder's directions as the likelihood weighs them, active latents.",
    ),
    ("costs", "Who pays for the entanglement: cost by pair of active latents, in nats of loss per β."),
    ("sigma-law", "Σ law: learned posterior variance against what the decoder's curvature asks for."),
    ("reconstructions", "Reconstructed against observed values."),
    ("kl", "KL of each latent over training."),
    ("regime", "Distance from the polarized regime over training; below 0.03 it holds."),
    ("cost-history", "Entanglement cost at the snapshots."),
)


class Shown(NamedTuple):
    """A member on the page, and its figures as SVG."""

    page: MemberPage
    drawn: dict[str, Markup]


def member_pages(
    wanted: Sequence[tuple[Run, View, bool]],  # member, and whether briefly; the first is always shown
    album: Album,
    show: bool | None,
    used: int = 0,  # characters that are on the page already
) -> list[Shown]:
    """Members in this order, as many as fit."""
    pages: list[Shown] = []
    with bar("drawing", len(wanted), show) as advance:
        for run, view, brief in wanted:
            size = album.size() + sum(len(text) for each in pages for text in each.drawn.values())
            room_for_one_more = used + size * (1 + 1 / max(1, len(pages))) < BUDGET
            if not pages or room_for_one_more:
                page = member_page(run, view, album, brief)
                pages.append(Shown(page, inline(page.figures, view.anchor)))
            advance()
    return pages


def inline(drawn: Mapping[str, Figure], prefix: str = "f") -> dict[str, Markup]:
    return {name: Markup(svg(figure, f"{prefix}-{name}")) for name, figure in drawn.items()}


def save_figures(drawn: Mapping[str, Figure], folder: Path, formats: Sequence[str]) -> None:
    for name, figure in drawn.items():
        for suffix in formats:
            save(figure, folder / f"{name}.{suffix}")


def fill(name: str, album: Album, **values: Any) -> str:
    """A template with its values, the style with the album's pictures, and the script that its policy allows."""
    script, style = (
        (files("unseam.show") / "templates" / f"report.{kind}").read_text("utf-8") for kind in ("js", "css")
    )
    return template(name, number=number_text, fixed=fixed).render(
        captions=CAPTIONS,
        criteria=CRITERIA,
        style=Markup(style + "\n" + album.css()),
        script=Markup(script),
        digest=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **values,
    )


def fixed(value: Any, digits: int = 2) -> str:
    """A number for a column of like numbers; a dash for nothing.

    >>> fixed(1.0), fixed(0.0664, 3), fixed(-0.001), fixed(None)
    ('1.00', '0.066', '0.00', '–')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}" if isinstance(value, (int, float)) else "–"


def number_text(value: Any, digits: int = 3) -> str:
    """A number for a table: three significant digits, plain whole numbers, a dash for nothing.

    >>> number_text(0.123456), number_text(5), number_text(None), number_text(12345.6), number_text(0.00001234)
    ('0.123', '5', '–', '12346', '1.23e-05')
    """
    if value is None or value != value:
        return "–"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e6):
        return f"{int(value)}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
