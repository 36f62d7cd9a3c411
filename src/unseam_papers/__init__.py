"""What the papers show, shown again: one file an exhibit, one row here.

reproduce(EXHIBITS, ["V1"], scale="quick", out=Path("exhibits"))
"""

from unseam_papers.allen.beta_is_variance import A7
from unseam_papers.allen.diagonal_hessian import A9
from unseam_papers.allen.general_decoders import A5
from unseam_papers.allen.linear_components import A1
from unseam_papers.allen.merging_points import A6
from unseam_papers.allen.plateaus import A10
from unseam_papers.allen.posterior_collapse import A8
from unseam_papers.allen.pushforward import A4
from unseam_papers.allen.sheared_truth import A11
from unseam_papers.allen.sigma_law import A3
from unseam_papers.allen.taylor_elbo import A2
from unseam_papers.frame.exhibit import Exhibit
from unseam_papers.frame.run import reproduce
from unseam_papers.locatello.impossibility import L1
from unseam_papers.locatello.total_correlation import L2
from unseam_papers.vu.four_latents import V2
from unseam_papers.vu.hypothesis import V3
from unseam_papers.vu.three_latents import V1
from unseam_papers.zietlow.cartesian_or_polar import Z14
from unseam_papers.zietlow.eigenfaces import Z8
from unseam_papers.zietlow.equal_singular_values import Z7
from unseam_papers.zietlow.linear_vae_is_pca import Z10
from unseam_papers.zietlow.orthogonality_over_restarts import Z6
from unseam_papers.zietlow.orthogonality_table import Z5
from unseam_papers.zietlow.over_beta import Z9
from unseam_papers.zietlow.planes import Z1
from unseam_papers.zietlow.polarized_regime import Z4
from unseam_papers.zietlow.rotation_invariance import Z3
from unseam_papers.zietlow.self_consistency import Z15
from unseam_papers.zietlow.worked_example import Z2

IN_ORDER = (
    A1,
    A2,
    A3,
    A4,
    A5,
    A6,
    A7,
    A8,
    A9,
    A10,
    A11,
    Z1,
    Z2,
    Z3,
    Z4,
    Z5,
    Z6,
    Z7,
    Z8,
    Z9,
    Z10,
    Z14,
    Z15,
    L1,
    L2,
    V1,
    V2,
    V3,
)
EXHIBITS: dict[str, Exhibit] = {exhibit.id: exhibit for exhibit in IN_ORDER}

__all__ = ["EXHIBITS", "Exhibit", "reproduce"]
