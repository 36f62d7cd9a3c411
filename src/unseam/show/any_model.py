"""`unseam.traverse` and `unseam.explore`: of a run, or of any model that `diagnose` takes."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from unseam.atomic import free_path
from unseam.errors import BadInput
from unseam.geometry.adapted import check_usable, on_device, strength
from unseam.geometry.groups import Latents, middle, one_model
from unseam.models.adapters import AdaptedModel, adapter_for
from unseam.run import Run
from unseam.runs.adapted_run import as_run
from unseam.runs.diagnose import one_member
from unseam.show.film import Film, film, write_film
from unseam.show.traversals import latent_values

_MOST = 16  # latents that are drawn of a model that is not flat, the most informative first


def traverse(
    model: Any,
    data: Any = None,
    *,
    member: int | None = None,
    row: int | None = None,
    to: int | None = None,
    frames: int = 11,
    every: bool = False,
    gif: bool = False,
    out: str | Path | None = None,
) -> dict[str, Path]:
    """Draw what each latent does: a grid with a row for each latent, or curves of the columns of a table.

    Parameters
    ----------
    model : Run, path or model
        A run, or any model that `diagnose` takes, with its observations as data.
    data : array, tensor, DataFrame, AnnData, Dataset or DataLoader
        Observations, scaled as in training; a run takes its own.
    member : int, optional
        Which member of a run; the one that `diagnose` or `report` chose, else the first whole one.
    row : int, optional
        Row of the data to start from; a typical one when not given.
    to : int, optional
        Row of the data to end at: the way there from `row`, instead of one latent after the other.
    frames : int, default=11
        Frames of each latent.
    every : bool, default=False
        Passive latents too. Of latents (C, H, W), and of more than 16, the 16 most informative are drawn.
    gif : bool, default=False
        Write a moving picture as well.
    out : path, optional
        File to write, without its ending; in the run folder, or traversals/NAME-OF-THE-MODEL.

    Returns
    -------
    dict
        What was written: "grid" and "gif" of pictures, else "curves".

    Examples
    --------
    >>> import tempfile
    >>> from torch import nn
    >>> x = torch.rand(100, 1, 8, 8)
    >>> encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    >>> decoder = nn.Sequential(nn.Linear(2, 64), nn.Unflatten(1, (1, 8, 8)))
    >>> list(traverse((encoder, decoder), x, out=tempfile.mkdtemp() + "/latents"))
    ['grid']
    """
    if isinstance(model, (Run, str, Path)):
        run = as_run(model, data)
        which = one_member(run, member)
        shown = film(run, which, row, to, frames, every)
        way = "" if to is None else f"-row-{row or 0}-to-{to}"
        names: tuple[str, ...] | None = run.config.features or None
        place = Path(out or run.folder / "traversals" / f"member-{which}{way}")
    else:
        one_model(member)
        shown = film_of_model(model, data, row, to, frames, every)
        names = tuple(map(str, data.columns)) if hasattr(data, "columns") else None
        place = Path(out) if out is not None else free_path(Path("traversals") / type(model).__name__)
    return write_film(shown, place, gif, names)


@torch.no_grad()
def film_of_model(
    model: Any, data: Any, row: int | None = None, to: int | None = None, steps: int = 11, every: bool = False
) -> Film:
    """Traversals of a model that an adapter reads, whatever the shape of its latents. What it decodes with besides
    latents (the library size of a cell) stays that of the row."""
    adapter = adapter_for(model)
    if adapter is None or data is None:
        raise BadInput(f"{type(model).__name__} needs an encoder, a decoder and data=, some of its observations")
    adapted = adapter.adapt(model, data)
    check_usable(adapted)
    codes = adapted.codes.flatten(1).double().numpy()
    for name, number in (("row", row), ("to", to)):
        if number is not None and not 0 <= number < len(codes):
            raise BadInput(f"{name}={number} is not a row of the data, which has rows 0..{len(codes) - 1}")
    start = adapted.points[middle(codes) if row is None else row]
    decode = _mean_decoder(adapted)
    if to is not None:
        if row is None:
            raise BadInput(f"to={to} is the end of a way; give the row where it starts as well")
        way = torch.linspace(0, 1, steps)[:, None].to(start) * (adapted.points[to] - start) + start
        return Film(decode(way)[None], torch.linspace(0, 1, steps)[None], (f"row {row} to row {to}",))
    order = [int(k) for k in np.argsort(-strength(adapted), kind="stable")]
    if not (every and len(adapted.latent_shape) == 1 and len(order) <= _MOST):
        order = order[:_MOST]
    values = latent_values(codes, prior=adapted.variances is not None, frames=steps)[order]
    points = start.expand(len(order), steps, len(start)).clone()
    points[torch.arange(len(order)), :, torch.tensor(order)] = values.to(start)
    frames = torch.stack([decode(each) for each in points])
    return Film(frames.float(), values, tuple(latent_name(k, adapted.latent_shape) for k in order))


def _mean_decoder(adapted: AdaptedModel) -> Any:
    """E[x|z] of flat points, as the observations are shaped."""
    decode = on_device(adapted)

    def mean(points: torch.Tensor) -> torch.Tensor:
        theta = decode(points)
        return theta if adapted.likelihood is None else adapted.likelihood.mean(theta)

    return mean


def latent_name(latent: int, shape: tuple[int, ...]) -> str:
    """
    >>> latent_name(3, (5,)), latent_name(70, (4, 8, 8))
    ('z3', 'z(1, 0, 6)')
    """
    if len(shape) == 1:
        return f"z{latent}"
    return f"z({', '.join(str(int(i)) for i in np.unravel_index(latent, shape))})"


def explore(
    model: Any,
    data: Any = None,
    *,
    latents: Latents = "auto",
    factors: Any = None,
    member: int | None = None,
    member2: int | None = None,
    port: int = 8642,
    open_browser: bool = True,
) -> None:
    """Serve the explorer, a local page that decodes as you drag a slider, until Ctrl-C (or the notebook's stop).

    Parameters
    ----------
    model : Run, path or model
        A run, or any model that `diagnose` takes but of scvi-tools, with its observations as data.
    data : array, tensor, DataFrame, Dataset or DataLoader
        Observations, scaled as in training; a run takes its own.
    latents : "auto" or sequence of int or (c, h, w), default="auto"
        For a model: its latents that get a slider. "auto": all of at most 64 flat ones, else the 32 that say most.
    factors : array or table, optional
        The factors of these observations, to name latents by.
    member, member2 : int, optional
        Members of a run: the one to start with, and the one beside it.
    port : int, default=8642
        Where to listen on 127.0.0.1; 0 takes a free port.
    open_browser : bool, default=True
        Open the page.

    Returns
    -------
    None
        When the server has stopped.

    Examples
    --------
    >>> explore((torch.sin, torch.cos))
    Traceback (most recent call last):
    unseam.errors.BadInput: tuple needs observations: data=, some of the data that it was trained on
    """
    import webbrowser

    from unseam.show.explorer.open_runs import open_gallery
    from unseam.show.explorer.server import serve_explorer

    def ready(url: str) -> None:
        print(f"exploring at {url} (Ctrl-C ends)")
        if open_browser:
            webbrowser.open(url)

    with ExitStack() as stack:
        out = None
        if not isinstance(model, (Run, str, Path)):
            name = "pair" if isinstance(model, (tuple, list)) else type(model).__name__
            out = Path(stack.enter_context(TemporaryDirectory())) / name
        run = as_run(model, data, latents=latents, factors=factors, out=out)
        serve_explorer(open_gallery([run], [member, member2]), port, ready)
