"""Plain statistics of columns: entropy and mutual information, correlation, matching.

NumPy and SciPy only; `import scipy` loads its parts (stats and optimize take 0.2 s each) where they are first used.
Information is in nats. One rule for a constant column: it tells nothing about any other, so its information and its
entry in a matrix of correlations are 0, and a single correlation with it is None.
"""

from unseam.stats.auctions import Auction, auction
from unseam.stats.correlation import (
    Matching,
    correlations,
    in_random_axes,
    matched,
    matched_codes,
    multiple_correlation,
    normal_scores,
    pearson,
    rank_correlations,
    spearman,
    standardise,
    top_two_gap,
    unique_values,
)
from unseam.stats.information import contingency, discrete_information, discretise, entropy, entropy_of_counts
from unseam.stats.neighbours import ksg, ross

__all__ = [
    "Auction",
    "Matching",
    "auction",
    "contingency",
    "correlations",
    "discrete_information",
    "discretise",
    "entropy",
    "entropy_of_counts",
    "in_random_axes",
    "ksg",
    "matched",
    "matched_codes",
    "multiple_correlation",
    "normal_scores",
    "pearson",
    "rank_correlations",
    "ross",
    "spearman",
    "standardise",
    "top_two_gap",
    "unique_values",
]
