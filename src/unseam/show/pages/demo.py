"""The demo's page: what unseam does with a table and with images, on one screen each, for a newcomer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from markupsafe import Markup

from unseam.atomic import write_atomic
from unseam.finding import Findings
from unseam.rng import numpy_generator
from unseam.show.pictures import Album, strip
from unseam.show.report.cohort import agreement_figure
from unseam.show.report.collect import ReportData, View
from unseam.show.report.member import background_rows, cards
from unseam.show.style import svg, template

_CARDS = 6  # factors of the table that are shown
_MOVES = 4  # columns of each
_IMAGES = 12  # of the data


def write_demo_page(
    cohort: ReportData, why: Sequence[str], found: Findings, tells: Sequence[float], path: Path
) -> Path:
    """One file without a script, whole or not at all."""
    album, run = Album(), cohort.run
    some = numpy_generator(0, "demo page").choice(len(run.data), _IMAGES, replace=False)
    album.add("examples", strip(run.data.batch(torch.as_tensor(some))))
    views = [cohort.chosen] if cohort.other is None else [cohort.chosen, cohort.other]
    shown = [{"cards": latent_cards(cohort, view, album), "shape": run.data.shape, "view": view} for view in views]
    texts = list(reversed(why)) or [""]
    scores = [view.mig.value for view in cohort.views if view.mig is not None]
    place = 1 + sum(score > cohort.chosen.mig.value for score in scores) if cohort.chosen.mig else None
    dots = agreement_figure(cohort.views, [cohort.chosen])
    largest = max((abs(move.share) for factor in found.factors for move in factor.moves), default=1.0)
    best = max(range(len(tells)), key=tells.__getitem__, default=None)
    text = template("demo.html").render(
        found=found, factors=found.factors[:_CARDS], moves=_MOVES, tells=tells, best=best, largest=largest,
        run=run, count=len(cohort.views), pages=list(zip(shown, texts, strict=True)), place=place, images=_IMAGES,
        dots=Markup(svg(dots, "dots")), style=Markup(album.css()), factor_names=cohort.chosen.factors,
        folder=run.folder.name,
    )  # fmt: skip
    write_atomic(path, text)
    return path


def latent_cards(cohort: ReportData, view: View, album: Album) -> list[object]:
    """The latents of a member that are in use, with their films in the album."""
    run = cohort.run
    every = cards(run, run.model(view.member), view, album, background_rows(run))
    for card in every:
        album.pictures.pop(card.moves, None)
    return [card for card in every if card.latent.active]
