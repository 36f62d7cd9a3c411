"""Break a data set on purpose: change every observation a little, so that other axes become cheaper to decode."""

from unseam.perturb.make import Made, perturb
from unseam.perturb.manipulate import Manipulation, Settings, manipulate
from unseam.perturb.stress import Stress, stress
from unseam.perturb.teachers import Teacher, turned

__all__ = ["Made", "Manipulation", "Settings", "Stress", "Teacher", "manipulate", "perturb", "stress", "turned"]
