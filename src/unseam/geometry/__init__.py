"""Why a model disentangles, in nats, and the repair when it does not: pure functions of a decoder and points.

`diagnose` and `align` are the two questions; the rest are their parts, usable as penalties inside objectives.
"""

# isort: off
from unseam.geometry.align import Alignment as Alignment, align as align
from unseam.geometry.coordinates import labelled_coordinates as labelled_coordinates
from unseam.geometry.coordinates import pair_coordinates as pair_coordinates
from unseam.geometry.curvature import entanglement_cost as entanglement_cost, hessian_axes as hessian_axes
from unseam.geometry.curvature import pair_costs as pair_costs, sigma_law as sigma_law
from unseam.geometry.curves import coordinate_curve as coordinate_curve, singular_curve as singular_curve
from unseam.geometry.dependence import dependence as dependence
from unseam.geometry.diagnose import diagnose as diagnose
from unseam.geometry.diagnosis import Diagnosis as Diagnosis
from unseam.geometry.diagonalise import joint_rotation as joint_rotation
from unseam.geometry.entropic import EntropicScores as EntropicScores, entropic_scores as entropic_scores
from unseam.geometry.orthogonality import haar as haar
from unseam.geometry.jacobian import hessian as hessian, jacobian as jacobian, metrics as metrics, pullback as pullback
from unseam.geometry.jacobian import pullbacks as pullbacks, singular as singular
from unseam.geometry.curvature import law_fit as law_fit
from unseam.geometry.orthogonality import cosines as cosines, dto as dto, ima_contrast as ima_contrast
from unseam.geometry.orthogonality import log_contrast as log_contrast
from unseam.geometry.pushforward import component_density as component_density, log_densities as log_densities
from unseam.geometry.polarized import active_latents as active_latents, delta_kl as delta_kl
from unseam.geometry.polarized import polarized_share as polarized_share, polarized_since as polarized_since
from unseam.geometry.polarized import statistics as statistics
from unseam.geometry.sampled_cost import sampled_cost as sampled_cost
from unseam.geometry.separability import cross_slopes as cross_slopes, product_support as product_support
from unseam.geometry.self_consistency import self_consistency as self_consistency
