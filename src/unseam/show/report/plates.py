"""The page's pictures as figures for a paper: traversals, reconstructions, tables over two latents."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from unseam.show.pictures import Album
from unseam.show.report.member import Card, MemberPage, PairTable
from unseam.show.style import frameless, new, plain, styled
from unseam.show.traversals import TABLE
from unseam.types import Array

WIDTH = 6.5  # inches: the text of a page


def plates(page: MemberPage, album: Album) -> dict[str, Figure]:
    """By the names of their files; none for data that are no pictures, whose figures are drawn anyway."""
    if not page.examples:
        return {}
    active = [card for card in page.cards if card.latent.active]
    tables = {f"pair-{each.pair.i}-{each.pair.j}": pair(each, album) for each in page.pairs}
    return {
        "traversals": traversals(active or page.cards, album),
        "inputs-and-reconstructions": examples(page, album),
        **tables,
    }


@styled
def traversals(cards: Sequence[Card], album: Album) -> Figure:
    """A row a latent: its frames, and what it moves at the start (the column of the Jacobian)."""
    films = [(album.image(card.film), album.image(card.moves)) for card in cards]
    height, long = films[0][0].shape[:2]
    short = films[0][1].shape[1]
    row = (WIDTH - 0.9) * height / (long + short)
    figure = Figure(figsize=(WIDTH, len(cards) * (row + 0.06) + 0.35), layout="constrained")
    axes = figure.subplots(len(cards), 2, squeeze=False, width_ratios=(long, short))
    for (left, right), card, (film, moves) in zip(axes, cards, films, strict=True):
        bare(left, film, len(card.values))
        bare(right, moves)
        known = f" {plain(card.factor[0])}" if card.factor else ""
        left.set_ylabel(f"$z_{{{card.latent.index}}}${known}", rotation=0, ha="right", va="center")
    first, last = cards[0].values[0], cards[0].values[-1]
    axes[-1, 0].set_xlabel(f"z from {first:g} to {last:g}")
    axes[-1, 1].set_xlabel("moves")
    return figure


@styled
def examples(page: MemberPage, album: Album) -> Figure:
    """Inputs above, reconstructions below."""
    image = album.image(page.examples)
    figure, axes = new(WIDTH, (WIDTH - 1.1) * image.shape[0] / image.shape[1] + 0.1)
    bare(axes, image, page.count, 2)
    axes.set_yticks(np.array([0.25, 0.75]) * image.shape[0], ["input", "output"])
    return figure


@styled
def pair(table: PairTable, album: Album) -> Figure:
    """Two latents: one to the right, one upwards."""
    figure, axes = new(3.2, 3.3)
    bare(axes, album.image(table.picture), TABLE, TABLE)
    axes.set(xlabel=f"$z_{{{table.pair.i}}}$", ylabel=f"$z_{{{table.pair.j}}}$")
    return figure


def bare(axes: Any, image: Array, columns: int = 1, rows: int = 1) -> None:
    """An image without ticks, grid or frame; white lines between its frames."""
    axes.imshow(image, interpolation="nearest")
    for k in range(1, columns):
        axes.axvline(k * image.shape[1] / columns - 0.5, color="white", lw=1)
    for k in range(1, rows):
        axes.axhline(k * image.shape[0] / rows - 0.5, color="white", lw=1)
    axes.set(xticks=[], yticks=[])
    frameless(axes)
