"""The input of metrics: arrays and files of every kind, checked once."""

from unseam.metrics.inputs.base import Inputs, Observations, computed_once, require_classes, require_few_classes
from unseam.metrics.inputs.prepare import prepare_inputs

__all__ = ["Inputs", "Observations", "computed_once", "prepare_inputs", "require_classes", "require_few_classes"]
