"""JSON -> a dataclass, every value checked against its field's type: what a damaged disk wrote is refused."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from unseam.errors import BadInput, unknown

_PLAIN = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "null"}


def as_type(kind: Any, value: Any, what: str) -> Any:
    """The value as this type, or one line that says what it is instead.

    >>> as_type(tuple[int, ...], [64, 32], "encoder"), as_type(float | None, 1, "beta")
    ((64, 32), 1)
    >>> as_type(int, "many", "steps")
    Traceback (most recent call last):
    unseam.errors.BadInput: steps='many' must be a whole number
    """
    origin, args = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _plain(kind, value, what)
    if is_dataclass(kind):
        return _dataclass(kind, value, what)
    if origin is Literal:
        if value not in args:
            raise unknown(what, value, map(str, args))
        return value
    if origin in (Union, types.UnionType):
        return _union(args, value, what)
    if origin is tuple:
        _must(isinstance(value, (list, tuple)), value, what, "a list")
        return tuple(as_type(args[0], item, f"{what}[{i}]") for i, item in enumerate(value))
    if origin is Mapping:
        _must(isinstance(value, dict), value, what, "an object")
        return {str(key): as_type(args[1], item, f"{what}.{key}") for key, item in value.items()}
    return value


def _must(right: bool, value: Any, what: str, kind: str) -> None:
    if not right:
        raise BadInput(f"{what}={_short(value)} must be {kind}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _plain(kind: type, value: Any, what: str) -> Any:
    truth = isinstance(value, bool)
    right = truth if kind is bool else isinstance(value, (int, float) if kind is float else kind) and not truth
    _must(right and not (isinstance(value, int) and value.bit_length() > 63), value, what, _PLAIN[kind])
    return value


def _union(kinds: tuple[Any, ...], value: Any, what: str) -> Any:
    for kind in kinds:
        try:
            return as_type(kind, value, what)
        except BadInput as error:
            reason = error
    raise reason


def _dataclass(kind: Any, value: Any, what: str) -> Any:
    _must(isinstance(value, dict), value, what, "an object")
    hints, known = get_type_hints(kind), {f.name: f for f in fields(kind)}
    for name in value:
        if name not in known:
            raise unknown(f"{what}: field", name, known)
    for name, f in known.items():
        if name not in value and f.default is MISSING and f.default_factory is MISSING:
            raise BadInput(f"{what} has no {name!r}")
    return kind(**{name: as_type(hints[name], item, f"{what}.{name}") for name, item in value.items()})
