"""Everything the report shows of one member: latents with their traversals, reconstructions, pairs, matrices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.diagnosis import Latent, Pair
from unseam.geometry.groups import middle
from unseam.geometry.jacobian import jacobian
from unseam.models import Autoencoder
from unseam.run import Run
from unseam.runs.history import history, latent_columns
from unseam.runs.labels import column_units, latent_names
from unseam.runs.represent import observation_chunks, represent, some
from unseam.show.pictures import Album, frames_table, is_picture, signed, strip
from unseam.show.report import figures
from unseam.show.report.collect import View, detail
from unseam.show.style import LATENT_COLOURS, latent_colour, shade
from unseam.show.traversals import FRAMES, TABLE_FRAMES, latent_values, traversal_frames, traverse_pair

CARDS = 24  # latents shown with pictures, the most informative first
_PAIRS = 3  # tables over two latents
EXAMPLES = 12  # inputs beside their reconstructions
_SHOWN = ("cartesian", "polar", "undecided")


@dataclass(frozen=True)
class Card:
    """One latent: its row of numbers, and its pictures (CSS classes) or drawings (SVG)."""

    latent: Latent
    factor: tuple[str, float] | None
    values: list[float]
    start: int  # the frame nearest to where the traversal starts
    film: str = ""  # picture: all frames side by side
    moves: str = ""  # picture: the Jacobian's column
    path: str = ""  # drawing, for data that are not pictures
    moved: Sequence[figures.ColumnMove] = ()  # columns of the data by name
    bars: str = ""  # all columns, where they have no names
    name: str = ""  # that a person gave it in the explorer

    @property
    def colour(self) -> str:
        return shade(self.latent.index, self.latent.active)


@dataclass(frozen=True)
class PairTable:
    """Two latents at a time: a table of frames (a picture), or a net over the data (a drawing)."""

    pair: Pair
    verdict: str
    picture: str = ""
    drawing: str = ""

    @property
    def colours(self) -> tuple[str, str]:
        return latent_colour(self.pair.i), latent_colour(self.pair.j)


@dataclass(frozen=True)
class MemberPage:
    """What the template needs."""

    view: View
    shape: tuple[int, ...]  # of one observation
    cards: list[Card]
    hidden: int  # latents left out
    examples: str  # picture: inputs above reconstructions
    count: int  # of them
    held: bool  # whether these rows were held out
    adapted: bool  # whether the model was trained elsewhere, so that its training is not known
    pairs: list[PairTable]
    figures: dict[str, Figure]
    axes: tuple[str, str] | None = None  # of the drawings, in the data's columns
    units: str = ""  # of what moves


def member_page(run: Run, view: View, album: Album, brief: bool = False) -> MemberPage:
    """Collect one member; its pictures go to the album. Brief: without details for specialists."""
    model = run.model(view.member)
    x, xhat = examples(run, model)
    picture = is_picture(run.data.shape)
    dots = x if picture else background_rows(run)
    drawn = _matrices(view) if brief else {**_matrices(view), **_curves(run, view)}
    if picture:
        shown = album.add(f"{view.anchor}-examples", frames_table(torch.stack([x[:EXAMPLES], xhat[:EXAMPLES]])))
    else:
        drawn["reconstructions"] = figures.reconstructions(x, xhat)
        shown = ""
    return MemberPage(
        view=view,
        shape=run.data.shape,
        cards=cards(run, model, view, album, dots),
        hidden=max(0, len(view.diagnosis.latents) - CARDS),
        examples=shown,
        count=min(EXAMPLES, len(x)),
        held=len(run.split("held-out")) > 0,
        adapted=bool(run.config.adapted),
        pairs=pair_tables(model, view, album, None if picture else dots),
        figures=drawn,
        axes=None if picture else figures.loads(figures.drawing_plane(dots), column_names(run)),
        units=column_units(run),
    )


@torch.no_grad()
def examples(run: Run, model: Autoencoder, count: int = 400) -> tuple[Tensor, Tensor]:
    """Held-out rows (any, when none were held out) and their reconstructions from the posterior's mean."""
    encoded = represent(model, run.data, run.held_out()[:count])
    return encoded.x.float(), model.mean(encoded.posterior.mean).float()


def background_rows(run: Run) -> Tensor:  # (N, n)
    """Rows of the data to draw behind a path: held-out ones where they are enough for a cloud, else any."""
    held = run.split("held-out")
    rows = some(held if len(held) >= figures.CLOUD // 3 else run.split("all"), figures.CLOUD)
    return torch.cat(list(observation_chunks(run.data, rows))).float()


def column_names(run: Run) -> Sequence[str]:
    """The names of a table's columns, or their numbers."""
    count = int(np.prod(run.data.shape))
    return run.config.features or [f"column {k}" for k in range(count)]


def start_of(view: View, model: Autoencoder, frames: int = FRAMES) -> tuple[Tensor, Tensor]:
    """Where traversals start (K,) and where they go (K, T), in the model's precision."""
    prior = any(latent.kl is not None for latent in view.diagnosis.latents)
    z, values = torch.as_tensor(view.codes[middle(view.codes)]), latent_values(view.codes, prior, frames)
    dtype = next((p.dtype for p in model.parameters()), torch.float32)  # an adapted model has no weights here
    return z.float().to(dtype), values.to(dtype)


def cards(run: Run, model: Autoencoder, view: View, album: Album, x: Tensor) -> list[Card]:
    z, values = start_of(view, model)
    frames = traversal_frames(model.mean, z, values).float()  # (K, T, *shape)
    with torch.no_grad():
        columns = jacobian(model.mean, z[None])[0].T.float()  # (K, n)
    largest = float(columns.abs().max())
    encoded, names = None if is_picture(run.data.shape) else figures.drawing_plane(x), column_names(run)
    latent_labels = names_in_report(run, view.member)
    out = []
    for k in view.order()[:CARDS]:
        name = f"{view.anchor}-z{k}"
        shown: dict[str, Any]
        if encoded is None:
            film = album.add(f"{name}-film", strip(frames[k]))
            moves = album.add(f"{name}-moves", signed(columns[k].reshape(run.data.shape), largest))
            shown = {"film": film, "moves": moves}
        else:
            points, curve = x.flatten(1).double().numpy(), frames[k].flatten(1).double().numpy()
            moved = figures.largest_moves(columns[k], largest, names)
            shown = {
                "path": figures.path(encoded, points, curve, shade(k, view.diagnosis.latents[k].active)),
                "moved": moved,
            }
            if not run.config.features and len(names) > figures.MOVES_SHOWN:
                shown["bars"] = figures.bars(columns[k], largest)
        start = int((values[k] - z[k]).abs().argmin())
        steps = [round(float(v), 2) for v in values[k]]
        out.append(
            Card(view.diagnosis.latents[k], view.best_factor(k), steps, start, name=latent_labels.get(k, ""), **shown)
        )
    return out


def names_in_report(run: Run, member: int) -> dict[int, str]:
    """What a person called the latents; a file of names that is damaged stops no report."""
    try:
        return latent_names(run).get(member, {})
    except BadInput:
        return {}


def pair_tables(model: Autoencoder, view: View, album: Album, cloud: Tensor | None = None) -> list[PairTable]:
    """The costliest pairs of active latents, each latent over its range; over a cloud of data that are not pictures."""
    (z, values), out = start_of(view, model, TABLE_FRAMES), []
    for pair in view.diagnosis.pairs[:_PAIRS]:
        frames = traverse_pair(model.mean, z, pair.i, pair.j, values).float()
        verdict = pair_verdict(pair, view.diagnosis.beta)
        if cloud is None:
            shown = {"picture": album.add(f"{view.anchor}-pair-{pair.i}-{pair.j}", frames_table(frames))}
        else:
            points = cloud.flatten(1).double().numpy()
            net = frames.flatten(2).double().numpy()
            shown = {"drawing": figures.mesh(figures.drawing_plane(cloud), points, net, pair.i, pair.j)}
        out.append(PairTable(pair, verdict, **shown))
    return out


def pair_verdict(pair: Pair, beta: float) -> str:
    """How two latents share what they encode."""
    cost = f"{pair.cost / beta:.3f} nats of loss per β, rms cosine {pair.cosine:.2f}"
    if not pair.mixed:
        return f"not mixed ({cost})"
    how = f", {pair.coordinates} coordinates" if pair.coordinates in _SHOWN else ""
    return f"mixed ({cost}){how}"


def _matrices(view: View) -> dict[str, Figure]:
    """What each latent knows, and how orthogonal the decoder is; figures by the names the page uses."""
    drawn = {"cosines": figures.cosine_matrix(view)}
    return drawn if view.share is None else {"information": figures.information(view), **drawn}


def _curves(run: Run, view: View) -> dict[str, Figure]:
    """Costs by pair, DCI's importances, the Sigma law, and what happened over training."""
    drawn = {"costs": figures.draw_pair_costs(view)}
    found = detail(run, view)
    if found is not None and found.importance is not None:
        drawn["importance"] = figures.importance(view, found.importance)
    if "sigma2" not in view.diagnosis.arrays:
        return drawn
    past = {} if run.config.adapted else timeline(run, view)
    return {**drawn, "sigma-law": figures.draw_sigma_law(view.diagnosis), **past}


def timeline(run: Run, view: View) -> dict[str, Figure]:
    """KL of each latent and the distance from the polarized regime over training; the cost at snapshots."""
    steps, (kl,) = latent_columns(run, view.member, "kl")
    each = {f"{k}": thinned(steps, kl[:, k]) for k in view.order()[: len(LATENT_COLOURS)]}
    colours = {f"{z.index}": shade(z.index, z.active) for z in view.diagnosis.latents}
    past = history(run, view.member)
    drawn = {
        "kl": figures.draw_over_training(each, "KL of each latent (nats)", colours=colours),
        "regime": figures.draw_over_training(
            {"": thinned(past.steps, np.clip(past.delta_kl, 1e-4, 1e3))}, "ΔKL", log=True
        ),
    }
    if len(past.cost):
        cost = {"": (past.snapshot_steps, past.cost / view.diagnosis.beta)}
        drawn["cost-history"] = figures.draw_over_training(cost, "cost (nats of loss per β)")
    return drawn


def thinned(x: Array, y: Array, most: int = 120) -> tuple[Array, Array]:
    """At most `most` points: the mean of each stretch.

    >>> [part.tolist() for part in thinned(np.arange(6.0), np.array([0.0, 2, 4, 6, 8, 10]), most=3)]
    [[0.5, 2.5, 4.5], [1.0, 5.0, 9.0]]
    """
    if len(x) <= most:
        return x, y
    parts: Sequence[Array] = np.array_split(np.arange(len(x)), most)
    return np.array([x[p].mean() for p in parts]), np.array([y[p].mean() for p in parts])
