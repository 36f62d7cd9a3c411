"""Break a data set on purpose: change every observation a little, so that other axes become cheaper to decode."""

from unseam.perturb.manipulate import Manipulation, Settings, manipulate
from unseam.perturb.teachers import Teacher, turned

__all__ = ["Manipulation", "Settings", "Teacher", "manipulate", "turned"]
