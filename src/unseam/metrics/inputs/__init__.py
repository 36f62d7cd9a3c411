"""What goes in: arrays and files of every kind, checked once at the door."""

from unseam.metrics.inputs.base import Inputs, Sample, require_classes, require_few_classes, shared
from unseam.metrics.inputs.prepare import prepare

__all__ = ["Inputs", "Sample", "prepare", "require_classes", "require_few_classes", "shared"]
