"""Tripod: three small biases together: latents on a grid, independent, that do not interact in the decoder.

loss = -log p(x|z) + lambda_mi MI + lambda_h H,      z = tanh e(x), rounded to a fixed grid on [-1, 1]

MI   mean_i [ log q(z_i) - sum_k log q_k(z_ik) ], kernel densities of the batch itself; the joint one has bandwidth
     s_k (4 / (K + 2))^(1/(K + 4)) B^(-1/(K + 4)) in latent k, the marginal ones s_k, the standard deviation of tanh e_k
H    sum over the decoder's hidden layers f of E_x Var_r D_r / E_x Var_g D_g, D_v = (f(z+h) - 2 f(z) + f(z-h)) / eps^2
     with h = eps v s, v = +-1 (r) or normal (g). Var_r v^T A v = 2 sum_{i!=j} A_ij^2, Var_g v^T A v = 2 sum_ij A_ij^2:
     the ratio is the share of the layer's second derivatives that mixes two latents.

(Hsu et al. 2024.) The two bandwidths make MI no estimate of the total correlation: it is a penalty, and not 0 for
independent latents. The authors' weights, (1e-4, 1e-2) on Shapes3D, stand before a mean over n pixels, ours before a
sum: multiply by n (12,288 there: 1.2 and 123; defaults are for 4,096). Codes that
do not vary have no H. They take 12 values a latent (`--levels 12`) and clip gradients, which we do not. A decoder
without hidden layers has no H. They divide sample by sample, E_x [ Var_r D_r / Var_g D_g ]; with two draws that ratio
has no mean, and with ReLU, where a sample may meet a kink under r and none under g, it reaches 1e9. The ratio of means
over the batch estimates the same share and stays near [0, 1].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, pi
from typing import ClassVar

import torch
from torch import Tensor, nn

from unseam.axes import Pass, Terms
from unseam.models import Autoencoder
from unseam.models.autoencoder import ACTIVATIONS
from unseam.models.posterior import Rounded
from unseam.objectives.base import Context, Objective

_EPS = 0.1  # of the second differences, in standard deviations of a latent
_DRAWS = 2  # directions of each kind
_SMALLEST = 1e-12  # a latent's variance at least, so that a dead one has a bandwidth
_NOTHING = 1e-10  # variances of second differences below this are none
_ROUNDING = 4 / _EPS**2  # what D makes of a layer's rounding errors, in units of the layer


def log_kernels(z: Tensor, width: Tensor) -> Tensor:  # (B, K), (K,) -> (B, B, K)
    """log N(z_ik; z_jk, width_k^2)."""
    return -0.5 * ((z.unsqueeze(1) - z) / width).square() - width.log() - 0.5 * log(2 * pi)


def multi_information(z: Tensor, std: Tensor) -> Tensor:  # (B, K), (K,) -> (B,)
    """log q(z) - sum_k log q_k(z_k) of each sample, q the kernel density of the batch.

    >>> z = torch.linspace(-1, 1, 50)
    >>> line, square = torch.stack([z, z], 1), torch.cartesian_prod(z[::7], z[::7])
    >>> bool(multi_information(line, line.std(0)).mean() > multi_information(square, square.std(0)).mean() + 0.2)
    True
    """
    B, K = z.shape
    joint = std * (4 / (K + 2)) ** (1 / (K + 4)) * B ** (-1 / (K + 4))
    log_q = log_kernels(z, joint).sum(2).logsumexp(1) - log(B)
    log_qk = log_kernels(z, std).logsumexp(1) - log(B)
    return log_q - log_qk.sum(1)


def interaction(
    layers: Callable[[Tensor], Sequence[Tensor]], z: Tensor, std: Tensor, signs: Tensor, normal: Tensor
) -> Tensor:  # (B, K), (K,), (R, B, K) each -> (B,)
    """Each sample's part of H, whose mean over the batch is H.

    Var_r D_r over the batch's mean of Var_g D_g, summed over the layers (B, ...) that `layers` returns.
    Second differences that are no larger than the rounding errors of a layer count as none.

    >>> draws = torch.randn(2, 2, 1, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> additive = lambda z: [z[:, :1] ** 2 + 3 * z[:, 1:] ** 4]
    >>> z = torch.tensor([[0.3, -0.2]], dtype=torch.float64)
    >>> bool(interaction(additive, z, torch.ones(2), draws[0].sign(), draws[1]) < 1e-12)
    True
    """
    h = _EPS * torch.cat([signs, normal]) * std  # (2R, B, K)
    B, R = len(z), len(signs)
    moved = torch.cat([z.unsqueeze(0), z + h, z - h])  # (1 + 4R, B, K)
    total = torch.zeros_like(z[:, 0])
    for layer in layers(moved.flatten(0, 1)):
        f = layer.unflatten(0, (1 + 4 * R, B)).flatten(2)
        D = (f[1 : 1 + 2 * R] - 2 * f[:1] + f[1 + 2 * R :]) / _EPS**2  # (2R, B, n)
        mixed, all_ = (d.var(0, correction=0).mean(1) for d in (D[:R], D[R:]))
        error = (_ROUNDING * torch.finfo(f.dtype).eps) ** 2 * f[0].detach().square().mean()
        total = total + mixed / (all_.mean() + error + _NOTHING)
    return total


def hidden(model: Autoencoder) -> Callable[[Tensor], list[Tensor]]:
    """z (B, K) -> what each hidden layer of the decoder says, after its activation."""
    kinds = tuple(ACTIVATIONS.values())

    def layers(z: Tensor) -> list[Tensor]:
        out, value = [], z
        assert isinstance(model.decoder, nn.Sequential)
        for layer in model.decoder:
            value = layer(value)
            if isinstance(layer, kinds):
                out.append(value)
        return out

    return layers


@dataclass(frozen=True)
class Tripod(Objective):
    """An autoencoder on a grid whose latents are made independent and kept from interacting in the decoder.

    Examples
    --------
    >>> Tripod()
    Tripod(mi=0.4, hessian=40.0)
    """

    mi: float = 0.4
    """lambda_mi: weight of the multi-information"""
    hessian: float = 40.0
    """lambda_h: weight of the mixed second derivatives' share; for 64 x 64 grey images, like mi"""

    formula: ClassVar[str] = (
        "-log p(x|z) + mi [log q(z) - sum_k log q_k(z_k)] + hessian sum_layers E Var_r D / E Var_g D"
    )
    paper: ClassVar[str] = "Hsu et al. 2024, Tripod: three complementary inductive biases for disentanglement"
    has_beta: ClassVar[bool] = False
    posterior: ClassVar[str] = "rounded"
    smallest_batch: ClassVar[int] = 2
    may_be_zero: ClassVar[tuple[str, ...]] = ("mi", "hessian")

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        q, noise = pass_.posterior, context.noise
        assert isinstance(q, Rounded)
        std = (q.continuous.var(0, correction=0) + _SMALLEST).sqrt()
        terms = {
            "reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta),
            "mi": multi_information(q.mean, std),
            "hessian": interaction(hidden(context.model), q.mean, std, noise["signs"].sign(), noise["normal"]),
        }
        return Terms(terms, {"mi": self.mi, "hessian": self.hessian})

    def noise_shapes(self, batch: int, latents: int) -> dict[str, tuple[int, ...]]:
        return {"signs": (_DRAWS, batch, latents), "normal": (_DRAWS, batch, latents)}
