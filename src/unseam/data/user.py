"""A user's own data: an array (.npy, .npz, .h5, or in memory) or a folder of images, with or without factors.

Two axes are vectors (N, n); three are grey images (N, H, W); four are images (N, H, W, C) or (N, C, H, W).
Bytes (uint8) are pixels and are divided by 255; other numbers are taken as they are, and must lie in [0, 1] if
the likelihood is Bernoulli (the default for images).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from unseam.data.arrays import load_array
from unseam.data.base import LikelihoodName
from unseam.data.factor_table import Kinds, factor_table
from unseam.data.images import read_folder, resize
from unseam.data.stamps import remember
from unseam.data.table import Layout, Table, TableDataset
from unseam.errors import BadInput, unknown
from unseam.types import Array

LIKELIHOODS = ("bernoulli", "gaussian")
CHANNELS = (1, 3)
BLOCK = 1 << 24  # numbers checked at a time


def blocks(x: Any) -> Iterator[Array]:
    """The rows, some at a time, so that an array on disk is never whole in memory."""
    step = max(1, BLOCK // max(1, int(np.prod(x.shape[1:]))))
    for start in range(0, x.shape[0], step):
        yield np.asarray(x[start : start + step])


def value_range(x: Any, where: str) -> tuple[float, float]:
    """(min, max) in one pass; NaN and infinity are refused.

    >>> value_range(np.array([[0.0, np.nan]]), "data")
    Traceback (most recent call last):
    unseam.errors.BadInput: data holds NaN or infinity (first in row 0); every value must be finite
    """
    low, high, seen = np.inf, -np.inf, 0
    for block in blocks(x):
        a, b = float(block.min()), float(block.max())  # NaN goes through min and max
        if not (np.isfinite(a) and np.isfinite(b)):
            row = seen + int(np.flatnonzero(~np.isfinite(block).reshape(len(block), -1).all(1))[0])
            raise BadInput(f"{where} holds NaN or infinity (first in row {row}); every value must be finite")
        low, high, seen = min(low, a), max(high, b), seen + len(block)
    return low, high


def layout_of(shape: tuple[int, ...], given: str | None, where: str) -> Layout:
    """How to read the axes of an array (N, ...).

    >>> layout_of((10, 64, 64, 3), None, "data"), layout_of((10, 3, 64, 64), None, "data")
    ('hwc', 'chw')
    """
    if len(shape) in (2, 3):
        return "vectors" if len(shape) == 2 else "hw"
    if len(shape) != 4:
        raise BadInput(f"{where} has shape {shape}; it must be (N, n), (N, H, W), (N, H, W, C) or (N, C, H, W)")
    if given is not None and given not in ("hwc", "chw"):
        raise unknown("layout", given, ("hwc", "chw"))
    first, last = shape[1] in CHANNELS, shape[3] in CHANNELS
    if given is None and first == last:
        why = "both" if first else "neither"
        raise BadInput(f"{where} has shape {shape}: {why} of axes 1 and 3 can be channels; say layout=hwc or chw")
    if given == "hwc" or (given is None and last):
        return "hwc"
    return "chw"


@dataclass(frozen=True, eq=False)
class UserData(TableDataset):
    """Rows of the user's own array or image folder.

    >>> data = UserData(np.zeros((5, 8, 8), np.uint8), factor_table=np.arange(5))
    >>> data.shape, data.space.sizes, data.likelihood
    ((1, 8, 8), (5,), 'bernoulli')
    """

    source: Any  # path of a .npy, .npz, .h5 or of a folder of images; or an array
    factor_table: Any = None  # path of a .csv, .npy or .npz with one row per observation; or an array
    kinds: Kinds = None  # kinds of the factors: "ordinal,cyclic" or "hue=cyclic"; inferred where not given
    key: str | None = None  # which array of an .npz or .h5
    layout: str | None = None  # hwc or chw, where the shape leaves it open
    size: int | None = None  # resize images (uint8) to this many pixels a side
    assume: str | None = None  # bernoulli or gaussian; default bernoulli for images, gaussian for vectors

    name = "user"

    def __post_init__(self) -> None:
        if self.assume is not None and self.assume not in LIKELIHOODS:
            raise unknown("likelihood", self.assume, LIKELIHOODS)
        if self.kinds is not None and self.factor_table is None:
            raise BadInput(f"kinds={self.kinds!r} needs the factor table; pass factors=FILE.csv")
        if self.key is not None and not (isinstance(self.source, (str, Path)) and Path(self.source).is_file()):
            raise BadInput(f"key={self.key!r} names an array of an .npz or .h5 file; leave key out")
        self.table  # noqa: B018  bad files are refused now, not in the middle of a training

    @property
    def likelihood(self) -> LikelihoodName:  # type: ignore[override]
        return self.assume or ("gaussian" if self.table.layout == "vectors" else "bernoulli")  # type: ignore[return-value]

    @property
    def where(self) -> str:
        return f"data={str(self.source)!r}" if isinstance(self.source, (str, Path)) else "data"

    @cached_property
    def table(self) -> Table:
        x, layout = self._rows()
        if self.factor_table is None:
            return Table(x, layout)
        return Table(x, layout, *factor_table(self.factor_table, x.shape[0], self.kinds))

    def _rows(self) -> tuple[Any, Layout]:
        if isinstance(self.source, (str, Path)) and Path(self.source).is_dir():
            images = read_folder(Path(self.source), self.size)
            return images, "hw" if images.ndim == 3 else "hwc"
        x = self.source
        x = load_array(x, self.where, self.key) if isinstance(x, (str, Path)) else np.asarray(x)
        layout = self._check(x)
        if self.size is None:
            return x, layout
        if x.dtype != np.uint8 or layout not in ("hw", "hwc"):
            raise BadInput(f"size={self.size}: only uint8 images (N, H, W) or (N, H, W, C) can be resized")
        return resize(x, self.size), layout

    def _check(self, x: Any) -> Layout:
        if x.dtype.kind not in "biuf" or not x.shape:
            raise BadInput(f"{self.where} has dtype {x.dtype} and shape {x.shape}; it must be an array of numbers")
        layout = layout_of(x.shape, self.layout, self.where)
        if 0 in x.shape:
            raise BadInput(f"{self.where} has shape {x.shape}: it is empty")
        if x.dtype != np.uint8:
            low, high = remember(self.source, self.key, lambda: value_range(x, self.where))
            if max(-low, high) > float(np.finfo(np.float32).max):
                raise BadInput(f"{self.where} has values from {low:g} to {high:g}, too large for float32; rescale them")
            bernoulli = (self.assume or ("gaussian" if layout == "vectors" else "bernoulli")) == "bernoulli"
            if bernoulli and not (low >= 0 and high <= 1):
                raise BadInput(
                    f"{self.where} has values from {low:g} to {high:g}, outside [0, 1] that a Bernoulli likelihood "
                    "needs; rescale them or pass likelihood=gaussian"
                )
        return layout
