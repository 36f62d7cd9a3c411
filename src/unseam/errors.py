"""Errors that teach: they name the argument, its value, the limit and the remedy.

`BadInput` is the one error a user can cause. The command line prints it as one line and exits with 2.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")


class BadInput(ValueError):
    """The user's input cannot be used as it is; the message says which, why and what to do."""


class Diverged(RuntimeError):
    """A computation left the finite numbers; the message says where."""


def unknown(what: str, name: object, known: Iterable[str]) -> BadInput:
    """The error for a name that is not in a registry.

    >>> print(unknown("dataset", "sprite", ["sprites", "rooms"]))
    dataset='sprite' is unknown; did you mean 'sprites'? Known: rooms, sprites
    """
    names = sorted(known)
    close = get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return BadInput(f"{what}={name!r} is unknown{hint} Known: {', '.join(names)}")


def lookup(registry: Mapping[str, T], name: str, what: str) -> T:
    """`registry[name]`, or an error that says what was probably meant.

    >>> lookup({"mig": 1}, "mig", "metric")
    1
    """
    if name not in registry:
        raise unknown(what, name, registry)
    return registry[name]
