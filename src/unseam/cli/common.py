"""What the verbs share: parsing, the one JSON document on stdout, lists on the command line."""

import json
import math
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

stdout = Console()


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
            parsed = tyro.cli(command, args=rest, prog=prog)
    except SystemExit as error:
        if error.code:
            raise BadInput(one_line(told.getvalue()) + meant(rest, names)) from None
        raise
    if options:
        if not hasattr(parsed, "options"):
            raise BadInput(f"{prog} takes no --data.* flags, got --data.{next(iter(options))}")
        parsed.options.update(options)
    if hyper:
        parsed.hyperparameters.update(hyper)
    return parsed


def one_line(box: str) -> str:
    """What tyro says in a box, as one line: the problem and what was probably meant."""
    lines = [line.strip("│╭╮╰╯─|+ \t") for line in box.splitlines()[1:]]
    text = [line for line in lines if line.strip("-") and not line.startswith(("For full helptext", "unseam "))]
    return "; ".join(text[:3]).replace(":;", ":") or "the arguments cannot be used; see --help"


def meant(args: list[str], names: Iterable[str]) -> str:
    """The objective's flag that a misspelt one was meant to be; tyro does not know those."""
    flags = [f"--{name}".replace("_", "-") for name in names]
    close = [match for arg in args if arg.startswith("--") for match in get_close_matches(arg, flags, n=1)]
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


def numbers(text: str, what: str) -> list[float]:
    """A list of numbers as people write it: `4`, `1,2,4,8`, and `0..9` for whole ranges.

    >>> numbers("1,2,4", "--beta"), numbers("0..3", "--seeds")
    ([1.0, 2.0, 4.0], [0.0, 1.0, 2.0, 3.0])
    """
    out: list[float] = []
    for part in str(text).split(","):
        try:
            if ".." in part:
                first, last = (int(end) for end in part.split(".."))
                out += [float(i) for i in range(first, last + 1)]
            else:
                out.append(float(part))
        except ValueError:
            raise BadInput(f"{what}={text!r}: {part!r} is not a number; write 4 or 1,2,4,8 or 0..9") from None
    if not out:
        raise BadInput(f"{what}={text!r} is empty; write 4 or 1,2,4,8 or 0..9")
    return out
