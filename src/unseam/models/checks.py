"""Choices are written once, in the type of a field; here they are checked and read."""

from typing import Any, Literal, get_args, get_origin, get_type_hints

from unseam.errors import unknown


def choices(kind: type, name: str) -> tuple[Any, ...]:
    """What a field of type Literal may be.

    >>> from unseam.objectives import Optimiser
    >>> choices(Optimiser, "name")
    ('adam', 'adagrad', 'sgd')
    """
    hint = get_type_hints(kind)[name]
    return get_args(hint) if get_origin(hint) is Literal else ()


def check_choices(configuration: Any, **called: str) -> None:
    """Refuse a value that its field's Literal does not list; `called` gives a field another name in the message."""
    for name in configuration.__dataclass_fields__:
        known, value = choices(type(configuration), name), getattr(configuration, name)
        if known and value not in known:
            raise unknown(called.get(name, name), value, known)
