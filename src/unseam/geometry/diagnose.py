"""`diagnose`: a decoder and codes in, a `Diagnosis` out. It works on our models and on any other decoder."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.coordinates import pair_coordinates
from unseam.geometry.curvature import MIXED_NATS, Law, compare_with_law, entanglement_cost, pair_costs
from unseam.geometry.degeneracy import TOO_CLOSE_VALUES, axis_preferences, pairs_of, plane_differences
from unseam.geometry.diagnosis import Arrays, Diagnosis, Latent, Pair
from unseam.geometry.jacobian import Decoder, singular
from unseam.geometry.orthogonality import cosines, distances, dto, haar, ima_contrast, select
from unseam.geometry.polarized import delta_kl, unexplained_directions
from unseam.geometry.prepare import ColumnWeights, PreparedDecoder, column_norms, prepare_decoder
from unseam.geometry.sampled_cost import SampledCost
from unseam.geometry.self_consistency import self_consistency
from unseam.geometry.verdict import degeneracy_warnings, latent_warnings, subject, verdict
from unseam.models.likelihood import Gaussian, Likelihood


@torch.no_grad()
def diagnose(
    decoder: Decoder | nn.Module,
    codes: Any,  # (N, K) posterior means; or a torch.distributions object, or (mean, log-variance), for both
    posterior: Any = None,  # a posterior object, variances (N, K) or covariances (N, K, K)
    *,
    data: Tensor | None = None,  # (N, ...) the observations, for the ELBO
    encoder: Callable[[Tensor], Any] | None = None,
    likelihood: Likelihood | str | None = None,
    s2: float = 0.5,
    beta: float | None = 1.0,  # the weight of the KL in the loss; None: estimated from the posterior
    points: int = 1000,
    chunk: int | None = None,
    factors: int | None = None,  # how many factors the data is known to have
    columns: ColumnWeights = "weighted",  # whose angles: A D, as the theory has it, or "mean": J = d xhat/dz
    has_beta: bool = True,  # False, with beta=None: the loss has no KL, so nothing is advised about its weight
) -> Diagnosis:
    """Say why a latent space is aligned, or why not: activity, Sigma law, mixed pairs and their cost in nats of loss.

    `decoder` maps codes to the mean of a Gaussian with variance `s2` unless `likelihood` says otherwise; a model of
    ours (with `.decode` and `.likelihood`) brings both. Jacobians are taken at `points` evenly spaced codes.

    Parameters
    ----------
    decoder : callable or Module
        Maps codes (B, K) to outputs (B, ...), row by row.
    codes : array of shape (N, K)
        Posterior means; or a torch.distributions object, or (mean, log-variance), for both.
    posterior : optional
        A posterior, variances (N, K) or covariances (N, K, K).
    data : Tensor of shape (N, ...), optional
        The observations of the codes, for the ELBO.
    encoder : callable, optional
        Maps observations to codes, for the error of encoding what was decoded.
    likelihood : Likelihood or str, optional
        A Gaussian of variance `s2` by default.
    s2 : float, default=0.5
        Variance of the Gaussian, where no likelihood is given.
    beta : float or None, default=1.0
        The weight of the KL in the loss; None estimates it from the posterior.
    points : int, default=1000
        Codes at which Jacobians are taken, evenly spaced in `codes`.
    chunk : int, optional
        Points at a time, to bound memory; chosen by their size by default.
    factors : int, optional
        How many factors the data is known to have.
    columns : {"weighted", "mean"}, default="weighted"
        Whose angles are measured: those of A D, as the theory has it, or of J.
    has_beta : bool, default=True
        False with `beta=None`: the loss has no KL, so nothing is advised about its weight.

    Returns
    -------
    Diagnosis
        All numbers, a table of latents and one of pairs, and a verdict in words.

    Examples
    --------
    >>> W = torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> codes = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    >>> result = diagnose(lambda z: z @ W.T, codes, s2=0.1)
    >>> result.dto, round(result.entanglement_cost, 6), result.active
    (0.0, 0.0, 2)
    """
    q = prepare_decoder(decoder, codes, posterior, likelihood, s2, beta, points, chunk, columns, has_beta)
    return diagnosis_of(q, data, encoder, factors)


def diagnosis_of(
    q: PreparedDecoder,
    data: Tensor | None = None,
    encoder: Callable[[Tensor], Any] | None = None,
    factors: int | None = None,
    scope: str = "",
    whole: SampledCost | None = None,
) -> Diagnosis:
    """The numbers and the words, from a question; `scope` and `whole` where it is about a part of the latents."""
    law = compare_with_law(q.M.pullback, q.beta, q.posterior_at_points(), q.active, q.full)
    latents, pairs, drawn = latent_table(q, law), pair_table(q), arrays(q, law)
    count = int(q.active.sum())
    contrast = ima_contrast(select(q.G, q.active), rounding(q)) if count else None
    warnings = [*q.notes, *latent_warnings(latents), *pruning(q, data, factors), *_dependent(contrast)]
    found = Diagnosis(
        dto=float(drawn.distances.mean()) if count else None,
        dto_haar=haar(count)[0] if count else None,
        entanglement_cost=float(drawn.costs.mean()),
        cost_of_active=sum(pair.cost for pair in pairs),
        ima_contrast=None if contrast is None else float(contrast.mean()),
        sigma_law_r=law.r,
        sigma_law_error=law.error,
        active=count,
        latents=latents,
        pairs=pairs,
        warnings=(*warnings, *degeneracy_warnings(pairs)),
        verdict="",
        beta=q.beta,
        points=len(q.z),
        dto_all=dto(q.G),
        delta_kl=float(delta_kl(q.stats)) if q.stats else None,
        elbo=det_elbo(q, data) if data is not None else None,
        self_consistency=None if encoder is None else consistent(q, encoder),
        arrays=drawn,
        beta_source=q.beta_source,
        full_posterior=q.full,
        sigma_law_passive_error=law.passive_error,
        sigma_law_factor=law.factor,
        sigma_law_rescaled_r=law.rescaled_r,
        sigma_law_rescaled_error=law.rescaled_error,
        scope=scope,
        whole_cost=None if whole is None else whole.cost,
        whole_cost_error=None if whole is None else whole.error,
    )
    return replace(found, verdict=verdict(found))


def det_elbo(q: PreparedDecoder, data: Tensor) -> float:
    """log p(x | z = mean) - 1/2 tr(M Sigma) - beta KL, the mean over the points (Allen 2024, eq. 5 with H = -M)."""
    x = _matched(q, data)
    parts = zip(x.split(512), q.z.split(512), strict=True)
    log_p = torch.cat([q.likelihood.log_prob(a, q.decode(z)) for a, z in parts])
    at = q.posterior_at_points()
    if at is None or q.stats is None:
        return float(log_p.mean())
    spread = 0.5 * float((q.M.pullback * at.covariance()).sum((1, 2)).mean())
    return float(log_p.mean()) - spread - q.beta * float(q.stats.kl.sum())


def _matched(q: PreparedDecoder, data: Tensor) -> Tensor:
    """The observations of the points, on the decoder's device and in its precision."""
    if len(data) != len(q.codes):
        raise BadInput(f"data has {len(data)} rows and codes {len(q.codes)}; give the observation of each code")
    return torch.as_tensor(data)[q.rows].to(q.z)


def pruning(q: PreparedDecoder, data: Tensor | None, factors: int | None) -> list[str]:
    """Dead latents by name, collapse, and signs that too much was pruned."""
    count, passive = int(q.active.sum()), np.flatnonzero(~q.active)
    out = [f"{subject(passive.tolist())} passive"] if count and len(passive) else []
    if factors is not None and count < factors:
        pruned = " (over-pruned: lower beta)" if q.has_beta else ""
        why = pruned if len(passive) else " (too few latents: raise K)"
        out.append(f"{count} of {len(q.active)} latents active, but the data has {factors} factors{why}")
    if q.has_beta and data is not None and isinstance(q.likelihood, Gaussian) and len(q.z) >= 4:
        x = _matched(q, data).flatten(1)
        xhat = torch.cat([q.likelihood.mean(q.decode(z)).flatten(1) for z in q.z.split(512)])
        price = q.beta * float(torch.exp(q.likelihood.log_s2))
        left = unexplained_directions((x - xhat).cpu().numpy(), price)
        if left:
            remedy = "over-pruned, lower beta" if len(passive) else "add latents or lower beta"
            where = f"in {left} direction{'s' * (left > 1)}"
            out.append(f"{where} the residual varies by more than a latent costs, {price:.2g}: {remedy}")
    return out


def rounding(q: PreparedDecoder) -> float:
    """The largest eigenvalue of a matrix of cosines that rounding alone makes of 0, in the decoder's precision."""
    K = q.z.shape[1]
    return max(4 * K * torch.finfo(torch.float64).eps, (4 * K * torch.finfo(q.z.dtype).eps) ** 2)


def _dependent(contrast: Tensor | None) -> list[str]:
    """Points at which active latents do not move the output in as many directions."""
    if contrast is None or not (where := int(torch.isinf(contrast).sum())):
        return []
    many = f"the columns of active latents are linearly dependent at {where} of {len(contrast)} points"
    return [f"{many}: some of them do the same to the output, and the IMA contrast is infinite"]


def consistent(q: PreparedDecoder, encoder: Callable[[Tensor], Any]) -> float | None:
    """Relative error of e(d(z)) over the active latents."""
    if not q.active.any():
        return None
    return self_consistency(encoder, lambda z: q.likelihood.mean(q.decode(z)), q.z, q.active).error


def arrays(q: PreparedDecoder, law: Law) -> Arrays:
    """What the figures draw."""
    active_only = select(q.G, q.active)
    far: Array = distances(singular(active_only)[1].numpy()) if q.active.any() else np.zeros(len(q.z))
    return Arrays(
        cosines=cosines(q.G).square().mean(0).sqrt().numpy(),
        singular_values=singular(q.G)[0].numpy(),
        pair_costs=pair_costs(q.M.pullback, q.beta).mean(0).numpy(),
        costs=entanglement_cost(q.M.pullback, q.beta).numpy(),
        distances=far,
        sigma2_law=law.predicted,
        active=q.active,
        sigma2=law.learned,
        sigma_law_r=law.per_latent,
    )


# The two tables of a diagnosis: a row per latent, and a row per pair of active latents.


INSPECTED = 10  # the costliest mixed pairs, which are classified as cartesian or polar


def latent_table(q: PreparedDecoder, law: Law) -> tuple[Latent, ...]:
    stats = (None, None) if q.stats is None else (q.stats.kl.tolist(), q.stats.mean_sigma2.tolist())
    kl, sigma2 = (column or [None] * len(q.active) for column in stats)
    columns = (law.predicted.mean(0), column_norms(q.M), q.codes.std(0), q.active)
    rows = zip(kl, sigma2, *(column.tolist() for column in columns), strict=True)
    return tuple(Latent(k, *row) for k, row in enumerate(rows))


def pair_table(q: PreparedDecoder) -> tuple[Pair, ...]:
    """Every pair of active latents, the costliest first."""
    keep = torch.as_tensor(np.flatnonzero(q.active))
    if len(keep) < 2:
        return ()
    i, j = (keep[side] for side in pairs_of(len(keep)))
    costs = pair_costs(q.M.pullback, q.beta).mean(0)[i, j]
    cosine = cosines(q.G).square().mean(0).sqrt()[i, j]
    difference = plane_differences(q.G, i, j)
    turns = axis_preferences(q.M.pullback, i, j, q.beta)
    mixed = costs > MIXED_NATS * q.beta
    columns = (i, j, costs, cosine, difference, turns.preference, turns.saving, mixed, difference < TOO_CLOSE_VALUES)
    order = costs.argsort(descending=True)
    rows = [Pair(*row) for row in zip(*(column[order].tolist() for column in columns), strict=True)]
    looked = [p for p in rows if p.mixed][:INSPECTED]
    return tuple(replace(p, coordinates=_coordinates(q, p.i, p.j)) if p in looked else p for p in rows)


def _coordinates(q: PreparedDecoder, i: int, j: int) -> str:
    block = q.M.pullback[:, [i, j]][:, :, [i, j]].numpy()
    return pair_coordinates(q.z[:, [i, j]].double().cpu().numpy(), block, q.beta).kind
