"""What the papers show, shown again: one file an exhibit, one row here.

reproduce(EXHIBITS, ["V1"], scale="quick", out=Path("exhibits"))
"""

from unseam_papers.allen import (
    beta_is_variance,
    diagonal_hessian,
    general_decoders,
    linear_components,
    merging_points,
    plateaus,
    posterior_collapse,
    pushforward,
    separable_speeds,
    sheared_truth,
    sigma_law,
    taylor_elbo,
)
from unseam_papers.frame.exhibit import Exhibit, exhibit_of
from unseam_papers.frame.run import reproduce
from unseam_papers.locatello import (
    capacity,
    downstream_accuracy,
    impossibility,
    label_efficiency,
    metrics_agree,
    model_selection,
    overlapping_scores,
    total_correlation,
    variance_explained,
)
from unseam_papers.newer import (
    bernoulli_columns,
    correlated_factors,
    gap_and_teacher,
    gaussian_twins,
    interaction_and_orthogonality,
    local_variance,
    posterior_ablation,
    pull_law,
)
from unseam_papers.vu import four_latents, hypothesis, three_latents
from unseam_papers.zietlow import (
    cartesian_or_polar,
    eigenfaces,
    equal_singular_values,
    linear_vae_is_pca,
    orthogonality_over_restarts,
    orthogonality_table,
    over_beta,
    perturbed_scores,
    planes,
    polarized_regime,
    robustness_radius,
    rotation_invariance,
    self_consistency,
    spread_on_perturbed,
    stronger_on_perturbed,
    worked_example,
)

MODULES = (
    linear_components,  # A1
    taylor_elbo,
    sigma_law,
    pushforward,
    general_decoders,
    merging_points,
    beta_is_variance,
    posterior_collapse,
    diagonal_hessian,
    plateaus,
    sheared_truth,  # A11
    separable_speeds,  # A12
    planes,  # Z1
    worked_example,
    rotation_invariance,
    polarized_regime,
    orthogonality_table,
    orthogonality_over_restarts,
    equal_singular_values,
    eigenfaces,
    over_beta,
    linear_vae_is_pca,  # Z10
    perturbed_scores,  # Z11
    stronger_on_perturbed,
    spread_on_perturbed,
    cartesian_or_polar,  # Z14
    self_consistency,
    robustness_radius,  # Z16
    impossibility,  # L1
    total_correlation,
    metrics_agree,
    overlapping_scores,
    variance_explained,
    model_selection,
    downstream_accuracy,
    label_efficiency,
    capacity,  # L9
    three_latents,  # V1
    four_latents,
    hypothesis,
    interaction_and_orthogonality,  # N1
    correlated_factors,  # N2
    posterior_ablation,  # N3
    bernoulli_columns,  # N4
    pull_law,
    local_variance,
    gaussian_twins,
    gap_and_teacher,  # N8
)
EXHIBITS: dict[str, Exhibit] = {exhibit.id: exhibit for exhibit in map(exhibit_of, MODULES)}

__all__ = ["EXHIBITS", "Exhibit", "reproduce"]
