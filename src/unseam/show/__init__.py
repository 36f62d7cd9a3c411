"""See it: the report of a run, its figures and traversals, and the demo that goes the whole way."""
