"""Does the encoder invert the decoder? Self-consistency, which the theory assumes (Reizinger 2022).

e(d(z)) = z    for z ~ N(0, I) (what the decoder can draw) and for z = e(x) (what the data uses)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.jacobian import Decoder

_BATCH = 512


class SelfConsistency(NamedTuple):
    """How far e(d(z)) is from z."""

    error: float  # E|e(d(z)) - z|^2 / E|z - E z|^2: 0 = exact inverse, 1 = no better than a constant
    per_latent: Array  # (K,) the same per latent; NaN for a latent that does not vary


def posterior_mean(output: Any) -> Tensor:
    """The mean of whatever an encoder returns: a posterior, a tensor, or a tuple that starts with the mean."""
    output = output[0] if isinstance(output, tuple) else output
    mean = getattr(output, "mean", output)
    mean = output if callable(mean) else mean  # a tensor's .mean is a method, a posterior's is its mean
    if not isinstance(mean, Tensor) or mean.ndim != 2:
        raise BadInput(f"encoder returns {type(output).__name__}; it must return codes (B, K), a posterior or a tuple")
    return mean


@torch.no_grad()
def self_consistency(
    encode: Callable[[Tensor], Any],  # (B, ...) -> (B, K), a posterior, or (mean, ...)
    mean: Decoder,  # (B, K) -> xhat (B, ...)
    z: Tensor,  # (N, K)
    active: Array | None = None,  # (K,) which latents count; passive ones cannot be recovered
) -> SelfConsistency:
    """Decode z, encode the result, compare.

    Parameters
    ----------
    encode : callable
        Maps observations (B, ...) to codes (B, K), to a posterior, or to (mean, ...).
    mean : callable
        Maps codes (B, K) to observations (B, ...).
    z : Tensor of shape (N, K)
        Codes.
    active : array of shape (K,), optional
        Which latents count; passive ones cannot be recovered.

    Returns
    -------
    SelfConsistency
        The relative error, of all latents and of each.

    Examples
    --------
    >>> z = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    >>> self_consistency(lambda x: x / 2, lambda z: 2 * z, z).error
    0.0
    """
    again = torch.cat([posterior_mean(encode(mean(part))) for part in z.split(_BATCH)])
    if again.shape != z.shape:
        raise BadInput(f"encoder gives codes {tuple(again.shape)} for points {tuple(z.shape)}; the latents must match")
    error = (again - z).double().square().mean(0)
    spread = z.double().var(0, unbiased=False)
    keep = torch.ones(z.shape[1], dtype=torch.bool, device="cpu") if active is None else torch.as_tensor(active)
    if not spread[keep].sum() > 0:
        raise BadInput("the points do not vary in any latent asked for; give points spread like the prior or the codes")
    ratio = torch.where(spread > 0, error / spread, torch.nan)
    return SelfConsistency(float(error[keep].sum() / spread[keep].sum()), ratio.cpu().numpy())
