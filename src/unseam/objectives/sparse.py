"""A VAE whose latents move few outputs each: the L1 norm of the decoder's Jacobian as a penalty.

loss = -E_q log p(x|z) + beta KL + gamma |J|_1,      |J|_1 = sum_oi |d xhat_o / d z_i| at z = e(x)

The L1 norm of a rotation of J is smallest where J is sparse, so the penalty prefers axes along which different outputs
move; the KL keeps the scale of z, which the penalty alone would stretch. It is taken at `points` samples of each batch.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.geometry.jacobian import mean_and_weight, push
from unseam.models import Autoencoder
from unseam.objectives.base import Context, Objective
from unseam.objectives.elbo import elbo_terms
from unseam.objectives.orthogonal import check_points


def jacobian_l1(model: Autoencoder, z: Tensor) -> Tensor:  # (B, K) -> (B,)
    """|J|_1 of the mean of x at each point.

    >>> import torch
    >>> from unseam.models import Architecture
    >>> model = Architecture(network="linear", latents=2, likelihood="gaussian").build((2,), 0)
    >>> model.decoder[0].weight.data = torch.tensor([[3.0, -4.0], [0.0, 2.0]])
    >>> jacobian_l1(model, torch.zeros(1, 2)).detach()
    tensor([9.])
    """
    theta, D = push(model.decode, z)
    J, _ = mean_and_weight(model.likelihood, theta.flatten(1), D.flatten(1, -2))
    return J.abs().sum((1, 2))


@dataclass(frozen=True)
class SparseJacobian(Objective):
    """beta-VAE with sparse influence of latents on outputs.

    Examples
    --------
    >>> SparseJacobian(gamma=0.1)
    SparseJacobian(gamma=0.1, beta=1.0, points=8)
    """

    gamma: float = 0.05
    """weight of the L1 norm of the Jacobian"""
    beta: float = 1.0
    """weight of the KL"""
    points: int = 8
    """samples of each batch at which the Jacobian is computed"""

    formula: ClassVar[str] = "-E_q log p(x|z) + beta KL + gamma sum_oi |d xhat_o / d z_i|"
    paper: ClassVar[str] = "Zheng et al. 2022, On the identifiability of nonlinear ICA: sparsity and beyond"
    beta_is: ClassVar[str] = "beta"

    def check(self) -> None:
        check_points(self, self.points)

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        penalty = jacobian_l1(context.model, pass_.posterior.mean[: self.points])
        return Terms(elbo_terms(pass_, context) | {"sparsity": penalty}, {"kl": self.beta, "sparsity": self.gamma})
