"""Any torch module with `encode` and `decode`, or with `encoder` and `decoder`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from unseam.models.adapters.base import (
    AdaptedModel,
    check_mode,
    check_precision,
    encode_all,
    read_decoder_output,
    read_encoder_output,
)
from unseam.models.likelihood import LIKELIHOODS, Likelihood


def module_parts(model: Any) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """(encode, decode) of a model: its methods, else its two networks; None where it has neither."""
    for names in (("encode", "decode"), ("encoder", "decoder")):
        found = [getattr(model, name, None) for name in names]
        if all(callable(part) for part in found):
            return found[0], found[1]  # type: ignore[return-value]
    return None


def matches(model: Any) -> bool:
    return isinstance(model, nn.Module) and module_parts(model) is not None


def adapt(model: Any, x: Any) -> AdaptedModel:
    encode, decode = module_parts(model)  # type: ignore[misc]
    return adapt_functions("module", encode, decode, x, model, known_likelihood(model))


def adapt_functions(
    kind: str,
    encode: Callable[..., Any],
    decode: Callable[..., Any],
    x: Any,
    module: nn.Module | None = None,
    likelihood: Likelihood | None = None,
) -> AdaptedModel:
    """An encoder and a decoder of codes of any shape, as one decoder of flat points."""
    check_mode(module, "model")
    check_precision(module, "model")
    q, data = encode_all(encode, x, module)
    shape = tuple(q.mean.shape[1:])

    def flat_decode(z: Tensor) -> Tensor:  # (B, K) -> (B, ...)
        with sdpa_kernel(SDPBackend.MATH):  # the attention that has a forward derivative
            return read_decoder_output(decode(z.unflatten(1, shape) if len(shape) > 1 else z))

    return AdaptedModel(
        kind, flat_decode, lambda x: read_encoder_output(encode(x)), q.mean, q.variance, q.covariance, likelihood,
        data=_same_shape(flat_decode, q.mean, data),
        module=module,
    )  # fmt: skip


@torch.no_grad()
def _same_shape(decode: Callable[[Tensor], Tensor], codes: Tensor, data: Tensor) -> Tensor | None:
    """The observations where the decoder returns their shape (up to flattening), else None."""
    try:
        out = decode(codes[:1].flatten(1))
    except Exception:  # the geometry's own checks say what is wrong
        return None
    return data.reshape(len(data), *out.shape[1:]) if out[0].numel() == data[0].numel() else None


def known_likelihood(model: Any) -> Likelihood | None:
    """The `likelihood` attribute where it is one of ours."""
    found: Any = getattr(model, "likelihood", None)
    known: Likelihood | None = found if type(found) in LIKELIHOODS.values() else None
    return known
