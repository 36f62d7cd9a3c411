"""det-VAE: the ELBO without noise, to second order in the posterior's spread.

loss = -log p(x|e) - 1/2 tr(H Sigma) + beta KL(q(z|x) || N(0, I)),    H = d^2 log p(x|z) / dz^2 at z = e(x)

(Kumar & Poole 2020; Allen 2024, eq. 5.) For a diagonal Sigma only H_ii counts.

gauss-newton   H = -M = -D^T A^2 D: what is left of H once the reconstruction is exact, and all of it for decoders that
               are piece-wise linear. Never positive, so the loss is bounded below.
exact          H = -M + sum_k (x - xhat)_k d^2 theta_k/dz^2, forward over reverse mode. Where H_ii > beta the loss falls
               without end in Sigma_ii: use it near a fit.

The K columns of D go through the decoder in forward mode (tangents.py), a cache-sized slice of the batch at a time;
the backward pass keeps what each slice needs, so memory grows as B K activations of the decoder. The products of the
columns alone, there and back, take 4.0 steps of a beta-VAE (64x64 conv, 10 latents, float32), the whole step 5.5.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unseam.geometry.jacobian import hessian
from unseam.models import Autoencoder
from unseam.objectives.base import Context, Objective
from unseam.objectives.tangents import slices
from unseam.types import Pass, Terms


def gauss_newton(model: Autoencoder, z: Tensor) -> tuple[Tensor, Tensor]:  # (B, K) -> (B, n), (B, K)
    """theta and the diagonal of M = D^T A^2 D.

    >>> from unseam.models import Architecture
    >>> model = Architecture(network="linear", latents=2, likelihood="gaussian", s2=0.5).build((2,), 0)
    >>> model.decoder[0].weight.data = torch.tensor([[3.0, 4.0], [0.0, 2.0]])  # theta = W z, W = [[3, 0], [4, 2]]
    >>> gauss_newton(model, torch.zeros(1, 2))[1].detach()
    tensor([[50.,  8.]])
    """
    parts = [(theta, model.likelihood.curvature(theta), D) for theta, D in slices(model, z)]
    M = [(A2.unsqueeze(1) * D.square()).sum(2) for _, A2, D in parts]
    return torch.cat([theta for theta, *_ in parts]), torch.cat(M)


@dataclass(frozen=True)
class DetVAE(Objective):
    """The deterministic ELBO: no sampling, the decoder's curvature instead."""

    beta: float = 1.0
    """weight of the KL"""
    hessian: Literal["gauss-newton", "exact"] = "gauss-newton"
    """the curvature of log p(x|z): without or with the decoder's second derivatives"""

    formula: ClassVar[str] = "-log p(x|e(x)) - 1/2 tr(H Sigma) + beta KL(q(z|x) || p(z))"
    paper: ClassVar[str] = "Kumar & Poole 2020, On implicit regularization in beta-VAEs; Allen 2024, eq. 5"
    reads_theta: ClassVar[bool] = False
    beta_is: ClassVar[str] = "beta"

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        model, e, variance = context.model, pass_.posterior.mean, pass_.posterior.variance()
        if self.hessian == "exact":
            theta = model.decode(e).flatten(1)
            H = hessian(model.decode, e, pass_.x, model.likelihood).diagonal(dim1=-2, dim2=-1)
        else:
            theta, M = gauss_newton(model, e)
            H = -M
        terms = {
            "reconstruction": -model.likelihood.log_prob(pass_.x.flatten(1), theta),
            "curvature": -0.5 * (H * variance).sum(1),
            "kl": pass_.posterior.kl(),
        }
        return Terms(terms, {"kl": self.beta})
