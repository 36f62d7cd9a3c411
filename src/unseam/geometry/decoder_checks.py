"""Validation of decoders and points; each error is one line with a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.jacobian import Decoder, push, reverse_jacobian
from unseam.models.adapters.base import check_mode, check_precision, one_line, wrong_output
from unseam.readers import as_array, as_frame

_PROBES = 4  # points at which a decoder is tried
MANY_PROBES = 64  # points at which a derivative must be 0 to be called cut: units of a network are often off
_FAILURES = (RuntimeError, TypeError, ValueError, IndexError, AttributeError)  # what a wrong decoder raises


def module_of(decoder: Any) -> nn.Module | None:
    """The module behind a decoder: itself, or the owner of a bound method such as `model.decode`."""
    owner = getattr(decoder, "__self__", decoder)
    return owner if isinstance(owner, nn.Module) else None


def _numbers(codes: Any) -> Array:
    """Codes of any container as an array of numbers that torch takes."""
    frame = None if isinstance(codes, (np.ndarray, Tensor)) else as_frame(codes, "codes")
    found = np.asarray(as_array(codes, "codes") if frame is None else frame)
    try:
        # a copy: torch writes where NumPy may not
        return np.array(found, dtype=found.dtype if found.dtype in (np.float32, np.float64) else np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"codes are of type {found.dtype}, not numbers; give points (N, K)") from None


def as_points(codes: Any, decoder: Any = None) -> Tensor:  # (N, K)
    """Codes as a tensor (N, K) in the precision, and on the device, of the decoder's parameters.

    >>> as_points([[0.0, 1.0]]).shape
    torch.Size([1, 2])
    """
    if not isinstance(codes, Tensor) or "sparse" in str(codes.layout) or codes.is_meta:
        z = torch.from_numpy(_numbers(codes))
    else:
        z = codes.detach()
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


def check_count(points: int, latents: int) -> None:
    """More points than latents."""
    if points <= latents:
        some = ", or diagnose some of them (latents=[0, 1, 2])" if latents > 3 else ""
        raise BadInput(
            f"codes are {points} points of {latents} latents; give more points than latents, at least "
            f"{latents + 1}{some}"
        )


def check_decoder(decode: Decoder, z: Tensor) -> str:
    """Try the decoder at a few points and refuse what has no geometry; returns the mode, "forward" or "reverse".

    >>> check_decoder(nn.Linear(2, 3), torch.zeros(5, 2))
    'forward'
    """
    check_mode(module_of(decode))
    check_precision(module_of(decode))
    probe = few_of(z)
    with torch.no_grad():
        check_rows(decode, probe)
        return differentiable(decode, z)


def few_of(z: Tensor, count: int = _PROBES) -> Tensor:
    """The points at which a decoder is tried."""
    return z[:: max(1, len(z) // count)][:count]


@torch.no_grad()
def check_rows(decode: Callable[..., Any], probe: Tensor) -> None:
    """Refuse a decoder that does not answer each row for itself, and the same way twice.

    >>> check_rows(lambda z: z - z.mean(0), torch.eye(2))
    Traceback (most recent call last):
    unseam.errors.BadInput: decoder's answer for a point depends on the other points of the batch; it must treat rows \
one by one (call decoder.eval() if it normalises over the batch)
    """
    theta = attempt(decode, probe)
    check_output(theta, probe)
    if not torch.equal(theta, decode(probe)):
        raise BadInput("decoder gives two answers for the same points; make it deterministic (call decoder.eval())")
    try:
        alone = decode(probe[:1])
    except _FAILURES:  # as batch normalisation of one row does
        alone = theta[:0]
    if len(alone) != 1 or not torch.allclose(alone, theta[:1], rtol=1e-3, atol=1e-5 * float(theta.abs().max())):
        raise BadInput(
            "decoder's answer for a point depends on the other points of the batch; it must treat rows one by one "
            "(call decoder.eval() if it normalises over the batch)"
        )


def attempt(decode: Callable[..., Any], probe: Tensor) -> Any:
    """decode(probe), or what went wrong in one line."""
    try:
        return decode(probe)
    except BadInput:
        raise
    except _FAILURES as error:
        raise BadInput(
            f"decoder fails on points of shape {tuple(probe.shape)} ({one_line(error)}); "
            f"is it a decoder of {probe.shape[1]} latents?"
        ) from error


def check_output(theta: Any, probe: Tensor) -> None:
    """Refuse outputs that are not a batch of finite floating point numbers."""
    if not isinstance(theta, Tensor) or not theta.is_floating_point():
        raise BadInput(wrong_output(theta))
    if theta.ndim < 2 or len(theta) != len(probe):
        raise BadInput(
            f"decoder turns {len(probe)} points into a tensor of shape {tuple(theta.shape)}; it must keep the batch "
            f"axis: (B, K) -> (B, ...)"
        )
    if not torch.isfinite(theta).all():
        raise BadInput(f"decoder returns {int((~torch.isfinite(theta)).sum())} NaN or infinite values at finite points")


def differentiable(decode: Decoder, z: Tensor) -> str:
    """Which mode differentiates this decoder; refuses one that neither does."""
    way: Callable[[Decoder, Tensor], tuple[Tensor, Tensor]]
    try:
        D, mode, way = push(decode, few_of(z))[1], "forward", push
    except _FAILURES:
        try:
            D, mode, way = reverse_jacobian(decode, z[:1])[1], "reverse", reverse_jacobian
        except _FAILURES as error:
            raise BadInput(
                f"decoder is not differentiable ({one_line(error)}); write it in torch operations from input to output"
            ) from error
    if not torch.isfinite(D).all():
        raise BadInput("decoder's Jacobian holds NaN or infinite values; look for sqrt(0), 0/0 or log(0) in it")
    if not D.any():
        many = few_of(z, MANY_PROBES)
        if not way(decode, many)[1].any() and moves(decode, many):
            raise BadInput(CUT)
    return mode


CUT = (
    "decoder changes with z but its derivative is 0 everywhere: it is cut from the graph (detach, no_grad, "
    "rounding); write it in differentiable torch operations"
)


def moves(decode: Decoder, probe: Tensor) -> bool:
    """Whether the decoder's output changes when its input is moved by one unit."""
    return not torch.equal(decode(probe), decode(probe + 1))
