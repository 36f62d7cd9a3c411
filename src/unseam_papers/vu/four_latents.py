"""V2: five factors, five dimensions, four latents (Vu 2024)."""

from unseam_papers.vu.tables import exhibit

V2 = exhibit(
    "V2",
    (5, 5, 4),
    {"I": (44.0, 60.0, 56.0), "SAP": (52.0, 20.0, 4.0)},
    "With more latents than independent groups, I_4 finds the true groups more often than SAP.",
    ("The groups of five factors: only their number (3, 2, 1) is given. Ours: {1,2}{3,4}{5}; {1,2,3}{4,5}; all.",),
)
