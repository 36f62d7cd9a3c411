"""V2: five factors, five dimensions, four latents (Vu 2024)."""

from functools import partial

from unseam_papers.frame.exhibit import Numbers
from unseam_papers.frame.rows import VerdictRows
from unseam_papers.vu import tables
from unseam_papers.vu.tables import PAPER, SOURCE, TABLE_CHOICES, compute, scales, title

_SIZE = (5, 5, 4)  # s, n, m
PUBLISHED = {"I": (44.0, 60.0, 56.0), "SAP": (52.0, 20.0, 4.0)}
ID, TITLE, SCALES = "V2", title(*_SIZE), scales(*_SIZE)
CLAIM = (
    "With two groups or one, I_4 finds the true groups more often than SAP; with three, which is still fewer than the "
    "four latents, SAP is ahead (52 % against 44 %)."
)
CHOICES = (
    *TABLE_CHOICES,
    "The groups of five factors: only their number (3, 2, 1) is given. Ours: {1,2}{3,4}{5}; {1,2,3}{4,5}; all.",
)
judge, draw = (partial(f, PUBLISHED) for f in (tables.judge, tables.draw))


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    return tables.conclude(PUBLISHED, numbers, rows) + (
        " Scenario 1 of the published table stands against the slides' own hypothesis (V3): 3 groups are fewer than 4 "
        "latents, and I_4 is behind SAP."
    )


__all__ = ["CHOICES", "CLAIM", "ID", "PAPER", "SCALES", "SOURCE", "TITLE", "compute", "conclude", "draw", "judge"]
