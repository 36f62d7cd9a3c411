"""What is the same for every verb: `-q`, `-v`, `-` for standard input, and spellings of flags that have changed.

One flag, one meaning: --out is where the result goes; --scale how columns are scaled; --steps steps of an optimiser;
--columns the likelihoods of columns; --figures whether figures are drawn; --to a format; --rows which rows, --samples
how many; --network which kind of network; --workers processes, --threads threads.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import sys
import tempfile
from pathlib import Path

from unseam.errors import BadInput
from unseam.progress import log

# verb -> old spelling -> new one (None: it named the default); the old ones are understood until version 0.2
RENAMED: dict[str, dict[str, str | None]] = {
    "data pack": {"--rows": "--samples"},
    "find": {"--network": None},
    "match": {"--columns": "--transpose"},
    "report": {"--figures": "--save-figures"},
    "reproduce": {"--scale": "--size"},
    "score": {"--workers": "--threads"},
    "traverse": {"--steps": "--frames", "--to": "--to-row"},
}
_LEVELS = {"-q": logging.ERROR, "--quiet": logging.ERROR, "-v": logging.DEBUG, "--verbose": logging.DEBUG}
_FROM_STDIN = ("find", "score", "match")  # `train` reads its data again when it resumes, so it needs a file
_LARGEST = 1 << 32  # bytes of standard input
_BEGINNINGS = {b"\x93NUMPY": ".npy", b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x1f\x8b": ".csv.gz"}


def without_levels(args: list[str]) -> list[str]:
    """The arguments without -q and -v, which set what is logged: errors only, or everything.

    >>> without_levels(["find", "wine.csv", "--json"])
    ['find', 'wine.csv', '--json']
    """
    levels = [_LEVELS[word] for word in args if word in _LEVELS]
    log.setLevel(levels[-1] if levels else logging.INFO)
    return [word for word in args if word not in _LEVELS]


def current_spelling(args: list[str]) -> list[str]:
    """The arguments with flags as they are spelt now; an old spelling is understood, with a warning.

    >>> current_spelling(["score", "a.npy", "b.npy", "--threads=2"])
    ['score', 'a.npy', 'b.npy', '--threads=2']
    """
    verb = next((verb for verb in RENAMED if args[: len(verb.split())] == verb.split()), "")
    found = []
    for word in args:
        flag, equals, value = word.partition("=")
        old, now = flag.replace("_", "-"), RENAMED.get(verb, {})
        if old not in now:
            found.append(word)
        elif new := now[old]:
            log.warning(f"warning: {flag} of `unseam {verb}` is now called {new}; the old name goes in version 0.2")
            found.append(f"{new}{equals}{value}")
        else:
            log.warning(f"warning: {flag} of `unseam {verb}` is the default; version 0.2 will refuse it")
    return found


def with_stdin(args: list[str]) -> list[str]:
    """The arguments with `-` replaced by a file that holds standard input, for verbs that read files."""
    if "-" not in args[1:]:
        return args
    if args[0] not in _FROM_STDIN:
        raise BadInput(f"unseam {args[0]} cannot read standard input; write it to a file, and give its name")
    if args.count("-") > 1:
        raise BadInput("standard input can be read once; give `-` once")
    path = str(_stored_stdin())
    return [path if word == "-" else word for word in args]


def _stored_stdin() -> Path:
    """Standard input as a file, named by what it begins with: text is CSV."""
    folder = Path(tempfile.mkdtemp(prefix="unseam-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source, size = sys.stdin.buffer, 0
    first = source.read(8)
    kind = next((ending for start, ending in _BEGINNINGS.items() if first.startswith(start)), ".csv")
    with (path := folder / f"stdin{kind}").open("wb") as file:
        block = first
        while block:
            size += len(block)
            if size > _LARGEST:
                raise BadInput(f"standard input has more than {_LARGEST:,} bytes; write it to a file")
            file.write(block)
            block = source.read(1 << 20)
    if not size:
        raise BadInput("standard input is empty; pipe a table into it")
    return path
