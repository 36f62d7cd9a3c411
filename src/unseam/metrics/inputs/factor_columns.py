"""One factor column -> class labels or measurements; what was decided for the user is said in a note.

Integers are ordinal classes, strings and booleans categorical ones, floats measurements (unless all are whole). A
continuous factor is never binned unless it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unseam.errors import BadInput, unknown
from unseam.statistics import distinct
from unseam.types import KINDS, Array, Factor, FactorSpace

Encoded = tuple[Factor, list[Array], list[Array], int]  # factor, values and labels of each half, number of classes


def name_factors(
    found: list[str] | None, asked: Sequence[str] | None, space: FactorSpace | None, count: int
) -> list[str]:
    names = list(asked) if asked else list(space.names) if space is not None else found
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
        if kind not in KINDS:
            raise unknown(f"kind of factor column {f}", kind, KINDS)
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
        notes.append(f"factor {name!r} is continuous and was binned into {bins} equal widths, as asked")
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
    found, labels = distinct(column)
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
