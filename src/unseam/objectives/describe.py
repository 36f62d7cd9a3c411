"""What `unseam objectives` says of each: one line, formula, paper, hyperparameters with their defaults and grids."""

from dataclasses import fields
from typing import Any

from unseam.objectives.base import Objective, hyperparameters


def describe(kind: type[Objective]) -> dict[str, Any]:
    """An objective as plain data.

    >>> from unseam.objectives import OBJECTIVES
    >>> describe(OBJECTIVES["beta-vae"])["hyperparameters"]["beta"]
    {'default': 4.0, 'locatello_2019': [1, 2, 4, 6, 8, 16]}
    """
    varying = hyperparameters(kind)
    grids = {name: list(kind.grid[name]) if name in kind.grid else None for name in varying}
    return {
        "about": (kind.__doc__ or "").strip().split("\n")[0],
        "formula": kind.formula,
        "paper": kind.paper,
        "hyperparameters": {n: {"default": d, "locatello_2019": grids[n]} for n, d in varying.items()},
        "settings": {f.name: f.default for f in fields(kind) if f.name not in varying},  # type: ignore[arg-type]
        "cannot": kind.cannot,
        "posterior": kind.posterior,
        "batches": kind.batches,
        "smallest_batch": kind.smallest_batch,
    }
