"""Arrays from anywhere (NumPy, torch, pandas, lists) -> one checked `Inputs` that every metric reads.

Nothing here imports torch: a tensor is recognised by its `detach`. Bad input is refused with one line that
names the argument, the value, the limit and the remedy; what was decided for the user is in `Inputs.notes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from unseam.axes import FACTOR_KINDS, Array, Factor, FactorSpace
from unseam.errors import BadInput, unknown
from unseam.metrics.inputs.base import Inputs, Observations
from unseam.metrics.inputs.latents import active_mask, loadings, passive_latents, passive_note
from unseam.readers import as_array, as_frame, frame_columns
from unseam.stats import unique_values

_LARGEST = 1e15  # of codes


def prepare_inputs(
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
    prune: float = 0.0,
    active: Any = None,
    groups: str | Sequence[Sequence[int]] | None = None,
    components: int = 1,
    seed: int = 0,
    workers: int | None = None,
) -> Inputs:
    """Check all input once.

    >>> inputs = prepare_inputs([[0.1, 2.0], [0.3, 1.0], [0.2, 0.0]], [["red", 0.5], ["blue", 0.1], ["red", 0.7]])
    >>> inputs.space.kinds, inputs.rows.labels[:, 0]
    (('categorical', 'continuous'), array([1, 0, 1]))
    >>> print(*inputs.notes, sep="\\n")
    factor 'factor0' holds strings; encoded in sorted order: blue=0, red=1
    """
    if (test_codes is None) != (test_factors is None) and factors is not None:
        raise BadInput("test_codes and test_factors come together; give both or neither")
    if not 0 <= prune < _LARGEST:
        raise BadInput(f"prune={prune} must be a standard deviation, at least 0 (0.05 for posterior means of a run)")
    for what, count in (("bin_continuous", bin_continuous), ("workers", workers)):
        if count is not None and not 1 <= count <= 1_000_000:
            raise BadInput(f"{what}={count} must be between 1 and 1,000,000")
    codes, factors, test_codes, test_factors = map(_known_kind, (codes, factors, test_codes, test_factors))
    notes: list[str] = []
    z = [check_codes(codes, "codes", notes)]
    column_names, columns = columns_of(factors, len(z[0]), "factors")
    parts = [columns]
    if test_codes is not None:
        z.append(check_codes(test_codes, "test_codes", []))
        parts.append(columns_of(test_factors, len(z[1]), "test_factors")[1])
        same_columns(z, parts)
    named = name_factors(column_names, names, space, len(columns))
    stated = [kind_of(space, kinds, f, len(columns)) for f in range(len(columns))]
    encoded = [encode(name, [p[f] for p in parts], stated[f], bin_continuous, notes) for f, name in enumerate(named)]
    spread = None if variances is None else check_variances(variances, z[0])
    z, spread, about = as_latents(z, spread, active, groups, components, notes)
    rows, *held_out = (as_sample(x, half, encoded) for half, x in enumerate(z))
    return Inputs(
        rows=rows,
        space=space if space is not None and bin_continuous is None else FactorSpace(tuple(e[0] for e in encoded)),
        classes=tuple(e[3] for e in encoded),
        held_out=held_out[0] if held_out else None,
        variances=spread,
        prune=prune,
        **about,
        seed=seed,
        workers=workers,
        notes=tuple(notes),
    )


def as_latents(
    z: list[Array],
    variances: Array | None,
    active: Any,
    groups: str | Sequence[Sequence[int]] | None,
    components: int,
    notes: list[str],
) -> tuple[list[Array], Array | None, dict[str, Any]]:
    """The codes with passive latents made constant and groups made numbers; what Inputs should know of it."""
    about: dict[str, Any] = {}
    if active is not None:
        keep = active_mask(active, z[0].shape[1])
        z = [np.where(keep, x, x.dtype.type(0)) for x in z]
        about["passive"] = tuple(np.flatnonzero(~keep).tolist())
    elif (found := passive_latents(z[0], variances)) and groups is None:
        about["suspects"] = tuple(found)
        notes.append(passive_note(found, variances))
    if groups is not None:
        map_ = loadings(z[0], groups, components)
        notes += map_.notes
        z = [x @ map_.weights for x in z]
        variances = None if variances is None else variances @ map_.weights**2
        about["group"] = map_.group if components > 1 else None
    return z, variances, about


def same_columns(z: list[Array], parts: list[list[Array]]) -> None:
    """Refuse held-out rows of other latents or factors."""
    if z[1].shape[1] != z[0].shape[1]:
        raise BadInput(f"test_codes have {z[1].shape[1]} columns, codes {z[0].shape[1]}; give the same latents")
    if len(parts[1]) != len(parts[0]):
        raise BadInput(f"test_factors have {len(parts[1])} columns, factors {len(parts[0])}; give the same factors")


def as_sample(z: Array, half: int, encoded: list[Encoded]) -> Observations:
    values = _stack([e[1][half] for e in encoded], len(z), float)
    return Observations(z, values, _stack([e[2][half] for e in encoded], len(z), np.int64))


def _stack(columns: list[Array], n: int, dtype: Any) -> Array:
    return np.stack(columns).astype(dtype).T if columns else np.zeros((n, 0), dtype)  # columns in one piece


def _known_kind(x: Any) -> Any:
    """Tables of other libraries as pandas', sparse matrices as arrays; anything else as it is."""
    if isinstance(x, (list, tuple)):
        return x  # its cells may have types of their own
    frame = as_frame(x, "a table")
    return as_array(x, "a matrix") if frame is None else frame


def plain_array(x: Any) -> Array:
    """A NumPy array from a NumPy, torch or pandas object, or from nested lists."""
    x = _known_kind(x)
    if hasattr(x, "to_numpy"):
        found = np.asarray(x.to_numpy())
        if found.dtype != object or not hasattr(x, "iloc") or found.ndim != 2:
            return found
        columns = frame_columns(x).columns  # nullable and Arrow's numbers
        return np.stack(columns, axis=1) if all(c.dtype.kind in "biuf" for c in columns) else found
    return np.asarray(as_array(x, "an array"))


def check_codes(x: Any, what: str, notes: list[str]) -> Array:  # (N, K)
    z = plain_array(x)
    z = z[:, None] if z.ndim == 1 else z
    if z.ndim != 2:
        raise BadInput(f"{what} have shape {z.shape}; give one row per observation and one column per latent (N, K)")
    if z.dtype.kind not in "fiub":
        try:
            z = np.asarray(z, dtype=object).astype(np.float64)  # by way of Python: i and dates are not numbers
        except (TypeError, ValueError, OverflowError):
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
    if np.abs(z).max() < 1 / _LARGEST:
        z = z.astype(np.float64)  # squares would vanish in float32
    if np.abs(z).max() > _LARGEST:
        raise BadInput(f"{what} reach {np.abs(z).max():.3g}, beyond {_LARGEST:g}, where squares overflow; rescale them")
    dead = np.flatnonzero(np.ptp(z, axis=0) == 0)
    if len(dead):
        notes.append(f"latent(s) {', '.join(map(str, dead))} are constant and carry no information")
    return z


def check_variances(x: Any, z: Array) -> Array:
    v = plain_array(x)
    if v.shape != z.shape or not np.isfinite(v).all() or (v < 0).any():
        raise BadInput(f"variances have shape {v.shape}; they must be finite, >= 0 and of the codes' shape {z.shape}")
    return v


def _of_objects(x: Any, what: str) -> Array:
    v = np.empty(0, object)
    with suppress(ValueError):
        v = np.array(x, dtype=object)
    if v.ndim != 2:
        raise BadInput(f"{what} have rows of different lengths; give a full (rows, columns) table")
    return v


def _of_cells(column: Array, what: str) -> Array:  # (N,) of objects -> (N,)
    """The column with the type of its cells."""
    cells: Any = None
    with suppress(ValueError):
        cells = np.array(column.tolist())
    if cells is None or cells.ndim != 1:
        raise BadInput(f"{what} have a column whose cells are lists; give one number or word a cell")
    return np.asarray(cells)


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
        v = _of_objects(x, what) if mixed else plain_array(x)
        v = v[:, None] if v.ndim == 1 else v
        if v.ndim != 2:
            raise BadInput(f"{what} have shape {v.shape}; give one row per observation, one column per factor (N, F)")
        names, columns = None, [v[:, f] for f in range(v.shape[1])]
    columns = [_of_cells(c, what) if c.dtype == object else c for c in columns]
    if any(len(c) != n for c in columns):
        raise BadInput(
            f"{what} have {len(columns[0])} rows but the codes have {n}; give one row of each per observation"
        )
    if not columns:
        raise BadInput(f"{what} have no columns; give at least one factor")
    return names, columns


# One factor column -> class labels or measurements; decisions made for the user become notes.
#
# Integers are ordinal classes, strings and booleans categorical ones, floats measurements (unless all are whole). A
# continuous factor is binned only on request.


Encoded = tuple[Factor, list[Array], list[Array], int]  # factor, values and labels of each half, number of classes


def name_factors(
    found: list[str] | None, own_names: Sequence[str] | None, space: FactorSpace | None, count: int
) -> list[str]:
    names = list(own_names) if own_names else list(space.names) if space is not None else found
    if names is None:
        return [f"factor{f}" for f in range(count)]
    if len(names) != count and count:
        raise BadInput(f"{len(names)} factor names for {count} factor columns; give one name per column")
    if len(set(names)) != len(names):
        raise BadInput(f"factor names must differ, got {', '.join(names)}")
    return names[:count]


def kind_of(
    space: FactorSpace | None, kinds: Sequence[str] | None, f: int, count: int
) -> tuple[str | None, int | None]:
    """The kind and size that the user states for column f, if any."""
    if kinds:
        if len(kinds) not in (1, count):
            raise BadInput(f"{len(kinds)} kinds for {count} factor columns; give one, or one per column")
        kind = kinds[0] if len(kinds) == 1 else kinds[f]
        if kind not in FACTOR_KINDS:
            raise unknown(f"kind of factor column {f}", kind, FACTOR_KINDS)
        return kind, None
    return (space[f].kind, space[f].size) if space is not None else (None, None)


def encode(
    name: str, parts: list[Array], stated: tuple[str | None, int | None], bins: int | None, notes: list[str]
) -> Encoded:
    """One factor column (its halves) -> Factor, values as numbers, labels 0..C-1, and C (0: continuous)."""
    kind, size = stated
    column = np.concatenate(parts)
    cuts = np.cumsum([len(p) for p in parts])[:-1]
    if column.dtype.kind in "USO":
        return encode_names(name, column, cuts, kind, notes)
    if column.dtype.kind not in "fiub":
        raise BadInput(f"factor {name!r} is of type {column.dtype}; give numbers or strings")
    if not np.isfinite(column).all():
        bad = int((~np.isfinite(column)).sum())
        raise BadInput(f"factor {name!r} has {bad} values that are NaN or infinite; remove those rows")
    whole = column.dtype.kind in "iub" or bool((column == np.round(column)).all())
    if kind is None:
        kind = "categorical" if column.dtype.kind == "b" else "ordinal" if whole else "continuous"
        if kind == "ordinal" and column.dtype.kind == "f":
            notes.append(f"factor {name!r} holds whole numbers only; taken as ordinal (say kind=continuous if not)")
    if kind == "continuous":
        values = column.astype(np.float64)
        if np.ptp(values) == 0:
            raise BadInput(
                f"factor {name!r} is constant ({values[0]:g}); leave it out, nothing can be learned about it"
            )
        if bins is None:
            return (
                Factor(name, None, "continuous"),
                np.split(values, cuts),
                np.split(np.full(len(values), -1), cuts),
                0,
            )
        column = np.digitize(values, np.histogram_bin_edges(values, bins)[1:-1])
        kind, size = "ordinal", None
        notes.append(f"factor {name!r} is continuous and was binned into {bins} equal widths")
    elif not whole:
        raise BadInput(
            f"factor {name!r} is given as {kind} but holds {len(np.unique(column))} distinct values that are not "
            "whole numbers; give kind=continuous, or class numbers"
        )
    return encode_classes(name, column, cuts, kind, size, notes)


def encode_names(name: str, column: Array, cuts: Array, kind: str | None, notes: list[str]) -> Encoded:
    words, labels = np.unique(column.astype(str), return_inverse=True)
    if kind == "continuous":
        raise BadInput(f"factor {name!r} is given as continuous but holds strings such as {words[0]!r}; give numbers")
    shown = ", ".join(f"{w}={i}" for i, w in enumerate(words[:6])) + (", ..." if len(words) > 6 else "")
    notes.append(f"factor {name!r} holds strings; encoded in sorted order: {shown}")
    return encode_classes(name, labels, cuts, kind or "categorical", None, notes)


def encode_classes(name: str, column: Array, cuts: Array, kind: str, size: int | None, notes: list[str]) -> Encoded:
    found, labels = unique_values(column)
    if len(found) == 1:
        raise BadInput(f"factor {name!r} is constant ({found[0]}); leave it out, nothing can be learned about it")
    if size is not None and (found[0] < 0 or found[-1] >= size):
        raise BadInput(f"factor {name!r} has values {found[0]:g}..{found[-1]:g} but its space has 0..{size - 1}")
    if 2 * len(found) > len(column) and len(found) > 10:
        notes.append(
            f"factor {name!r} has {len(found)} classes in {len(column)} rows: estimates are biased; "
            "say kind=continuous if its values are measurements"
        )
    factor = Factor(name, size if size is not None else len(found), kind)  # type: ignore[arg-type]
    values = column.astype(np.float64)
    return factor, np.split(values, cuts), np.split(labels.astype(np.int64), cuts), len(found)
