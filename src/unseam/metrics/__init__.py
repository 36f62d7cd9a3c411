"""Disentanglement metrics on plain arrays: codes (N, K) and factors (N, F) in, a Score out. No torch here.

`METRICS` lists every metric with its range, direction, paper and the question it asks; `score` computes many
at once and shares what they share; each is also a function of its own: `unseam.metrics.mig(codes, factors)`.
"""

from unseam.metrics.base import Metric, Score
from unseam.metrics.mig import mig, mig_sup
from unseam.metrics.registry import METRICS
from unseam.metrics.suite import Scores, score

__all__ = ["METRICS", "Metric", "Score", "Scores", "mig", "mig_sup", "score"]
