"""`report`: a run folder -> one self-contained HTML file that explains it. No network, no external script."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from matplotlib.figure import Figure

from unseam.errors import BadInput
from unseam.progress import bar
from unseam.show import made
from unseam.show.cohort import agreement_words, loss_figures, sweep_axis, sweep_figures, table_rows
from unseam.show.figures import save, svg
from unseam.show.member import MemberPage, member_page
from unseam.show.numbers import tiles
from unseam.show.pictures import Album
from unseam.show.view import View, choose, look, records, stable_active
from unseam.show.words import headline, sentence, why
from unseam.train import Run, load_run
from unseam.train.checkpoint import write_atomic

BUDGET = 3_000_000  # characters of pictures and drawings after which no further member is shown in full
FORMATS = ("svg", "pdf", "png")
CAPTIONS = (  # of a member's figures, in the order of the page
    ("information", "What each latent knows of each factor: mutual information as a share of the factor's entropy."),
    ("importance", "What boosted trees rely on to tell each factor (the importances behind DCI), as shares."),
    ("cosines", "Root mean square cosine between the decoder's directions (columns of J), active latents."),
    ("costs", "Who pays for the entanglement: cost by pair of active latents, in nats of KL."),
    ("sigma-law", "Σ law: learned posterior variance against what the decoder's curvature asks for."),
    ("reconstructions", "Reconstructed against observed values of held-out rows."),
    ("kl", "KL of each latent over training."),
    ("regime", "Distance from the polarized regime over training; below 0.03 it holds."),
    ("cost-history", "Entanglement cost at the snapshots that were kept."),
)


@dataclass(frozen=True)
class Findings:
    """What a report says of a run, before it is put on a page."""

    run: Run
    views: list[View]
    chosen: View
    other: View | None  # the one it is compared with
    by_hand: bool  # the user named the member


def find(run: Run, member: int | None = None, show: bool | None = None) -> Findings:
    """Diagnose, score and choose."""
    views = look(run, show=show)
    chosen, other = choose(views)
    if member is None or member == chosen.member:
        return Findings(run, views, chosen, other, member is not None)
    named = next((view for view in views if view.member == member), None)
    if named is None:
        known = ", ".join(str(view.member) for view in views)
        raise BadInput(f"member={member} is not a finished member of this run; choose one of {known}")
    return Findings(run, views, named, chosen, True)


def report(
    run: Run | str | Path,
    out: str | Path | None = None,
    member: int | None = None,
    *,
    figures: str | Path | None = None,
    formats: Sequence[str] = ("pdf",),
    show: bool | None = None,
) -> Path:
    """Write a run's report and return its path (RUN/report.html unless `out` says otherwise).

    `member` is shown first; without it the member that geometry prefers, no labels used. With `figures`, a folder,
    every figure is also saved there in the given formats (svg, pdf, png).

    >>> import tempfile
    >>> from unseam.train import fit
    >>> run = fit("synth-linear", "beta-vae", beta=1e-3, steps=5, network="linear", latents=2,
    ...           data_parameters={"size": 500}, out=tempfile.mkdtemp() + "/run", show=False)
    >>> report(run, show=False).name
    'report.html'
    """
    opened = run if isinstance(run, Run) else load_run(run)
    bad = [name for name in formats if name not in FORMATS]
    if bad:
        raise BadInput(f"format={bad[0]!r} is unknown; choose among {', '.join(FORMATS)}")
    path = Path(out) if out is not None else opened.folder / "report.html"
    if path.is_dir():
        raise BadInput(f"out={str(path)!r} is a folder; give the name of an .html file")
    return write_report(find(opened, member, show), path, None if figures is None else Path(figures), formats, show)


def write_report(
    found: Findings, path: Path, figures: Path | None, formats: Sequence[str] = ("pdf",), show: bool | None = None
) -> Path:
    """Put findings on a page and write it, whole or not at all."""
    album = Album()
    drawn = cohort_figures(found)
    shared = inline(drawn)
    pages, drawings = member_pages(found, album, show)
    write_atomic(path, render(found, album, pages, drawings, shared))
    if figures is not None:
        chosen = {f"member-{pages[0].view.member}-{name}": figure for name, figure in pages[0].figures.items()}
        for name, figure in {**drawn, **chosen}.items():
            for suffix in formats:
                save(figure, figures / f"{name}.{suffix}")
    return path


def cohort_figures(found: Findings) -> dict[str, Figure]:
    sweep = sweep_figures(found.views, found.chosen.member) if len(found.views) > 1 else {}
    return {**sweep, **loss_figures(found.run, found.chosen.member)}


def inline(drawn: Mapping[str, Figure], prefix: str = "f") -> dict[str, Markup]:
    return {name: Markup(svg(figure, f"{prefix}-{name}")) for name, figure in drawn.items()}


def member_pages(found: Findings, album: Album, show: bool | None) -> tuple[list[MemberPage], list[dict[str, Markup]]]:
    """The chosen member, the one it is compared with, then the others while there is room."""
    first = [view for view in (found.chosen, found.other) if view is not None]
    rest = sorted((v for v in found.views if v not in first), key=lambda v: v.relative_dto)
    pages: list[MemberPage] = []
    drawings: list[dict[str, Markup]] = []
    with bar("drawing", len(found.views), show) as advance:
        for view in (*first, *rest):
            used = album.size() + sum(len(text) for each in drawings for text in each.values())
            room_for_one_more = used * (1 + 1 / max(1, len(pages))) < BUDGET
            if not pages or room_for_one_more:
                pages.append(member_page(found.run, view, album, brief=view not in first))
                drawings.append(inline(pages[-1].figures, f"m{view.member}"))
            advance()
    return pages, drawings


def render(
    found: Findings,
    album: Album,
    pages: Sequence[MemberPage],
    drawings: Sequence[Mapping[str, Markup]],
    shared: Mapping[str, Markup],
) -> str:
    """Fill in the template."""
    loader = jinja2.PackageLoader("unseam.show", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    script = (files("unseam.show") / "templates" / "report.js").read_text()
    style = (files("unseam.show") / "templates" / "report.css").read_text()
    rows = table_rows(found.run, found.views)
    return environment.get_template("report.html").render(
        run=found.run,
        shape=found.run.data.shape,
        captions=CAPTIONS,
        chosen=found.chosen,
        other=found.other,
        by_hand=found.by_hand,
        headline=headline(found.chosen),
        verdict=sentence(found.chosen.diagnosis.verdict),
        why=why(found.chosen, found.other) if found.other is not None else None,
        stable=stable_active(found.views),
        tiles=tiles(found.run, found.chosen),
        pages=list(zip(pages, drawings, strict=True)),
        full={page.view.member for page in pages},
        shared=shared,
        agreement=agreement_words(found.views),
        axis=sweep_axis(found.views)[0],
        rows=rows,
        hyper=list(found.chosen.hyper),
        command=made.command(found.run),
        call=made.call(found.run),
        facts=made.facts(found.run, records(found.run)),
        style=Markup(style + "\n" + album.css()),
        script=Markup(script),
        digest=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def number(value: Any, digits: int = 3) -> str:
    """A number for a table: three significant digits, plain whole numbers, a dash for nothing.

    >>> number(0.123456), number(5), number(None), number(12345.6), number(0.00001234)
    ('0.123', '5', '–', '12346', '1.23e-05')
    """
    if value is None or value != value:
        return "–"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e6):
        return f"{int(value)}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
