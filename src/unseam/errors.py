"""Errors that teach: they name the argument, its value, the limit and the remedy.

`BadInput` is the one error a user can cause: the command line prints it as one line and exits with 2. `Failed` is the
machine's: one line, the way on, exit code 1. Anything else is a bug and keeps its traceback.
"""

import errno
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from inspect import get_annotations, signature
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

_P = ParamSpec("_P")
_T = TypeVar("_T")
ENVIRONMENT = (OSError, sqlite3.Error, MemoryError)  # what the machine does to us
PATH_ERRORS = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError)


class BadInput(ValueError):
    """The input cannot be used as it is; the message says what is wrong and what to do.

    A `ValueError`. The command line prints its message in one line and exits with code 2.

    Examples
    --------
    >>> import unseam
    >>> try:
    ...     unseam.load_data("sprties")
    ... except unseam.BadInput as error:
    ...     print(str(error)[:33])
    data='sprties' is not a data set,
    """


class MissingPackage(BadInput, ImportError):
    """An optional package is not installed; the message has the command that installs it.

    >>> print(MissingPackage("unseam.fit", "torch", "train"))
    unseam.fit needs torch; run: pip install 'unseam[train]'
    """

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}; run: pip install 'unseam[{extra}]'")
        self.package = package


class Failed(RuntimeError):
    """The machine stood in the way (a process was killed, a disk is full); the message says how to continue."""


DAMAGED_TABLE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)


_CONTROLS = {n: None for n in (*range(32), *range(127, 160)) if chr(n) not in "\n\t"}


def printable(text: str) -> str:
    """The text without characters that steer a terminal: names of columns and words of servers come from others.

    >>> printable("a\\x1b]52;c;aGk=\\x07b")
    'a]52;c;aGk=b'
    """
    return text.translate(_CONTROLS)


def is_damage(error: BaseException) -> bool:
    """Whether SQLite complains of what a file holds, not of a lock, a full disk or a folder that cannot be written.

    >>> try:
    ...     sqlite3.connect(":memory:").execute("select * from nothing")
    ... except sqlite3.Error as error:
    ...     is_damage(error)
    True
    """
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error):
        return False
    return type(error) is sqlite3.DatabaseError if code is None else code & 0xFF in DAMAGED_TABLE


def error_text(error: BaseException) -> str:
    """One line for what the machine did, with what to do about it.

    >>> error_text(MemoryError())
    'out of memory; use smaller data, a smaller batch or fewer --workers'
    >>> error_text(OSError(28, "No space left on device", "runs/a"))
    'runs/a: No space left on device; free some space and try again'
    """
    if isinstance(error, MemoryError):
        return "out of memory; use smaller data, a smaller batch or fewer --workers"
    if is_damage(error):
        return f"results.sqlite is damaged ({error}); delete it, then `unseam train --resume RUN` writes it again"
    if isinstance(error, sqlite3.Error):
        return f"results.sqlite: {error}; see that its folder can be written and no other program holds it"
    where, number = getattr(error, "filename", None), getattr(error, "errno", None)
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    remedy = "free some space" if number in (errno.ENOSPC, errno.EDQUOT) else "fix this"
    return " ".join(f"{f'{where}: ' if where else ''}{reason}; {remedy} and try again".split())


def unknown(what: str, name: object, known: Iterable[str], state: str = "is unknown") -> BadInput:
    """The error for a name that is not in a registry.

    >>> print(unknown("dataset", "sprite", ["sprites", "rooms"]))
    dataset='sprite' is unknown; did you mean 'sprites'? Known: rooms, sprites
    """
    names = sorted(known)
    close = get_close_matches(str(name), names, n=1, cutoff=0.6)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return BadInput(f"{what}={name!r} {state}{hint} Known: {', '.join(names)}")


def named_options(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """The same function; an option that it does not have is an error that says what was probably meant.

    >>> @named_options
    ... def find(data, *, network=True): ...
    >>> find([], networks=False)
    Traceback (most recent call last):
    unseam.errors.BadInput: find: option='networks' is unknown; did you mean 'network'? Known: network
    """
    known = [n for n, p in signature(function).parameters.items() if p.kind is p.KEYWORD_ONLY]

    @wraps(function)
    def call(*args: _P.args, **options: _P.kwargs) -> _T:
        for name in options:
            if name not in signature(function).parameters:
                raise unknown(f"{function.__name__}: option", name, known)
        return function(*args, **options)

    return call


def lookup(registry: Mapping[str, _T], name: str, what: str) -> _T:
    """`registry[name]`, or an error that says what was probably meant.

    >>> lookup({"mig": 1}, "mig", "metric")
    1
    """
    if name not in registry:
        raise unknown(what, name, registry)
    return registry[name]


def literal_choices(kind: type, field: str) -> tuple[str, ...]:
    """The words that a dataclass allows in a field: those of its Literal.

    >>> from unseam.axes import Factor
    >>> literal_choices(Factor, "kind")
    ('categorical', 'ordinal', 'cyclic', 'continuous')
    """
    hint = get_type_hints(kind)[field]
    return get_args(hint) if get_origin(hint) is Literal else ()


def refuse_annotations(cls: type, names: Iterable[str]) -> None:
    """Refuse a class that annotates one of these fixed names: in a dataclass that would make it a parameter.

    >>> class Mine:
    ...     likelihood: str = "gaussian"
    >>> refuse_annotations(Mine, ["likelihood"])
    Traceback (most recent call last):
    TypeError: Mine.likelihood has an annotation, which would make it a parameter; leave the annotation out
    """
    for name in names:
        annotation = str(get_annotations(cls).get(name, "ClassVar"))
        if "ClassVar" not in annotation and name in cls.__dict__:
            what = f"{cls.__name__}.{name} has an annotation, which would make it a parameter"
            raise TypeError(f"{what}; leave the annotation out")


def check_literals(thing: Any, argument_names: Mapping[str, str] | None = None) -> None:
    """Refuse a dataclass that holds a word its Literals do not know; `argument_names` is how users call a field.

    >>> from unseam.objectives import Optimiser
    >>> check_literals(Optimiser(name="sgd"), {"name": "optimiser"})
    """
    for f in fields(thing):
        known = literal_choices(type(thing), f.name)
        if known and getattr(thing, f.name) not in known:
            raise unknown((argument_names or {}).get(f.name, f.name), getattr(thing, f.name), known)
