"""`unseam traverse`: what each latent does, as one grid, a moving picture, or curves of the columns of a table."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from unseam.atomic import write_atomic
from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.groups import middle
from unseam.geometry.polarized import active_latents
from unseam.run import Run
from unseam.runs.diagnose import needs_decoder
from unseam.runs.represent import represent, sample_rows
from unseam.show.pictures import as_pixels, is_picture
from unseam.show.style import plain, save, styled
from unseam.show.traversals import latent_values, traversal_frames

_CODES = 2000  # rows that set where a latent goes and which one is typical
_GAP = 2  # pixels between pictures
ENLARGED = 96  # pixels a side that a small picture is enlarged to
_COLUMNS = 6  # columns of a table drawn in one panel: those a latent moves most
_LARGEST = 256
_PANELS, ACROSS = 60, 6  # of tables, in one figure
_MOST = 2**28  # bytes of the pictures of a film


@dataclass(frozen=True)
class Film:
    """Frames along each latent, or along one line from a row to another.

    Parameters
    ----------
    frames : Tensor (K, T, *shape)
        T decoded observations for each latent.
    values : Tensor (K, T)
        The values of the latent.
    names : tuple of str
        What each line of frames is called.

    Examples
    --------
    >>> film = Film(torch.zeros(2, 5, 1, 8, 8), torch.zeros(2, 5), ("z0", "z1"))
    >>> film.pictures, film.grid().ndim
    (True, 3)
    """

    frames: Tensor  # (K, T, *shape)
    values: Tensor  # (K, T) of the latent
    names: tuple[str, ...]  # (K,)

    @property
    def pictures(self) -> bool:
        return is_picture(tuple(self.frames.shape[2:]))

    def tiles(self) -> Array:  # (K, T, H, W, 1 or 3) uint8
        """The frames as bytes, small ones enlarged by whole pixels, each with white to its right and below it."""
        tiles = as_pixels(self.frames, _LARGEST)
        times = max(1, ENLARGED // max(tiles.shape[2:4]))
        gap = ((0, 0), (0, 0), (0, _GAP), (0, _GAP), (0, 0))
        return np.pad(tiles.repeat(times, 2).repeat(times, 3), gap, constant_values=255)

    def grid(self) -> Array:  # (H, W, 1 or 3) uint8
        """A row per latent, a column per value."""
        return np.concatenate([np.concatenate(list(row), axis=1) for row in self.tiles()])

    def moving(self) -> list[Image.Image]:
        """All latents side by side, there and back."""
        there = [image(np.concatenate(list(frame), axis=1)) for frame in self.tiles().swapaxes(0, 1)]
        return there + there[-2:0:-1]


def image(pixel: Array) -> Image.Image:
    return Image.fromarray(pixel[..., 0] if pixel.shape[-1] == 1 else pixel)


@torch.no_grad()
def film(
    run: Run, member: int = 0, row: int | None = None, to: int | None = None, steps: int = 11, every: bool = False
) -> Film:
    """Traverse the latents from one row of the data, or move from that row to another.

    Latents come in the order of their information (KL), the most informative first; a point posterior has none and is
    ordered by spread.

    Parameters
    ----------
    run : Run
        The run.
    member : int, default=0
        Which member.
    row : int, optional
        The row to start from; by default the held-out row whose code is nearest to the median.
    to : int, optional
        Move to this row instead.
    steps : int, default=11
        Frames along each latent.
    every : bool, default=False
        Include passive latents.

    Returns
    -------
    Film
        Frames, values and names.

    Examples
    --------
    >>> import tempfile, unseam
    >>> run = unseam.fit("sprites", steps=3, network="mlp", latents=2, data_parameters={"size": 16, "shapes": 1},
    ...                  out=tempfile.mkdtemp() + "/run")
    >>> film(run, every=True, steps=5).frames.shape
    torch.Size([2, 5, 1, 16, 16])
    """
    check_size(1 if to is not None else run.config.architecture.latents, steps, run.shape)
    needs_decoder(run)
    run = run.on("cpu")
    model, undo = run.model(member), run.config.scaling.undo if run.config.scaling else torch.Tensor.float
    encoded = represent(model, run.data, sample_rows(run, count=_CODES, use="film").rows)
    z = encoded.posterior.mean[middle(encoded.codes)] if row is None else code_of(run, model, row, "row")
    if to is not None:
        if row is None:
            raise BadInput(f"to={to} is the end of a way; give the row where it starts as well")
        way = torch.linspace(0, 1, steps)[:, None] * (code_of(run, model, to, "to") - z) + z
        return Film(undo(model.mean(way))[None].float(), torch.linspace(0, 1, steps)[None], (f"row {row} to row {to}",))
    prior = encoded.posterior.has_prior
    values = latent_values(encoded.codes, prior=prior, frames=steps).to(z)
    information = encoded.posterior.kl_per_latent().mean(0) if prior else encoded.posterior.mean.std(0)
    order = [int(k) for k in information.argsort(descending=True)]
    if prior and not every:
        active = active_latents(encoded.codes.std(0), encoded.variances.mean(0))
        order = [k for k in order if active[k]] or order
    return Film(
        undo(traversal_frames(model.mean, z, values)[order]).float(), values[order], tuple(f"z{k}" for k in order)
    )


def check_size(latents: int, steps: int, shape: tuple[int, ...]) -> None:
    """Refuse a film of fewer than two frames, or one that no memory holds.

    >>> check_size(10, 11, (1, 64, 64))
    """
    each = max(math.prod(shape), shape[0] * ENLARGED**2 if len(shape) == 3 else 0)
    if not 2 <= steps <= _MOST // (latents * each):
        raise BadInput(
            f"steps={steps} must be at least 2 and, for {latents} latents, at most {_MOST // (latents * each)}"
        )


def code_of(run: Run, model: torch.nn.Module, row: int, what: str) -> Tensor:  # (K,)
    if not 0 <= row < len(run.data):
        raise BadInput(f"{what}={row} is not a row of the data, which has rows 0..{len(run.data) - 1}")
    return represent(model, run.data, torch.tensor([row])).posterior.mean[0]


@styled
def curves(shown: Film, names: tuple[str, ...] | None = None) -> Figure:
    """For tables: the columns that each latent moves most, over its values; a panel per latent."""
    K = min(len(shown.names), _PANELS)
    across, down = min(K, ACROSS), -(-K // ACROSS)
    figure = Figure(figsize=(3.4 * across, 2.8 * down), layout="constrained")
    if len(shown.names) > K:
        figure.suptitle(f"the first {K} of {len(shown.names)} latents")
    for k in range(K):
        ax = figure.add_subplot(down, across, k + 1)
        lines = shown.frames[k].flatten(1).numpy()  # (T, n)
        for column in np.argsort(-np.ptp(lines, axis=0))[:_COLUMNS]:
            ax.plot(shown.values[k], lines[:, column], label=plain(names[column]) if names else f"column {column}")
        ax.set(title=shown.names[k], xlabel="value of the latent", ylabel="mean of p(x|z)")
        ax.legend(fontsize=6)
    return figure


def write_film(shown: Film, out: Path, gif: bool, names: tuple[str, ...] | None = None) -> dict[str, Path]:
    """The grid as a PNG (curves for a table) and, if requested and possible, the moving picture."""
    if not shown.pictures:
        if gif:
            raise BadInput("gif: the data are not images; leave --gif out, the curves of its columns are drawn")
        return {"curves": save(curves(shown, names), out.with_suffix(".png"))}
    files = {"grid": out.with_suffix(".png")}
    write_atomic(files["grid"], film_bytes([image(shown.grid())], "PNG"))
    if gif:
        files["gif"] = out.with_suffix(".gif")
        write_atomic(files["gif"], film_bytes(shown.moving(), "GIF"))
    return files


def film_bytes(images: list[Image.Image], kind: str) -> bytes:
    if kind == "GIF" and max(images[0].size) >= 2**16:
        raise BadInput(f"a GIF has at most 65,535 pixels a side, this one {max(images[0].size):,}; save the grid")
    content = io.BytesIO()
    more = {"save_all": True, "append_images": images[1:], "duration": 90, "loop": 0} if len(images) > 1 else {}
    images[0].save(content, kind, **more)
    return content.getvalue()
