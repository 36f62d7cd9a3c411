"""Curves through latent space and data space: along coordinates, and along singular vectors (Allen 2024, 3.2.3).

A coordinate curve is z_i -> d(..., z_i, ...). If the columns of J are not orthogonal, the seams of the density are
instead the integral curves of the right singular vectors v_i(z) of J, dz/dt = v_i(z). Singular vectors are defined up
to sign and order, so the step takes the vector that is closest to the last one; where two singular values meet they
are not defined at all, and the curve stops there and says so.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from unseam.errors import BadInput
from unseam.geometry.jacobian import Decoder, pullbacks, singular

Field = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # point, last direction -> direction, gap
REASONS = ("length reached", "singular values cross", "left the region", "not finite")
CROSSING = 0.02  # (s_i - s_j) / s_i below which two singular values count as equal


class Curve(NamedTuple):
    """B curves at once; after a curve has stopped, its last point is repeated."""

    z: Tensor  # (B, T, K)
    x: Tensor  # (B, T, n)
    steps: Tensor  # (B,) points before the curve stopped
    reason: list[str]  # (B,) why it stopped


def coordinate_curve(decode: Decoder, z: Tensor, latent: int, values: Tensor) -> Curve:  # (B, K), (T,)
    """z_i takes the given values, the other latents stay: the traversal that papers show.

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to outputs (B, ...), row by row.
    z : Tensor of shape (B, K)
        Points through which the curves go.
    latent : int
        The latent that moves.
    values : Tensor of shape (T,)
        The values that it takes.

    Returns
    -------
    Curve
        Codes and outputs along each curve.

    Examples
    --------
    >>> coordinate_curve(lambda z: z, torch.zeros(1, 2), 1, torch.tensor([0.0, 1.0])).z
    tensor([[[0., 0.],
             [0., 1.]]])
    """
    if not 0 <= latent < z.shape[1]:
        raise BadInput(f"latent={latent} is not among the {z.shape[1]} latents 0..{z.shape[1] - 1}")
    path = z.unsqueeze(1).repeat(1, len(values), 1)
    path[:, :, latent] = values.to(path)
    return _finish(decode, path, torch.full((len(z),), len(values), device=z.device), [REASONS[0]] * len(z))


def _finish(decode: Decoder, path: Tensor, steps: Tensor, reason: list[str]) -> Curve:
    B, T, K = path.shape
    return Curve(path, decode(path.reshape(B * T, K)).reshape(B, T, -1), steps, reason)


def _directions(decode: Decoder, z: Tensor, last: Tensor, component: int) -> tuple[Tensor, Tensor]:
    """The singular vector (B, K) closest to the last one, signed like it, and its singular value's relative gap (B,).

    The gap is 0 where the closest vector is no longer the component's: two singular values crossed on the way.
    """
    s, V = singular(pullbacks(decode, z, dtype=torch.float64).gram)
    overlap = (V * last.unsqueeze(-1)).sum(1)  # (B, K): v_k . last
    k = overlap.abs().argmax(1, keepdim=True)
    chosen = V.gather(2, k.unsqueeze(1).expand(-1, V.shape[1], 1)).squeeze(2) * overlap.gather(1, k).sign()
    own = s.gather(1, k)
    others = (s - own).abs().scatter(1, k, torch.inf) / torch.maximum(s, own).clamp(min=torch.finfo(s.dtype).tiny)
    return chosen, torch.where(k.squeeze(1) == component, others.min(1).values, 0.0)


def singular_curve(
    decode: Decoder,
    z: Tensor,  # (B, K) where the curves start
    component: int,  # 0 = the largest singular value
    length: float = 4.0,  # in Z
    step: float = 0.05,
    region: float = 6.0,  # |z| beyond which the prior has no mass
    crossing: float = CROSSING,
    sign: int = 1,  # -1 follows the curve the other way
) -> Curve:
    """Integral curves dz/dt = v_i(z) from each start, by Runge-Kutta 4 with the sign and order followed.

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to outputs (B, ...), row by row.
    z : Tensor of shape (B, K)
        Where the curves start.
    component : int
        Which singular vector is followed; 0 has the largest singular value.
    length : float, default=4.0
        Length of each curve in latent space.
    step : float, default=0.05
        Step of the integration.
    region : float, default=6.0
        Curves end where |z| exceeds it, beyond which the prior has no mass.
    crossing : float
        Curves end where two singular values are closer than this share of them.
    sign : {1, -1}, default=1
        Direction of the curve.

    Returns
    -------
    Curve
        Codes and outputs along each curve, and why it ended.

    Examples
    --------
    >>> curve = singular_curve(lambda z: z * torch.tensor([1.0, 3.0]), torch.zeros(1, 2), component=0, length=1.0)
    >>> curve.z[0, -1].abs().round(decimals=4), curve.reason
    (tensor([0., 1.]), ['length reached'])
    """
    if not 0 <= component < z.shape[1]:
        raise BadInput(f"component={component} is not among the {z.shape[1]} singular vectors 0..{z.shape[1] - 1}")
    if not (step > 0 and length > 0):
        raise BadInput(f"step={step} and length={length} must be positive")
    V = singular(pullbacks(decode, z, dtype=torch.float64).gram)[1]
    v, at = V[:, :, component], z.double()
    v = sign * v * v.gather(1, v.abs().argmax(1, keepdim=True)).sign()  # start towards + of the latent it moves most
    path, why = [at], torch.full((len(z),), -1, device=z.device)
    steps = torch.ones(len(z), dtype=torch.long, device=z.device)
    for _ in range(round(length / step)):
        new, v_new, gap = runge_kutta(lambda y, last: _directions(decode, y.to(z.dtype), last, component), at, v, step)
        stop = torch.where(gap < crossing, 1, torch.where(new.norm(dim=1) > region, 2, -1))
        stop = torch.where(torch.isfinite(new).all(1), stop, 3)
        why = torch.where(why < 0, stop, why)
        going = (why < 0).unsqueeze(1)
        at, v = torch.where(going, new, at), torch.where(going, v_new, v)
        steps += going.squeeze(1).long()
        path.append(at)
        if not going.any():
            break
    return _finish(decode, torch.stack(path, 1).to(z.dtype), steps, [REASONS[max(int(w), 0)] for w in why])


def runge_kutta(field: Field, z: Tensor, v: Tensor, step: float) -> tuple[Tensor, Tensor, Tensor]:
    """One step of order 4; the new point, the direction there, and the smallest singular value gap met."""
    k1, gap1 = field(z, v)
    k2, gap2 = field(z + step / 2 * k1, k1)
    k3, gap3 = field(z + step / 2 * k2, k2)
    k4, gap4 = field(z + step * k3, k3)
    new = z + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return new, k4, torch.stack([gap1, gap2, gap3, gap4]).min(0).values
