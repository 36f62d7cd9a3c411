"""Arrays from anywhere (NumPy, torch, pandas, lists) -> one checked `Table` that every metric reads.

Nothing here imports torch: a tensor is recognised by its `detach`. Bad input is refused with one line that
names the argument, the value, the limit and the remedy; what was decided for the user is in `Table.notes`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from unseam.errors import BadInput
from unseam.rng import numpy_generator
from unseam.types import KINDS, Array, Factor, FactorSpace

T = TypeVar("T")
LARGEST = 1e15  # of codes
MANY_CLASSES = 500  # classifiers refuse more; information metrics warn


@dataclass(frozen=True)
class Rows:
    """Some rows of a table."""

    codes: Array  # (N, K)
    values: Array  # (N, F) factor values as numbers
    labels: Array  # (N, F) class labels 0..C-1; -1 for a continuous factor

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: Array) -> Rows:
        return Rows(self.codes[index], self.values[index], self.labels[index])


@dataclass(frozen=True)
class Table:
    """Checked input: the rows, the held-out rows if any, the space, and what had to be said about it."""

    rows: Rows
    space: FactorSpace
    classes: tuple[int, ...]  # per factor: how many distinct values occur (train and test); 0 for a continuous factor
    held_out: Rows | None = None
    variances: Array | None = None  # (N, K) posterior variances of the codes, when a model gave them
    seed: int = 0
    workers: int | None = None
    notes: tuple[str, ...] = ()
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """An expensive intermediate, computed the first time a metric asks for it."""
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def halves(self, share: float = 2 / 3) -> tuple[Rows, Rows]:
        """(train, test): the held-out rows when given, else a seeded random split of the rows."""
        if self.held_out is not None:
            return self.rows, self.held_out
        return self.once(("halves", share), lambda: split(self.rows, share, self.seed))

    def all_rows(self) -> Rows:
        """The rows and the held-out rows together."""
        if self.held_out is None:
            return self.rows
        pairs = ((getattr(self.rows, k), getattr(self.held_out, k)) for k in ("codes", "values", "labels"))
        return Rows(*(np.concatenate(pair) for pair in pairs))

    def splits(self) -> dict[Hashable, tuple[Rows, Rows]]:
        """The splits that metrics have asked for so far."""
        return {key: value for key, value in self.memo.items() if isinstance(key, tuple) and key[0] == "halves"}

    @property
    def continuous(self) -> list[str]:
        return [f.name for f in self.space if not f.discrete]

    def __len__(self) -> int:
        return len(self.rows)


def split(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    order = numpy_generator(seed, "split").permutation(len(rows))
    cut = min(max(round(share * len(rows)), 1), len(rows) - 1)
    return rows.take(order[:cut]), rows.take(order[cut:])


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
    return np.stack(columns, axis=1).astype(dtype) if columns else np.zeros((n, 0), dtype)


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
            raise BadInput(f"kind={kind!r} of factor column {f} is unknown; known: {', '.join(KINDS)}")
        return kind, None
    return (space[f].kind, space[f].size) if space is not None else (None, None)


def encode(
    name: str, parts: list[Array], stated: tuple[str | None, int | None], bins: int | None, notes: list[str]
) -> tuple[Factor, list[Array], list[Array], int]:
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


def encode_names(
    name: str, column: Array, cuts: Array, kind: str | None, notes: list[str]
) -> tuple[Factor, list[Array], list[Array], int]:
    words, labels = np.unique(column.astype(str), return_inverse=True)
    if kind == "continuous":
        raise BadInput(f"factor {name!r} is given as continuous but holds strings such as {words[0]!r}; give numbers")
    shown = ", ".join(f"{w}={i}" for i, w in enumerate(words[:6])) + (", ..." if len(words) > 6 else "")
    notes.append(f"factor {name!r} holds strings; encoded in sorted order: {shown}")
    return encode_classes(name, labels, cuts, kind or "categorical", None, notes)


def encode_classes(
    name: str, column: Array, cuts: Array, kind: str, size: int | None, notes: list[str]
) -> tuple[Factor, list[Array], list[Array], int]:
    found, labels = np.unique(column, return_inverse=True)
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


def require_classes(table: Table, metric: str, why: str) -> None:
    """Refuse continuous factors, for a metric that is defined on classes only."""
    if table.continuous:
        raise BadInput(
            f"{metric} cannot use continuous factor(s) {', '.join(table.continuous)}: {why}; "
            "leave them out or bin them on purpose with bin_continuous=20"
        )


def require_few_classes(table: Table, metric: str) -> None:
    """Refuse more classes than a classifier can be fitted to in reasonable time."""
    many = [f"{f.name} ({c})" for f, c in zip(table.space, table.classes, strict=True) if c > MANY_CLASSES]
    if many:
        raise BadInput(f"{metric} fits classifiers of at most {MANY_CLASSES} classes, got {', '.join(many)}")
