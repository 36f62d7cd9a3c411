"""METRICS: one row a metric. A new metric is one file and one row here."""

from unseam.metrics.base import Metric
from unseam.metrics.mig import compute_mig, compute_mig_sup

_ROWS = (
    Metric(
        "mig",
        compute_mig,
        "Is each factor held by exactly one latent?",
        "Chen et al. 2018, arXiv:1802.04942",
        ceiling="1; less when a factor has more values than bins (20)",
    ),
    Metric(
        "mig-sup",
        compute_mig_sup,
        "Does each latent hold exactly one factor?",
        "Li et al. 2020, arXiv:2002.10549",
        ceiling="share of latents that hold a factor: latents without a factor count 0",
    ),
)
METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}
