"""Every objective by its name."""

from unseam.lazy import named_object
from unseam.objectives.base import Objective
from unseam.objectives.names import OBJECTIVE_CLASSES as NAMES

OBJECTIVES: dict[str, type[Objective]] = {name: named_object(place) for name, place in NAMES.items()}
