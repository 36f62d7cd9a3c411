"""V1: three factors, four dimensions, three latents (Vu 2024)."""

from unseam_papers.vu.tables import exhibit

V1 = exhibit(
    "V1",
    (3, 4, 3),
    {"I": (16.0, 64.0, 100.0), "SAP": (40.0, 92.0, 92.0)},
    "Over 25 pairs (gamma, lambda) the best partition is the true one more often the fewer independent groups there "
    "are, and SAP leads while the groups are many.",
)
