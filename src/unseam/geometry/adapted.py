"""`diagnose` and `align` of a model that an adapter has read: which latents, which beta, and the way there.

Models with a flat latent space and nothing but latents going into their decoder are diagnosed as a decoder and codes.
All others by groups of latents (`groups.py`), with the cost of all latents estimated beside (`sampled_cost.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.curvature import implied_beta
from unseam.geometry.decoder_checks import check_count, check_rows, few_of
from unseam.geometry.diagnose import diagnose, diagnosis_of
from unseam.geometry.diagnosis import Diagnosis
from unseam.geometry.groups import (
    MANY,
    PART,
    WAYS,
    Groups,
    Latents,
    choose_groups,
    chosen_subset,
    group_pullbacks,
    group_sample,
    middle,
    way_of,
)
from unseam.geometry.jacobian import as_likelihood, derivative_warnings
from unseam.geometry.polarized import active_latents, statistics
from unseam.geometry.prepare import (
    ColumnWeights,
    PreparedDecoder,
    as_arrays,
    each_tensor,
    moving,
)
from unseam.geometry.sampled_cost import SAMPLES, SampledCost, sampled_cost
from unseam.models.adapters import adapter_for
from unseam.models.adapters.base import (
    AdaptedModel,
    EncoderOutput,
    floating_parameter,
    posterior_outputs,
    read_encoder_output,
)
from unseam.models.adapters.modules import module_parts
from unseam.models.likelihood import Bernoulli, Likelihood
from unseam.models.posterior import Diagonal, Full, Posterior

_AFFINE = 64  # points at which a decoder is seen to be affine
_LOOKED_AT = 200  # codes at which outputs are looked at for probabilities
DECODER_ALONE = "codes"  # the kind of a decoder whose codes were given
_SURE = 1e-6  # probabilities nearer to 0 or 1 count as this far away
Beta = float | None | Literal["auto"]


def diagnose_adapted(
    model: AdaptedModel,
    latents: Latents = "auto",
    *,
    likelihood: Likelihood | str | None = None,
    s2: float | None = None,
    beta: Beta = "auto",
    points: int = 1000,
    chunk: int | None = None,
    factors: int | None = None,
    columns: ColumnWeights = "weighted",
    samples: int = SAMPLES,
    seed: int = 0,
) -> Diagnosis:
    """The diagnosis of a model that an adapter has read; `unseam.diagnose` has the parameters."""
    p, weight = likelihood_of(model, likelihood, s2), beta_of(model, beta)
    flat = len(model.latent_shape) == 1 and model.context is None and model.differentiable
    if flat and isinstance(latents, str) and (latents == "all" or (latents == "auto" and model.codes.shape[1] <= MANY)):
        posterior = model.variances if model.covariances is None else model.covariances
        data = None if p is None or model.data is None else model.data
        found = diagnose(
            on_device(model), model.codes, posterior, data=data, likelihood=p, beta=weight, points=points, chunk=chunk,
            factors=factors, columns=columns, has_beta=model.has_beta,
        )  # fmt: skip
        return replace(found, warnings=(*model.notes, *found.warnings))
    q, groups = ask_groups(model, latents, as_likelihood(p), weight, points, chunk, columns, seed)
    if factors is not None and groups.scope:
        q = replace(q, notes=(*q.notes, f"factors={factors} was not used: not all latents are diagnosed together"))
        factors = None
    K = int(np.prod(model.latent_shape))
    whole = None
    if groups.index.shape[1] < K and model.differentiable and samples:
        whole = whole_cost(model, q, K, samples, seed)
    return diagnosis_of(q, factors=factors, scope=groups.scope, whole=whole)


@torch.no_grad()
def as_asked(model: AdaptedModel, likelihood: Likelihood | str | None, s2: float | None = None) -> AdaptedModel:
    """The model with logits where a Bernoulli is asked for and the decoder returns probabilities (a last sigmoid).

    Where no likelihood is given, and outputs and observations lie in [0, 1], a note states what is assumed.
    """
    if isinstance(model.likelihood, Bernoulli) or not model.differentiable:
        return model
    bernoulli = likelihood == "bernoulli" or isinstance(likelihood, Bernoulli)
    silent = likelihood is None and s2 is None and model.likelihood is None and model.data is not None
    if not bernoulli and not silent:
        return model
    decode = on_device(model)
    try:
        theta = decode(model.points[:_LOOKED_AT])
    except Exception:  # the geometry's own checks say what is wrong
        return model
    if not isinstance(theta, Tensor) or not bool(((theta >= 0) & (theta <= 1)).all()):
        return model
    if bernoulli:
        note = "the decoder returns probabilities; their logits were taken"
        return replace(model, decode=lambda z: torch.logit(decode(z), eps=_SURE), notes=(*model.notes, note))
    assert model.data is not None
    if not bool(((model.data >= 0) & (model.data <= 1)).all()):
        return model
    note = (
        "the likelihood is not known and a Gaussian is assumed; if the model was trained with cross entropy, say "
        "likelihood='bernoulli', otherwise the variance: s2="
    )
    return replace(model, notes=(*model.notes, note))


def likelihood_of(model: AdaptedModel, likelihood: Likelihood | str | None, s2: float | None) -> Likelihood | None:
    """What the user says, else what the model says; None where neither does."""
    if likelihood is not None or s2 is not None:
        return as_likelihood(likelihood, 0.5 if s2 is None else s2)
    return model.likelihood


def beta_of(model: AdaptedModel, beta: Beta) -> float | None:
    """What the user says, else what the model says; None: estimated from the posterior."""
    return model.beta if isinstance(beta, str) else beta


def on_device(model: AdaptedModel) -> Callable[[Tensor], Tensor]:
    """The decoder of points that lie on the CPU; its outputs come back there."""
    parameter = floating_parameter(model.module)
    if parameter is None:
        return model.decode

    def decode(z: Tensor) -> Tensor:
        out = model.decode(z.to(parameter))
        return out if not isinstance(out, Tensor) else out.to("cpu")

    return decode


def ask_groups(
    model: AdaptedModel,
    latents: Latents,
    p: Likelihood,
    beta: float | None,
    points: int,
    chunk: int | None,
    columns: ColumnWeights,
    seed: int,
) -> tuple[PreparedDecoder, Groups]:
    """The question of a diagnosis by groups, checked, with the Jacobians taken."""
    if beta is not None and not beta > 0:
        raise BadInput(f"beta={beta} must be positive (beta=None estimates it from the posterior)")
    decode, z = on_device(model), model.points
    z = z if model.differentiable else z.double()
    check_usable(model)
    groups = choose_groups(model.latent_shape, latents, strength(model))
    rows = group_sample(len(z), groups, points, seed)
    k = groups.index.shape[1]
    check_count(len(rows.points), k)
    at = z[rows.points]
    way = way_of(decode, at, rows.index, model.differentiable)
    M = group_pullbacks(decode, at, rows.index, p, way, chunk)
    if not torch.isfinite(M.pullback).all():
        raise BadInput("the decoder's Jacobian is NaN or infinite at some codes; look for sqrt(0), 0/0 or log(0) in it")
    codes = picked(model.codes, rows.points, rows.index)
    q = None
    notes = list(model.notes)
    if model.differentiable:
        notes += derivative_warnings(decode, lambda points, index: WAYS[way](decode, points, index), at, rows.index)
    if model.variances is not None:
        q = Diagonal(codes, picked(model.variances, rows.points, rows.index).log())
    elif model.covariances is not None:
        notes.append("the posterior is full, and its law does not split into groups of latents; it was not tested")
    stats = None if q is None else statistics(codes.numpy(), q.variance(), q.log_variance())
    active = moving(codes.numpy(), M) if stats is None else active_latents(stats.std_mu, stats.mean_sigma2)
    source = "given"
    if beta is None:
        beta = None if q is None else implied_beta(M.pullback, each_tensor(q, lambda t: t), active)
        source = "none" if not model.has_beta else "unit" if beta is None else "estimated"
    rest = torch.arange(len(at), device="cpu")
    question = PreparedDecoder(
        decode, p, beta or 1.0, source, codes, rest, codes.numpy(), q, M, columns, stats, active, tuple(notes)
    )
    return question, groups


def picked(codes: Tensor, points: Tensor, index: Tensor) -> Tensor:  # (N, ...), (m,), (m, k) -> (m, k)
    """The numbers of each row's group, in double precision."""
    return codes.flatten(1).double()[points].gather(1, index)


def strength(model: AdaptedModel) -> Array:  # (K,)
    """How much each latent says: its information where there is a posterior, else its spread."""
    spread = model.codes.flatten(1).double().std(0)
    if model.variances is None:
        return spread.numpy()
    v = model.variances.flatten(1).double()
    return (0.5 * (model.codes.flatten(1).double().square() + v - v.log() - 1)).mean(0).numpy()


def whole_cost(model: AdaptedModel, q: PreparedDecoder, K: int, samples: int, seed: int) -> SampledCost:
    return sampled_cost(q.decode, model.points, q.likelihood, beta=q.beta, samples=samples, seed=seed, latents=K)


def flat_part(model: AdaptedModel, latents: Latents = "auto", most: int | None = None) -> AdaptedModel:
    """The model as a decoder of flat codes, for what looks at one set of latents at a time.

    A model whose latents are flat, and all that its decoder takes, is returned as it is. Of others, and of more than
    `most` latents, "auto" takes the 32 that say most; all else that the decoder takes stays as in a typical row, and a
    full posterior becomes that of the chosen latents given the others.

    >>> decode = lambda z: z * torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> codes = torch.arange(20.0).reshape(5, 2, 1, 2)
    >>> part = flat_part(AdaptedModel("module", decode, lambda x: EncoderOutput(x), codes), [(1, 0, 0), 0])
    >>> part.codes[0].tolist(), part.decode(torch.zeros(1, 2)).tolist()
    ([2.0, 0.0], [[0.0, 18.0, 0.0, 44.0]])
    """
    shape, index = model.latent_shape, part_index(model, latents, most)
    K = int(np.prod(shape))
    if len(shape) == 1 and model.context is None and len(index) == K and bool((index == np.arange(K)).all()):
        return model
    flat = model.codes.flatten(1)
    row = middle(flat.double().numpy())
    base, others = model.points[row], np.setdiff1d(np.arange(model.points.shape[1]), index)
    order = torch.from_numpy(np.argsort(np.concatenate([index, others])))
    rest, chosen = base[torch.from_numpy(others)], torch.from_numpy(index)

    def decode(z: Tensor) -> Tensor:  # (B, k)
        every = torch.cat([z, rest.to(z).expand(len(z), -1)], 1)
        return model.decode(every[:, order.to(z.device)])

    def pick(values: Tensor | None) -> Tensor | None:  # (B, ...) -> (B, k)
        return None if values is None else values.flatten(1)[:, chosen.to(values.device)]

    def block(values: Tensor | None) -> Tensor | None:  # (B, K, K) -> (B, k, k)
        if values is None or len(index) == K:
            return None if values is None else values[:, chosen.to(values.device)][:, :, chosen.to(values.device)]
        at = chosen.to(values.device)
        return torch.linalg.inv(torch.linalg.inv(values.double())[:, at][:, :, at]).to(values)

    def encode(x: Tensor) -> EncoderOutput:
        q = model.encode(x)
        return EncoderOutput(q.mean.flatten(1)[:, chosen.to(q.mean.device)], pick(q.variance), block(q.covariance))

    some = "all latents" if len(index) == K else f"latents {index.tolist()} of {K}"
    some += ", those that say most," if len(index) < K and isinstance(latents, str) else ""
    held = len(index) < K or model.context is not None
    note = f"{some} are looked at" + (
        f", what else the decoder takes is held as in row {row}" if held else ", flattened"
    )
    return replace(
        model, decode=decode, encode=encode, codes=flat[:, chosen], variances=pick(model.variances),
        covariances=block(model.covariances), context=None, notes=(*model.notes, note),
    )  # fmt: skip


def part_index(model: AdaptedModel, latents: Latents, most: int | None = None) -> Array:  # (k,)
    """Which latents `flat_part` takes, by their positions in the flattened codes."""
    shape = model.latent_shape
    K = int(np.prod(shape))
    if not isinstance(latents, str):
        return np.asarray(chosen_subset(shape, latents).index[0])
    if latents not in ("auto", "all"):
        raise BadInput(f"latents={latents!r} are many groups, and this needs one: give positions, or leave it out")
    whole = latents == "all" or (len(shape) == 1 and (most is None or most >= K))
    return np.arange(K) if whole else np.sort(np.argsort(-strength(model), kind="stable")[:PART])


def beta_of_part(
    model: AdaptedModel, part: AdaptedModel, latents: Latents, most: int | None, p: Likelihood | None, points: int
) -> tuple[float | None, str]:
    """What the Sigma law says of beta, each row with its own other latents, since the posteriors know these; and what
    is to be said about it. None where the part itself has to be asked.
    """
    if part is model or model.variances is None:
        return None, ""
    index = part_index(model, latents, most).tolist()
    q, _ = ask_groups(model, index, as_likelihood(p), None, points, None, "weighted", 0)
    return q.beta, q.beta_source


def flat_question(model: AdaptedModel) -> dict[str, Any]:
    """Decoder, codes and posterior of a model with flat latents, as `align` and `theorems` take them."""
    check_usable(model)
    posterior = model.variances if model.covariances is None else model.covariances
    if model.differentiable:
        return {"decoder": on_device(model), "codes": model.codes, "posterior": posterior}
    return {"decoder": affine(model), "codes": model.codes.double(), "posterior": posterior}


def check_usable(model: AdaptedModel) -> None:
    """Refuse codes that are not finite, and a decoder that does not answer row by row."""
    z = model.points if model.differentiable else model.points.double()
    if not torch.isfinite(z).all():
        raise BadInput("some codes hold NaN or infinite values; drop these rows or check the encoder")
    check_rows(on_device(model), few_of(z))


def affine(model: AdaptedModel) -> Callable[[Tensor], Tensor]:
    """The decoder of a model that computes in NumPy, as a matrix: only an affine one can be differentiated so."""
    K = model.latent_shape[0]
    z = model.codes[:_AFFINE].double()
    offset = model.decode(torch.zeros_like(z[:1]))
    shape = offset.shape[1:]
    W = (model.decode(torch.eye(K, dtype=z.dtype, device=z.device)) - offset).flatten(1)  # (K, n)
    expected = model.decode(z).flatten(1)
    if not torch.allclose(z @ W + offset.flatten(1), expected, rtol=1e-6, atol=1e-8 * float(expected.abs().max())):
        raise BadInput(
            f"inverse_transform of this {model.kind} model is not linear and does not compute in torch, so its exact "
            "derivatives are not known, which this needs; `diagnose` takes it as it is"
        )
    return lambda points: (points.double() @ W + offset.flatten(1)).unflatten(1, shape)


def encoder_of(part: AdaptedModel) -> Callable[[Tensor], Any]:
    """Its encoder, as `align` turns one: codes, or a posterior."""

    def encode(x: Tensor) -> Any:
        q = part.encode(x)
        if q.covariance is not None:
            return Full.from_outputs(posterior_outputs(q), q.mean.shape[1])
        return q.mean if q.variance is None else Diagonal(q.mean, q.variance.log())

    return encode


def decoder_of(model: Any) -> Any:
    """The decoder of a model whose codes were given."""
    if adapter_for(model) is None or hasattr(model, "decode"):
        return model
    both = model if isinstance(model, (tuple, list)) else module_parts(model)
    return model if both is None else both[1]


def from_codes(
    model: Any, codes: Any, posterior: Any, data: Tensor | None = None, has_beta: bool = True
) -> AdaptedModel:
    """A decoder with codes of any shape, as an adapter would have read it; it has no encoder."""
    decode = decoder_of(model)
    decode = decode.decode if hasattr(decode, "decode") else decode
    codes, spread = as_arrays(codes, posterior)
    z = codes.detach() if isinstance(codes, Tensor) else torch.as_tensor(np.array(codes))
    shape = tuple(z.shape[1:])

    def flat(points: Tensor) -> Tensor:
        out: Tensor = decode(points.unflatten(1, shape) if len(shape) > 1 else points)
        return out

    if isinstance(spread, Posterior):
        spread = None if not spread.has_prior else spread.covariance() if spread.full else spread.variance()
    spread = None if spread is None else torch.as_tensor(np.array(spread))
    full = spread is not None and len(shape) == 1 and spread.shape == (*z.shape, *shape)
    if spread is not None and not full and spread.shape != z.shape:
        raise BadInput(f"posterior variances have shape {tuple(spread.shape)}, the codes {tuple(z.shape)}: must match")
    module = model if isinstance(model, torch.nn.Module) else None
    return AdaptedModel(
        DECODER_ALONE, flat, read_encoder_output, z, None if full else spread, spread if full else None,
        likelihood=getattr(model, "likelihood", None), has_beta=has_beta, data=data, module=module,
    )  # fmt: skip
