"""Partition information I_m: which group of factors does each latent hold, and how many nats of it?

Vu 2024, eq. 4-6. Over all ways to share the factors out among the latents (S_i the group of latent i),

    I_m = max  sum_i I(z_i; v_{S_i}) - sum_{i<j} I(v_{S_i}; v_{S_j})

with Gaussian mutual information, so it sees linear dependence (`method="ksg"` counts neighbours instead and takes at
most 6 factors). The search is `unseam.linear.search`. Unlike a gap,
I_m does not punish a latent that holds a whole group of dependent factors.
"""

from __future__ import annotations

import numpy as np

from unseam.linear.samples import InformationMethod
from unseam.linear.samples import partition_information as best_groups
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs
from unseam.metrics.registry import metric
from unseam.metrics.shared.correlation import ordered_factors


@metric(
    "partition-information",
    "Which group of factors does each latent hold, and how many nats of it?",
    "Vu 2024, eq. 4-6",
    range=(0.0, float("inf")),
    ceiling="none: nats grow with the precision of the code",
)
def partition_information(inputs: Inputs, method: InformationMethod = "gaussian") -> Score:
    """I_m of codes against factors with an order, in nats; `extra["groups"]` names the factors of each latent.

    >>> v = np.random.default_rng(0).normal(size=(1000, 3))
    >>> z = np.stack([v[:, 0] + v[:, 1], v[:, 2]], 1) + 0.1 * np.random.default_rng(1).normal(size=(1000, 2))
    >>> partition_information(z, v).extra["groups"]
    {0: ['factor0', 'factor1'], 1: ['factor2']}
    """
    ordered, notes = ordered_factors(inputs, "partition-information")
    names = [f.name for f, keep in zip(inputs.space, ordered, strict=True) if keep]
    round_ones = [f.name for f, keep in zip(inputs.space, ordered, strict=True) if keep and f.kind == "cyclic"]
    if round_ones:
        notes = (*notes, f"partition-information takes cyclic factors as numbers on a line: {', '.join(round_ones)}")
    alive = np.flatnonzero(np.ptp(inputs.rows.codes, axis=0) > 0)
    settings = {"method": method, "rows": len(inputs)}
    if not len(alive):
        return Score("partition-information", 0.0, settings=settings, notes=notes)
    found = best_groups(inputs.rows.codes[:, alive], inputs.rows.values[:, ordered], method, seed=inputs.seed)
    groups = {int(alive[i]): [names[f] for f in group] for i, group in enumerate(found.groups) if group}
    return Score(
        "partition-information",
        max(found.value, 0.0),
        settings={**settings, "gap": found.gap},
        extra={"groups": groups},
        notes=notes,
    )
