"""The density that a decoder puts on its manifold, and how far it is from a product (Allen 2024, Theorems 1 and 2).

    log p#(d(z)) = log p(z) - 1/2 log det(J^T J)                     the push-forward of the prior N(0, I)
                 = sum_i [ log p(z_i) - log |J_i| ]                  if the columns of J are orthogonal

The difference of the two lines is the local IMA contrast. Each factor of the product is a one-dimensional density,
with respect to arc length, along the curve z_i -> d(..., z_i, ...).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from unseam.errors import BadInput
from unseam.geometry.jacobian import Decoder, jacobian, pullbacks
from unseam.geometry.orthogonality import log_contrast


class Densities(NamedTuple):
    """Log-densities per point, in nats."""

    manifold: Tensor  # (N,)  log p#(d(z))
    factorised: Tensor  # (N,)  sum_i [log p(z_i) - log |J_i|]
    gap: Tensor  # (N,)  manifold - factorised = the local IMA contrast >= 0


def log_prior(z: Tensor) -> Tensor:  # (...) -> (...), per latent
    """log N(z_i; 0, 1)."""
    return -0.5 * (z * z + math.log(2 * math.pi))


def log_densities(decode: Decoder, z: Tensor, chunk: int | None = None) -> Densities:  # (N, K)
    """The push-forward density of N(0, I) at d(z), the factorised one, and their gap. `decode` gives the mean.

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to outputs (B, ...), row by row.
    z : Tensor of shape (N, K)
        Points.
    chunk : int, optional
        Points at a time, to bound memory; chosen by their size by default.

    Returns
    -------
    Densities
        Logarithms of the density on the manifold and of the factorised one, and their gap; each (N,).

    Examples
    --------
    >>> W = torch.tensor([[2.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
    >>> d = log_densities(lambda z: z @ W.T, torch.zeros(1, 2))
    >>> d.gap.abs().item() < 1e-6, abs(d.manifold.item() + math.log(2 * math.pi)) < 1e-6  # |J_1| |J_2| = 1
    (True, True)
    """
    gram = pullbacks(decode, z, chunk=chunk, dtype=torch.float64).gram
    log_lengths = 0.5 * gram.diagonal(dim1=1, dim2=2).log()
    if not torch.isfinite(log_lengths).all():
        dead = (~torch.isfinite(log_lengths)).any(0).nonzero().flatten().tolist()
        raise BadInput(f"latents {dead} do not move the output at some points, so there is no density; leave them out")
    factorised = (log_prior(z) - log_lengths).sum(1)
    gap = log_contrast(gram)
    return Densities(factorised + gap, factorised, gap)


class ComponentDensity(NamedTuple):
    """A one-dimensional density along the curve of one latent."""

    t: Tensor  # (T,)  values of the latent
    curve: Tensor  # (T, n)  the curve in X
    arc: Tensor  # (T,)  arc length in X from the first point
    density: Tensor  # (T,)  p(t) / |J_i|, per unit of arc length


def component_density(decode: Decoder, z: Tensor, latent: int, span: float = 3.0, steps: int = 121) -> ComponentDensity:
    """The density along latent i through one point z (K,), everything else held: it integrates to P(|t| < span).

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to outputs (B, ...), row by row.
    z : Tensor of shape (K,)
        The point.
    latent : int
        The latent that moves.
    span : float, default=3.0
        How far it moves to either side.
    steps : int, default=121
        Points along the curve.

    Returns
    -------
    ComponentDensity
        Arc length, density and outputs along the curve.

    Examples
    --------
    >>> c = component_density(lambda z: 2 * z, torch.zeros(2), latent=0)
    >>> round(torch.trapezoid(c.density, c.arc).item(), 3)
    0.997
    """
    if z.ndim != 1 or not 0 <= latent < len(z):
        raise BadInput(f"latent={latent} of a point of shape {tuple(z.shape)}; give one point (K,) and 0 <= latent < K")
    t = torch.linspace(-span, span, steps, dtype=z.dtype, device=z.device)
    line = z.repeat(steps, 1)
    line[:, latent] = t
    speed = jacobian(decode, line)[:, :, latent].norm(dim=1)  # |J_i|
    arc = torch.cat([torch.zeros_like(t[:1]), torch.cumulative_trapezoid(speed, t)])
    return ComponentDensity(t, decode(line).flatten(1), arc, log_prior(t).exp() / speed)
