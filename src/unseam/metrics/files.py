"""Moved to `unseam.metrics.inputs.files`; this name stays until its users have followed."""

from unseam.metrics.inputs.files import read_array

__all__ = ["read_array"]
