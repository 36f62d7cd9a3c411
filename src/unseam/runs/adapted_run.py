"""An adapted model is a run: one member, the user's networks inside, the user's rows as data, nothing trained.

So `report`, `explore`, `traverse` and `evaluate` take other people's models. The run folder is made for the occasion:
it holds rows and results, not the model, and is opened again by giving the model again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unseam.atomic import free_path
from unseam.data.torch_data import is_torch_data, read_torch_data
from unseam.data.user import CHANNELS, UserData
from unseam.errors import BadInput
from unseam.geometry.adapted import (
    Beta,
    affine,
    as_asked,
    beta_of,
    beta_of_part,
    check_usable,
    diagnose_adapted,
    flat_part,
    likelihood_of,
    on_device,
)
from unseam.geometry.groups import Latents, whole_run
from unseam.geometry.jacobian import as_likelihood
from unseam.models import Architecture
from unseam.models.adapters import AdaptedModel, adapter_for
from unseam.models.adapters.base import floating_parameter, posterior_outputs
from unseam.models.architecture import NetworkSource
from unseam.models.likelihood import LIKELIHOODS, Gaussian, Likelihood, NegativeBinomial
from unseam.objectives import OBJECTIVES
from unseam.run import Run, load_run
from unseam.run.checkpoint import save_checkpoint
from unseam.run.config import Member, RunConfig, Training
from unseam.run.load import with_data
from unseam.run.results import Results
from unseam.train.batches import Feed
from unseam.train.cohort import check_free, start_folder
from unseam.train.fitting import stored_data
from unseam.train.job import Job, checkpoint_state, start
from unseam.train.loop import HeldOut, finish
from unseam.train.stack import Forward

MOST_LATENTS = 64  # that a report or the explorer lays out
_ROWS = 2048  # behind the numbers of the member
_POINTS = 1000  # at which beta is estimated


def as_run(
    model: Any,
    data: Any = None,
    *,
    latents: Latents = "auto",
    factors: Any = None,
    out: str | Path | None = None,
    likelihood: Likelihood | str | None = None,
    s2: float | None = None,
    beta: Beta = "auto",
) -> Run:
    """A run as it is, or a model that `diagnose` takes as a run of one member.

    Parameters
    ----------
    model : Run, path or model
        A run, a run folder, or any model with an encoder and a decoder that `diagnose` takes.
    data : array, tensor, DataFrame, Dataset or DataLoader
        Observations, scaled as in training; needed for a model.
    latents : "auto" or sequence of int or (c, h, w), default="auto"
        Which latents of a model become the latents of the run; the others stay as in a typical row. "auto": all of at
        most 64 flat ones, else the 32 that say most.
    factors : array or table, optional
        The factors of these observations, one row each, for scores. Labels of a Dataset are taken where it has some.
    out : path, optional
        The run folder; runs/NAME-OF-THE-MODEL when not given.
    likelihood, s2, beta
        As in `diagnose`.

    Examples
    --------
    >>> import tempfile
    >>> from torch import nn
    >>> x = torch.randn(300, 2) @ torch.randn(2, 4)
    >>> run = as_run((nn.Linear(4, 2), nn.Linear(2, 4)), x, out=tempfile.mkdtemp() + "/run")
    >>> run.encode(x).shape, run.config.adapted
    (torch.Size([300, 2]), 'pair')
    """
    if isinstance(model, (Run, str, Path)):
        whole_run(as_run, latents=latents, factors=factors, out=out, likelihood=likelihood, s2=s2, beta=beta)
        run = model if isinstance(model, Run) else load_run(model)
        return with_data(run, data)
    adapter = adapter_for(model)
    if adapter is None:
        raise BadInput(
            f"{type(model).__name__} is a decoder alone, or not a model; give a model with encode and decode, an "
            "(encoder, decoder) pair or a run"
        )
    if data is None:
        raise BadInput(f"{type(model).__name__} needs observations: data=, some of the data that it was trained on")
    if is_torch_data(data):
        data, labels = read_torch_data(data)
        factors = labels if factors is None else factors
    whole = as_asked(adapter.adapt(model, data), likelihood, s2)
    adapted = part_for_run(whole, latents)
    name = adapted.kind if isinstance(model, (tuple, list)) else type(model).__name__
    folder = free_path(Path("runs") / name) if out is None else Path(out)
    check_free(folder)
    k, K = adapted.latent_shape[0], int(np.prod(whole.latent_shape))
    p = as_likelihood(likelihood_of(adapted, likelihood, s2))
    weight = beta_of(adapted, beta)
    point = adapted.variances is None and adapted.covariances is None
    unknown = weight is None and adapted.has_beta and not point
    source = "" if unknown else "given"
    if unknown:
        weight, source = beta_of_part(whole, adapted, latents, MOST_LATENTS, p, _POINTS)
    points = _POINTS if unknown else 2 * MOST_LATENTS  # enough to refuse what it refuses
    found = diagnose_adapted(adapted, "all", likelihood=p, beta=weight, points=points, samples=0)
    weight, source = found.beta, source or found.beta_source
    name = name if k == K else f"{name}, {k} of {K} latents"
    return _write_adapted_run(folder, name, adapted, data, factors, p, weight or 1.0, source)


def part_for_run(model: AdaptedModel, latents: Latents) -> AdaptedModel:
    """The latents that a report or the explorer lays out; what they have no place for is refused."""
    if model.context is not None:
        raise BadInput(
            f"a {model.kind} model encodes more than the rows that a report shows; `diagnose`, `align` and `traverse` "
            "take it as it is; for the rest give a pair of functions of rows and codes: (encoder, decoder)"
        )
    part = flat_part(model, latents, MOST_LATENTS)
    if part.latent_shape[0] > MOST_LATENTS:
        raise BadInput(
            f"latents= names {part.latent_shape[0]} latents; reports and the explorer lay out at most {MOST_LATENTS}"
        )
    check_usable(part)
    if part.data is None:
        raise BadInput("the decoder returns another number of values than x has, so the two cannot be shown together")
    return part


def _write_adapted_run(
    folder: Path,
    name: str,
    adapted: AdaptedModel,
    x: Any,
    factors: Any,
    p: Likelihood,
    beta: float,
    source: str,
) -> Run:
    """The folder: configuration, rows, and the numbers that a training would have left."""
    posterior = "full" if adapted.covariances is not None else "point" if adapted.variances is None else "diagonal"
    objective = {"full": "beta-vae-sigma", "point": "ae", "diagonal": "beta-vae"}[posterior]
    kind = OBJECTIVES[objective]
    hyper = {"beta": beta} if posterior != "point" else {}
    names = {known: key for key, known in LIKELIHOODS.items() if known is not NegativeBinomial}
    if type(p) not in names:
        raise BadInput(f"likelihood {type(p).__name__} is not one of {', '.join(names.values())}; `diagnose` takes it")
    likelihood = names[type(p)]  # type: ignore[index]
    s2 = float(p.log_s2.exp()) if isinstance(p, Gaussian) else Architecture.s2
    K = adapted.latent_shape[0]
    architecture = Architecture("own", latents=K, likelihood=likelihood, s2=s2, posterior=posterior)  # type: ignore[arg-type]
    rows = _stored_rows(x)
    layout = "chw" if np.ndim(rows) == 4 else None
    assumed = "bernoulli" if likelihood == "bernoulli" else "gaussian"
    dataset = UserData(rows, factor_table=factors, layout=layout, assume=assumed)
    shape = tuple(dataset.shape)
    decode, encode = AdaptedDecoder(adapted, shape), AdaptedEncoder(adapted, tuple(np.shape(x))[1:])
    stored = stored_data(dataset, folder)
    config = RunConfig(
        stored.pop("data"), objective, {}, (Member(0, hyper, kind(**hyper).kl_weight()),), architecture,
        Training(steps=1, batch=min(64, len(dataset)), holdout=0.0, how="side-by-side", workers=1, device="cpu",
                 precision="float32"),
        groups=((0,),), networks=NetworkSource("", name), adapted=name, **stored,
    )  # fmt: skip
    start_folder(folder, config)
    run = Run(folder, config, networks=lambda: (encode, decode))
    job = Job(config, kind, (0,), 0, folder, networks=run.networks)
    state = start(job, kind(**hyper), shape)
    state.note = "; ".join(
        [f"not trained here: {name}", *adapted.notes]
        + ["beta is an estimate from the Sigma law"] * (source == "estimated")
    )
    save_checkpoint(job.checkpoint, *checkpoint_state(job, state))
    every = torch.arange(len(dataset), device="cpu")
    feed = Feed(dataset, every, [0], config.training.batch)
    forward = Forward(job, kind(**hyper), state, len(dataset))
    finish(job, state, HeldOut(forward, feed, every, _ROWS)(state), Results(folder))
    return run


def _stored_rows(x: Any) -> Any:
    """The observations as a run stores them: a table, images of 1 or 3 channels, else vectors."""
    if hasattr(x, "columns"):
        return x
    array = np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x)
    array = array.astype(np.float32) if array.dtype == np.float64 else array
    picture = array.ndim in (2, 3) or (array.ndim == 4 and array.shape[1] in CHANNELS)
    return array if picture else array.reshape(len(array), -1)


class AdaptedEncoder(nn.Module):
    """The encoder of an adapted model as one of ours: its posterior's parameters in one tensor."""

    def __init__(self, adapted: AdaptedModel, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.answer = (adapted, shape)  # in a tuple: the model's weights are not weights of this module

    def forward(self, x: Tensor) -> Tensor:  # (B, ...) -> (B, outputs)
        adapted, shape = self.answer
        parameter = floating_parameter(adapted.module)
        rows = x.reshape(len(x), *shape)
        q = adapted.encode(rows if parameter is None else rows.to(parameter))
        return posterior_outputs(q).to(x)


class AdaptedDecoder(nn.Module):
    """The decoder of an adapted model as one of ours."""

    def __init__(self, adapted: AdaptedModel, shape: tuple[int, ...]) -> None:
        super().__init__()
        decode = on_device(adapted) if adapted.differentiable else affine(adapted)
        self.answer = (decode, shape)

    def forward(self, z: Tensor) -> Tensor:  # (B, K) -> (B, *shape)
        decode, shape = self.answer
        return decode(z).to(z).reshape(len(z), *shape)
