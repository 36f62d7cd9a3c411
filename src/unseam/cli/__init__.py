"""The command line: `unseam VERB ...`. Each verb is one small file here that parses, calls one function and prints.

A verb's module holds `Command`, a dataclass (or a union of them, for `data list | show | fetch`) that tyro turns
into flags, with `run() -> None`. Bad input prints one line and exits with 2, the machine's failures (a full disk, a
killed process) with 1 and the way on, Ctrl-C with 130; a bug keeps its traceback.
"""

import os
import re
import sys
from contextlib import suppress
from importlib import import_module
from itertools import pairwise

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
        from unseam.cli.vocabulary import current_spelling, with_stdin, without_levels

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


def _tell(what: object, code: int) -> int:
    """One line on stderr, however many the error has."""
    print(f"unseam: {printable(' '.join(str(what).split()))}", file=sys.stderr)
    return code


def _close_stdout() -> None:
    """Discard buffered output, so that Python does not fail on it again at exit."""
    with suppress(OSError, ValueError):  # a test's stdout has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
