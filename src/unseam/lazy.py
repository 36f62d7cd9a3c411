"""Names of a package that are imported when first used, so that the core works where torch is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from unseam.errors import MissingPackage


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562) whose names live in these modules.

    Parameters
    ----------
    package
        Its name, for the message about a name that it does not have.
    modules
        The module in which each public name is defined.

    Returns
    -------
    callable
        name -> object. Where torch is missing it raises `MissingPackage`, with the command that installs it.

    >>> lazy_names("unseam", {"BadInput": "unseam.errors"})("BadInput").__name__
    'BadInput'
    """

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(modules[name]), name)
        except ImportError as error:
            if needs_torch(error):
                raise MissingPackage(f"{package}.{name}", "torch", "train") from None
            raise
        sys.modules[package].__dict__.setdefault(name, value)  # the next use does not come here
        return value

    return __getattr__


def named_object(place: str) -> Any:
    """The object that `module:name` means.

    >>> named_object("math:inf")
    inf
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def needs_torch(error: ImportError) -> bool:
    """Whether an import failed because torch is not installed."""
    package = error.package if isinstance(error, MissingPackage) else error.name
    return (package or "").partition(".")[0] == "torch"


def require_torch(what: str) -> None:
    """Raise `MissingPackage` where torch is not installed; `what` is what needs it."""
    if not torch_is_installed():
        raise MissingPackage(what, "torch", "train")


def torch_is_installed() -> bool:
    """Whether torch can be imported (it is, by this call)."""
    try:
        import_module("torch")
    except ModuleNotFoundError as error:
        if needs_torch(error):
            return False
        raise
    return True
