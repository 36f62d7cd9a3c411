"""How many files of src a verb runs through: one line per verb, then the files with `--files`.

    python tests/walks.py [--files] [VERB ...]      train, find, diagnose; about half a minute

A file counts when a function defined in it was called (`sys.setprofile`); importing it is not enough. Threads and
this process are counted, worker processes are not: the cohort is small enough to be trained in this one.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SRC = Path(__file__).parents[1] / "src"
VERBS = ("train", "find", "diagnose")


@contextlib.contextmanager
def files_run() -> Iterator[set[str]]:
    """The files of src whose functions are called inside the block; once each."""
    seen: set[CodeType] = set()
    files: set[str] = set()

    def called(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in seen:
            seen.add(code)
            if code.co_filename.startswith(str(SRC)) and code.co_filename.endswith(".py"):
                files.add(str(Path(code.co_filename).relative_to(SRC)))

    threading.setprofile(called)
    sys.setprofile(called)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def walk(verb: str, folder: Path) -> set[str]:
    """Run the verb twice in this process: once so that everything is imported, once counted."""
    import numpy as np

    from unseam.cli import main

    source = np.random.default_rng(0).laplace(size=(400, 3)) @ np.random.default_rng(1).normal(size=(3, 6))
    np.savetxt(folder / "t.csv", source, delimiter=",", header="a,b,c,d,e,f", comments="")
    network = [
        "--network",
        "mlp",
        "--encoder",
        "16",
        "--decoder",
        "16",
        "--steps",
        "20",
        "--seeds",
        "0,1",
        "--workers",
        "1",
    ]
    for time in ("once", "again"):
        run, found = folder / f"{verb}-run-{time}", folder / f"found-{time}"
        train = ["train", "sprites", "--data.size", "16", *network, "--out", str(run), "--json"]
        line = {
            "train": train,
            "find": ["find", str(folder / "t.csv"), "--no-network", "--out", str(found), "--json"],
            "diagnose": ["diagnose", str(run), "--json"],
        }[verb]
        if verb == "diagnose":
            quietly(main, train)
        with files_run() as files:
            quietly(main, line)
    return files


def quietly(main: Any, line: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert not main(line), line


if __name__ == "__main__":
    asked = [word for word in sys.argv[1:] if not word.startswith("-")] or list(VERBS)
    with tempfile.TemporaryDirectory() as place:
        for verb in asked:
            files = sorted(walk(verb, Path(place)))
            print(f"{verb}: {len(files)} files")
            if "--files" in sys.argv:
                print("\n".join(f"  {name}" for name in files))
