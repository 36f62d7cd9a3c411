"""What a model is trained to do."""

from typing import TYPE_CHECKING

from unseam.lazy import lazy_names
from unseam.objectives.optimiser import Optimiser

if TYPE_CHECKING:
    from unseam.objectives.base import Context, Objective, Player, hyperparameters
    from unseam.objectives.registry import OBJECTIVES
else:  # not at once: they need torch, `Optimiser` does not
    __getattr__ = lazy_names(
        __name__,
        {
            "OBJECTIVES": "unseam.objectives.registry",
            **dict.fromkeys(("Context", "Objective", "Player", "hyperparameters"), "unseam.objectives.base"),
        },
    )

__all__ = ["OBJECTIVES", "Context", "Objective", "Optimiser", "Player", "hyperparameters"]
