"""See it: the report of a run, its figures and traversals, and the demo that goes the whole way."""

from unseam.show.demo import demo
from unseam.show.report import report

__all__ = ["demo", "report"]
