"""VAEs with a penalty on columns of the decoder that are not orthogonal.

ortho-vae   loss = -E_q log p(x|z) + beta KL + gamma gap(x),      gap = the entanglement cost (geometry.curvature)
            gap(x) = beta/2 [ sum_i log(1 + M_ii/beta) - log det(I + M/beta) ]
ima-vae     loss = -E_q log p(x|z) + beta KL + gamma c(x),        c = the local IMA contrast (geometry.orthogonality)
            c(x) = sum_i log|J_i| - 1/2 log det J^T J             (Gresele et al. 2021)

Both are taken at z = e(x), and are 0 iff the columns are orthogonal; as beta -> 0, gap/beta -> c. A VAE pays the gap
already, by its diagonal posterior (Allen 2024, Theorem 5); ortho-vae charges it again. The Jacobian is computed at
`points` samples of each batch only: an unbiased estimate of the mean penalty at a fraction of the price.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.errors import BadInput
from unseam.geometry.curvature import entanglement_cost
from unseam.geometry.jacobian import pullbacks
from unseam.geometry.orthogonality import log_contrast
from unseam.objectives.base import Context, Objective
from unseam.objectives.elbo import elbo_terms

_RIDGE = 1e-4  # of the mean squared column length, added to J^T J: two parallel columns cost much, but not infinity


def ridged(gram: Tensor) -> Tensor:  # (B, K, K) -> (B, K, K)
    """J^T J + RIDGE tr(J^T J)/K I."""
    mean = gram.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    return gram + _RIDGE * mean * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)


def check_points(objective: Objective, points: int) -> None:
    Objective.check(objective)
    if points < 1:
        raise BadInput(f"points={points} must be at least 1: the samples of a batch at which the Jacobian is computed")


@dataclass(frozen=True)
class OrthoVAE(Objective):
    """beta-VAE that pays the entanglement cost a second time.

    Examples
    --------
    >>> OrthoVAE(gamma=2.0)
    OrthoVAE(gamma=2.0, beta=1.0, points=8)
    """

    gamma: float = 10.0
    """weight of the entanglement cost"""
    beta: float = 1.0
    """weight of the KL, and the beta of the cost"""
    points: int = 8
    """samples of each batch at which the Jacobian is computed"""

    formula: ClassVar[str] = "-E_q log p(x|z) + beta KL + gamma beta/2 [sum_i log(1 + M_ii/beta) - log det(I + M/beta)]"
    paper: ClassVar[str] = "Allen 2024, Theorem 5 (the cost); here made a penalty"
    beta_is: ClassVar[str] = "beta"

    def check(self) -> None:
        check_points(self, self.points)

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        model = context.model
        M = pullbacks(model.decode, pass_.posterior.mean[: self.points], model.likelihood).pullback
        terms = elbo_terms(pass_, context) | {"entanglement": entanglement_cost(M, self.beta)}
        return Terms(terms, {"kl": self.beta, "entanglement": self.gamma})


@dataclass(frozen=True)
class IMAVAE(Objective):
    """beta-VAE with the principle of independent mechanisms as a penalty: orthogonal columns of the Jacobian.

    Examples
    --------
    >>> IMAVAE(gamma=2.0)
    IMAVAE(gamma=2.0, beta=1.0, points=8)
    """

    gamma: float = 10.0
    """weight of the IMA contrast"""
    beta: float = 1.0
    """weight of the KL"""
    points: int = 8
    """samples of each batch at which the Jacobian is computed"""

    formula: ClassVar[str] = "-E_q log p(x|z) + beta KL + gamma [sum_i log|J_i| - 1/2 log det J^T J]"
    paper: ClassVar[str] = "Gresele et al. 2021, Independent mechanism analysis; Reizinger et al. 2022"
    beta_is: ClassVar[str] = "beta"

    def check(self) -> None:
        check_points(self, self.points)

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        model = context.model
        gram = pullbacks(model.decode, pass_.posterior.mean[: self.points], model.likelihood).gram
        terms = elbo_terms(pass_, context) | {"ima": log_contrast(ridged(gram))}
        return Terms(terms, {"kl": self.beta, "ima": self.gamma})
