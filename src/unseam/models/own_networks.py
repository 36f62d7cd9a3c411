"""A user's own encoder and decoder in the place of ours: two torch modules, or a function that makes them.

The encoder maps (B, *shape) to what the posterior needs: (B, 2K) for means and log-variances of a diagonal one, or the
pair (mean, log-variance); the decoder maps (B, K) to the natural parameters (B, *shape), logits for pixels in [0, 1].
They are stored as their weights. The modules come from the user again, or from a function that can be imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.parameter import UninitializedParameter

from unseam.errors import BadInput
from unseam.models.architecture import NetworkSource
from unseam.models.posterior import Posterior

NetworkPair = tuple[nn.Module, nn.Module]
MakeNetworks = Callable[[], NetworkPair]
Networks = Sequence[nn.Module] | MakeNetworks
_FAR = 10.0  # codes N(0, 10^2) at which a decoder of logits leaves [0, 1]
_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, AttributeError)  # what a wrong call raises


def maker(networks: Networks) -> MakeNetworks:
    """A function that makes the two networks; copies of modules that were given as they are.

    >>> encoder, decoder = maker((nn.Linear(3, 4), nn.Linear(2, 3)))()
    >>> decoder
    Linear(in_features=2, out_features=3, bias=True)
    """
    if isinstance(networks, (tuple, list)):
        pair = _checked(networks)
        return lambda: deepcopy(pair)
    if isinstance(networks, nn.Module) or not callable(networks):
        raise BadInput(f"networks is {described(networks)}; {_WANTED}")

    def make() -> NetworkPair:
        return _checked(networks())

    return make


_WANTED = "give (encoder, decoder), two torch modules, or a function without arguments that returns them"


def _checked(pair: Any) -> NetworkPair:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(part, nn.Module) for part in pair):
        raise BadInput(f"networks gives {described(pair)}; {_WANTED}")
    encoder, decoder = pair
    whole = nn.ModuleList([encoder, decoder])
    named = list(whole.named_parameters(remove_duplicate=False))
    if any(isinstance(p, UninitializedParameter) for _, p in named):
        raise BadInput("networks: a lazy layer has no weights yet; call the networks once on some data first")
    if len({id(p) for _, p in named}) < len(named):
        raise BadInput("networks: two layers share one parameter, which is not supported; give each its own")
    return encoder, decoder


def source_of(networks: Networks) -> NetworkSource:
    """What a run's configuration keeps of them.

    >>> source_of((nn.Linear(3, 4), nn.Linear(2, 3)))
    NetworkSource(function='', kinds='Linear and Linear')
    """
    encoder, decoder = maker(networks)()
    kinds = f"{type(encoder).__name__} and {type(decoder).__name__}"
    module, name = (getattr(networks, key, "") for key in ("__module__", "__qualname__"))
    importable = module and name and module != "__main__" and "<" not in name  # no lambda, no function of a function
    return NetworkSource(f"{module}:{name}" if importable else "", kinds)


def import_networks(source: NetworkSource) -> MakeNetworks:
    """The function that a configuration names; one line with the remedy where there is none."""
    remedy = (
        f"pass them, as to fit: networks=(encoder, decoder) of kind {source.kinds}, or the function that makes them"
    )
    where = "to load_run(folder, networks=...) or resume(folder, networks=...)"
    if not source.function:
        raise BadInput(f"this run has networks of your own, which cannot be imported; {remedy}, {where}")
    module, _, name = source.function.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise BadInput(
            f"this run's own networks are made by {source.function}, which cannot be imported ({error}); {remedy}, "
            f"{where}"
        ) from None
    return maker(found)


def described(out: Any) -> str:
    """What it is, in two words."""
    if isinstance(out, Tensor):
        return f"a tensor of {out.dtype}"
    if isinstance(out, Distribution):
        return f"a distribution ({type(out).__name__})"
    if isinstance(out, (tuple, list)):
        return f"a {type(out).__name__} of {len(out)}"
    return type(out).__name__


class OwnEncoder(nn.Module):
    """The user's encoder; a pair (mean, log-variance) becomes one tensor (B, 2K), a mean alone where that suffices."""

    def __init__(self, network: nn.Module, outputs: int, latents: int) -> None:
        super().__init__()
        self.network, self.outputs, self.latents = network, outputs, latents

    def forward(self, x: Tensor) -> Tensor:  # (B, *shape) -> (B, outputs)
        return encoder_output(self.network(x), self.outputs == self.latents)


class OwnDecoder(nn.Module):
    """The user's decoder; its output takes the data's shape."""

    def __init__(self, network: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.network, self.shape = network, shape

    def forward(self, z: Tensor) -> Tensor:  # (B, K) -> (B, *shape)
        out: Tensor = self.network(z)
        return out.reshape(z.shape[0], *self.shape)


def encoder_output(out: Any, mean_only: bool = False) -> Tensor:  # -> (B, outputs)
    """One tensor of what an encoder returns."""
    if isinstance(out, (tuple, list)) and len(out) == 2 and all(isinstance(part, Tensor) for part in out):
        out = out[0] if mean_only else torch.cat([part.flatten(1) for part in out], 1)
    if not isinstance(out, Tensor):
        raise BadInput(
            f"networks: the encoder returns {described(out)}; it must return one tensor (B, outputs), or the pair "
            "(mean, log-variance)"
        )
    return out.flatten(1)


def wrapped(pair: NetworkPair, outputs: int, latents: int, shape: tuple[int, ...]) -> NetworkPair:
    """The two networks as the model calls them; what does not learn (requires_grad=False) becomes a buffer."""
    for network in pair:
        for module in network.modules():
            for name, parameter in list(module.named_parameters(recurse=False)):
                if not parameter.requires_grad:
                    del module._parameters[name]
                    module.register_buffer(name, parameter.detach())
    return OwnEncoder(pair[0], outputs, latents), OwnDecoder(pair[1], shape)


def check_networks(
    make: MakeNetworks, family: type[Posterior], x: Tensor, bernoulli: bool, wanted: int | None = None
) -> int:
    """Refuse networks that do not fit the data or the posterior, or that are more than functions of their input;
    returns the number of latents K. x: some observations (B, *shape)."""
    encoder, decoder = make()
    with torch.no_grad():
        for network in (encoder, decoder):
            network.train()
        out = encoder_output(_called("encoder", encoder, x), mean_only=not family.has_prior)
        K = next((k for k in range(1, out.shape[1] + 1) if family.outputs(k) == out.shape[1]), 0)
        if len(out) != len(x):
            raise BadInput(
                f"networks: the encoder turns {len(x)} observations into {len(out)} rows; keep the batch axis"
            )
        if not K:
            raise BadInput(
                f"networks: the encoder returns {out.shape[1]} numbers for each observation; a "
                f"{family.__name__.lower()} posterior takes {family.outputs(2)} for 2 latents and {family.outputs(3)} "
                "for 3"
            )
        if wanted is not None and wanted != K:
            raise BadInput(f"latents={wanted}, but the encoder of networks has {K} latents; leave latents out")
        z = _FAR * torch.randn(len(x), K, generator=torch.Generator().manual_seed(0), device="cpu")
        theta = _called("decoder", decoder, z)
        shape = tuple(x.shape[1:])
        if not isinstance(theta, Tensor):
            raise BadInput(f"networks: the decoder returns {described(theta)}; it must return one tensor (B, *{shape})")
        if len(theta) != len(z) or theta[0].numel() != math.prod(shape):
            raise BadInput(
                f"networks: the decoder turns codes {tuple(z.shape)} into {tuple(theta.shape)}; the data needs "
                f"{(len(z), *shape)}"
            )
        if bernoulli and bool(((theta >= 0) & (theta <= 1)).all()):
            raise BadInput(
                "networks: the decoder returns numbers in [0, 1], perhaps by a last Sigmoid; with the Bernoulli "
                "likelihood it must return logits: leave the Sigmoid out, or train with likelihood='gaussian'"
            )
        for what, network, inputs in (("encoder", encoder, x), ("decoder", decoder, z)):
            _check_function(what, network, inputs)
    return K


def _called(what: str, network: nn.Module, inputs: Tensor) -> Any:
    try:
        return network(inputs)
    except _ERRORS as error:
        reason = str(error).strip().split("\n")[0][:160] or type(error).__name__
        raise BadInput(f"networks: the {what} fails on an input of shape {tuple(inputs.shape)} ({reason})") from error


def _check_function(what: str, network: nn.Module, inputs: Tensor) -> None:
    """The output of a row must be a function of this row and the weights alone."""

    def answer(rows: Tensor) -> Tensor:
        out = network(rows)
        return encoder_output(out) if what == "encoder" else out.flatten(1)

    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    first, again = answer(inputs), answer(inputs)
    changed = [name for name, buffer in network.named_buffers() if not torch.equal(buffer, buffers[name])]
    remedy = "GroupNorm, LayerNorm or no normalisation"
    if changed:
        raise BadInput(
            f"networks: the {what} changes its buffer {changed[0]!r} while it trains (batch normalisation?), which a "
            f"cohort cannot share or resume; use {remedy}"
        )
    if not _close(first, again):
        raise BadInput(
            f"networks: the {what} gives two answers to one input in training mode (dropout?); noise comes from the "
            "posterior alone, so leave it out"
        )
    if not _close(first[:1], answer(inputs[:1])):
        raise BadInput(f"networks: the {what} mixes the rows of a batch (batch normalisation?); use {remedy}")
    network.eval()
    if not _close(first, answer(inputs)):
        raise BadInput(f"networks: the {what} computes something else in evaluation mode than in training mode")


def _close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-3, atol=1e-4 * float(b.abs().max()), equal_nan=True)
