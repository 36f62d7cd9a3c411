"""Other people's models: one small file for each kind, and one list of them. No file imports the package it adapts.

A new kind is a file with `matches(model) -> bool` and `adapt(model, x) -> AdaptedModel`, and a row of ADAPTERS. The
first that matches is used, so special kinds stand before general ones.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.models.adapters import diffusers, modules, own, pairs, pythae, scikit_learn, scvi_tools
from unseam.models.adapters.base import AdaptedModel as AdaptedModel
from unseam.models.adapters.base import read_encoder_output


class Adapter(NamedTuple):
    """How models of one kind are recognised and read."""

    kind: str
    matches: Callable[[Any], bool]
    adapt: Callable[[Any, Any], AdaptedModel]


ADAPTERS: tuple[Adapter, ...] = (
    Adapter("unseam", own.matches, own.adapt),
    Adapter("pythae", pythae.matches, pythae.adapt),
    Adapter("scvi-tools", scvi_tools.matches, scvi_tools.adapt),
    Adapter("diffusers", diffusers.matches, diffusers.adapt),
    Adapter("module", modules.matches, modules.adapt),
    Adapter("pair", pairs.matches, pairs.adapt),
    Adapter("scikit-learn", scikit_learn.matches, scikit_learn.adapt),
)


def adapter_for(model: Any) -> Adapter | None:
    """The adapter of a model; None for a plain decoder.

    >>> from torch import nn
    >>> adapter_for((nn.Linear(3, 2), nn.Linear(2, 3))).kind, adapter_for(nn.Linear(2, 3))
    ('pair', None)
    """
    return next((adapter for adapter in ADAPTERS if adapter.matches(model)), None)


def codes_of(model: Any, x: Any) -> Array:  # (N, K)
    """The codes of observations by a run of one member or any model that an adapter reads, flattened.

    >>> import torch
    >>> codes_of((lambda x: 2 * x, lambda z: z / 2), torch.ones(3, 2)).tolist()
    [[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]
    """
    if x is None:
        raise BadInput(f"{type(model).__name__} needs observations: give data=, the rows that are to be encoded")
    if hasattr(model, "members"):  # a run
        return np.asarray(model.encode(x))
    adapter = adapter_for(model)
    if adapter is None:
        raise BadInput(f"{type(model).__name__} is not a model with an encoder and a decoder; give codes (N, K)")
    return adapter.adapt(model, x).codes.flatten(1).double().numpy()


@torch.no_grad()
def meant_as_codes(adapter: Adapter, model: Any, x: Any) -> bool:
    """Whether x is codes: only the decoder takes it. What encoder and decoder both take is refused."""
    if adapter.kind not in ("unseam", "module") or not isinstance(x, (Tensor, np.ndarray)) or x.ndim != 2:
        return isinstance(x, torch.distributions.Distribution)
    two = torch.as_tensor(x)[:2].float()
    encode, decode = modules.module_parts(model)  # type: ignore[misc]
    width = _code_width(encode, two)
    if width is not None and width != x.shape[1]:
        return False
    as_codes = _takes(decode, two)
    if width is not None and as_codes:
        raise BadInput(
            f"x {tuple(x.shape)} fits both the encoder and the decoder: say which it is, data= (observations) or codes="
        )
    return as_codes


def _code_width(encode: Callable[..., Any], x: Tensor) -> int | None:
    """How many latents the encoder gives to this input; None where it does not take it."""
    try:
        return int(read_encoder_output(encode(x)).mean.flatten(1).shape[1])
    except Exception:  # which other reasons it has to fail is seen later
        return None


def _takes(decode: Callable[..., Any], z: Tensor) -> bool:
    """Whether a decoder accepts this input."""
    try:
        decode(z)
    except Exception:  # a decoder is any Python, and "no" is all that is asked here
        return False
    return True
