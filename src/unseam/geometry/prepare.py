"""Validate the inputs of `diagnose` and `align` and compute the Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution, MultivariateNormal

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.curvature import implied_beta, sigma_law
from unseam.geometry.jacobian import (
    MODES,
    Decoder,
    Grams,
    as_likelihood,
    derivative_warnings,
    pullbacks,
    push,
    reverse_jacobian,
)
from unseam.geometry.polarized import ACTIVE_VARIANCE, LatentStatistics, active_latents, statistics
from unseam.models.adapters.base import check_mode, check_precision, one_line, wrong_output
from unseam.models.likelihood import Bernoulli, Likelihood
from unseam.models.posterior import Diagonal, Full, Posterior
from unseam.readers import as_array, as_frame

_MOVES = 0.01  # without a posterior: a latent is active if it moves the output by this share of the strongest
LOOKED_AT = 200  # outputs that are checked for probabilities given as logits
ColumnWeights = Literal["weighted", "mean"]


@dataclass(frozen=True)
class PreparedDecoder:
    """The validated inputs of a diagnosis, with the Jacobians."""

    decode: Decoder
    likelihood: Likelihood
    beta: float
    beta_source: str  # "given", "estimated", "unit" or "none"
    z: Tensor  # (m, K) where Jacobians are taken
    rows: Tensor  # (m,) which codes these are
    codes: Array  # (N, K)
    posterior: Posterior | None  # N rows, double precision; None for a point, which has no variances
    M: Grams  # double precision, at z
    columns: ColumnWeights  # whose angles are measured: "weighted" A D, or "mean" J
    stats: LatentStatistics | None
    active: Array  # (K,) bool
    notes: tuple[str, ...] = ()

    @property
    def G(self) -> Tensor:  # (m, K, K)
        """The products of the columns whose angles are measured."""
        return self.M.pullback if self.columns == "weighted" else self.M.gram

    @property
    def has_beta(self) -> bool:
        """Whether the loss had a beta, known or not: else no advice may lean on it."""
        return self.beta_source != "none"

    @property
    def full(self) -> bool:
        """Whether the posterior takes the whole precision I + M/beta, not its diagonal."""
        return self.posterior is not None and self.posterior.full

    def posterior_at_points(self) -> Posterior | None:
        return None if self.posterior is None else each_tensor(self.posterior, lambda t: t[self.rows])


@torch.no_grad()
def prepare_decoder(
    decoder: Any,
    codes: Any,
    posterior: Any,
    likelihood: Likelihood | str | None,
    s2: float,
    beta: float | None,
    points: int,
    chunk: int | None,
    columns: ColumnWeights = "weighted",
    has_beta: bool = True,
) -> PreparedDecoder:
    """Check the input, take the Jacobians, find the active latents and, where it is not given, beta."""
    if not ((beta is None or beta > 0) and s2 > 0):
        raise BadInput(f"beta={beta} and s2={s2} must be positive (beta=None estimates it from the posterior)")
    decode, p = _parts_of(decoder, likelihood, s2)
    codes, posterior = as_arrays(codes, posterior)
    z = as_points(codes, decoder)
    check_count(len(z), z.shape[1])
    mode = check_decoder(decode, z)
    rows = torch.linspace(0, len(z) - 1, min(points, len(z)), device="cpu").round().long()
    M = grams(decode, z[rows], rows, p, chunk, mode)
    q = posterior_of(posterior, z, decoder)
    codes = z.double().cpu().numpy()
    stats = None if q is None else statistics(codes, q.variance(), q.log_variance())
    active = moving(codes, M) if stats is None else active_latents(stats.std_mu, stats.mean_sigma2)
    notes = () if getattr(decoder, "likelihood", None) is not None else probabilities(decode, p, z[rows])
    notes += derivative_warnings(decode, lambda at, _: MODES[mode](decode, at), z[rows])
    if beta is not None:
        return PreparedDecoder(decode, p, beta, "given", z[rows], rows, codes, q, M, columns, stats, active, notes)
    found = None if q is None else implied_beta(M.pullback, each_tensor(q, lambda t: t[rows]), active)
    source = "none" if not has_beta else "unit" if found is None else "estimated"
    return PreparedDecoder(decode, p, found or 1.0, source, z[rows], rows, codes, q, M, columns, stats, active, notes)


def check_count(points: int, latents: int) -> None:
    """More points than latents."""
    if points <= latents:
        some = ", or diagnose some of them (latents=[0, 1, 2])" if latents > 3 else ""
        raise BadInput(
            f"codes are {points} points of {latents} latents; give more points than latents, at least "
            f"{latents + 1}{some}"
        )


def _parts_of(decoder: Any, likelihood: Likelihood | str | None, s2: float) -> tuple[Decoder, Likelihood]:
    """The decoding function and the likelihood: a model's own, or what the caller says."""
    model = isinstance(decoder, nn.Module) and callable(getattr(decoder, "decode", None))
    if not callable(decoder):
        raise BadInput(f"decoder is {type(decoder).__name__}; give a function or module that maps (B, K) to (B, ...)")
    own = getattr(decoder, "likelihood", None) if model else None
    return (decoder.decode if model else decoder), as_likelihood(own if likelihood is None else likelihood, s2)


def grams(decode: Decoder, z: Tensor, rows: Tensor, p: Likelihood, chunk: int | None, mode: str) -> Grams:
    """J^T J and M at the points, finite or refused."""
    M = pullbacks(decode, z, p, chunk=chunk, dtype=torch.float64, mode=mode)
    bad = ~torch.isfinite(M.pullback).flatten(1).all(1)
    if bad.any():
        where = rows[int(bad.nonzero()[0])]
        raise BadInput(
            f"the decoder's Jacobian is NaN or infinite at {int(bad.sum())} of {len(rows)} codes, first at {where}"
        )
    return Grams(M.gram.cpu(), M.pullback.cpu())


def each_tensor(q: Posterior, change: Any) -> Posterior:
    """The same family with every tensor changed."""
    kind: Any = type(q)
    changed: Posterior = kind(*(change(getattr(q, f.name)) for f in fields(q)))
    return changed


def posterior_of(values: Any, z: Tensor, decoder: Any = None) -> Posterior | None:
    """A posterior in double precision, from one of ours, variances (N, K) or covariances (N, K, K).

    None for none, and for a point, whose variances are 0.

    >>> posterior_of(torch.ones(3, 2), torch.zeros(3, 2)).kl()
    tensor([0., 0., 0.], dtype=torch.float64)
    """
    if values is None or not getattr(values, "has_prior", True):
        return None
    if isinstance(values, Posterior):
        matching(values.variance().shape, z)
        return each_tensor(values, lambda t: t.detach().cpu().double())
    spread = variances_of(values)
    matching(spread.shape[:2] if spread.shape == (*z.shape, z.shape[1]) else spread.shape, z)
    if not spread.any():
        return None
    mean = z.detach().cpu().double()
    if spread.ndim == 3:
        return Full.of(mean, spread)
    family = getattr(getattr(decoder, "architecture", None), "posterior", "diagonal")
    if family == "full":
        raise BadInput("the model's posterior is full and these are variances only; give the posterior itself, or "
                       "covariances (N, K, K)")  # fmt: skip
    return Diagonal(mean, spread.log())


def variances_of(values: Any) -> Tensor:
    """What an array, or an object with `variance()`, says."""
    found = values.variance() if callable(getattr(values, "variance", None)) and not is_array(values) else values
    return torch.as_tensor(np.asarray(found.detach().cpu() if isinstance(found, Tensor) else found, dtype=float))


def is_array(values: Any) -> bool:
    return isinstance(values, Tensor | np.ndarray | list | tuple)


def matching(shape: Any, z: Tensor) -> None:
    if tuple(shape) != tuple(z.shape):
        raise BadInput(f"posterior variances have shape {tuple(shape)}, the codes {tuple(z.shape)}; they must match")


def moving(codes: Array, M: Grams) -> Array:  # (K,) bool
    """Without a posterior the scale of codes means nothing: latents that move the output by 1 % of the strongest."""
    strength = codes.std(0) * column_norms(M)
    return strength > _MOVES * max(float(strength.max()), 1e-300)


def latents_to_turn(q: PreparedDecoder) -> Array:  # (K,) bool
    """The active latents, those that `diagnose` counts.

    A full posterior may spread one direction over many latents, none of which is active by itself; the decoder
    then decides: by the Sigma law a latent that it uses has a variance below 0.8.
    """
    return sigma_law(q.M.pullback, q.beta).mean(0).numpy() < ACTIVE_VARIANCE if q.full else q.active


def column_norms(M: Grams) -> Array:  # (K,)
    """Root mean square of |J_i|."""
    return M.gram.diagonal(dim1=1, dim2=2).mean(0).sqrt().numpy()


def probabilities(decode: Decoder, p: Likelihood, z: Tensor) -> tuple[str, ...]:
    """A warning where outputs that should be logits look like probabilities."""
    if not isinstance(p, Bernoulli):
        return ()
    theta = decode(z[:LOOKED_AT])
    if theta.min() < 0 or theta.max() > 1:
        return ()
    return ("all outputs lie in [0, 1]: likelihood='bernoulli' takes logits, so if these are probabilities, leave the "
            "decoder's last sigmoid out",)  # fmt: skip


# Codes and posteriors as people have them: pandas, torch.distributions, (mean, log-variance).


def as_arrays(codes: Any, posterior: Any) -> tuple[Any, Any]:
    """(codes, posterior) of plain arrays: a distribution or (mean, log-variance) in place of either says both.

    >>> mean, variance = as_arrays((np.zeros((3, 2)), np.zeros((3, 2))), None)
    >>> variance.tolist()
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """
    if posterior is None and (isinstance(codes, Distribution) or is_pair(codes)):
        codes, posterior = _mean_of(codes), codes
    return _plain(codes), variance_of(posterior)


def is_pair(values: Any) -> bool:
    """(mean, log-variance): two tables of one shape, not two rows."""
    two = isinstance(values, (tuple, list)) and len(values) == 2
    return two and all(np.ndim(_plain(part)) == 2 for part in values) and np.shape(values[0]) == np.shape(values[1])


def _mean_of(values: Any) -> Any:
    return values.mean if isinstance(values, Distribution) else values[0]


def _plain(values: Any) -> Any:
    """pandas and masked arrays become NumPy; everything else stays."""
    if isinstance(values, np.ma.MaskedArray):
        return as_array(values, "codes")
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def variance_of(values: Any) -> Any:
    """Variances (N, K) or covariances (N, K, K); numbers that can only be logarithms are refused by that name."""
    if isinstance(values, Distribution):
        inner = getattr(values, "base_dist", values)  # Independent(Normal)
        return (inner.covariance_matrix if isinstance(inner, MultivariateNormal) else inner.variance).detach()
    if is_pair(values):
        return np.exp(_tensor(values[1]).double().numpy())
    values = _plain(values)
    if isinstance(values, (Tensor, np.ndarray)) and np.ndim(values) == 2 and bool((_tensor(values) < 0).any()):
        low = float(_tensor(values).min())
        raise BadInput(
            f"posterior variances go down to {low:.3g}: these look like log-variances; give exp of them, or "
            "(mean, log-variance) in place of the codes"
        )
    return values


def _tensor(values: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values.detach().cpu()
    return torch.as_tensor(np.array(_plain(values)))  # a copy: pandas' are read-only


# Validation of decoders and points; each error is one line with a remedy.


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
