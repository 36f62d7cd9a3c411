"""A user's factor table -> factors (N, F) and their space. Kinds are inferred from the values, or given.

Strings and booleans are categorical, whole numbers ordinal, other numbers continuous; `kinds` overrides that.
A discrete column is stored as the rank of its value among the distinct values that occur, in sorted order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from unseam.data.arrays import load_array
from unseam.errors import BadInput, unknown
from unseam.types import Array, Factor, FactorSpace, Kind

Kinds = str | Sequence[str] | Mapping[str, str] | None


def factor_table(source: Any, count: int, kinds: Kinds = None) -> tuple[Tensor, FactorSpace]:
    """The factors of `count` observations, from a path (.csv, .npy, .npz) or an array.

    >>> table, space = factor_table(np.array([[10, 0.5], [20, 0.1], [10, 0.2]]), 3)
    >>> space.kinds, table[:, 0].tolist()
    (('ordinal', 'continuous'), [0.0, 1.0, 0.0])
    """
    where = f"factors={str(source)!r}" if isinstance(source, (str, Path)) else "factors"
    names, columns = _columns(source, where)
    if not columns or len(columns[0]) != count:
        rows = len(columns[0]) if columns else 0
        raise BadInput(f"{where} has {rows} rows, but the data has {count} observations; they must agree row by row")
    given = _given(kinds, names, where)
    coded = [_code(name, column, given.get(name), where) for name, column in zip(names, columns, strict=True)]
    space = FactorSpace(tuple(factor for factor, _ in coded))
    table = np.stack([values for _, values in coded], axis=1)
    return torch.from_numpy(table.astype(np.int64 if space.discrete else np.float32)), space


def _columns(source: Any, where: str) -> tuple[list[str], list[Array]]:
    """Names and columns, as they stand in the source."""
    if isinstance(source, (str, Path)) and str(source).endswith(".csv"):
        return _read_csv(Path(source), where)
    table = load_array(source, where) if isinstance(source, (str, Path)) else np.asarray(source)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.dtype.kind not in "biufU":
        raise BadInput(f"{where} has shape {table.shape} and dtype {table.dtype}; it must be numbers (N, F)")
    return [f"factor{i}" for i in range(table.shape[1])], list(table.T)


def _read_csv(path: Path, where: str) -> tuple[list[str], list[Array]]:
    import pandas

    try:
        first = path.read_text(encoding="utf-8-sig").split("\n", 1)[0]
        header = None if all(_is_number(cell) for cell in first.split(",")) else 0
        frame = pandas.read_csv(path, header=header, skipinitialspace=True, encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"{where}: no such file") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise BadInput(f"{where} is no readable CSV: {' '.join(str(error).split())}") from None
    empty = frame.isna().sum().sum()
    if empty:
        raise BadInput(f"{where} has {empty} empty or NaN cells; every factor of every row must be given")
    names = [f"factor{i}" for i in range(frame.shape[1])] if header is None else [str(c) for c in frame.columns]
    return names, [frame[c].to_numpy() for c in frame.columns]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _given(kinds: Kinds, names: list[str], where: str) -> dict[str, str]:
    """`kinds` as the user wrote it ("cyclic,ordinal", "hue=cyclic", a list or a dictionary) -> {name: kind}."""
    if kinds is None:
        return {}
    if isinstance(kinds, str):
        parts = [part.strip() for part in kinds.split(",")]
        kinds = dict(tuple(p.split("=", 1)) for p in parts) if all("=" in p for p in parts) else parts  # type: ignore[misc]
    if not isinstance(kinds, Mapping):
        if len(kinds) != len(names):
            raise BadInput(f"kinds has {len(kinds)} entries, but {where} has {len(names)} columns: {', '.join(names)}")
        kinds = dict(zip(names, kinds, strict=True))
    for name, kind in kinds.items():
        if name not in names:
            raise unknown("kinds: factor", name, names)
        if kind not in get_args(Kind):
            raise unknown(f"kinds: kind of {name!r}", kind, get_args(Kind))
    return dict(kinds)


def _infer(column: Array) -> Kind:
    if column.dtype.kind in "biu":
        return "categorical" if column.dtype.kind == "b" else "ordinal"
    if column.dtype.kind == "f":
        return "ordinal" if (column == np.round(column)).all() else "continuous"
    return "categorical"


def _code(name: str, column: Array, kind: Any, where: str) -> tuple[Factor, Array]:
    """One column -> its factor, and its values as numbers."""
    if column.dtype.kind == "f" and not (abs(column) <= np.finfo(np.float32).max).all():
        raise BadInput(f"{where}: factor {name!r} holds NaN or infinity (in float32); every factor must be finite")
    if column.dtype.kind not in "biuf":
        column = column.astype(str)
    kind = kind or _infer(column)
    if kind == "continuous":
        if column.dtype.kind not in "biuf":
            raise BadInput(f"{where}: factor {name!r} holds words ({column[0]!r}); a continuous one needs numbers")
        return Factor(name, None, "continuous"), column.astype(np.float64)
    values, ranks = np.unique(column, return_inverse=True)
    return Factor(name, len(values), kind), ranks.astype(np.float64)
