"""What the user drops onto the page -> an observation: a picture, or for vectors a list of numbers."""

from __future__ import annotations

import io
import math
from threading import Semaphore

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from unseam.errors import BadInput

_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
_PIXELS = 2**24  # of a dropped picture, before it is decoded
_MODES = {1: "L", 3: "RGB"}
DECODING = Semaphore(2)  # pictures at once: a small file may unpack to PIXELS of 4 bytes, some times over


def observation(content: bytes, shape: tuple[int, ...]) -> Tensor:  # (*shape)
    """A dropped file as one observation of this shape."""
    with DECODING:
        return picture(content, shape) if len(shape) == 3 else numbers_in_text(content, shape)


def picture(content: bytes, shape: tuple[int, ...]) -> Tensor:  # (C, H, W) in [0, 1]
    """The middle of the picture, cut to the data's proportions and resized; transparent parts are white.

    >>> file = io.BytesIO()
    >>> Image.new("L", (10, 20), 255).save(file, "PNG")
    >>> picture(file.getvalue(), (3, 4, 4)).shape, float(picture(file.getvalue(), (1, 4, 4)).min())
    (torch.Size([3, 4, 4]), 1.0)
    """
    channels, height, width = shape
    if channels not in _MODES:
        raise BadInput(f"the data has {channels} channels; a picture has 1 or 3, so it cannot be encoded")
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            if math.prod(image.size) > _PIXELS:
                raise BadInput(f"the picture has {image.size[0]} x {image.size[1]} pixels; at most {_PIXELS} are read")
            clear = ImageOps.exif_transpose(image).convert("RGBA")
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"the file is not a readable picture ({', '.join(_FORMATS)})") from None
    flat = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert(_MODES[channels])
    small = ImageOps.fit(flat, (width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(small, dtype=np.float32).reshape(height, width, channels) / 255
    return torch.from_numpy(pixels.transpose(2, 0, 1).copy())


def numbers_in_text(content: bytes, shape: tuple[int, ...]) -> Tensor:  # (n,)
    """Numbers separated by commas or white space.

    >>> numbers_in_text(b"1, 2.5\\n3", (3,))
    tensor([1.0000, 2.5000, 3.0000])
    """
    try:
        values = [float(part) for part in content.decode().replace(",", " ").split()]
    except ValueError:  # also what bytes that are not text raise
        raise BadInput("the file is not a list of numbers; write them separated by commas or spaces") from None
    return vector(values, math.prod(shape), "the file").reshape(shape)


def vector(values: list[float], length: int, what: str) -> Tensor:  # (n,)
    """Finite numbers, as many as are needed."""
    if len(values) != length:
        raise BadInput(f"{what} has {len(values)} numbers; the data has {length}")
    if not all(map(math.isfinite, values)):
        raise BadInput(f"{what} holds NaN or infinite values")
    return torch.tensor(values, dtype=torch.float32)
