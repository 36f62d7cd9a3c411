"""DIP-VAE: the second moments of the aggregate posterior are pulled to the identity.

loss = -E_q log p(x|z) + KL(q(z|x) || p(z)) + lambda_od sum_{i != j} C_ij^2 + lambda_d sum_i (C_ii - 1)^2
C = Cov[e(x)] (I)   or   C = Cov[e(x)] + E Sigma_x, the covariance of z itself (II)      (Kumar et al. 2018)

Covariances are those of the batch, divided by B as in the paper; lambda_d = ratio lambda_od, so that one sweep
moves both, as in Locatello 2019 (ratio 10 for I, 1 for II).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.models import Posterior
from unseam.objectives.base import Context, Objective
from unseam.objectives.elbo import elbo_terms

_GRID: dict[str, tuple[float, ...]] = {"lambda_od": (1, 2, 5, 10, 20, 50)}


def batch_covariance(mean: Tensor) -> Tensor:  # (B, K) -> (K, K)
    """E[e e^T] - E[e] E[e]^T over the batch.

    >>> batch_covariance(torch.tensor([[1.0, 2.0], [-1.0, -2.0]]))
    tensor([[1., 2.],
            [2., 4.]])
    """
    centred = mean - mean.mean(0)
    return centred.mT @ centred / len(mean)


def aggregate_covariance(posterior: Posterior) -> Tensor:  # (K, K)
    """Cov[z] = Cov[e(x)] + E Sigma_x for a diagonal Sigma_x (law of total covariance)."""
    return batch_covariance(posterior.mean) + torch.diag_embed(posterior.variance().mean(0))


def dip_terms(C: Tensor) -> dict[str, Tensor]:
    """sum_{i != j} C_ij^2 and sum_i (C_ii - 1)^2.

    >>> dip_terms(torch.tensor([[2.0, 0.5], [0.5, 1.0]]))
    {'off_diagonal': tensor(0.5000), 'diagonal': tensor(1.)}
    """
    diagonal = C.diagonal(dim1=-2, dim2=-1)
    off = C - torch.diag_embed(diagonal)
    return {"off_diagonal": off.square().sum(), "diagonal": (diagonal - 1).square().sum()}


@dataclass(frozen=True)
class DIPVAEI(Objective):
    """The covariance of the posterior means is pulled to the identity.

    Examples
    --------
    >>> DIPVAEI(lambda_od=5.0)
    DIPVAEI(lambda_od=5.0, ratio=10.0)
    """

    lambda_od: float = 10.0
    """weight of the squared covariances (Locatello 2019 sweeps 1 to 50)"""
    ratio: float = 10.0
    """lambda_d / lambda_od, lambda_d being the weight of the variances' squared distance to 1"""

    formula: ClassVar[str] = "ELBO loss + lambda_od sum_{i!=j} C_ij^2 + lambda_d sum_i (C_ii - 1)^2, C = Cov[e(x)]"
    paper: ClassVar[str] = "Kumar et al. 2018, Variational inference of disentangled latent concepts (DIP-VAE-I)"
    beta_is: ClassVar[float] = 1.0
    smallest_batch: ClassVar[int] = 2
    grid: ClassVar[dict[str, tuple[float, ...]]] = _GRID

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        terms = elbo_terms(pass_, context) | dip_terms(batch_covariance(pass_.posterior.mean))
        return Terms(terms, {"off_diagonal": self.lambda_od, "diagonal": self.lambda_od * self.ratio})


@dataclass(frozen=True)
class DIPVAEII(Objective):
    """The covariance of the sampled code is pulled to the identity.

    Examples
    --------
    >>> DIPVAEII(lambda_od=5.0)
    DIPVAEII(lambda_od=5.0, ratio=1.0)
    """

    lambda_od: float = 10.0
    """weight of the squared covariances (Locatello 2019 sweeps 1 to 50)"""
    ratio: float = 1.0
    """lambda_d / lambda_od, lambda_d being the weight of the variances' squared distance to 1"""

    formula: ClassVar[str] = (
        "ELBO loss + lambda_od sum_{i!=j} C_ij^2 + lambda_d sum_i (C_ii - 1)^2, C = Cov[e(x)] + E Sigma_x"
    )
    paper: ClassVar[str] = "Kumar et al. 2018, Variational inference of disentangled latent concepts (DIP-VAE-II)"
    beta_is: ClassVar[float] = 1.0
    smallest_batch: ClassVar[int] = 2
    grid: ClassVar[dict[str, tuple[float, ...]]] = _GRID

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        terms = elbo_terms(pass_, context) | dip_terms(aggregate_covariance(pass_.posterior))
        return Terms(terms, {"off_diagonal": self.lambda_od, "diagonal": self.lambda_od * self.ratio})
