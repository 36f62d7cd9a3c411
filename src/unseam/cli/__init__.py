"""The command line: `unseam VERB ...`. Each verb is one small file here that parses, calls one function and prints.

A verb's module holds `Command`, a dataclass (or a union of them, for `data list | show | fetch`) that tyro turns
into flags, with `run() -> None`. Bad input prints one line and exits with 2, the machine's failures (a full disk, a
killed process) with 1 and the way on, Ctrl-C with 130; a bug keeps its traceback.

One flag, one meaning: --out is where the result goes; --scale how columns are scaled; --steps steps of an optimiser;
--columns the likelihoods of columns; --figures whether figures are drawn; --to a format; --rows which rows, --samples
how many; --network which kind of network; --workers processes, --threads threads.
"""

import atexit
import logging
import os
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from unseam import __version__
from unseam.errors import (
    ENVIRONMENT,
    PATH_ERRORS,
    BadInput,
    Failed,
    MissingPackage,
    error_text,
    is_damage,
    printable,
    unknown,
)
from unseam.lazy import needs_torch

# verb -> (module in unseam.cli, what it does)
VERBS = {
    "demo": ("demo", "a table and a small cohort, in a minute: one page that shows what unseam does"),
    "find": ("find", "find the factors of a table or of images: what each moves, and how sure that is"),
    "train": ("train", "train a cohort: every seed with every hyperparameter"),
    "evaluate": ("evaluate", "score a trained run against the data's factors"),
    "score": ("score", "score codes against known factors; no model needed"),
    "diagnose": ("diagnose", "explain why a run separates the factors, or does not"),
    "align": ("align", "repair a run: turn its latent space to the axes that the decoder prefers"),
    "match": ("match", "compare seeds: do runs, codes or sparse autoencoders have the same directions?"),
    "perturb": ("perturb", "change a data set slightly, so that VAEs no longer find its factors"),
    "stress": ("stress", "measure how much the data may change before a run's axes turn"),
    "study": ("study", "train and score a grid of models: the published study, or one of an hour"),
    "data": ("data", "list, show and fetch data sets; pack runs to share them"),
    "objectives": ("objectives", "list the objectives, with formula and paper"),
    "report": ("report", "write one page about a run, or about a folder of runs"),
    "explore": ("explore", "move through a model's latent space in your browser"),
    "traverse": ("traverse", "draw what each latent does, as a picture or a GIF"),
    "export": ("export", "write a member's networks as ONNX, torch.export or safetensors"),
    "reproduce": ("reproduce", "reproduce published results, with their numbers beside ours"),
    "bench": ("bench", "measure speed and quality against references"),
    "completion": ("completion", "print a script that completes verbs and flags in your shell"),
}


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

ON_DATA = ("train", "find", "perturb")
ON_RUNS = ("evaluate", "diagnose", "align", "stress", "report", "explore", "traverse", "export")


def check_exists(verb: str, args: list[str]) -> None:
    """Say that a run folder or a file is missing before anything large is loaded."""
    if "--help" in args or "-h" in args:
        return
    first = args[0] if args and not args[0].startswith("-") else ""
    resumed = dict(pairwise(args)).get("--resume", "") if verb == "train" else ""
    run = first if verb in ON_RUNS else resumed
    run = re.sub(r"\.py:\w+$", ".py", run)  # FILE.py:NAME, a model of the user's own
    if run and not run.startswith(("http:", "https:", "hf:")) and not os.path.exists(run):
        raise BadInput(f"run={run!r} is not a run folder (there is nothing there); train one with `unseam train`")
    path = first if "/" in first or os.path.splitext(first)[1] else ""  # anything else may be a data set's name
    if verb in ON_DATA and path and "://" not in path and not os.path.exists(path):
        raise BadInput(f"data={path!r}: no such file or folder")


def usage() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:<{width}}  {about}" for verb, (_, about) in VERBS.items())
    head = f"usage: unseam VERB ...   (unseam {__version__})"
    every = (
        "every verb takes --json, -q (no notes, no progress) and -v; `-` is standard input for find, score and match"
    )
    return f"{head}\n\n{verbs}\n\n{every}\n`unseam VERB --help` shows flags and an example; -V the version."


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit code.

    >>> main(["--version"])
    unseam 0.1.0
    0
    """
    args = sys.argv[1:] if argv is None else argv
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may hold bytes that are not text
    if args[:1] == ["-V"]:
        args = ["--version", *args[1:]]
    if len(args) > 1 and args[0] == "help":
        args = [*args[1:], "--help"]
    try:
        _run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has left, as `head` does
        _close_stdout()
    except ImportError as error:
        if needs_torch(error):
            return _tell(MissingPackage(f"unseam {args[0]}", "torch", "train"), 2)
        if isinstance(error, BadInput):
            return _tell(error, 2)
        raise
    except BadInput as error:
        return _tell(error, 2)
    except KeyboardInterrupt as stop:
        return _tell(stop if str(stop) else "interrupted", 130)
    except Failed as error:
        return _tell(error, 1)
    except ENVIRONMENT as error:
        _close_stdout()
        return _tell(error_text(error), 2 if isinstance(error, PATH_ERRORS) or is_damage(error) else 1)
    except Exception as error:  # raised again, with what to do
        error.add_note("This is a bug in unseam: please report it with the command and this traceback.")
        raise
    return 0


def _run(args: list[str]) -> None:
    """Print the list of verbs or the version, or run a verb."""
    if args and args[0] in (*VERBS, "-q", "-v", "--quiet", "--verbose"):
        args = with_stdin(current_spelling(without_levels(args)))
    if not args or args[0] in ("-h", "--help", "help"):
        print(usage())
        return
    if args[0] in ("--version", "version"):
        print(f"unseam {__version__}")
        return
    if args[0] not in VERBS:
        raise unknown("verb", args[0], VERBS)
    check_exists(args[0], args[1:])
    from unseam.cli.common import parse

    module = import_module(f"unseam.cli.{VERBS[args[0]][0]}")
    try:
        command = parse(module.Command, args[1:], prog=f"unseam {args[0]}")
    except SystemExit:  # --help; what it printed goes out now, while a reader that left can be noticed
        sys.stdout.flush()
        raise
    command.run()


def without_levels(args: list[str]) -> list[str]:
    """The arguments without -q and -v, which set what is logged: errors only, or everything.

    >>> without_levels(["find", "wine.csv", "--json"])
    ['find', 'wine.csv', '--json']
    """
    from unseam.progress import log  # not above: `unseam --version` needs no progress bars

    levels = [_LEVELS[word] for word in args if word in _LEVELS]
    log.setLevel(levels[-1] if levels else logging.INFO)
    return [word for word in args if word not in _LEVELS]


def current_spelling(args: list[str]) -> list[str]:
    """The arguments with flags as they are spelt now; an old spelling is understood, with a warning.

    >>> current_spelling(["score", "a.npy", "b.npy", "--threads=2"])
    ['score', 'a.npy', 'b.npy', '--threads=2']
    """
    from unseam.progress import log

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


def _tell(what: object, code: int) -> int:
    """One line on stderr, however many the error has."""
    print(f"unseam: {printable(' '.join(str(what).split()))}", file=sys.stderr)
    return code


def _close_stdout() -> None:
    """Discard buffered output, so that Python does not fail on it again at exit."""
    with suppress(OSError, ValueError):  # a test's stdout has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
