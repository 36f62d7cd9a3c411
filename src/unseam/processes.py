"""Python processes that run one function of a module, without importing the user's script again.

`multiprocessing` imports `__main__` in every process it spawns, so a script that calls `fit` without an `if __name__`
guard would start again in each of them. A `Process` here is a fresh interpreter with the parent's import path. Both
sides exchange JSON lines over the process's stdin and stdout; what it writes to stderr is passed on, and the last
lines are remembered for the error message if it dies.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.spawn import get_executable
from queue import Empty, Queue
from typing import Any, TextIO

_LINES = 20  # of stderr that are remembered
BOOT = (
    "import json, sys; head = json.loads(sys.stdin.readline()); sys.path[:] = head['path']; "
    "from unseam.processes import run_here; run_here(head)"
)
Inbox = Queue[tuple["Process", Any]]


_THREADS = ("OMP_NUM_THREADS", "PJRT_NPROC")  # of torch and NumPy; of JAX


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes started here use one thread; they read it before they load their libraries."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def hidden_script() -> Iterator[None]:
    """For libraries that start processes by `multiprocessing` (Dask): these do not import the user's script again."""
    main = sys.modules["__main__"]
    before: dict[str, object] = {n: main.__dict__[n] for n in ("__file__", "__spec__") if n in main.__dict__}
    main.__dict__.pop("__file__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        main.__dict__.update(before)


class Process:
    """A single-threaded Python process that calls `function` ("module:name") with its `Line` and these arguments.

    The arguments and all messages must be JSON. Messages of the process arrive in `inbox` as (process, message) pairs;
    (process, None) says that there will be no more. The process ends when its parent does.
    """

    def __init__(self, function: str, *arguments: Any, inbox: Inbox | None = None) -> None:
        head = {"path": sys.path, "function": function, "arguments": arguments, "parent": os.getpid()}
        with one_thread():
            self.popen = subprocess.Popen(
                [get_executable() or sys.executable, "-c", BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="backslashreplace",
            )  # fmt: skip
        self.tail: deque[str] = deque(maxlen=_LINES)
        self.readers = [threading.Thread(target=self._pass_on, daemon=True)]
        self.readers += [threading.Thread(target=self._listen, args=(inbox,), daemon=True)]
        for thread in self.readers:
            thread.start()
        self.send(head)

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def exitcode(self) -> int | None:
        """None while it runs; minus the signal's number if a signal ended it."""
        return self.popen.poll()

    def send(self, message: Any) -> None:
        """Give it a message; one that has died does not hear it."""
        assert self.popen.stdin is not None
        with suppress(OSError, ValueError):
            self.popen.stdin.write(json.dumps(message) + "\n")
            self.popen.stdin.flush()

    def terminate(self) -> None:
        self.popen.terminate()

    def kill(self) -> None:
        self.popen.kill()

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended and all that it wrote has been read, at most `timeout` seconds."""
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(timeout)
            for thread in self.readers:
                thread.join(1.0)
            assert self.popen.stdin is not None
            with suppress(OSError):
                self.popen.stdin.close()

    def death(self) -> str:
        """Why it ended: its exit code or signal, and the last line that it wrote to stderr."""
        code = self.exitcode
        text = f"exit code {code}"
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in signal.valid_signals() else "a signal"
            text += f", {name}" + (": the system does this when memory runs out" if name == "SIGKILL" else "")
        last = next((line.strip() for line in reversed(self.tail) if line.strip()), "")
        return f"{text}; its last words: {last}" if last else text

    def _pass_on(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self.tail.append(line)
            with suppress(OSError, ValueError):
                sys.stderr.write(line)
                sys.stderr.flush()

    def _listen(self, inbox: Inbox | None) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            if inbox is not None:
                inbox.put((self, json.loads(line)))
        if inbox is not None:
            inbox.put((self, None))


def messages(inbox: Inbox, seconds: float) -> list[tuple[Process, Any]]:
    """The messages that have arrived, after at most this many seconds."""
    found: list[tuple[Process, Any]] = []
    with suppress(Empty):
        found.append(inbox.get(timeout=seconds))
        while True:
            found.append(inbox.get_nowait())
    return found


class Line:
    """The process's end of the line to its parent."""

    def __init__(self, out: TextIO, parent: int) -> None:
        self.out, self.parent = out, parent

    def send(self, *message: Any) -> None:
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def receive(self) -> Any:
        """The next message; EOFError when the parent has closed the line."""
        text = sys.stdin.readline()
        if not text:
            raise EOFError
        return json.loads(text)

    def check_parent(self) -> None:
        """End this process if its parent is gone."""
        if os.getppid() != self.parent:
            os._exit(1)


def run_here(head: dict[str, Any]) -> None:
    """What a new process does: stdout becomes the line (prints go to stderr), then the function is called."""
    line = Line(os.fdopen(os.dup(1), "w", encoding="utf-8"), head["parent"])
    os.dup2(2, 1)

    def watch() -> None:
        while True:
            line.check_parent()
            time.sleep(1.0)

    threading.Thread(target=watch, daemon=True).start()
    module, _, name = head["function"].partition(":")
    getattr(import_module(module), name)(line, *head["arguments"])
