"""What the page saves: traversals from the current point, or the way to another one, as a grid or a moving picture."""

from __future__ import annotations

import torch
from PIL import Image
from torch import Tensor

from unseam.errors import BadInput
from unseam.show.explorer.member import Subject
from unseam.show.film import Film, check_size, curves, film_bytes, image
from unseam.show.style import content
from unseam.show.traversals import latent_values, traversal_frames

_STEPS = 11  # frames of a grid
SMOOTH = 25  # frames of a moving picture
_LEAST = 256  # pixels per side of a moving picture


@torch.no_grad()
def film_from(
    subject: Subject, z: Tensor, to: Tensor | None, kind: str, features: tuple[str, ...] | None = None
) -> bytes:
    """A PNG or, for kind "gif", a GIF: of each active latent from z, or of the straight way from z `to` a point."""
    steps = SMOOTH if kind == "gif" else _STEPS
    check_size(subject.size if to is None else 1, steps, tuple(subject.mean(z[None]).shape[1:]))
    shown = _traversals(subject, z, steps) if to is None else way(subject, z, to, steps)
    if not torch.isfinite(shown.frames).all():
        raise BadInput("the decoder returns NaN or infinite values on this way; start closer to the data")
    if not shown.pictures:
        return _drawn(shown, kind, features)
    frames = shown.moving() if kind == "gif" else [image(shown.grid())]
    return film_bytes([enlarged(frame) for frame in frames], kind.upper() if kind == "gif" else "PNG")


def _traversals(subject: Subject, z: Tensor, steps: int) -> Film:  # (K,)
    """A row an active latent (every one, where none is active), the others held at z."""
    values = latent_values(subject.codes, prior=subject.latents[0]["kl"] is not None, frames=steps)
    order = subject.active or [row["latent"] for row in subject.latents]
    return Film(traversal_frames(subject.mean, z, values)[order], values[order], tuple(f"z{k}" for k in order))


def way(subject: Subject, z: Tensor, to: Tensor, steps: int) -> Film:  # (K,), (K,)
    """z + t (to - z), t from 0 to 1.

    >>> import numpy as np
    >>> from unseam.models.likelihood import Gaussian
    >>> same = Subject(lambda x: x, lambda z: z, Gaussian(), 1.0, np.zeros((1, 2)), [])
    >>> way(same, torch.zeros(2), torch.tensor([2.0, 4.0]), 3).frames[0, 1]
    tensor([1., 2.])
    """
    t = torch.linspace(0, 1, steps)
    return Film(subject.mean(z + t[:, None] * (to - z))[None], t[None], ("from start to end",))


def enlarged(picture: Image.Image) -> Image.Image:
    """Small pictures by whole pixels until a side has LEAST of them."""
    times = -(-_LEAST // max(picture.size))
    return picture.resize((picture.width * times, picture.height * times), Image.Resampling.NEAREST)


def _drawn(shown: Film, kind: str, features: tuple[str, ...] | None) -> bytes:
    """Data that are not pictures: curves of the columns that move most."""
    if kind == "gif":
        raise BadInput(
            "these data are not pictures, so nothing moves in a GIF; save the grid, which draws their curves"
        )
    return content(curves(shown, features), "png", 150)
