"""Why a model disentangles, in nats, and the repair when it does not: pure functions of a decoder and points.

`diagnose` and `align` are the two questions; the rest are their parts, usable as penalties inside objectives.
"""

from unseam.geometry.align import Alignment, align
from unseam.geometry.coordinates import labelled_coordinates, pair_coordinates
from unseam.geometry.curvature import entanglement_cost, hessian_axes, pair_costs, sigma_law
from unseam.geometry.curves import coordinate_curve, singular_curve
from unseam.geometry.dependence import dependence
from unseam.geometry.diagnose import diagnose
from unseam.geometry.diagnosis import Diagnosis
from unseam.geometry.diagonalise import joint_rotation
from unseam.geometry.haar import haar
from unseam.geometry.jacobian import hessian, jacobian, metrics, pullback, pullbacks, singular
from unseam.geometry.law import law_fit
from unseam.geometry.orthogonality import cosines, dto, ima_contrast, log_contrast
from unseam.geometry.pushforward import component_density, log_densities
from unseam.geometry.regime import active_latents, delta_kl, polarized_share, polarized_since, statistics
from unseam.geometry.selfconsistency import self_consistency

__all__ = [
    "Alignment",
    "Diagnosis",
    "active_latents",
    "align",
    "component_density",
    "coordinate_curve",
    "cosines",
    "delta_kl",
    "dependence",
    "diagnose",
    "dto",
    "entanglement_cost",
    "haar",
    "hessian",
    "hessian_axes",
    "ima_contrast",
    "jacobian",
    "joint_rotation",
    "labelled_coordinates",
    "law_fit",
    "log_contrast",
    "log_densities",
    "metrics",
    "pair_coordinates",
    "pair_costs",
    "polarized_share",
    "polarized_since",
    "pullback",
    "pullbacks",
    "self_consistency",
    "sigma_law",
    "singular",
    "singular_curve",
    "statistics",
]
