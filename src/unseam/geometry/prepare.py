"""Validate the inputs of `diagnose` and `align` and compute the Jacobians."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution, MultivariateNormal

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.curvature import implied_beta, sigma_law
from unseam.geometry.decoder_checks import as_points, check_count, check_decoder
from unseam.geometry.jacobian import MODES, Decoder, Grams, as_likelihood, derivative_warnings, pullbacks
from unseam.geometry.polarized import ACTIVE_VARIANCE, LatentStatistics, active_latents, statistics
from unseam.models.likelihood import Bernoulli, Likelihood
from unseam.models.posterior import Diagonal, Full, Posterior
from unseam.readers import as_array

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
