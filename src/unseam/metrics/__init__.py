"""Disentanglement metrics on plain arrays: codes (N, K) and factors (N, F) in, a Score out. No torch here.

`METRICS` lists every metric with its range, direction, paper and the question it asks; `score` computes many
at once and shares what they share; each is also a function of its own: `unseam.metrics.mig(codes, factors)`.
"""

from unseam.metrics.base import Metric, Score
from unseam.metrics.beta_vae import beta_vae
from unseam.metrics.dci import dci
from unseam.metrics.dcimig import dcimig
from unseam.metrics.downstream import downstream
from unseam.metrics.ds import ds
from unseam.metrics.explicitness import explicitness
from unseam.metrics.factor_vae import factor_vae
from unseam.metrics.impossibility import entangle
from unseam.metrics.infomec import infomec
from unseam.metrics.irs import irs
from unseam.metrics.mcc import mcc
from unseam.metrics.mig import mig, mig_sup
from unseam.metrics.modularity import modularity
from unseam.metrics.partition import partition_information
from unseam.metrics.registry import METRICS
from unseam.metrics.rmig import jemmig, rmig
from unseam.metrics.sap import sap, sap_r2
from unseam.metrics.suite import Scores, score, score_representation
from unseam.metrics.udr import two_codes, udr
from unseam.metrics.unsupervised import (
    code_mutual_information,
    gaussian_tc,
    gaussian_tc_sampled,
    wasserstein_dependency,
)

__all__ = [
    "METRICS",
    "Metric",
    "Score",
    "Scores",
    "beta_vae",
    "code_mutual_information",
    "dci",
    "dcimig",
    "downstream",
    "ds",
    "entangle",
    "explicitness",
    "factor_vae",
    "gaussian_tc",
    "gaussian_tc_sampled",
    "infomec",
    "irs",
    "jemmig",
    "mcc",
    "mig",
    "mig_sup",
    "modularity",
    "partition_information",
    "rmig",
    "sap",
    "sap_r2",
    "score",
    "score_representation",
    "two_codes",
    "udr",
    "wasserstein_dependency",
]
