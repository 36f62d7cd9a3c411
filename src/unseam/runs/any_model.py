"""`unseam.diagnose` and `unseam.align`: a run, any model with observations, or a decoder with codes.

The one place where the three forms meet. Models are read by `models/adapters/`, runs by `runs/diagnose.py`, and the
numbers come from `geometry/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from unseam import geometry
from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.adapted import (
    DECODER_ALONE,
    Beta,
    as_asked,
    beta_of,
    beta_of_part,
    decoder_of,
    diagnose_adapted,
    encoder_of,
    flat_part,
    flat_question,
    from_codes,
    likelihood_of,
)
from unseam.geometry.align import Alignment
from unseam.geometry.diagnosis import Diagnosis
from unseam.geometry.groups import Latents, one_model, whole_run
from unseam.geometry.prepare import ColumnWeights, prepare_decoder
from unseam.geometry.sampled_cost import SAMPLES
from unseam.geometry.theorems import TheoremTable, theorem_table
from unseam.geometry.verdict import about_beta
from unseam.models.adapters import AdaptedModel, adapter_for, meant_as_codes
from unseam.models.adapters.base import read_encoder_output
from unseam.models.adapters.modules import module_parts
from unseam.models.likelihood import Likelihood

if TYPE_CHECKING:  # what a run needs, metrics and all, is imported when there is a run
    from unseam.run import Run


def diagnose(
    model: Any,
    x: Any = None,
    posterior: Any = None,
    *,
    codes: Any = None,
    member: int | None = None,
    latents: Latents = "auto",
    data: Any = None,
    encoder: Callable[[Tensor], Any] | None = None,
    likelihood: Likelihood | str | None = None,
    s2: float | None = None,
    beta: Beta = "auto",
    points: int = 1000,
    chunk: int | None = None,
    factors: int | None = None,
    columns: ColumnWeights = "weighted",
    has_beta: bool = True,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Diagnosis:
    """Say why a latent space is aligned, or why not: activity, Sigma law, mixed pairs and their cost in nats of loss.

    Parameters
    ----------
    model : Run, model or decoder
        A run (with `member` where it has several); a torch module with `encode` and `decode` or with `encoder` and
        `decoder`; a pythae, scvi-tools or diffusers model; an (encoder, decoder) pair; an object with `transform` and
        `inverse_transform`; or a decoder alone, with codes in place of x.
    x : array, tensor, DataFrame, AnnData, Dataset or DataLoader
        Observations, scaled as in training. With a decoder alone, and where `posterior` is given: codes (N, K), a
        torch distribution or (mean, log-variance). A run takes its own held-out rows when x is left out.
    posterior : array, distribution or posterior, optional
        With codes: their variances (N, K), covariances (N, K, K) or posterior.
    codes : array, optional
        Codes by name, where x could be read as either.
    member : int, optional
        Which member of a run.
    latents : {"auto", "all", "locations", "channels"} or sequence of int or (c, h, w), default="auto"
        Which latents are diagnosed together. "auto": all of at most 256 flat latents, the 32 strongest of more, and
        of latents (C, H, W) the C channels at each location. "channels": the locations within each channel.
    data : array, optional
        With codes: the observations, for the ELBO. With a model it is another name for x.
    encoder : callable, optional
        With codes: the encoder, to say how well it inverts the decoder.
    likelihood : Likelihood or str, optional
        p(x|z); the model's own, else a Gaussian of variance `s2`.
    s2 : float, optional
        The variance of a Gaussian likelihood; 0.5 unless it is known from the model.
    beta : float, None or "auto", default="auto"
        The weight of the KL in the loss. None estimates it from the posterior. "auto": the model's own, else
        estimated; 1 for a decoder with codes.
    points : int, default=1000
        At how many codes the decoder is differentiated.
    chunk : int, optional
        How many of them at once; by default as many as a core's cache holds.
    factors : int, optional
        How many factors the data is known to have.
    columns : {"weighted", "mean"}, default="weighted"
        Whose angles: those of A D, as the theory has it, or of J = d xhat/dz.
    has_beta : bool, default=True
        With codes and beta=None: False if the loss has no KL.
    samples : int, default=256
        Where only some latents are looked at: latents drawn to estimate the cost of all of them. 0: none.
    seed : int, default=0
        Which rows and latents are drawn.

    Returns
    -------
    Diagnosis
        Prints as a verdict and a table per latent; `docs/geometry.md` says how to read it.

    Examples
    --------
    >>> import torch
    >>> W = torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> codes = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    >>> result = diagnose(lambda z: z @ W.T, codes, s2=0.1)
    >>> result.dto, round(result.entanglement_cost, 6), result.active
    (0.0, 0.0, 2)

    An encoder and a decoder, with observations:

    >>> result = diagnose((lambda x: x @ torch.linalg.pinv(W).T, lambda z: z @ W.T), codes @ W.T)
    >>> result.active
    2
    """
    if hasattr(model, "members"):  # a run
        whole_run(
            diagnose, latents=latents, posterior=posterior, codes=codes, encoder=encoder, likelihood=likelihood, s2=s2,
            beta=beta, chunk=chunk, factors=factors, columns=columns, has_beta=has_beta, samples=samples,
        )  # fmt: skip
        return diagnose_run(model, x if x is not None else data, member, points, seed)
    one_model(member)
    adapted = read_model(model, x, posterior, codes, data, likelihood, s2)
    if adapted is not None:
        return diagnose_adapted(
            adapted, latents, likelihood=likelihood, s2=s2, beta=beta, points=points, chunk=chunk, factors=factors,
            columns=columns, samples=samples, seed=seed,
        )  # fmt: skip
    codes_or_x = codes if codes is not None else x
    refuse_missing(codes_or_x, model)
    beta = 1.0 if beta == "auto" else beta
    if isinstance(latents, str) and latents == "auto":
        return geometry.diagnose(
            decoder_of(model), codes_or_x, posterior, data=data, encoder=encoder, likelihood=likelihood,
            s2=0.5 if s2 is None else s2, beta=beta, points=points, chunk=chunk, factors=factors, columns=columns,
            has_beta=has_beta,
        )  # fmt: skip
    if data is not None or encoder is not None:
        raise BadInput("data= and encoder= are compared with all latents of a decoder: leave them out, or latents=")
    return diagnose_adapted(
        from_codes(model, codes_or_x, posterior, has_beta=has_beta), latents, likelihood=likelihood, s2=s2, beta=beta,
        points=points, chunk=chunk, factors=factors, columns=columns, samples=samples, seed=seed,
    )  # fmt: skip


def align(
    model: Any,
    x: Any = None,
    posterior: Any = None,
    *,
    codes: Any = None,
    member: int | None = None,
    latents: Latents = "auto",
    encoder: Callable[[Tensor], Any] | None = None,
    likelihood: Likelihood | str | None = None,
    s2: float | None = None,
    beta: Beta = "auto",
    points: int = 2000,
    restarts: int = 2,
    seed: int = 0,
    chunk: int | None = None,
    whiten: bool | None = None,
) -> Alignment:
    """Find the rotation of latent space with the smallest entanglement cost, and say whether it helped.

    Parameters
    ----------
    model, x, posterior, codes, member, encoder, likelihood, s2, beta, points, chunk
        As in `diagnose`.
    latents : "auto", "all" or sequence of int or (c, h, w), default="auto"
        The latents that are turned; others, and what else the decoder takes, stay as in a typical row. "auto": all
        flat latents, and of latents (C, H, W) the 32 that say most.
    restarts : int, default=2
        Random starts of the search beside the axes as they are.
    seed : int, default=0
        Of the restarts, and of a run's rows.
    whiten : bool, optional
        Give the codes mean 0 and covariance I first, as a prior would. By default for models without a posterior;
        not for a decoder with codes.

    Returns
    -------
    Alignment
        `rotation`, the turned `encoder` and `decoder`, the new `codes`, and a table of before and after.

    Examples
    --------
    >>> import torch
    >>> W = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> turn = torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
    >>> codes = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    >>> result = align(lambda z: z @ turn @ W.T, codes)
    >>> result.helped, bool(torch.allclose(result.rotation, turn.double(), atol=1e-6))
    (True, True)
    """
    if hasattr(model, "members"):  # a run
        whole_run(
            align, latents=latents, posterior=posterior, codes=codes, encoder=encoder, likelihood=likelihood, s2=s2,
            beta=beta, restarts=restarts, chunk=chunk, whiten=whiten,
        )  # fmt: skip
        return align_run(model, x, member, points, seed)
    one_model(member)
    adapted = read_model(model, x, posterior, codes, None, likelihood, s2)
    search: dict[str, Any] = {"points": points, "restarts": restarts, "seed": seed, "chunk": chunk}
    if adapted is None and not (isinstance(latents, str) and latents == "auto"):
        adapted, beta = of_codes(model, codes if codes is not None else x, posterior, beta)
        whiten = bool(whiten)
    if adapted is None:
        codes_or_x = codes if codes is not None else x
        refuse_missing(codes_or_x, model)
        return geometry.align(
            decoder_of(model), codes_or_x, posterior, encoder=encoder, likelihood=likelihood,
            s2=0.5 if s2 is None else s2, beta=1.0 if beta == "auto" else beta, whiten=bool(whiten), **search,
        )  # fmt: skip
    if encoder is not None:
        adapted = with_encoder(adapted, encoder)
    part = flat_part(adapted, latents)
    if part is not adapted:
        known = encoder is not None or (adapted.context is None and adapted.kind != DECODER_ALONE)
        encoder = encoder_of(part) if known else None
    elif encoder is None:
        parts = module_parts(model)
        both = parts if parts is not None else model if isinstance(model, (tuple, list)) else None
        encoder = None if both is None else both[0]
    p, weight, source = likelihood_of(adapted, likelihood, s2), beta_of(adapted, beta), ""
    if weight is None:
        weight, source = beta_of_part(adapted, part, latents, None, p, points)
    found = geometry.align(
        **flat_question(part),
        encoder=encoder,
        likelihood=p,
        beta=weight,
        whiten=(adapted.variances is None and adapted.covariances is None) if whiten is None else whiten,
        **search,
    )
    about = about_beta(weight, source) if weight is not None else ""
    verdict = "; ".join(text for text in (found.verdict, about, *adapted.notes) if text)
    return replace(found, verdict=verdict if part is adapted else f"{verdict} ({part.notes[-1]})")


def with_encoder(adapted: AdaptedModel, encoder: Callable[[Tensor], Any]) -> AdaptedModel:
    """The model with the encoder that was given."""
    return replace(adapted, encode=lambda rows: read_encoder_output(encoder(rows)))


def codes_of_part(model: Any, x: Any, latents: Latents = "auto") -> Array:  # (N, k)
    """The codes that `align` turns, before."""
    adapted = read_model(model, x)
    assert adapted is not None
    return flat_part(adapted, latents).codes.double().numpy()


def theorems(
    model: Any,
    x: Any = None,
    posterior: Any = None,
    *,
    codes: Any = None,
    member: int | None = None,
    latents: Latents = "auto",
    data: Any = None,
    likelihood: Likelihood | str | None = None,
    s2: float | None = None,
    beta: Beta = "auto",
    points: int = 100,
    seed: int = 0,
) -> TheoremTable:
    """Say which identifiability theorem applies to a decoder and which premise fails.

    Parameters
    ----------
    model, x, posterior, codes, member, data, likelihood, s2, beta, seed
        As in `diagnose`. With codes, `data` are their observations (for the Sigma identity).
    latents : "auto", "all" or sequence of int or (c, h, w), default="auto"
        As in `align`.
    points : int, default=100
        At how many codes the premises are measured.

    Returns
    -------
    TheoremTable
        `premises`, each with value, standard error, chance level, cost in nats and a sentence; `applies` by theorem.

    Examples
    --------
    >>> import torch
    >>> z = torch.rand(200, 2, generator=torch.Generator().manual_seed(0)).double() + 1
    >>> polar = lambda z: torch.stack([z[:, 0] * z[:, 1].cos(), z[:, 0] * z[:, 1].sin()], 1)
    >>> print(*[p.sentence for p in theorems(polar, z).premises[:2]], sep="\\n")
    C1: columns are orthogonal (DtO 0, chance 0.548)
    C2: latent 0 changes the speed along latent 1 by 23% per standard deviation
    """
    most = max(points, 1000)
    if hasattr(model, "members"):  # a run
        whole_run(theorems, latents=latents, posterior=posterior, codes=codes, likelihood=likelihood, s2=s2, beta=beta)
        from unseam.run.load import with_data
        from unseam.runs.diagnose import kl_weight_of as beta_of_member
        from unseam.runs.diagnose import needs_decoder, see

        needs_decoder(model)
        run = with_data(model, x if x is not None else data)
        one = run._one(member)
        net = run.model(one)
        encoded = see(run, net, most, seed)
        q = prepare_decoder(
            net, encoded.posterior.mean, encoded.posterior, None, 0.5, beta_of_member(run, one), most, None
        )
        return theorem_table(q, encoded.x, points, seed)
    one_model(member)
    adapted = read_model(model, x, posterior, codes, data, likelihood, s2)
    if adapted is None and not (isinstance(latents, str) and latents == "auto"):
        adapted, beta = of_codes(model, codes if codes is not None else x, posterior, beta, data)
    if adapted is None:
        codes_or_x = codes if codes is not None else x
        refuse_missing(codes_or_x, model)
        weight: Any = 1.0 if beta == "auto" else beta
        q = prepare_decoder(
            decoder_of(model), codes_or_x, posterior, likelihood, 0.5 if s2 is None else s2, weight, most, None
        )
        return theorem_table(q, data, points, seed)
    part = flat_part(adapted, latents)
    parts_ = flat_question(part)
    p, known = likelihood_of(adapted, likelihood, s2), beta_of(adapted, beta)
    if known is None:
        known, _ = beta_of_part(adapted, part, latents, None, p, most)
    q = prepare_decoder(parts_["decoder"], parts_["codes"], parts_["posterior"], p, 0.5, known, most, None)
    held = part is not adapted and (adapted.context is not None or part.codes.shape[1] < adapted.points.shape[1])
    found = theorem_table(q, adapted.data, points, seed, held)
    return found if part is adapted else replace(found, scope=part.notes[-1])


def diagnose_run(run: Run, x: Any, member: int | None, points: int, seed: int) -> Diagnosis:
    """A member at its held-out rows, or at other data."""
    from unseam.run.load import with_data
    from unseam.runs.diagnose import diagnosis

    run = with_data(run, x)
    return diagnosis(run, run._one(member), points, seed)


def align_run(run: Run, x: Any, member: int | None, points: int, seed: int) -> Alignment:
    from unseam.run.load import with_data
    from unseam.runs import align as run_alignment

    run = with_data(run, x)
    return run_alignment.align(run, run._one(member), points, seed)[0]


def read_model(
    model: Any,
    x: Any,
    posterior: Any = None,
    codes: Any = None,
    data: Any = None,
    likelihood: Likelihood | str | None = None,
    s2: float | None = None,
) -> AdaptedModel | None:
    """What an adapter makes of a model and observations; None for a decoder with codes."""
    adapter = adapter_for(model)
    if adapter is None or posterior is not None or codes is not None:
        return None
    if x is None and data is not None:
        return as_asked(adapter.adapt(model, data), likelihood, s2)
    if x is None:
        raise BadInput(f"{type(model).__name__} needs observations: give x, some of the data that it was trained on")
    return None if meant_as_codes(adapter, model, x) else as_asked(adapter.adapt(model, x), likelihood, s2)


def refuse_missing(codes_or_x: Any, model: Any) -> None:
    if codes_or_x is None:
        raise BadInput(
            f"{type(model).__name__} is a decoder alone; give codes (N, K) as well, or a model with encoder and decoder"
        )


def of_codes(
    model: Any, codes: Any, posterior: Any, beta: Beta, data: Tensor | None = None
) -> tuple[AdaptedModel, Beta]:
    """A decoder with codes as an adapter would have read it, and beta, which is 1 where it is not given."""
    refuse_missing(codes, model)
    return from_codes(model, codes, posterior, data), 1.0 if beta == "auto" else beta
