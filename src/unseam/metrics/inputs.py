"""Arrays from anywhere (NumPy, torch, pandas, lists) -> one checked `Table` that every metric reads.

Nothing here imports torch: a tensor is recognised by its `detach`. Bad input is refused with one line that
names the argument, the value, the limit and the remedy; what was decided for the user is in `Table.notes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unseam.errors import BadInput
from unseam.metrics.encode import encode, kind_of, name_factors
from unseam.metrics.table import Rows, Table
from unseam.types import Array, FactorSpace

LARGEST = 1e15  # of codes


def prepare(
    codes: Any,  # (N, K)
    factors: Any = None,  # (N, F)
    space: FactorSpace | None = None,
    *,
    names: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    test_codes: Any = None,
    test_factors: Any = None,
    variances: Any = None,
    bin_continuous: int | None = None,
    seed: int = 0,
    workers: int | None = None,
) -> Table:
    """Check everything once, at the door.

    >>> table = prepare([[0.1, 2.0], [0.3, 1.0], [0.2, 0.0]], [["red", 0.5], ["blue", 0.1], ["red", 0.7]])
    >>> table.space.kinds, table.rows.labels[:, 0]
    (('categorical', 'continuous'), array([1, 0, 1]))
    >>> print(*table.notes, sep="\\n")
    factor 'factor0' holds strings; encoded in sorted order: blue=0, red=1
    """
    if (test_codes is None) != (test_factors is None) and factors is not None:
        raise BadInput("test_codes and test_factors come together; give both or neither")
    notes: list[str] = []
    z = check_codes(codes, "codes", notes)
    given, columns = columns_of(factors, len(z), "factors")
    parts = [columns]
    z_test = None
    if test_codes is not None:
        z_test = check_codes(test_codes, "test_codes", [])
        if z_test.shape[1] != z.shape[1]:
            raise BadInput(f"test_codes have {z_test.shape[1]} columns, codes {z.shape[1]}; give the same latents")
        parts.append(columns_of(test_factors, len(z_test), "test_factors")[1])
        if len(parts[1]) != len(columns):
            raise BadInput(f"test_factors have {len(parts[1])} columns, factors {len(columns)}; give the same factors")
    table_names = name_factors(given, names, space, len(columns))
    encoded = [
        encode(name, [part[f] for part in parts], kind_of(space, kinds, f, len(columns)), bin_continuous, notes)
        for f, name in enumerate(table_names)
    ]
    halves = [
        Rows(
            x,
            stack([e[1][h] for e in encoded], len(x), float),
            stack([e[2][h] for e in encoded], len(x), np.int64),
        )
        for h, x in enumerate([z] if z_test is None else [z, z_test])
    ]
    factor_space = FactorSpace(tuple(e[0] for e in encoded))
    classes = tuple(e[3] for e in encoded)
    return Table(
        rows=halves[0],
        space=space if space is not None and bin_continuous is None else factor_space,
        classes=classes,
        held_out=halves[1] if z_test is not None else None,
        variances=None if variances is None else check_variances(variances, z),
        seed=seed,
        workers=workers,
        notes=tuple(notes),
    )


def stack(columns: list[Array], n: int, dtype: Any) -> Array:
    return np.stack(columns).astype(dtype).T if columns else np.zeros((n, 0), dtype)  # columns in one piece


def plain_array(x: Any) -> Array:
    """A NumPy array from a NumPy, torch or pandas object, or from nested lists."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        return np.asarray(x.float().numpy() if str(x.dtype) == "torch.bfloat16" else x.numpy())
    if hasattr(x, "to_numpy"):
        return np.asarray(x.to_numpy())
    try:
        return np.asarray(x)
    except ValueError:
        raise BadInput("an array has rows of different lengths; give a full (rows, columns) table") from None


def check_codes(x: Any, what: str, notes: list[str]) -> Array:  # (N, K)
    z = plain_array(x)
    z = z[:, None] if z.ndim == 1 else z
    if z.ndim != 2:
        raise BadInput(f"{what} have shape {z.shape}; give one row per observation and one column per latent (N, K)")
    if z.dtype == object or z.dtype.kind not in "fiub":
        try:
            z = z.astype(np.float64)
        except (TypeError, ValueError):
            raise BadInput(f"{what} are of type {z.dtype}, not numbers; give a real-valued (N, K) array") from None
    if z.dtype.kind != "f" or z.dtype.itemsize < 4:
        z = z.astype(np.float32 if z.dtype.kind == "f" else np.float64)
    if z.shape[1] == 0:
        raise BadInput(f"{what} have no columns; give at least one latent")
    if len(z) < 2:
        raise BadInput(f"{what} have {len(z)} row(s); a score needs at least 2")
    if not np.isfinite(z).all():
        row, column = np.argwhere(~np.isfinite(z))[0]
        bad = int((~np.isfinite(z)).sum())
        raise BadInput(f"{what}[{row}, {column}] is {z[row, column]} ({bad} such values); remove or replace those rows")
    if np.abs(z).max() > LARGEST:
        raise BadInput(f"{what} reach {np.abs(z).max():.3g}, beyond {LARGEST:g}, where squares overflow; rescale them")
    dead = np.flatnonzero(np.ptp(z, axis=0) == 0)
    if len(dead):
        notes.append(f"latent(s) {', '.join(map(str, dead))} are constant and carry no information")
    return z


def check_variances(x: Any, z: Array) -> Array:
    v = plain_array(x)
    if v.shape != z.shape or not np.isfinite(v).all() or (v < 0).any():
        raise BadInput(f"variances have shape {v.shape}; they must be finite, >= 0 and of the codes' shape {z.shape}")
    return v


def columns_of(x: Any, n: int, what: str) -> tuple[list[str] | None, list[Array]]:
    """Factor columns, each with its own type, and their names if the table has them."""
    if x is None:
        return None, []
    if hasattr(x, "columns") and hasattr(x, "to_numpy"):
        names, columns = [str(c) for c in x.columns], [np.asarray(x[c].to_numpy()) for c in x.columns]
    elif hasattr(x, "dtype") and getattr(x.dtype, "names", None):
        names, columns = list(x.dtype.names), [x[c] for c in x.dtype.names]
    else:
        mixed = isinstance(x, (list, tuple)) and x and isinstance(x[0], (list, tuple))
        v = np.array(x, dtype=object) if mixed else plain_array(x)
        v = v[:, None] if v.ndim == 1 else v
        if v.ndim != 2:
            raise BadInput(f"{what} have shape {v.shape}; give one row per observation, one column per factor (N, F)")
        names, columns = None, [v[:, f] for f in range(v.shape[1])]
    columns = [np.array(c.tolist()) if c.dtype == object else c for c in columns]
    if any(len(c) != n for c in columns):
        raise BadInput(
            f"{what} have {len(columns[0])} rows but the codes have {n}; give one row of each per observation"
        )
    if not columns:
        raise BadInput(f"{what} have no columns; give at least one factor")
    return names, columns
