"""Disentanglement metrics on plain arrays: codes (N, K) and factors (N, F) in, a Score out. No torch here.

`METRICS` lists every metric with its range, direction, paper and the question it asks; `score` computes many
at once and shares what they share; each is also a function of its own: `unseam.metrics.mig(codes, factors)`.
"""

from unseam.linear.impossibility import entangle as entangle
from unseam.metrics.base import Score as Score
from unseam.metrics.registry import METRICS as METRICS
from unseam.metrics.registry import Metric as Metric

# The list: importing a formula lists it in METRICS, in this order. A new metric is one line here.
# isort: off
from unseam.metrics.mig import mig as mig, mig_sup as mig_sup
from unseam.metrics.rmig import rmig as rmig, jemmig as jemmig
from unseam.metrics.dcimig import dcimig as dcimig
from unseam.metrics.sap import sap as sap, sap_r2 as sap_r2
from unseam.metrics.modularity import modularity as modularity
from unseam.metrics.explicitness import explicitness as explicitness
from unseam.metrics.dci import dci as dci
from unseam.metrics.irs import irs as irs
from unseam.metrics.beta_vae import beta_vae as beta_vae
from unseam.metrics.factor_vae import factor_vae as factor_vae
from unseam.metrics.ds import ds as ds
from unseam.metrics.infomec import infomec as infomec
from unseam.metrics.mcc import mcc as mcc
from unseam.metrics.partition import partition_information as partition_information
from unseam.metrics.downstream import downstream as downstream
from unseam.metrics.unsupervised import gaussian_tc as gaussian_tc, gaussian_tc_sampled as gaussian_tc_sampled
from unseam.metrics.unsupervised import wasserstein_dependency as wasserstein_dependency
from unseam.metrics.unsupervised import code_mutual_information as code_mutual_information
from unseam.metrics.med import med as med, med_topk as med_topk
from unseam.metrics.min_suf import minimality as minimality, sufficiency as sufficiency
from unseam.metrics.restrictive import consistency as consistency, restrictiveness as restrictiveness
from unseam.metrics.dci_es import es_explicitness as es_explicitness, es_size as es_size
from unseam.metrics.omes import omes as omes
# isort: on

from unseam.metrics.centrality import model_centrality as model_centrality
from unseam.metrics.suite import Scores as Scores
from unseam.metrics.suite import score as score
from unseam.metrics.suite import score_representation as score_representation
from unseam.metrics.udr import two_codes as two_codes
from unseam.metrics.udr import udr as udr
