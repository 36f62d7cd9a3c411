"""`report`: a run folder -> one self-contained HTML file that explains it. No network, no external script."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from unseam.atomic import write_atomic
from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.groups import Latents, whole_run
from unseam.models.likelihood import Likelihood
from unseam.objectives import OBJECTIVES
from unseam.run import Run, load_run
from unseam.runs.adapted_run import as_run
from unseam.runs.choices import DIAGNOSIS_POINTS
from unseam.runs.diagnose import rows_of
from unseam.runs.evaluate import rows_for
from unseam.runs.rank_members import RULE, SUCCESS
from unseam.runs.represent import ENOUGH, RowSample
from unseam.show.pictures import Album
from unseam.show.report import provenance
from unseam.show.report.codes import write_codes
from unseam.show.report.cohort import judge, loss_figures, scores_of, sweep_figures, table_rows
from unseam.show.report.collect import ReportData, View, collect_report, records
from unseam.show.report.member import Card, MemberPage, PairTable, member_page
from unseam.show.report.page import Shown, fill, inline, member_pages, save_figures
from unseam.show.report.runs import report_runs, run_folders
from unseam.show.report.sentences import headline, why
from unseam.show.report.tiles import tiles
from unseam.show.style import frameless, new, plain, styled
from unseam.show.traversals import TABLE_FRAMES

_FORMATS = ("svg", "pdf", "png")


class ReportFiles(NamedTuple):
    """A report, and what it says first."""

    path: Path
    chosen: View | None  # without labels; in a folder of runs, the best of the largest group on the same data
    run: Path  # the folder of its run
    rows: RowSample | None  # on which its scores were computed, if it has any
    at: RowSample | None  # where its decoder was differentiated, if it has one
    among: int = 1  # members, or runs with members, of which it was chosen


def report(
    run: Any,
    out: str | Path | None = None,
    member: int | None = None,
    *,
    data: Any = None,
    latents: Latents = "auto",
    factors: Any = None,
    likelihood: Likelihood | str | None = None,
    s2: float | None = None,
    figures: str | Path | None = None,
    formats: Sequence[str] = ("pdf",),
    show: bool | None = None,
) -> Path:
    """Write the report of a run, or of a folder of runs.

    Parameters
    ----------
    run : Run, str, Path or model
        A run, its folder, or a folder of runs; or any model that `diagnose` takes but of scvi-tools, with data.
    out : str or Path, optional
        The page to write; report.html in the folder by default.
    member : int, optional
        The member that is shown first; by default the one that geometry prefers, without labels.
    data : array, tensor, DataFrame, Dataset or DataLoader, optional
        For a model: observations, scaled as in training. The report is then in a new folder, runs/NAME.
    latents : "auto" or sequence of int or (c, h, w), default="auto"
        For a model: the latents that are looked at. "auto": all of at most 64 flat ones, else the 32 that say most.
    factors : array or table, optional
        For a model: the factors of these observations, where they are known.
    likelihood : Likelihood or str, optional
        For a model: p(x|z), as in `diagnose`.
    s2 : float, optional
        For a model: the variance of a Gaussian likelihood.
    figures : str or Path, optional
        A folder in which every figure is also saved.
    formats : sequence of {"svg", "pdf", "png"}, default=("pdf",)
        The formats of those figures.
    show : bool, optional
        Whether to show a progress bar; by default if stderr is a terminal.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from unseam.train import fit
    >>> run = fit("synth-linear", "beta-vae", beta=1e-3, steps=5, network="linear", latents=2,
    ...           data_parameters={"size": 500}, out=tempfile.mkdtemp() + "/run", show=False)
    >>> report(run, show=False).name
    'report.html'
    """
    if isinstance(run, (Run, str, Path)):
        whole_run(report, latents=latents, factors=factors, likelihood=likelihood, s2=s2)
    run = (
        run
        if data is None and isinstance(run, (Run, str, Path))
        else as_run(run, data, latents=latents, factors=factors, likelihood=likelihood, s2=s2)
    )
    return write_run_report(run, out, member, figures=figures, formats=formats, show=show).path


def write_run_report(
    run: Run | str | Path,
    out: str | Path | None = None,
    member: int | None = None,
    *,
    figures: str | Path | None = None,
    formats: Sequence[str] = ("pdf",),
    show: bool | None = None,
) -> ReportFiles:
    """`report`, with what it says first."""
    bad = [name for name in formats if name not in _FORMATS]
    if bad:
        raise BadInput(f"format={bad[0]!r} is unknown; choose among {', '.join(_FORMATS)}")
    folder = run.folder if isinstance(run, Run) else Path(run)
    path = Path(out) if out is not None else folder / "report.html"
    if path.is_dir():
        raise BadInput(f"out={str(path)!r} is a folder; give the name of an .html file")
    place = None if figures is None else Path(figures)
    several = [] if isinstance(run, Run) or (folder / "config.json").is_file() else run_folders(folder)
    if several and member is not None:
        raise BadInput(f"member={member} is of one run, but {str(folder)!r} is a folder of runs; name a run folder")
    if several:
        best, home = report_runs(folder, several, path, place, formats, show)
        return _result(path, best, home, len(several))
    one = run if isinstance(run, Run) else load_run(run)
    kind = OBJECTIVES.get(one.config.objective)
    if kind is not None and not kind.decodes:
        write_codes(one, path, member, place, formats, show)
        return ReportFiles(path, None, one.folder, rows_for(one) if one.data.space else None, None)
    found = collect_report(one, member, show)
    write_report(found, path, place, formats, show)
    return _result(path, found.chosen, found.run, len(found.run.members))


def _result(path: Path, chosen: View, run: Run, among: int) -> ReportFiles:
    scored = rows_for(run) if chosen.mig else None
    return ReportFiles(path, chosen, run.folder, scored, rows_of(run, DIAGNOSIS_POINTS), among)


def write_report(
    found: ReportData, path: Path, figures: Path | None, formats: Sequence[str] = ("pdf",), show: bool | None = None
) -> Path:
    """Put findings on a page and write it, whole or not at all."""
    album = Album()
    drawn = cohort_figures(found)
    # The member that is shown, the one it is compared with, then the others, the most orthogonal first.
    first = [view for view in (found.shown, found.other) if view is not None]
    rest = sorted((v for v in found.views if v not in first), key=lambda v: v.relative_dto)
    pages = member_pages([(found.run, v, v not in first) for v in (*first, *rest)], album, show)
    write_atomic(path, _render(found, album, pages, inline(drawn)))
    if figures is not None:
        first_page = pages[0].page
        own = {**first_page.figures, **plates(first_page, album)}
        save_figures({**drawn, **{f"{found.shown.anchor}-{name}": f for name, f in own.items()}}, figures, formats)
    return path


def figures(run: Run | str | Path, member: int | None = None, show: bool | None = False) -> dict[str, Figure]:
    """Draw every figure of the report of a run.

    Parameters
    ----------
    run : Run, str or Path
        A run or its folder.
    member : int, optional
        Which member; by default the one that geometry prefers, without labels.
    show : bool, optional, default=False
        Whether to show a progress bar.

    Returns
    -------
    dict of matplotlib Figure
        By the name under which `report(figures=...)` saves it, without the member: `figures(run)["sigma-law"]`.

    Examples
    --------
    >>> import tempfile
    >>> from unseam.train import fit
    >>> run = fit("synth-linear", "beta-vae", beta=1e-3, steps=5, network="linear", latents=2,
    ...           data_parameters={"size": 500}, out=tempfile.mkdtemp() + "/run", show=False)
    >>> {"sigma-law", "cosines", "costs", "training-loss"} <= set(figures(run))
    True
    """
    found, album = collect_report(run if isinstance(run, Run) else load_run(run), member, show), Album()
    page = member_page(found.run, found.shown, album)
    return {**cohort_figures(found), **page.figures, **plates(page, album)}


def cohort_figures(found: ReportData) -> dict[str, Figure]:
    sweep = sweep_figures(found.views, [found.shown]) if len(found.views) > 1 else {}
    return {**sweep, **loss_figures(found.run, found.shown.member)}


def _render(found: ReportData, album: Album, pages: Sequence[Shown], shared: Mapping[str, Markup]) -> str:
    """Fill in the template."""
    return fill(
        "report.html",
        album,
        run=found.run,
        data_name=found.run.data_name,
        chosen=found.shown,
        choice=found.chosen,
        other=found.other,
        by_hand=found.by_hand,
        rule=RULE,
        success=SUCCESS,
        row_sample=rows_for(found.run),
        enough=ENOUGH,
        at=rows_of(found.run, DIAGNOSIS_POINTS),
        headline=headline(found.shown),
        why=why(found.shown, found.other) if found.other is not None else None,
        stable=found.stable,
        tiles=tiles(found.run, found.shown),
        pages=pages,
        full={each.page.view.member for each in pages},
        shared=shared,
        judged=judge(found.views, scores_of(found.run, found.views)),
        rows=table_rows(found.run, found.views),
        hyper=list(found.shown.hyper),
        command=provenance.command(found.run),
        call=provenance.call(found.run),
        facts=provenance.facts(found.run, records(found.run)),
        factors=found.shown.factors,
    )


# The page's pictures as figures for a paper: traversals, reconstructions, tables over two latents.


_WIDTH = 6.5  # inches: the text of a page


def plates(page: MemberPage, album: Album) -> dict[str, Figure]:
    """By the names of their files; none for data that are not pictures, whose figures are drawn anyway."""
    if not page.examples:
        return {}
    active = [card for card in page.cards if card.latent.active]
    tables = {f"pair-{each.pair.i}-{each.pair.j}": pair(each, album) for each in page.pairs}
    return {
        "traversals": _traversals(active or page.cards, album),
        "inputs-and-reconstructions": _examples(page, album),
        **tables,
    }


@styled
def _traversals(cards: Sequence[Card], album: Album) -> Figure:
    """A row per latent: its frames, and what it moves at the start (the column of the Jacobian)."""
    films = [(album.image(card.film), album.image(card.moves)) for card in cards]
    height, long = films[0][0].shape[:2]
    short = films[0][1].shape[1]
    row = (_WIDTH - 0.9) * height / (long + short)
    figure = Figure(figsize=(_WIDTH, len(cards) * (row + 0.06) + 0.35), layout="constrained")
    axes = figure.subplots(len(cards), 2, squeeze=False, width_ratios=(long, short))
    for (left, right), card, (film, moves) in zip(axes, cards, films, strict=True):
        _bare(left, film, len(card.values))
        _bare(right, moves)
        known = f" {plain(card.factor[0])}" if card.factor else ""
        left.set_ylabel(f"$z_{{{card.latent.index}}}${known}", rotation=0, ha="right", va="center")
    first, last = cards[0].values[0], cards[0].values[-1]
    axes[-1, 0].set_xlabel(f"z from {first:g} to {last:g}")
    axes[-1, 1].set_xlabel("moves")
    return figure


@styled
def _examples(page: MemberPage, album: Album) -> Figure:
    """Inputs above, reconstructions below."""
    image = album.image(page.examples)
    figure, axes = new(_WIDTH, (_WIDTH - 1.1) * image.shape[0] / image.shape[1] + 0.1)
    _bare(axes, image, page.count, 2)
    axes.set_yticks(np.array([0.25, 0.75]) * image.shape[0], ["input", "output"])
    return figure


@styled
def pair(table: PairTable, album: Album) -> Figure:
    """Two latents: one to the right, one upwards."""
    figure, axes = new(3.2, 3.3)
    _bare(axes, album.image(table.picture), TABLE_FRAMES, TABLE_FRAMES)
    axes.set(xlabel=f"$z_{{{table.pair.i}}}$", ylabel=f"$z_{{{table.pair.j}}}$")
    return figure


def _bare(axes: Any, image: Array, columns: int = 1, rows: int = 1) -> None:
    """An image without ticks, grid or frame; white lines between its frames."""
    axes.imshow(image, interpolation="nearest")
    for k in range(1, columns):
        axes.axvline(k * image.shape[1] / columns - 0.5, color="white", lw=1)
    for k in range(1, rows):
        axes.axhline(k * image.shape[0] / rows - 0.5, color="white", lw=1)
    axes.set(xticks=[], yticks=[])
    frameless(axes)
