"""What the verbs share: parsing, the one JSON document on stdout, lists on the command line."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import tyro

from unseam.errors import BadInput, unknown
from unseam.progress import SafeConsole

if TYPE_CHECKING:
    from unseam.data.base import Dataset

stdout = SafeConsole(markup=False, highlight=False)  # what is printed may be a path, and paths may hold brackets
LISTS = ("--encoder", "--decoder")  # flags that take several whole numbers
PYTHON = (  # what Python says of a value, and what it means
    (r"invalid literal for int\(\) with base 10: '(.*)'", "is not an integer"),
    (r"could not convert string to float: '(.*)'", "is not a number"),
    (r"Could not find valid parse for arguments: \['(.*)'\]", "cannot be used; see --help"),
)
UNFINISHED_MARK = ".unfinished"  # in the folder of a result that is being written
_MANY = 100_000  # numbers in a list on the command line


def parse(command: Any, args: list[str], prog: str) -> Any:
    """Flags -> an instance of the verb's dataclass.

    `--data.NAME VALUE` flags go to its field `options`; those named by its `option_names()` to `hyperparameters`.
    """
    rest, options = split_options(args, "data")
    helping = "--help" in args or "-h" in args  # which needs none of the objectives' flags, and no torch
    names = command.option_names() if hasattr(command, "option_names") and not helping else ()
    rest, hyper = split_options(rest, names=names)
    stderr_text = StringIO()
    try:
        with redirect_stderr(stderr_text):
            parsed, strange = tyro.cli(command, args=as_written(rest), prog=prog, return_unknown_args=True)
    except SystemExit as error:
        if not error.code:
            raise
        known = flags_of(command)  # a flag that is not may have been taken for the value of something else
        strange = [w for w in rest if w.startswith("--") and w.partition("=")[0].replace("_", "-") not in known]
        if not strange or our_own(error):
            raise our_own(error) or BadInput(plainly(_one_line(stderr_text.getvalue()))) from None
    if strange:
        raise BadInput(f"{strange[0]!r} is not understood{meant(command, strange[0], names)}; see {prog} --help")
    if options:
        if not hasattr(parsed, "options"):
            name = next(iter(options))
            own = f"; did you mean --{name}?" if f"--{name}" in flags_of(command) else ""
            raise BadInput(f"{prog} takes no --data.* flags, got --data.{name}{own}")
        parsed.options.update(options)
    if hyper:
        parsed.hyperparameters.update(hyper)
    if hasattr(parsed, "typed_flags"):
        parsed.typed_flags.extend(word.partition("=")[0] for word in args if word.startswith("--"))
    return parsed


def our_own(error: BaseException | None) -> BadInput | None:
    """The error of a dataclass of ours that tyro turned into a page of its own."""
    while error is not None and not isinstance(error, BadInput):
        error = error.__context__
    return error


def _one_line(page: str) -> str:
    """What tyro says on a page drawn with lines, as one line: the words between its title and the help text."""
    rows = ["".join(c for c in row if not 0x2500 <= ord(c) < 0x2600).strip(" |+-") for row in page.splitlines()[1:]]
    end = next((i for i, row in enumerate(rows) if row.startswith(("Argument helptext", "For full helptext"))), None)
    return " ".join(row for row in rows[:end] if row) or "the arguments cannot be used; see --help"


def plainly(line: str) -> str:
    """Python's words for a value that cannot be read, in ours.

    >>> plainly("Error parsing --steps: invalid literal for int() with base 10: '1e4x'")
    "--steps='1e4x' is not an integer"
    >>> plainly("Error parsing --encoder: Could not find valid parse for arguments: ['64,x']")
    "--encoder='64,x' cannot be used; see --help"
    >>> plainly("Missing from unseam score: FACTORS True factors (N, F). (required)")
    'unseam score needs FACTORS: True factors (N, F). See unseam score --help'
    """
    if missing := re.match(r"Missing from (.+?): (\S+) (.*) \(required\)$", line):
        return f"{missing[1]} needs {missing[2]}: {missing[3]} See {missing[1]} --help"
    for pattern, words in PYTHON:
        if found := re.match(rf"Error parsing (--\S+): {pattern}", line):
            return f"{found[1]}={found[2]!r} {words}"
    return line


def as_written(args: list[str]) -> list[str]:
    """Numbers as people write them, for tyro: `--steps 1e4` and `--encoder 64,64`.

    >>> as_written(["--steps", "1e4", "--encoder", "64,32", "--lr", "1e-3"])
    ['--steps', '10000', '--encoder', '64', '32', '--lr', '1e-3']
    """
    out: list[str] = []
    for before, word in zip(["", *args], args, strict=False):
        if before.startswith("--") and re.fullmatch(r"[0-9.]+e[0-9]{1,2}", word) and float(word).is_integer():
            word = str(int(float(word)))
        out += word.split(",") if before in LISTS and re.fullmatch("[0-9]+(,[0-9]+)+", word) else [word]
    return out


def flags_of(command: Any) -> list[str]:
    """The flags of a verb, or of all its verbs where it has some."""
    return [flag for action in actions_of(command) for flag in action.option_strings]


def actions_of(command: Any) -> list[Any]:
    """What argparse knows of the arguments of a verb, or of all its verbs where it has some."""
    kinds = getattr(command, "__args__", None) or (command,)
    return [action for kind in kinds for action in tyro.extras.get_parser(kind)._actions]


def meant(command: Any, word: str, names: Iterable[str]) -> str:
    """The flag that a misspelt one was probably meant to be: one of the verb's, or of the objectives'."""
    flags = [*flags_of(command), *(f"--{name}".replace("_", "-") for name in names)]
    close = get_close_matches(word.partition("=")[0], flags, n=1, cutoff=0.75) if word.startswith("-") else []
    return f" (did you mean {close[0]}?)" if close else ""


def _plain(value: Any) -> Any:
    """Anything we return -> what JSON knows. NaN and infinities become null: JSON has no word for them."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray) or hasattr(value, "detach"):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """`out` for a new result: it must be new, empty, or left unfinished by a command that was killed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with new_folder(Path(place) / "out") as out:
    ...         _ = (out / "a.txt").write_text("done")
    ...     with new_folder(out):
    ...         pass
    Traceback (most recent call last):
    unseam.errors.BadInput: out='...out' exists already and is not an empty folder; choose another
    """
    mark, absent = out / UNFINISHED_MARK, [folder for folder in (out, *out.parents) if not folder.exists()]
    if not absent and (not out.is_dir() or any(out.iterdir())) and not mark.exists():
        raise BadInput(f"out={str(out)!r} exists already and is not an empty folder; choose another")
    out.mkdir(parents=True, exist_ok=True)
    mark.touch()
    try:
        yield out
    except BadInput:  # nothing was begun
        mark.unlink(missing_ok=True)
        for folder in absent:
            with suppress(OSError):  # something else is in it by now
                folder.rmdir()
        raise
    mark.unlink(missing_ok=True)


def emit(document: Any) -> None:
    """Print exactly one JSON document on stdout."""
    json.dump(_plain(document), sys.stdout, indent=2)
    sys.stdout.write("\n")


def parse_numbers(text: str, what: str, kind: type[Any] = float) -> list[Any]:
    """A list of numbers as people write it: `4`, `1,2,4,8`, and `0..9` for whole ranges; whole ones with kind=int.

    >>> parse_numbers("1,2,4", "--beta"), parse_numbers("0..3", "--seeds", int)
    ([1.0, 2.0, 4.0], [0, 1, 2, 3])
    """
    out: list[Any] = []
    for part in str(text).split(","):
        first, dots, last = part.partition("..")
        try:
            start, end = (int(first), int(last)) if dots else (0, 0)
            alone = [] if dots else [kind(part)]
        except ValueError:
            name = "whole number" if kind is int else "number"
            raise BadInput(f"{what}={text!r}: {part!r} is not a {name}; write 4 or 1,2,4,8 or 0..9") from None
        if end - start >= _MANY:
            raise BadInput(f"{what}={text!r} are {end - start + 1:,} numbers; at most {_MANY:,} can be asked for")
        out += map(kind, range(start, end + 1)) if dots else alone
    if not out:
        raise BadInput(f"{what}={text!r} is empty; write 4 or 1,2,4,8 or 0..9")
    return out


# Flags whose names depend on other flags: `--data.size 32` belongs to the data set that was named.
#
# `split_options` takes them out of the arguments before tyro sees them; `parse_options` turns their words into the
# types of the dataclass that they configure. A verb that takes them has a field `options: Options`, which
# `cli.common.parse` fills.


Options = Annotated[dict[str, str], tyro.conf.Suppress]
MaybeInt = Annotated[int | None, tyro.conf.arg(metavar="INT")]  # may be left out; tyro's own word is {None}|INT
MaybeFloat = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]
MaybeText = Annotated[str | None, tyro.conf.arg(metavar="STR")]
MaybePath = Annotated[Path | None, tyro.conf.arg(metavar="PATH")]
RunFolder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
OneRun = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN", help="The run folder.")]
RunOrModel = Annotated[
    tyro.conf.Positional[Path],
    tyro.conf.arg(
        metavar="RUN",
        help="The run folder; or FILE.py:NAME, a model of your own or a function that makes it, with --data.",
    ),
]
ModelLikelihood = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="bernoulli|gaussian",
        help="With FILE.py:NAME: what it was trained with, where the model does not know; bernoulli for cross entropy.",
    ),
]
ModelData = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="FILE",
        help="With FILE.py:NAME: observations, scaled as in training (an array, a table, a folder of images, a name).",
    ),
]
OneMember = Annotated[int | None, tyro.conf.arg(metavar="INT", help="One member; all when not given.")]
Device = Annotated[str, tyro.conf.arg(help="auto (the fastest here), cpu, cuda, cuda:N or mps.")]
AsJson = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help="Print one JSON document.")]
DataName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


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


def parse_options(
    kind: type, options: dict[str, str], what: str, flag: str, fields: dict[str, str] | None = None
) -> dict[str, Any]:
    """Words -> values of the types of a dataclass' fields. `fields` maps what users say to field names.

    >>> from unseam.data import DATASETS
    >>> parse_options(DATASETS["synth-linear"], {"size": "32", "centred": "yes"}, "synth-linear", "--data.")
    {'size': 32, 'centred': True}
    """
    hints = get_type_hints(kind)
    names = fields or {field.name: field.name for field in dataclasses.fields(kind)}
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
    fields = {option: field.name for option, field in parameters(kind).items()}
    return load_data(name, **parse_options(kind, options, name, "--data.", fields))


def reading_note(data: Dataset) -> str | None:
    """What was read of the user's own file; None for other data."""
    from unseam.data import UserData
    from unseam.data.base import layers

    inner = layers(data)[-1]
    return inner.reading_note if isinstance(inner, UserData) else None


def convert(word: str, kind: Any, what: str) -> Any:
    """One word as a value of a type: int, float, bool, str, or a union of them with None.

    >>> convert("5e4", int, "--data.size"), convert("none", int | None, "--data.size")
    (50000, None)
    >>> convert("big", int, "--data.size")
    Traceback (most recent call last):
    unseam.errors.BadInput: --data.size='big' is not an integer
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
    if word.lower() not in _WORDS:
        raise BadInput(f"{what}={word!r} is neither true nor false")
    return _WORDS[word.lower()]


def _number(word: str, kind: type, what: str) -> float:
    if kind is int and word.lstrip("+-").isdecimal():
        return int(word)
    try:
        number = float(word)
    except ValueError:
        raise BadInput(f"{what}={word!r} is not {'an integer' if kind is int else 'a number'}") from None
    if kind is int:
        if number != number or number % 1:
            raise BadInput(f"{what}={word!r} is not an integer")
        return int(number)
    return number
