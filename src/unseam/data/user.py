"""A user's own data: an array or a table (.npy .npz .h5 .csv .parquet, or in memory) or a folder of images.

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

from unseam.axes import Array
from unseam.data.base import LikelihoodName
from unseam.data.cache import remember
from unseam.data.images import Pictures, resize
from unseam.data.table import Kinds, Layout, Table, TableDataset, factor_table
from unseam.errors import BadInput, unknown
from unseam.readers import TABLES, Columns, as_array, as_frame, ending, load_array, load_table

_LIKELIHOODS = ("bernoulli", "gaussian")
CHANNELS = (1, 3)
CHECKED_AT_ONCE = 1 << 24  # numbers checked at a time
MEMORY = 1 << 29  # bytes of pictures up to which a folder is decoded at once


def blocks(x: Any) -> Iterator[Array]:
    """The rows, some at a time, so that an array on disk is never whole in memory."""
    step = max(1, CHECKED_AT_ONCE // max(1, int(np.prod(x.shape[1:]))))
    for start in range(0, x.shape[0], step):
        yield np.asarray(x[start : start + step])


def value_range(x: Any, where: str) -> tuple[float, float]:
    """(min, max) in one pass; NaN and infinity are refused.

    >>> value_range(np.array([[0.0, np.nan]]), "data")
    Traceback (most recent call last):
    unseam.errors.BadInput: data holds NaN or infinity (first in row 0); every value must be finite
    """
    low, high, count = np.inf, -np.inf, 0
    for block in blocks(x):
        a, b = float(block.min()), float(block.max())  # NaN goes through min and max
        if not (np.isfinite(a) and np.isfinite(b)):
            row = count + int(np.flatnonzero(~np.isfinite(block).reshape(len(block), -1).all(1))[0])
            raise BadInput(f"{where} holds NaN or infinity (first in row {row}); every value must be finite")
        low, high, count = min(low, a), max(high, b), count + len(block)
    return low, high


def layout_of(shape: tuple[int, ...], wanted: str | None, where: str) -> Layout:
    """How to read the axes of an array (N, ...).

    >>> layout_of((10, 64, 64, 3), None, "data"), layout_of((10, 3, 64, 64), None, "data")
    ('hwc', 'chw')
    """
    if len(shape) in (2, 3):
        return "vectors" if len(shape) == 2 else "hw"
    if len(shape) != 4:
        raise BadInput(f"{where} has shape {shape}; it must be (N, n), (N, H, W), (N, H, W, C) or (N, C, H, W)")
    if wanted is not None and wanted not in ("hwc", "chw"):
        raise unknown("layout", wanted, ("hwc", "chw"))
    first, last = shape[1] in CHANNELS, shape[3] in CHANNELS
    if wanted is None and first == last:
        why = "both" if first else "neither"
        raise BadInput(f"{where} has shape {shape}: {why} of axes 1 and 3 can be channels; say layout=hwc or chw")
    if wanted == "hwc" or (wanted is None and last):
        return "hwc"
    return "chw"


def _some(paths: list[Path], most: int = 3) -> str:
    """
    >>> _some([Path("a/1.png"), Path("a/2.png")], most=1)
    '1.png and 1 more'
    """
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(path.name for path in paths[:most]) + more


@dataclass(frozen=True, eq=False)
class UserData(TableDataset):
    """Rows of the user's own array or image folder.

    Examples
    --------
    >>> data = UserData(np.zeros((5, 8, 8), np.uint8), factor_table=np.arange(5))
    >>> data.shape, data.space.sizes, data.likelihood
    ((1, 8, 8), (5,), 'bernoulli')
    """

    source: Any
    """path of a .npy, .npz, .h5, .csv, .parquet or of a folder of images; or an array, or a DataFrame"""
    factor_table: Any = None
    """path of a table with one row per observation; or an array, or a DataFrame"""
    kinds: Kinds = None
    """kinds of the factors: "ordinal,cyclic" or "hue=cyclic"; inferred where not given"""
    key: str | None = None
    """which array of an .npz or .h5, which columns of a table"""
    layout: str | None = None
    """hwc or chw, where the shape leaves it open"""
    size: int | None = None
    """resize images (uint8) to this many pixels a side"""
    assume: str | None = None
    """bernoulli or gaussian; default bernoulli for images, gaussian for vectors"""
    labels: str | None = None
    """which array or columns are the factors: of the factor table, or of the data's own file"""
    channels: int | None = None
    """1 or 3: make all pictures of a folder grey, or all colour"""

    name = "user"

    def __post_init__(self) -> None:
        if self.assume is not None and self.assume not in _LIKELIHOODS:
            raise unknown("likelihood", self.assume, _LIKELIHOODS)
        if self.channels not in (None, 1, 3):
            raise BadInput(f"channels={self.channels} must be 1 (grey) or 3 (colour)")
        if self.key is not None and not (self._tabular or self._is_file):
            raise BadInput(f"key={self.key!r} names an array of an .npz or .h5 file; leave key out")
        self.table  # noqa: B018  bad files are refused now, not in the middle of a training
        if self.kinds is not None and self.table.space is None:
            raise BadInput(f"kinds={self.kinds!r} needs the factor table; pass factors=FILE.csv")

    @property
    def _is_file(self) -> bool:
        return isinstance(self.source, (str, Path)) and Path(self.source).is_file()

    @cached_property
    def _tabular(self) -> bool:
        if isinstance(self.source, (str, Path)):
            return ending(self.source) in TABLES
        return as_frame(self.source, self.where) is not None

    @property
    def likelihood(self) -> LikelihoodName:  # type: ignore[override]
        return self.assume or ("gaussian" if self.table.layout == "vectors" else "bernoulli")  # type: ignore[return-value]

    @property
    def where(self) -> str:
        return f"data={str(self.source)!r}" if isinstance(self.source, (str, Path)) else "data"

    @cached_property
    def table(self) -> Table:
        x, layout, labels, _ = self._read
        if self.factor_table is not None:
            return Table(x, layout, *factor_table(self.factor_table, x.shape[0], self.kinds, self.labels))
        return Table(x, layout) if labels is None else Table(x, layout, *factor_table(labels, x.shape[0], self.kinds))

    @property
    def reading_note(self) -> str:
        """What was read: rows, columns, how each was taken."""
        return self._read[3]

    @cached_property
    def features(self) -> tuple[str, ...] | None:
        """The names of the columns, if the data is a table."""
        return tuple(self._columns.names) if self._tabular else None

    @cached_property
    def _read(self) -> tuple[Any, Layout, Columns | None, str]:
        """(rows, how to read their axes, the factors that came with them, what was read)."""
        if isinstance(self.source, (str, Path)) and Path(self.source).is_dir():
            return self._folder()
        labels = self._own_labels()
        if self._tabular:
            x = self._columns.numbers(self.where)
            return x, self._check(x), labels, self._whole.says()
        x = self.source
        x = load_array(x, self.where, self.key) if isinstance(x, (str, Path)) else np.asarray(as_array(x, self.where))
        layout = self._check(x)
        note = f"{x.dtype} {tuple(x.shape)}" + (", bytes divided by 255" if x.dtype == np.uint8 else "")
        if self.size is not None:
            if x.dtype != np.uint8 or layout not in ("hw", "hwc"):
                raise BadInput(f"size={self.size}: only uint8 images (N, H, W) or (N, H, W, C) can be resized")
            x = resize(x, self.size)
        return x, layout, labels, note

    def _folder(self) -> tuple[Any, Layout, Columns | None, str]:
        pictures = Pictures(Path(self.source), self.size, self.channels)
        labels = pictures.labels() if self.factor_table is None else None
        if self.labels is not None and self.factor_table is None:
            raise BadInput(f"labels={self.labels!r}: a folder's labels are the names of its folders; leave labels out")
        h, w = pictures.shape[1:3]
        colour = "grey" if pictures.mode == "L" else "colour"
        note = f"{len(pictures.paths):,} {colour} pictures of {h}x{w} pixels"
        note += f"; left out, of another size or colour: {_some(pictures.strays)}" if pictures.strays else ""
        note += f"; labels from the names of folders: {', '.join(labels.names)}" if labels else ""
        x = pictures[:] if int(np.prod(pictures.shape)) <= MEMORY else pictures
        return x, "hw" if pictures.ndim == 3 else "hwc", labels, note

    @cached_property
    def _whole(self) -> Columns:
        return load_table(self.source, self.where)

    @cached_property
    def _columns(self) -> Columns:
        """The columns that are data: those of `key`, or all but the labels."""
        if self.key is not None:
            return self._whole.pick(self.key.split(","), self.where)
        return self._whole.without(self.labels.split(",") if self.labels and self.factor_table is None else [])

    def _own_labels(self) -> Columns | None:
        if self.labels is None or self.factor_table is not None:
            return None
        if self._tabular:
            return self._whole.pick(self.labels.split(","), self.where)
        if not self._is_file:
            raise BadInput(f"labels={self.labels!r} names an array or columns of a file; leave labels out")
        return load_table(self.source, self.where, self.labels)

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
                    f"needs; {'divide them by 255' if low >= 0 and 1 < high <= 255 else 'rescale them'} or pass "
                    "likelihood=gaussian (--likelihood gaussian when training, else --data.likelihood gaussian)"
                )
        return layout
