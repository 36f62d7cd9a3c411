"""Partition information I_m (Vu 2024): which group of factors does each latent hold?

    I_m = max over assignments of factors to latents of   sum_i I(z_i; v_{S_i}) - sum_{i<j} I(v_{S_i}; v_{S_j})

in nats, by the exact search of `unseam.linear.search`. The default estimate is the Gaussian plug-in, which sees linear
dependence; `method="ksg"` counts neighbours and takes at most 6 factors. What the factors share is taken off, so
dependent factors are expected in one group.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.errors import BadInput
from unseam.linear.samples import Method, sample_tables
from unseam.linear.search import best_partition
from unseam.metrics.base import Score
from unseam.metrics.inputs import Table, prepare
from unseam.types import FactorSpace

NAME = "partition-information"


def partition_information(
    codes: Any, factors: Any, space: FactorSpace | None = None, *, method: Method = "gaussian"
) -> Score:
    """I_m of codes against factors; `extra["groups"]` names the factors of each latent that holds some.

    >>> v = np.random.default_rng(0).normal(size=(1000, 3))
    >>> z = np.stack([v[:, 0] + v[:, 1], v[:, 2]], 1) + 0.1 * np.random.default_rng(1).normal(size=(1000, 2))
    >>> s = partition_information(z, v)
    >>> s.extra["groups"], s.extra["gap"]
    ({0: ['factor0', 'factor1'], 1: ['factor2']}, 0.0)
    """
    return compute_partition_information(prepare(codes, factors, space), method)


def compute_partition_information(table: Table, method: Method = "gaussian") -> Score:
    kept, notes = numbers_on_a_line(table)
    names = [table.space[int(f)].name for f in kept]
    tables = sample_tables(table.rows.codes, table.rows.values[:, kept], method, seed=table.seed)
    found = best_partition(tables)
    masks = [sum(1 << j for j in group) for group in found.groups]
    matrix = np.full((len(table.space), tables.m), np.nan)
    matrix[kept] = tables.gain[:, 1 << np.arange(len(kept))].T
    return Score(
        NAME,
        found.value,
        per_latent=tables.gain[np.arange(tables.m), masks],  # I(z_i; v_{S_i})
        matrix=matrix,  # I(z_i; v_f)
        settings={"method": method, "rows": len(table)},
        extra={
            "groups": {i: [names[j] for j in group] for i, group in enumerate(found.groups) if group},
            "gap": found.gap,
        },
        notes=notes,
    )


def numbers_on_a_line(table: Table) -> tuple[np.ndarray, tuple[str, ...]]:
    """The factors whose values are numbers on a line, and the note on those left out."""
    line = [f.kind in ("ordinal", "continuous") for f in table.space]
    if not any(line):
        raise BadInput(f"{NAME} needs ordinal or continuous factors; none of {', '.join(table.space.names)} is")
    left = [f.name for f, on in zip(table.space, line, strict=True) if not on]
    note = f"{NAME} leaves out categorical or cyclic factor(s): {', '.join(left)}"
    return np.flatnonzero(line), (note,) if left else ()
