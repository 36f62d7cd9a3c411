"""What is read: a file, a table, an array, an AnnData, a folder of images or a data set by name, as columns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.data.download.web import local_copy
from unseam.errors import BadInput
from unseam.finding.columns import MOST_COLUMNS, Shape
from unseam.readers import (
    ENDINGS,
    TABLES,
    Columns,
    as_array,
    as_frame,
    checked,
    ending,
    load_array,
    load_table,
    refusing,
)  # fmt: skip

MOST_VALUES = 100_000_000  # rows times values of a data set that are read: 0.8 GB
_IDX = re.compile(r"idx\d?(-ubyte)?(\.gz)?$")  # how files of MNIST's kind are called


class _Source(NamedTuple):
    """What was read: columns, true factors if the data has some, and the shape of a row that is an image."""

    table: Columns
    truth: Array | None = None  # (N, F)
    shape: Shape | None = None


def read(source: Any, key: str | None = None, channels: int | None = None) -> _Source:
    """The columns of a file, a table, an array, an AnnData or a data set by name, and its factors if it has some.

    >>> read(np.eye(3)).table.names
    ['column0', 'column1', 'column2']
    """
    if isinstance(source, (str, Path)):
        return _named(str(source), key, channels)
    if hasattr(source, "obs_names") and hasattr(source, "var_names"):
        return _Source(_annotated(source, "data"))
    if (frame := as_frame(source, "data")) is not None:
        return _Source(load_table(frame, "data", gaps=True))
    return _array(np.asarray(as_array(source, "data")), "data")


def _named(name: str, key: str | None, channels: int | None) -> _Source:
    path, where = Path(local_copy(name, "data") if "://" in name else name), f"data={name!r}"
    if ending(path) in TABLES:
        return _Source(_renamed(load_table(path, where, key, gaps=True)))
    if path.suffix.lower() == ".h5ad":
        return _Source(_h5ad(path, where))
    if path.is_file() and _IDX.search(path.name):
        from unseam.data.sets.idx import read_idx

        return _array(read_idx(path), where)
    if ending(path) in ENDINGS:
        x = load_array(path, where, key)
        return _array(np.asarray(x[:] if x.shape else x), where)
    return _dataset(name, channels)


def _renamed(table: Columns) -> Columns:
    """Columns of a file without names are column0, column1, ...; a first line 0, 1, 2, ... is names, as pandas'.

    >>> _renamed(Columns(["factor0", "factor1", "factor2"], list(np.array([[0, 1, 2], [7, 8, 9]]).T))).columns[0]
    array([7])
    """
    n = len(table.names)
    if table.names != [f"factor{i}" for i in range(n)]:  # read's names where a file has none
        return table
    names, columns = [f"column{i}" for i in range(n)], table.columns
    if n < 3 or len(table) < 2 or any(c.dtype.kind not in "iuf" or c[0] != i for i, c in enumerate(columns)):
        return Columns(names, columns, table.notes)
    notes = (*(note for note in table.notes if "header" not in note), "the first line numbers the columns")
    return Columns(names, [column[1:] for column in columns], notes)


def _h5ad(path: Path, where: str) -> Columns:
    if not path.is_file():
        raise BadInput(f"{where}: no such file")
    try:
        import anndata
    except ImportError:
        raise BadInput(f"{where} needs anndata; run: pip install 'unseam[anndata]'") from None
    with refusing(where, "corrupt or no .h5ad file"):
        return _annotated(anndata.read_h5ad(path), where)


def _annotated(data: Any, where: str) -> Columns:
    """X of an AnnData: a column a variable."""
    names = [str(name) for name in data.var_names]
    if len(names) > MOST_COLUMNS:
        raise BadInput(f"{where} has {len(names):,} variables; at most {MOST_COLUMNS:,} are read, choose some of them")
    x = np.asarray(data.X.todense() if hasattr(data.X, "todense") else data.X)
    return checked(Columns(names, list(x.T)), where, gaps=True)


def _dataset(name: str, channels: int | None) -> _Source:
    """Rows of a data set by name or a folder of images: all, or a random sample that holds MOST_VALUES."""
    import torch

    from unseam.data import load_data
    from unseam.data.base import layers
    from unseam.rng import generator

    if channels is not None and not Path(name).is_dir():
        raise BadInput(f"channels={channels} is for folders of images; leave it out for {name!r}")
    data = load_data(name) if channels is None else load_data(name, channels=channels)
    if int(np.prod(data.shape)) > MOST_COLUMNS:
        raise BadInput(
            f"data={name!r} has {int(np.prod(data.shape)):,} values a row; at most {MOST_COLUMNS:,} are read"
        )
    fit = max(MOST_VALUES // int(np.prod(data.shape)), 1)
    rows = torch.randperm(len(data), generator=generator(0, "find"))[:fit].sort().values
    x = data.batch(rows, generator(0, "find", "noise") if data.stochastic else None).flatten(1).numpy()
    factors = None if data.space is None else data.factors(rows).numpy().astype(np.float64)
    shape = (data.shape[0], data.shape[1], data.shape[2]) if len(data.shape) == 3 else None
    source = _array(x, f"data={name!r}")._replace(truth=factors, shape=shape)
    note = getattr(layers(data)[-1], "reading_note", "")
    notes = tuple(part for part in note.split("; ") if part.startswith("left out"))
    if len(rows) < len(data):
        some = f"{len(rows):,} of {len(data):,} rows, drawn at random, are read, and codes are theirs"
        notes += (f"{some}; `transform` gives those of others",)
    return source._replace(table=Columns(source.table.names, source.table.columns, notes))


def _array(x: Array, where: str) -> _Source:
    if x.dtype.kind not in "biuf":
        raise BadInput(f"{where} has dtype {x.dtype}; it must be numbers")
    if x.ndim < 2:
        raise BadInput(f"{where} has shape {x.shape}: it has one column; factors are shared by several (N, n)")
    if 0 in x.shape:
        raise BadInput(f"{where} has shape {x.shape}: it is empty")
    shape = _image(x.shape)
    x = flat(x)
    name = "column" if shape is None else "pixel"
    return _Source(Columns([f"{name}{i}" for i in range(x.shape[1])], list(x.T)), None, shape)


def flat(x: Array) -> Array:  # (N, ...) -> (N, n)
    """A row of numbers each; of an image its channels one after the other, wherever they stood."""
    shape = _image(x.shape)
    x = np.moveaxis(x, 3, 1) if shape is not None and x.ndim == 4 and x.shape[1:] != shape else x
    return x.reshape(len(x), -1)


def _image(shape: tuple[int, ...]) -> Shape | None:
    """C, H, W of rows that are images: (N, H, W), (N, C, H, W) or (N, H, W, C).

    >>> _image((9, 8, 8)), _image((9, 3, 8, 8)), _image((9, 8, 8, 3)), _image((9, 8))
    ((1, 8, 8), (3, 8, 8), (3, 8, 8), None)
    """
    if len(shape) == 3:
        return (1, *shape[1:])
    if len(shape) != 4:
        return None
    return (shape[3], *shape[1:3]) if shape[3] in (1, 3) and shape[1] not in (1, 3) else shape[1:]
