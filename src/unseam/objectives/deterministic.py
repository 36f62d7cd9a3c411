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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.func import jvp

from unseam.axes import Pass, Terms
from unseam.geometry.jacobian import hessian, push, slice_size
from unseam.models import Autoencoder
from unseam.models.autoencoder import ACTIVATIONS, ChannelsLast, Crop, Dense, layer_in_bfloat16
from unseam.objectives.base import Context, Objective


def gauss_newton(model: Autoencoder, z: Tensor) -> tuple[Tensor, Tensor]:  # (B, K) -> (B, n), (B, K)
    """theta and the diagonal of M = D^T A^2 D.

    >>> from unseam.models import Architecture
    >>> model = Architecture(network="linear", latents=2, likelihood="gaussian", s2=0.5).build((2,), 0)
    >>> model.decoder[0].weight.data = torch.tensor([[3.0, 4.0], [0.0, 2.0]])  # theta = W z, W = [[3, 0], [4, 2]]
    >>> gauss_newton(model, torch.zeros(1, 2))[1].detach()
    tensor([[50.,  8.]])
    """
    parts = [(theta, model.likelihood.curvature(theta), D) for theta, D in column_slices(model, z)]
    M = [(A2.unsqueeze(1) * D.square()).sum(2) for _, A2, D in parts]
    return torch.cat([theta for theta, *_ in parts]), torch.cat(M)


@dataclass(frozen=True)
class DetVAE(Objective):
    """The deterministic ELBO: no sampling, the decoder's curvature instead.

    Examples
    --------
    >>> DetVAE(beta=0.5).kl_weight()
    0.5
    """

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


# Forward mode by hand, layer by layer: the numbers of `geometry.jacobian.push`, cheaper to train through.
#
# torch's own forward mode convolves once more with a zero tangent of the weights, and keeps a zero gradient of every
# ReLU's sign for the backward pass: a quarter of the whole step of det-VAE. Here a linear layer maps tangents as it
# maps values, without its bias (`layer_in_bfloat16`); an activation scales them by its slope; the rest only moves
# numbers.


_MOVES = (nn.Unflatten, nn.Flatten, ChannelsLast, Crop)


def _through(layer: nn.Module, value: Tensor, tangent: Tensor) -> tuple[Tensor, Tensor]:
    """One layer: value (B, ...), and the K tangents of each sample (B K, ...)."""
    after = layer_in_bfloat16(layer, value)
    if not isinstance(layer, tuple(ACTIVATIONS.values())):
        return after, layer_in_bfloat16(layer, tangent, bias=False)
    slope = _slope(layer, value)
    scaled = tangent.unflatten(0, (len(value), -1)) * slope.unsqueeze(1)
    return after, scaled.flatten(0, 1)


def _slope(activation: nn.Module, value: Tensor) -> Tensor:
    if isinstance(activation, nn.ReLU):
        return value > 0
    return jvp(activation, (value,), (torch.ones_like(value),))[1]


def has_known_layers(decoder: nn.Module) -> bool:
    """Whether every layer is one that `_through` knows."""
    layers = (Dense, nn.ConvTranspose2d, *_MOVES, *ACTIVATIONS.values())
    return isinstance(decoder, nn.Sequential) and all(type(layer) in layers for layer in decoder)


def _columns(decoder: nn.Sequential, z: Tensor) -> tuple[Tensor, Tensor]:  # (B, K) -> (B, n), (B, K, n)
    """theta and the columns of D = d theta / dz.

    >>> decoder = nn.Sequential(Dense(2, 3))
    >>> theta, D = _columns(decoder, torch.zeros(1, 2))
    >>> torch.equal(D[0], decoder[0].weight)
    True
    """
    B, K = z.shape
    value, tangent = z, torch.eye(K, dtype=z.dtype, device=z.device).repeat(B, 1)  # (B K, K)
    for layer in decoder:
        value, tangent = _through(layer, value, tangent)
    return value.flatten(1), tangent.flatten(1).unflatten(0, (B, K))


def column_slices(model: Autoencoder, z: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """(theta (b, n), columns of D (b, K, n)), a cache-sized slice of the points at a time; any decoder."""
    by_hand = has_known_layers(model.decoder)
    here = z.bfloat16() if by_hand and model.bfloat16_networks else z
    for points in here.split(slice_size(model.decode, z)):
        if by_hand:
            theta, D = _columns(model.decoder, points)  # type: ignore[arg-type]
            yield theta.to(z), D.to(z)
        else:
            theta, D = push(model.decode, points)
            yield theta.flatten(1), D.flatten(1, -2).mT
