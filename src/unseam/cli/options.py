"""Flags whose names depend on other flags: `--data.size 32` belongs to the data set that was named.

`split_options` takes them out of the arguments before tyro sees them; `typed` turns their words into the types of the
dataclass that they configure. A verb that takes them has a field `options: Options`, which `cli.common.parse` fills.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import tyro

from unseam.errors import BadInput, unknown

if TYPE_CHECKING:
    from unseam.data.base import Dataset

Options = Annotated[dict[str, str], tyro.conf.Suppress]
MaybeInt = Annotated[int | None, tyro.conf.arg(metavar="INT")]  # may be left out; tyro's own word is {None}|INT
MaybeFloat = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]
MaybeText = Annotated[str | None, tyro.conf.arg(metavar="STR")]
MaybePath = Annotated[Path | None, tyro.conf.arg(metavar="PATH")]
RunFolder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
OneRun = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN", help="The run folder.")]
OneMember = Annotated[int | None, tyro.conf.arg(metavar="INT", help="One member; all when not given.")]
Device = Annotated[str, tyro.conf.arg(help="auto (the fastest here), cpu, cuda, cuda:N or mps.")]
AsJson = Annotated[bool, tyro.conf.arg(help="Print one JSON document.")]
DataName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def split_options(args: Iterable[str], prefix: str = "", names: Iterable[str] = ()) -> tuple[list[str], dict[str, str]]:
    """Take `--prefix.NAME VALUE` out of the arguments (or `--NAME VALUE` for the given names, with no prefix).

    `--NAME=VALUE` works too; a flag with no value means true.

    >>> split_options(["sprites", "--data.size", "32", "--json", "--data.colour"], "data")
    (['sprites', '--json'], {'size': '32', 'colour': 'true'})
    >>> split_options(["sprites", "--beta", "1,4", "--seeds", "0..9"], names=["beta"])
    (['sprites', '--seeds', '0..9'], {'beta': '1,4'})
    """
    known = {f"--{name}".replace("_", "-") for name in names}
    rest: list[str] = []
    options: dict[str, str] = {}
    words = list(args)
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        dashed = flag.replace("_", "-")
        if not (dashed in known or (prefix and flag.startswith(f"--{prefix}."))):
            rest.append(word)
            continue
        name = flag.removeprefix(f"--{prefix}." if prefix else "--").replace("-", "_")
        if name in options:
            raise BadInput(f"{flag} is given twice; give it once")
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("--") else "true"
        options[name] = value
    return rest, options


def typed(
    kind: type, options: dict[str, str], what: str, flag: str, said: dict[str, str] | None = None
) -> dict[str, Any]:
    """Words -> values of the types of a dataclass' fields. `said` maps what users say to field names.

    >>> from unseam.data import DATASETS
    >>> typed(DATASETS["synth-linear"], {"size": "32", "centred": "yes"}, "synth-linear", "--data.")
    {'size': 32, 'centred': True}
    """
    hints = get_type_hints(kind)
    names = said or {field.name: field.name for field in dataclasses.fields(kind)}
    for name in options:
        if name not in names:
            raise unknown(f"{flag}{name}: {what} parameter", name, names)
    return {name: convert(value, hints[names[name]], f"{flag}{name}") for name, value in options.items()}


def named_data(name: str, options: dict[str, str]) -> Dataset:
    """The data set of the command line: DATA and its `--data.NAME VALUE` flags.

    >>> named_data("sprites", {"size": "16"}).shape
    (1, 16, 16)
    """
    from unseam.data import dataset_type, load_data, parameters  # not above: it needs torch, most verbs do not

    kind = dataset_type(name)
    said = {option: field.name for option, field in parameters(kind).items()}
    return load_data(name, **typed(kind, options, name, "--data.", said))


def convert(word: str, kind: Any, what: str) -> Any:
    """One word as a value of a type: int, float, bool, str, or a union of them with None.

    >>> convert("5e4", int, "--data.size"), convert("none", int | None, "--data.size")
    (50000, None)
    >>> convert("big", int, "--data.size")
    Traceback (most recent call last):
    unseam.errors.BadInput: --data.size='big' is no whole number
    """
    kinds = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if type(None) in kinds and word.lower() == "none":
        return None
    if bool in kinds:
        return _boolean(word, what)
    if int in kinds or float in kinds:
        return _number(word, int if int in kinds else float, what)
    return word


def _boolean(word: str, what: str) -> bool:
    if word.lower() not in WORDS:
        raise BadInput(f"{what}={word!r} is neither true nor false")
    return WORDS[word.lower()]


def _number(word: str, kind: type, what: str) -> float:
    if kind is int and word.lstrip("+-").isdecimal():
        return int(word)
    try:
        number = float(word)
    except ValueError:
        raise BadInput(f"{what}={word!r} is no {'whole number' if kind is int else 'number'}") from None
    if kind is int:
        if number != number or number % 1:
            raise BadInput(f"{what}={word!r} is no whole number")
        return int(number)
    return number
