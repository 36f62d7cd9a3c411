"""What a model is trained to do."""

from typing import TYPE_CHECKING

from unseam.lazy import lazy_names
from unseam.objectives.base import Context, Objective, Optimiser, Player, hyperparameters

if TYPE_CHECKING:
    from unseam.objectives.registry import OBJECTIVES
else:  # not at once: it needs torch, the others do not
    __getattr__ = lazy_names(__name__, {"OBJECTIVES": "unseam.objectives.registry"})

__all__ = ["OBJECTIVES", "Context", "Objective", "Optimiser", "Player", "hyperparameters"]
