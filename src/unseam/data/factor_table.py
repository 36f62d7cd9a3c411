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

from unseam.errors import BadInput, unknown
from unseam.read import Columns, load_table
from unseam.types import Array, Factor, FactorSpace, Kind

Kinds = str | Sequence[str] | Mapping[str, str] | None


def factor_table(source: Any, count: int, kinds: Kinds = None, key: str | None = None) -> tuple[Tensor, FactorSpace]:
    """The factors of `count` observations, from a path, a DataFrame, an array, or columns that were read already.

    >>> table, space = factor_table(np.array([[10, 0.5], [20, 0.1], [10, 0.2]]), 3)
    >>> space.kinds, table[:, 0].tolist()
    (('ordinal', 'continuous'), [0.0, 1.0, 0.0])
    """
    where = f"factors={str(source)!r}" if isinstance(source, (str, Path)) else "factors"
    read = source if isinstance(source, Columns) else load_table(source, where, key)
    if len(read) != count:
        raise BadInput(
            f"{where} has {len(read)} rows, but the data has {count} observations; they must agree row by row"
        )
    given = _given(kinds, read.names, where)
    coded = [_code(name, column, given.get(name), where) for name, column in zip(read.names, read.columns, strict=True)]
    space = FactorSpace(tuple(factor for factor, _ in coded))
    table = np.stack([values for _, values in coded], axis=1)
    return torch.from_numpy(table.astype(np.int64 if space.discrete else np.float32)), space


def _given(kinds: Kinds, names: list[str], where: str) -> dict[str, str]:
    """`kinds` as the user wrote it ("cyclic,ordinal", "hue=cyclic", a list or a dictionary) -> {name: kind}."""
    if kinds is None:
        return {}
    if isinstance(kinds, str):
        parts = [part.strip() for part in kinds.split(",")]
        kinds = dict(tuple(p.split("=", 1)) for p in parts) if all("=" in p for p in parts) else parts  # type: ignore[misc]
    if not isinstance(kinds, (Mapping, Sequence)):
        raise BadInput(f"kinds={kinds!r} must be text, a list or an object of {', '.join(get_args(Kind))}")
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
    kind = kind or _infer(column)
    if kind == "continuous":
        if column.dtype.kind not in "biuf":
            raise BadInput(f"{where}: factor {name!r} holds words ({column[0]!r}); a continuous one needs numbers")
        return Factor(name, None, "continuous"), column.astype(np.float64)
    values, ranks = np.unique(column, return_inverse=True)
    return Factor(name, len(values), kind), ranks.astype(np.float64)
