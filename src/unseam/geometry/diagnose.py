"""`diagnose`: a decoder and codes in, a `Diagnosis` out. It works on our models and on anybody's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unseam.errors import BadInput
from unseam.geometry.checks import as_points, check_decoder
from unseam.geometry.coordinates import pair_coordinates
from unseam.geometry.curvature import LawFit, entanglement_cost, law_fit, pair_costs, sigma_law
from unseam.geometry.degeneracy import TOO_CLOSE, axis_preferences, pairs_of, plane_differences
from unseam.geometry.diagnosis import Diagnosis, Latent, Pair
from unseam.geometry.jacobian import Decoder, Metrics, as_likelihood, metrics, singular
from unseam.geometry.orthogonality import cosines, dto, haar, ima_contrast, select
from unseam.geometry.regime import (
    ACTIVE_VARIANCE,
    LatentStatistics,
    active_latents,
    delta_kl,
    statistics,
    unexplained_directions,
)
from unseam.geometry.selfconsistency import self_consistency
from unseam.geometry.verdict import degeneracy_warnings, latent_warnings, subject, verdict
from unseam.models.likelihood import Gaussian, Likelihood
from unseam.models.posterior import Full
from unseam.types import Array

MIXED = 0.02  # a pair is mixed above 0.02 beta nats: a cosine of 0.2 between its columns
INSPECTED = 10  # mixed pairs, the costliest, that are told cartesian from polar
USED = 0.01  # without a posterior: a latent is in use if it moves the output by this share of the strongest


@dataclass(frozen=True)
class Question:
    """Everything a diagnosis is made from, once it has passed the door."""

    decode: Decoder
    likelihood: Likelihood
    beta: float
    z: Tensor  # (m, K) where Jacobians are taken
    rows: Tensor  # (m,) which codes these are
    codes: Array  # (N, K)
    variances: Array | None  # (N, K)
    full: bool  # whether the posterior is a full one
    M: Metrics  # double precision, at z


@torch.no_grad()
def diagnose(
    decoder: Decoder | nn.Module,
    codes: Any,  # (N, K) posterior means
    posterior: Any = None,  # a posterior object or variances (N, K)
    *,
    data: Tensor | None = None,  # (N, ...) the observations, for the ELBO
    encoder: Callable[[Tensor], Any] | None = None,
    likelihood: Likelihood | str | None = None,
    s2: float = 0.5,
    beta: float = 1.0,
    points: int = 1000,
    chunk: int | None = None,
    factors: int | None = None,  # how many factors the data is known to have
) -> Diagnosis:
    """Say why a latent space is aligned, or why not: activity, Sigma law, mixed pairs and their cost in nats.

    `decoder` maps codes to the mean of a Gaussian with variance `s2` unless `likelihood` says otherwise; a model of
    ours (with `.decode` and `.likelihood`) brings both. Jacobians are taken at `points` evenly spaced codes.

    >>> W = torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> codes = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    >>> result = diagnose(lambda z: z @ W.T, codes, s2=0.1)
    >>> result.dto, round(result.entanglement_cost, 6), result.active
    (0.0, 0.0, 2)
    """
    q = ask(decoder, codes, posterior, likelihood, s2, beta, points, chunk)
    stats = statistics(q.codes, q.variances) if q.variances is not None else None
    active = which_active(q, stats)
    predicted = sigma_law(q.M.pullback, beta, q.full).numpy()
    fit = law_fit(q.variances[q.rows], predicted) if q.variances is not None else None
    cost = float(entanglement_cost(q.M.pullback, beta).mean())
    latents = latent_table(q, stats, predicted, active)
    pairs = pair_table(q, active)
    active_cost = sum(pair.cost for pair in pairs)
    count = int(active.sum())
    gram = select(q.M.gram, active)
    distance, baseline = (dto(gram), haar(count)[0]) if count else (None, None)
    elbo = det_elbo(q, data, stats) if data is not None else None
    law_numbers = (fit.r, fit.error) if fit else (None, None)
    share = cost / abs(elbo) if elbo else None
    consistency = None if encoder is None else consistent(q, encoder, active)
    return Diagnosis(
        dto=distance,
        dto_haar=baseline,
        entanglement_cost=cost,
        cost_of_active=active_cost,
        ima_contrast=float(ima_contrast(gram).mean()) if count else None,
        sigma_law_r=law_numbers[0],
        sigma_law_error=law_numbers[1],
        active=count,
        latents=latents,
        pairs=pairs,
        warnings=tuple(latent_warnings(latents) + pruning(q, data, active, factors) + degeneracy_warnings(pairs)),
        verdict=verdict(count, latents, law_numbers, pairs, (cost, active_cost), share, (distance, baseline), q.full),
        beta=beta,
        points=len(q.z),
        dto_all=dto(q.M.gram),
        delta_kl=float(delta_kl(stats)) if stats else None,
        elbo=elbo,
        self_consistency=consistency,
        arrays=arrays(q, predicted, active, fit),
    )


def ask(
    decoder: Any,
    codes: Any,
    posterior: Any,
    likelihood: Likelihood | str | None,
    s2: float,
    beta: float,
    points: int,
    chunk: int | None,
) -> Question:
    """Check the input and take the Jacobians."""
    if not (beta > 0 and s2 > 0):
        raise BadInput(f"beta={beta} and s2={s2} must be positive")
    decode, p = parts_of(decoder, likelihood, s2)
    z = as_points(codes, decoder)
    if len(z) <= z.shape[1]:
        raise BadInput(f"codes are {len(z)} points of {z.shape[1]} latents; give more points than latents")
    mode = check_decoder(decode, z)
    rows = torch.linspace(0, len(z) - 1, min(points, len(z))).round().long()
    M = metrics(decode, z[rows], p, chunk=chunk, dtype=torch.float64, mode=mode)
    bad = ~torch.isfinite(M.pullback).flatten(1).all(1)
    if bad.any():
        where = rows[int(bad.nonzero()[0])]
        raise BadInput(
            f"the decoder's Jacobian is NaN or infinite at {int(bad.sum())} of {len(rows)} codes, first at {where}"
        )
    M = Metrics(M.gram.cpu(), M.pullback.cpu())
    family = getattr(getattr(decoder, "architecture", None), "posterior", None)
    full = isinstance(posterior, Full) or (posterior is not None and family == "full")
    return Question(decode, p, beta, z[rows], rows, z.double().cpu().numpy(), variances_of(posterior, z), full, M)


def parts_of(decoder: Any, likelihood: Likelihood | str | None, s2: float) -> tuple[Decoder, Likelihood]:
    """The decoding function and the likelihood: a model's own, or what the caller says."""
    model = isinstance(decoder, nn.Module) and callable(getattr(decoder, "decode", None))
    if not callable(decoder):
        raise BadInput(f"decoder is {type(decoder).__name__}; give a function or module that maps (B, K) to (B, ...)")
    own = getattr(decoder, "likelihood", None) if model else None
    return (decoder.decode if model else decoder), as_likelihood(likelihood if own is None else own, s2)


def variances_of(posterior: Any, z: Tensor) -> Array | None:  # (N, K)
    """Posterior variances from a posterior object or an array; None for none and for a point posterior."""
    if posterior is None:
        return None
    found = posterior.variance() if callable(getattr(posterior, "variance", None)) else posterior
    variances = found.detach().cpu().double().numpy() if isinstance(found, Tensor) else np.asarray(found, dtype=float)
    if variances.shape != tuple(z.shape):
        raise BadInput(f"posterior variances have shape {variances.shape}, the codes {tuple(z.shape)}; they must match")
    return None if not variances.any() else variances


def which_active(q: Question, stats: LatentStatistics | None) -> Array:  # (K,) bool
    """std(mu) > 0.5; without a posterior the scale of codes means nothing, so: does the latent move the output?"""
    return moving(q) if stats is None else active_latents(stats.std_mu)


def moving(q: Question) -> Array:  # (K,) bool
    """Latents that move the output by at least 1 % of what the strongest does."""
    strength = q.codes.std(0) * column_norms(q.M)
    return strength > USED * max(float(strength.max()), 1e-300)


def in_use(q: Question) -> Array:  # (K,) bool
    """Latents with an axis worth turning. A full posterior may spread one direction over many latents, so this asks
    the decoder: the Sigma law gives a latent in use a variance below 0.8."""
    law = sigma_law(q.M.pullback, q.beta).mean(0).numpy()
    return moving(q) if q.variances is None else law < ACTIVE_VARIANCE


def column_norms(M: Metrics) -> Array:  # (K,)
    """Root mean square of |J_i|."""
    return M.gram.diagonal(dim1=1, dim2=2).mean(0).sqrt().numpy()


def latent_table(q: Question, stats: LatentStatistics | None, predicted: Array, active: Array) -> tuple[Latent, ...]:
    norms, std, law = column_norms(q.M), q.codes.std(0), predicted.mean(0)
    kl, sigma2 = (stats.kl, stats.mean_sigma2) if stats else (None, None)
    return tuple(
        Latent(
            index=k,
            kl=None if kl is None else float(kl[k]),
            sigma2=None if sigma2 is None else float(sigma2[k]),
            sigma2_law=float(law[k]),
            jacobian_norm=float(norms[k]),
            mu_std=float(std[k]),
            active=bool(active[k]),
        )
        for k in range(len(active))
    )


def pair_table(q: Question, active: Array) -> tuple[Pair, ...]:
    """Every pair of active latents, the costliest first."""
    keep = torch.as_tensor(np.flatnonzero(active))
    if len(keep) < 2:
        return ()
    a, b = pairs_of(len(keep))
    i, j = keep[a], keep[b]
    costs = pair_costs(q.M.pullback, q.beta).mean(0)[i, j]
    cosine = cosines(q.M.gram).square().mean(0).sqrt()[i, j]
    difference = plane_differences(q.M.gram, i, j)
    turns = axis_preferences(q.M.pullback, i, j, q.beta)
    mixed = costs > MIXED * q.beta
    order = costs.argsort(descending=True)
    return tuple(
        Pair(
            i=int(i[k]),
            j=int(j[k]),
            cost=float(costs[k]),
            cosine=float(cosine[k]),
            difference=float(difference[k]),
            preference=float(turns.preference[k]),
            saving=float(turns.saving[k]),
            mixed=bool(mixed[k]),
            degenerate=bool(difference[k] < TOO_CLOSE),
            coordinates=coordinates(q, int(i[k]), int(j[k])) if mixed[k] and place < INSPECTED else None,
        )
        for place, k in enumerate(order.tolist())
    )


def coordinates(q: Question, i: int, j: int) -> str:
    block = q.M.pullback[:, [i, j]][:, :, [i, j]].numpy()
    return pair_coordinates(q.z[:, [i, j]].double().cpu().numpy(), block, q.beta).kind


def det_elbo(q: Question, data: Tensor, stats: LatentStatistics | None) -> float:
    """log p(x | z = mean) + 1/2 tr(H Sigma) - beta KL with H = -M, the mean over the points (Allen 2024, eq. 5)."""
    x = matched(q, data)
    log_p = torch.cat(
        [q.likelihood.log_prob(a, q.decode(z)) for a, z in zip(x.split(512), q.z.split(512), strict=True)]
    )
    if stats is None or q.variances is None:
        return float(log_p.mean())
    diagonal = q.M.pullback.diagonal(dim1=1, dim2=2).numpy()
    spread = 0.5 * float((diagonal * q.variances[q.rows]).sum(1).mean())
    return float(log_p.mean()) - spread - q.beta * float(stats.kl.sum())


def matched(q: Question, data: Tensor) -> Tensor:
    """The observations of the points, on the decoder's device and in its precision."""
    if len(data) != len(q.codes):
        raise BadInput(f"data has {len(data)} rows and codes {len(q.codes)}; give the observation of each code")
    return torch.as_tensor(data)[q.rows].to(q.z)


def pruning(q: Question, data: Tensor | None, active: Array, factors: int | None) -> list[str]:
    """Dead latents by name, collapse, and signs that too much was pruned."""
    count, passive = int(active.sum()), np.flatnonzero(~active)
    out = [f"{subject(passive.tolist())} passive"] if count and len(passive) else []
    if factors is not None and count < factors:
        why = "over-pruned: lower beta" if len(passive) else "too few latents: raise K"
        out.append(f"{count} of {len(active)} latents active, but the data has {factors} factors ({why})")
    if data is not None and isinstance(q.likelihood, Gaussian) and len(q.z) >= 4:
        x = matched(q, data).flatten(1)
        xhat = torch.cat([q.likelihood.mean(q.decode(z)).flatten(1) for z in q.z.split(512)])
        price = q.beta * float(torch.exp(q.likelihood.log_s2))
        left = unexplained_directions((x - xhat).cpu().numpy(), price)
        if left:
            remedy = "over-pruned, lower beta" if len(passive) else "add latents or lower beta"
            out.append(f"in {left} direction(s) the residual varies by more than a latent costs, {price:.2g}: {remedy}")
    return out


def consistent(q: Question, encoder: Callable[[Tensor], Any], active: Array) -> float | None:
    """Relative error of e(d(z)) over the active latents."""
    if not active.any():
        return None
    return self_consistency(encoder, lambda z: q.likelihood.mean(q.decode(z)), q.z, active).error


def arrays(q: Question, predicted: Array, active: Array, fit: LawFit | None) -> dict[str, Array]:
    """What the figures draw."""
    signed = cosines(q.M.gram)
    out = {
        "cosines": signed.square().mean(0).sqrt().numpy(),  # (K, K) root mean square
        "singular_values": singular(q.M.gram)[0].numpy(),  # (m, K)
        "pair_costs": pair_costs(q.M.pullback, q.beta).mean(0).numpy(),  # (K, K)
        "costs": entanglement_cost(q.M.pullback, q.beta).numpy(),  # (m,)
        "sigma2_law": predicted,  # (m, K)
        "active": active,  # (K,)
    }
    if fit is not None and q.variances is not None:
        out |= {"sigma2": q.variances[q.rows], "sigma_law_r": fit.per_latent}
    return out
