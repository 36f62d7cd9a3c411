"""What every adapter returns, and how the outputs of other people's encoders and decoders are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution, MultivariateNormal

from unseam.data.torch_data import is_torch_data, read_torch_data
from unseam.errors import BadInput
from unseam.models.likelihood import Likelihood
from unseam.models.own_networks import described
from unseam.models.posterior import Posterior

_CHUNK = 256  # observations encoded at a time
_PROBES = 4  # observations that are encoded twice, to see whether the encoder samples
_MEAN = "let it return the mean, a torch distribution or (mean, log-variance), and call model.eval()"
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
FAILURES = (RuntimeError, TypeError, ValueError, IndexError, AttributeError, KeyError)  # what a wrong call raises


@dataclass(frozen=True)
class AdaptedModel:
    """A model as the geometry sees it: the codes of some observations and a decoder of flat points.

    A point is a row of K latents, flattened, followed by `context`: inputs of the decoder that are not latents and
    differ from row to row (the library size and the batch of a cell).
    """

    kind: str  # which adapter read it
    decode: Callable[[Tensor], Tensor]  # (B, K + c) -> theta (B, ...)
    encode: Callable[[Tensor], EncoderOutput]  # (B, ...) -> q(z|x), as the adapter's x
    codes: Tensor  # (N, K) or (N, C, H, W): the means of q(z|x)
    variances: Tensor | None = None  # as codes; None where q(z|x) is a point, or is full
    covariances: Tensor | None = None  # (N, K, K) of a full posterior
    likelihood: Likelihood | None = None  # None: not known from the model
    beta: float | None = None  # the weight of the KL; None: not known from the model
    has_beta: bool = True  # False: the loss has no KL
    context: Tensor | None = None  # (N, c)
    data: Tensor | None = None  # (N, ...) the observations, as the decoder returns them
    module: nn.Module | None = None
    differentiable: bool = True  # False: not torch, so derivatives are finite differences
    notes: tuple[str, ...] = ()

    @property
    def latent_shape(self) -> tuple[int, ...]:
        return tuple(self.codes.shape[1:])

    @property
    def points(self) -> Tensor:  # (N, K + c)
        """The rows that `decode` takes."""
        flat = self.codes.flatten(1)
        return flat if self.context is None else torch.cat([flat, self.context.to(flat)], 1)


class EncoderOutput(NamedTuple):
    """The posterior that an encoder returned, in plain tensors."""

    mean: Tensor
    variance: Tensor | None = None
    covariance: Tensor | None = None


def posterior_outputs(q: EncoderOutput) -> Tensor:
    """What `Posterior.from_outputs` turns into this posterior again.

    >>> from unseam.models.posterior import Full
    >>> S = torch.tensor([[[4.0, 2.0], [2.0, 5.0]]])
    >>> Full.from_outputs(posterior_outputs(EncoderOutput(torch.zeros(1, 2), covariance=S)), 2).covariance()
    tensor([[[4., 2.],
             [2., 5.]]])
    """
    if q.covariance is not None:
        L = torch.linalg.cholesky(q.covariance)
        rows, columns = torch.tril_indices(L.shape[1], L.shape[1], -1, device=L.device)
        return torch.cat([q.mean, 2 * L.diagonal(dim1=1, dim2=2).log(), L[:, rows, columns]], 1)
    return q.mean if q.variance is None else torch.cat([q.mean, q.variance.log()], 1)


def read_encoder_output(out: Any) -> EncoderOutput:
    """Codes, a distribution, (mean, log-variance), or an object that holds one of them.

    >>> read_encoder_output((torch.zeros(1, 2), torch.zeros(1, 2))).variance
    tensor([[1., 1.]])
    """
    if isinstance(out, Tensor):
        return EncoderOutput(out)
    if isinstance(out, Posterior):
        covariance = out.covariance() if out.full else None
        return EncoderOutput(out.mean, out.variance() if out.has_prior and not out.full else None, covariance)
    if isinstance(out, Distribution):
        inner = getattr(out, "base_dist", out)  # Independent(Normal)
        if isinstance(inner, MultivariateNormal):
            return EncoderOutput(inner.mean, covariance=inner.covariance_matrix)
        return EncoderOutput(inner.mean, inner.variance)
    if hasattr(out, "latent_dist"):
        return read_encoder_output(out.latent_dist)
    if _tensor(out, "mean") and _tensor(out, "var"):  # diffusers' DiagonalGaussianDistribution
        return EncoderOutput(out.mean, out.var)
    for mean, log_variance in (("embedding", "log_covariance"), ("mu", "logvar"), ("mu", "log_var"),
                               ("mean", "logvar"), ("mean", "log_var")):  # fmt: skip
        found = out if isinstance(out, Mapping) else getattr(out, "__dict__", {})
        if mean in found and isinstance(found[mean], Tensor):
            spread = found.get(log_variance)
            return EncoderOutput(found[mean], spread.exp() if isinstance(spread, Tensor) else None)
    if isinstance(out, (tuple, list)) and len(out) == 1:
        return read_encoder_output(out[0])
    two = isinstance(out, (tuple, list)) and len(out) == 2 and all(isinstance(part, Tensor) for part in out)
    if two and out[0].shape == out[1].shape:
        return EncoderOutput(out[0], out[1].exp())
    raise BadInput(
        f"the encoder returns {described(out)}; let it return codes (B, K), a torch distribution or "
        "(mean, log-variance), for instance through an (encoder, decoder) pair of functions"
    )


def _tensor(out: Any, name: str) -> bool:
    return isinstance(getattr(out, name, None), Tensor)


def read_decoder_output(out: Any) -> Tensor:
    """The tensor itself, or the one that a known output object holds; anything else is refused with the remedy."""
    if isinstance(out, Tensor):
        return out
    for name in ("reconstruction", "sample", "recon_x"):
        if _tensor(out, name):
            found: Tensor = getattr(out, name)
            return found
    raise BadInput(wrong_output(out))


def wrong_output(out: Any) -> str:
    """Why this is not a decoder's output, and what to give instead.

    >>> wrong_output((torch.zeros(1), torch.zeros(1)))
    'decoder returns a tuple of 2; it must return a tensor (B, ...): give `lambda z: decoder(z)[0]`'
    """
    remedy = "return the tensor alone"
    if isinstance(out, Distribution):
        remedy = "give `lambda z: decoder(z).mean`"
    elif isinstance(out, (tuple, list)) and len(out):
        remedy = "give `lambda z: decoder(z)[0]`"
    elif isinstance(out, Mapping) and len(out):
        remedy = f"give `lambda z: decoder(z)[{next(iter(out))!r}]`"
    elif isinstance(out, Tensor):
        remedy = "return floating point numbers"
    return f"decoder returns {described(out)}; it must return a tensor (B, ...): {remedy}"


def check_mode(module: Any, what: str = "decoder") -> None:
    """Refuse dropout and batch normalisation in training mode."""
    for name, part in module.named_modules() if isinstance(module, nn.Module) else ():
        if part.training and isinstance(part, BATCH_NORMS + DROPOUTS) and getattr(part, "p", 1) != 0:
            where = f"{type(part).__name__} {name!r}" if name else type(part).__name__
            raise BadInput(f"{what} is in training mode with {where}; call {what}.eval() first")


def check_precision(module: Any, what: str = "decoder") -> None:
    """Refuse half precision, in which derivatives are mostly rounding."""
    parameter = floating_parameter(module)
    if parameter is not None and parameter.dtype in (torch.float16, torch.bfloat16):
        raise BadInput(f"{what} is in {parameter.dtype}, too coarse for derivatives; call {what}.float() first")
    if parameter is not None and parameter.device.type == "meta":
        raise BadInput(f"{what} is on the device 'meta' and has no weights; load them, then call {what}.to('cpu')")


def floating_parameter(module: Any) -> Tensor | None:
    """The first parameter (else buffer) of floating point numbers: it says device and precision."""
    if not isinstance(module, nn.Module):
        return None
    both: Iterable[Tensor] = (*module.parameters(), *module.buffers())
    return next((p for p in both if p.is_floating_point()), None)


def _as_observations(x: Any, module: Any = None) -> Iterator[Tensor]:
    """Batches of x as the model takes them: an array, a table, a torch Dataset or a DataLoader."""
    parameter = floating_parameter(module)
    for part in _batches(x):
        if part.dtype == torch.uint8:
            raise BadInput("x has dtype uint8; scale it as in training first, for instance x / 255.0")
        part = part if part.is_floating_point() else part.float()
        yield part.float() if parameter is None else part.to(parameter)


def _batches(x: Any) -> Iterator[Tensor]:
    if is_torch_data(x):
        x = read_torch_data(x).x
    if not isinstance(x, Tensor) and not hasattr(x, "__array__") and hasattr(x, "__getitem__") and hasattr(x, "shape"):
        x = np.asarray(x)
    array = x.detach() if isinstance(x, Tensor) else _array(x)
    if array.ndim < 2 or not len(array):
        raise BadInput(f"x has shape {tuple(array.shape)}; give observations (N, ...), one per row")
    if array.is_floating_point() and not torch.isfinite(array).all():
        raise BadInput("x holds NaN or infinite values; drop or fill these rows first")
    yield from array.split(_CHUNK)


def _array(x: Any) -> Tensor:
    try:
        array = np.array(x.to_numpy() if hasattr(x, "to_numpy") else x)
        return torch.from_numpy(array)
    except (TypeError, ValueError):
        raise BadInput(f"x is {type(x).__name__}; give observations as an array, a tensor, a table or a DataLoader") \
            from None  # fmt: skip


@torch.no_grad()
def encode_all(encode: Callable[[Tensor], Any], x: Any, module: Any = None) -> tuple[EncoderOutput, Tensor]:
    """The posterior of every observation, on the CPU, and the observations; a sampling encoder is refused."""
    parts: list[EncoderOutput] = []
    spreads: list[Tensor] = []
    for batch in _as_observations(x, module):
        try:
            out = read_encoder_output(encode(batch))
        except BadInput:
            raise
        except FAILURES as error:
            raise BadInput(f"encoder fails on x of shape {tuple(batch.shape)} ({one_line(error)})") from error
        check_code_rows(out.mean, len(batch))
        if not parts:
            check_twice(lambda rows: read_encoder_output(encode(rows)).mean, batch[:_PROBES])
        parts.append(EncoderOutput(*(None if t is None else t.detach().cpu() for t in out)))  # type: ignore[arg-type]
        spreads.append(batch.cpu())
    joined = [None if part[0] is None else torch.cat(part) for part in zip(*parts, strict=True)]
    return EncoderOutput(*joined), torch.cat(spreads)  # type: ignore[arg-type]


def check_code_rows(codes: Tensor, count: int, encoder: str = "encoder") -> None:
    """One row of finite codes for each observation."""
    if codes.ndim < 2 or len(codes) != count:
        raise BadInput(
            f"{encoder} turns {count} observations into codes of shape {tuple(codes.shape)}; it must keep "
            "the batch axis: (B, ...) -> (B, K)"
        )
    if not torch.isfinite(codes).all():
        bad = int((~torch.isfinite(codes)).flatten(1).any(1).sum())
        raise BadInput(
            f"{encoder} gives NaN or infinite codes for {bad} of {count} observations; scale x as in training, or load "
            "other weights"
        )


def check_twice(encode: Callable[[Any], Tensor], probe: Any, remedy: str = _MEAN) -> None:
    """Refuse an encoder that samples."""
    first, again = encode(probe), encode(probe)
    if not torch.allclose(first, again, rtol=1e-4, atol=1e-6 * float(first.abs().max()), equal_nan=True):
        raise BadInput(f"encoder gives two answers for the same x: it samples; {remedy}")


def one_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:160] or type(error).__name__
