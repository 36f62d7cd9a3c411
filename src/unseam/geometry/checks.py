"""The door of the room: what a decoder and points must be, refused in one line with the remedy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unseam.errors import BadInput
from unseam.geometry.jacobian import Decoder, pull, push

PROBES = 4  # points at which a decoder is tried
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
FAILURES = (RuntimeError, TypeError, ValueError, IndexError, AttributeError)  # what a wrong decoder raises


def module_of(decoder: Any) -> nn.Module | None:
    """The module behind a decoder: itself, or the owner of a bound method such as `model.decode`."""
    owner = getattr(decoder, "__self__", decoder)
    return owner if isinstance(owner, nn.Module) else None


def as_points(codes: Any, decoder: Any = None) -> Tensor:  # (N, K)
    """Codes as a tensor (N, K) in the precision, and on the device, of the decoder's parameters.

    >>> as_points([[0.0, 1.0]]).shape
    torch.Size([1, 2])
    """
    z = codes.detach() if isinstance(codes, Tensor) else torch.from_numpy(np.array(codes))
    if z.ndim != 2 or 0 in z.shape:
        raise BadInput(f"codes have shape {tuple(z.shape)}; give points (N, K): N points of K latents")
    if not torch.isfinite(z).all():
        bad = int((~torch.isfinite(z)).any(1).sum())
        raise BadInput(f"{bad} of {len(z)} codes hold NaN or infinite values; drop these rows or check the encoder")
    module = module_of(decoder)
    parameter = next((p for p in module.parameters() if p.is_floating_point()), None) if module else None
    if parameter is not None:
        return z.to(parameter)
    return z if z.is_floating_point() and isinstance(codes, Tensor) else z.float()


def check_decoder(decode: Decoder, z: Tensor) -> str:
    """Try the decoder at a few points and refuse what has no geometry; returns the mode, "forward" or "reverse".

    >>> check_decoder(nn.Linear(2, 3), torch.zeros(5, 2))
    'forward'
    """
    check_mode(decode)
    probe = z[:: max(1, len(z) // PROBES)][:PROBES]
    with torch.no_grad():
        theta = attempt(decode, probe)
        check_output(theta, probe)
        if not torch.equal(theta, decode(probe)):
            raise BadInput("decoder gives two answers for the same points; make it deterministic (call decoder.eval())")
        alone = decode(probe[:1])
        if len(alone) != 1 or not torch.allclose(alone, theta[:1], rtol=1e-3, atol=1e-5 * float(theta.abs().max())):
            raise BadInput(
                "decoder's answer for a point depends on the other points of the batch; it must treat rows one by one "
                "(call decoder.eval() if it normalises over the batch)"
            )
        return differentiable(decode, probe)


def check_mode(decode: Decoder) -> None:
    """Refuse dropout and batch normalisation in training mode."""
    module = module_of(decode)
    for name, part in module.named_modules() if module else ():
        if part.training and isinstance(part, BATCH_NORMS + DROPOUTS) and getattr(part, "p", 1) != 0:
            where = f"{type(part).__name__} {name!r}" if name else type(part).__name__
            raise BadInput(f"decoder is in training mode with {where}; call decoder.eval() first")


def attempt(decode: Callable[..., Any], probe: Tensor) -> Any:
    """decode(probe), or what went wrong in one line."""
    try:
        return decode(probe)
    except FAILURES as error:
        raise BadInput(
            f"decoder fails on points of shape {tuple(probe.shape)} ({one_line(error)}); "
            f"is it a decoder of {probe.shape[1]} latents?"
        ) from error


def check_output(theta: Any, probe: Tensor) -> None:
    """Refuse outputs that are no batch of finite floating point numbers."""
    if not isinstance(theta, Tensor) or not theta.is_floating_point():
        kind = f"a tensor of {theta.dtype}" if isinstance(theta, Tensor) else type(theta).__name__
        raise BadInput(f"decoder returns {kind}; it must return a floating point tensor (B, ...)")
    if theta.ndim < 2 or len(theta) != len(probe):
        raise BadInput(
            f"decoder turns {len(probe)} points into a tensor of shape {tuple(theta.shape)}; it must keep the batch "
            f"axis: (B, K) -> (B, ...)"
        )
    if not torch.isfinite(theta).all():
        raise BadInput(f"decoder returns {int((~torch.isfinite(theta)).sum())} NaN or infinite values at finite points")


def differentiable(decode: Decoder, probe: Tensor) -> str:
    """Which mode differentiates this decoder; refuses one that neither does."""
    try:
        D, mode = push(decode, probe)[1], "forward"
    except FAILURES:
        try:
            D, mode = pull(decode, probe[:1])[1], "reverse"
        except FAILURES as error:
            raise BadInput(
                f"decoder is not differentiable ({one_line(error)}); write it in torch operations from input to output"
            ) from error
    if not torch.isfinite(D).all():
        raise BadInput("decoder's Jacobian holds NaN or infinite values; look for sqrt(0), 0/0 or log(0) in it")
    if not D.any() and moves(decode, probe):
        raise BadInput(
            "decoder changes with z but its derivative is 0 everywhere: it is cut from the graph (detach, no_grad, "
            "rounding); write it in differentiable torch operations"
        )
    return mode


def moves(decode: Decoder, probe: Tensor) -> bool:
    """Whether the decoder's output changes when its input is moved by one unit."""
    return not torch.equal(decode(probe), decode(probe + 1))


def one_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:160] or type(error).__name__
