"""scvi-tools: `model.module.inference` and `.generative`, observations in an AnnData.

Library size, batch and covariates are inputs of the decoder that belong to the cell: they are carried along as
`context`, so each cell's Jacobian is taken with its own. theta is the logarithm of the expected counts.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from unseam.errors import BadInput
from unseam.models.adapters.base import (
    FAILURES,
    AdaptedModel,
    EncoderOutput,
    check_code_rows,
    check_mode,
    check_precision,
    check_twice,
    one_line,
)
from unseam.models.likelihood import Gaussian, Likelihood, NegativeBinomial, Poisson

_LEAST = 1e-8  # expected count: smaller ones have this logarithm


def matches(model: Any) -> bool:
    module = getattr(model, "module", None)
    return isinstance(module, nn.Module) and all(hasattr(module, name) for name in ("inference", "generative"))


@torch.no_grad()
def adapt(model: Any, x: Any) -> AdaptedModel:
    module = model.module
    check_mode(module, "model.module")
    check_precision(module, "model.module")
    means: list[Tensor] = []
    variances, contexts, data = [], [], []
    layout: list[tuple[str, int]] = []
    for tensors in batches(model, x):
        inference = inferred(module, tensors)
        q = inference["qz"]
        check_code_rows(q.loc, len(tensors["X"]))
        if not means:
            check_twice(lambda cells: inferred(module, cells)["qz"].loc, tensors)
        inputs = module._get_generative_input(tensors, inference)
        own = {name: value for name, value in inputs.items() if name != "z" and isinstance(value, Tensor)}
        layout = [(name, value.shape[-1]) for name, value in own.items()]
        means.append(q.loc)
        variances.append(q.scale.square())
        contexts.append(torch.cat([value.float() for value in own.values()], -1))
        data.append(tensors["X"].float())
    codes, context = torch.cat(means), torch.cat(contexts)
    kinds = {name: value.dtype for name, value in own.items()}
    K = codes.shape[1]

    def generate(points: Tensor) -> Any:
        z, rest = points[:, :K], points[:, K:]
        pieces = rest.split([width for _, width in layout], -1)
        arguments = {name: piece.to(kinds[name]) for (name, _), piece in zip(layout, pieces, strict=True)}
        return module.generative(z=z, **arguments)["px"]

    def decode(points: Tensor) -> Tensor:  # (B, K + c) -> (B, genes)
        mean = expected(generate(points))
        return mean if gaussian else mean.clamp(min=_LEAST).log()

    first = generate(torch.cat([codes, context], 1)[:256])
    gaussian = type(first).__name__ == "Normal"
    likelihood, notes = _likelihood_of(first)
    return AdaptedModel(
        "scvi-tools", decode, refuse_array, codes, torch.cat(variances), likelihood=likelihood, beta=last_weight(model),
        context=context, data=torch.cat(data), module=module, notes=notes,
    )  # fmt: skip


def inferred(module: Any, tensors: Any) -> Any:
    """What the model infers from a batch of cells."""
    try:
        return module.inference(**module._get_inference_input(tensors))
    except FAILURES as error:
        raise BadInput(f"inference fails on a batch of {len(tensors['X'])} cells ({one_line(error)})") from error


def refuse_array(x: Tensor) -> EncoderOutput:
    """Its encoder takes cells with their batch and library, not rows of counts."""
    raise BadInput("a scvi-tools model encodes an AnnData, not an array")


def last_weight(model: Any) -> float | None:
    """The weight that the KL had when training ended: scvi-tools warms it up, often for longer than it trains.

    None where its history does not record it; it is then estimated.
    """
    history = getattr(model, "history", None)
    try:
        return float(history["kl_weight"].iloc[-1].item()) or None  # type: ignore[index]
    except (TypeError, KeyError, IndexError, AttributeError, ValueError):
        return None


def batches(model: Any, x: Any) -> Iterator[Any]:
    try:
        adata = model._validate_anndata(x)
        return iter(model._make_data_loader(adata=adata, batch_size=256, shuffle=False))
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise BadInput(
            f"x is {type(x).__name__} and the scvi-tools model cannot read it ({str(error).splitlines()[0][:120]}); "
            "give an AnnData with the genes that it was trained on"
        ) from None


def expected(px: Any) -> Tensor:
    """The mean of the counts, before zero inflation."""
    for name in ("mu", "rate", "mean"):
        found = getattr(px, name, None)
        if isinstance(found, Tensor):
            return found
    raise BadInput(f"the model generates a {type(px).__name__}, whose mean is not known; give decoder and codes")


def _likelihood_of(px: Any) -> tuple[Likelihood, tuple[str, ...]]:
    """Our likelihood with the dispersion of each gene; a note says what it leaves out."""
    name = type(px).__name__
    if name == "Normal":
        return Gaussian(float(px.scale.square().mean())), ()
    if name == "Poisson":
        return Poisson(), ()
    likelihood = NegativeBinomial()
    theta = torch.as_tensor(px.theta)  # (genes,) or (cells, genes)
    dispersion = theta.reshape(-1, theta.shape[-1]).log().mean(0)
    likelihood.log_r = nn.Parameter(dispersion.detach().clone(), requires_grad=False)
    notes = []
    if "ZeroInflated" in name:
        notes.append("the zero inflation of the counts is left out of the geometry")
    if theta.ndim > 1 and float(theta.log().std(0).max()) > 1e-6:
        notes.append("the dispersion differs between cells; each gene has its geometric mean")
    return likelihood, tuple(notes)
