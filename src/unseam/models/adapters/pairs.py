"""(encoder, decoder): two modules or functions."""

from typing import Any

from torch import nn

from unseam.models.adapters.base import AdaptedModel, check_mode, check_precision
from unseam.models.adapters.modules import adapt_functions


def matches(model: Any) -> bool:
    return isinstance(model, (tuple, list)) and len(model) == 2 and all(callable(part) for part in model)


def adapt(model: Any, x: Any) -> AdaptedModel:
    encode, decode = model
    modules = [part for part in map(owner, model) if part is not None]
    for part, what in ((owner(encode), "encoder"), (owner(decode), "decoder")):
        check_mode(part, what)
        check_precision(part, what)
    whole = nn.ModuleList(modules) if modules else None
    return adapt_functions("pair", encode, decode, x, whole)


def owner(function: Any) -> nn.Module | None:
    """The module itself, or the one that a bound method belongs to."""
    found = getattr(function, "__self__", function)
    return found if isinstance(found, nn.Module) else None
