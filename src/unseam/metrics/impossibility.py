"""Moved to `unseam.linear.impossibility`; this name stays until its users have followed."""

from unseam.linear.impossibility import entangle, jacobian, reflection

__all__ = ["entangle", "jacobian", "reflection"]
