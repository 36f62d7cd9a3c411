"""What the verbs share: parsing, the one JSON document on stdout, lists on the command line."""

import json
import math
import re
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console

from unseam.cli.options import split_options
from unseam.errors import BadInput

stdout = Console(markup=False, highlight=False)  # what is printed may be a path, and paths may hold brackets
LISTS = ("--encoder", "--decoder")  # flags that take several whole numbers
PYTHON = (  # what Python says of a value, and what it means
    (r"invalid literal for int\(\) with base 10: '(.*)'", "is no whole number"),
    (r"could not convert string to float: '(.*)'", "is no number"),
    (r"Could not find valid parse for arguments: \['(.*)'\]", "cannot be used; see --help"),
)
MANY = 100_000  # numbers in a list on the command line


def parse(command: Any, args: list[str], prog: str) -> Any:
    """Flags -> an instance of the verb's dataclass.

    `--data.NAME VALUE` flags go to its field `options`; those named by its `option_names()` to `hyperparameters`.
    """
    rest, options = split_options(args, "data")
    names = command.option_names() if hasattr(command, "option_names") else ()
    rest, hyper = split_options(rest, names=names)
    told = StringIO()
    try:
        with redirect_stderr(told):
            parsed, strange = tyro.cli(command, args=as_written(rest), prog=prog, return_unknown_args=True)
    except SystemExit as error:
        if not error.code:
            raise
        known = flags_of(command)  # a flag that is not may have been taken for the value of something else
        strange = [w for w in rest if w.startswith("--") and w.partition("=")[0].replace("_", "-") not in known]
        if not strange or our_own(error):
            raise our_own(error) or BadInput(plainly(one_line(told.getvalue()))) from None
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
    if hasattr(parsed, "given"):
        parsed.given.extend(word.partition("=")[0] for word in args if word.startswith("--"))
    return parsed


def our_own(error: BaseException | None) -> BadInput | None:
    """The error of a dataclass of ours that tyro turned into a page of its own."""
    while error is not None and not isinstance(error, BadInput):
        error = error.__context__
    return error


def one_line(page: str) -> str:
    """What tyro says on a page drawn with lines, as one line: the words between its title and the help text."""
    rows = ["".join(c for c in row if not 0x2500 <= ord(c) < 0x2600).strip(" |+-") for row in page.splitlines()[1:]]
    end = next((i for i, row in enumerate(rows) if row.startswith(("Argument helptext", "For full helptext"))), None)
    return " ".join(row for row in rows[:end] if row) or "the arguments cannot be used; see --help"


def plainly(line: str) -> str:
    """Python's words for a value that cannot be read, in ours.

    >>> plainly("Error parsing --steps: invalid literal for int() with base 10: '1e4x'")
    "--steps='1e4x' is no whole number"
    >>> plainly("Error parsing --encoder: Could not find valid parse for arguments: ['64,x']")
    "--encoder='64,x' cannot be used; see --help"
    """
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
    kinds = getattr(command, "__args__", None) or (command,)
    return [flag for kind in kinds for a in tyro.extras.get_parser(kind)._actions for flag in a.option_strings]


def meant(command: Any, word: str, names: Iterable[str]) -> str:
    """The flag that a misspelt one was probably meant to be: one of the verb's, or of the objectives'."""
    flags = [*flags_of(command), *(f"--{name}".replace("_", "-") for name in names)]
    close = get_close_matches(word.partition("=")[0], flags, n=1, cutoff=0.75) if word.startswith("-") else []
    return f"; did you mean {close[0]}?" if close else ""


def plain(value: Any) -> Any:
    """Anything we return -> what JSON knows. NaN and infinities become null: JSON has no word for them."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray) or hasattr(value, "detach"):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def emit(document: Any) -> None:
    """Print exactly one JSON document on stdout."""
    json.dump(plain(document), sys.stdout, indent=2)
    sys.stdout.write("\n")


def numbers(text: str, what: str, kind: type[Any] = float) -> list[Any]:
    """A list of numbers as people write it: `4`, `1,2,4,8`, and `0..9` for whole ranges; whole ones with kind=int.

    >>> numbers("1,2,4", "--beta"), numbers("0..3", "--seeds", int)
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
        if end - start >= MANY:
            raise BadInput(f"{what}={text!r} are {end - start + 1:,} numbers; at most {MANY:,} can be asked for")
        out += map(kind, range(start, end + 1)) if dots else alone
    if not out:
        raise BadInput(f"{what}={text!r} is empty; write 4 or 1,2,4,8 or 0..9")
    return out
