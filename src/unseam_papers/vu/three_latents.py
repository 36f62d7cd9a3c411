"""V1: three factors, four dimensions, three latents (Vu 2024)."""

from functools import partial

from unseam_papers.vu import tables
from unseam_papers.vu.tables import PAPER, SOURCE, TABLE_CHOICES, compute, scales, title

_SIZE = (3, 4, 3)  # s, n, m
PUBLISHED = {"I": (16.0, 64.0, 100.0), "SAP": (40.0, 92.0, 92.0)}
ID, TITLE, CHOICES, SCALES = "V1", title(*_SIZE), TABLE_CHOICES, scales(*_SIZE)
CLAIM = (
    "Over 25 pairs (gamma, lambda) the best partition is the true one more often the fewer independent groups there "
    "are, and SAP leads while the groups are many."
)
judge, draw, conclude = (partial(f, PUBLISHED) for f in (tables.judge, tables.draw, tables.conclude))

__all__ = ["CHOICES", "CLAIM", "ID", "PAPER", "SCALES", "SOURCE", "TITLE", "compute", "conclude", "draw", "judge"]
