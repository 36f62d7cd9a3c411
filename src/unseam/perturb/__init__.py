"""Break a data set on purpose: change every observation a little, so that other axes become cheaper to decode."""

from unseam.perturb.adversary import Manipulation, Settings, manipulate
from unseam.perturb.layouts import Teacher, turned_layout
from unseam.perturb.perturb_data import PerturbResult, perturb
from unseam.perturb.stress import Stress, stress

__all__ = [
    "Manipulation",
    "PerturbResult",
    "Settings",
    "Stress",
    "Teacher",
    "manipulate",
    "perturb",
    "stress",
    "turned_layout",
]
