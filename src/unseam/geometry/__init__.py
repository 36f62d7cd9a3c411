"""Why a model disentangles, in nats, and the repair when it does not: pure functions of a decoder and points.

`diagnose` and `align` are the two questions; the rest are their parts, usable as penalties inside objectives.
"""

from unseam.geometry.curvature import entanglement_cost, pair_costs, sigma_law
from unseam.geometry.jacobian import hessian, jacobian, metrics, pullback, singular
from unseam.geometry.orthogonality import cosines, dto, haar, ima_contrast
from unseam.geometry.regime import active_latents, delta_kl, polarized_share, statistics

__all__ = [
    "active_latents",
    "cosines",
    "delta_kl",
    "dto",
    "entanglement_cost",
    "haar",
    "hessian",
    "ima_contrast",
    "jacobian",
    "metrics",
    "pair_costs",
    "polarized_share",
    "pullback",
    "sigma_law",
    "singular",
    "statistics",
]
