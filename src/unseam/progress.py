"""One progress bar for everything that takes longer than two seconds: on a terminal, in a notebook, else a plain line
every ten seconds. Notes go to the logger `unseam`, which writes them to stderr, so `--json` stays clean.

logging.getLogger("unseam").setLevel(logging.ERROR)     # no notes and no bars
"""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment

from unseam.errors import printable


class SafeConsole(Console):
    """rich's console, which escapes control codes in what it prints."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


stderr = SafeConsole(stderr=True, markup=False, highlight=False)
REPORT_EVERY = 10.0  # seconds between plain lines
_QUICK = 2.0  # seconds: what is done sooner needs no bar in a notebook
_SURE = 0.005  # of the whole: before that, a guess of the time left is off by days
_Advance = Callable[..., None]


class _StderrHandler(logging.Handler):
    """A note as one plain line on the stderr of now (a notebook or a test may have put another in its place)."""

    def emit(self, record: logging.LogRecord) -> None:
        stderr.print(self.format(record), soft_wrap=True)


log = logging.getLogger("unseam")
log.addHandler(_StderrHandler())
log.setLevel(logging.INFO)
log.propagate = False  # else it is printed twice where the root logger has a handler

_STAGE: ContextVar[str] = ContextVar("stage", default="")


def text_table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of cells as lines, columns aligned by spaces: the first `left` of them to the left, the others to the right.

    >>> print(text_table([["metric", "value"], ["mig", "1.000"]]))
    metric  value
    mig     1.000
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([*map(str.ljust, row[:left], widths), *map(str.rjust, row[left:], widths[left:])] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in padded)


@contextmanager
def stage(name: str, announce: bool = False) -> Iterator[None]:
    """Name the part of a longer job: every bar inside is called so as well. `announce` says it on stderr at once.
    Parts of a part are named after it.

    >>> with stage("find, step 3 of 4, networks"):
    ...     _named("training 4 x beta-vae")
    'find, step 3 of 4, networks: training 4 x beta-vae'
    >>> with stage("find, step 3 of 4"), stage("network 1 of at most 3"):
    ...     _named("training 4 x beta-vae")
    'find, step 3 of 4, network 1 of at most 3: training 4 x beta-vae'
    """
    token = _STAGE.set(", ".join(part for part in (_STAGE.get(), name) if part))
    if announce:
        log.info(name)
    try:
        yield
    finally:
        _STAGE.reset(token)


def _named(description: str) -> str:
    return f"{_STAGE.get()}: {description}" if _STAGE.get() else description


@contextmanager
def bar(description: str, total: float, show: bool | None = None) -> Iterator[_Advance]:
    """A bar with an ETA on a terminal, else lines; yields `advance(n=1, note="")`. `show` False keeps it silent.

    `total` is 0 if it is unknown; then neither a share nor the remaining time is shown.

    >>> with bar("counting", 3, show=False) as advance:
    ...     for _ in range(3):
    ...         advance()
    """
    description = _named(description)
    if show is None and not log.isEnabledFor(logging.INFO):
        show = False
    if show is not False and (display := _notebook_display()) is not None:
        yield _notebook_bar(display, description, total)
        return
    if show is None and not sys.stderr.isatty():
        yield lines(description, total)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=stderr, disable=show is False, transient=True) as progress:
        task = progress.add_task(description, total=total or None, note="")

        def advance(n: float = 1, note: str | None = None) -> None:
            progress.advance(task, n)
            if note is not None:
                progress.update(task, note=note)

        yield advance


def _notebook_display() -> Callable[..., Any] | None:
    """What shows rich output where this runs in a Jupyter kernel; None elsewhere."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return import_module("IPython.display").display  # the kernel's own, no dependency


def _notebook_bar(display: Callable[..., Any], description: str, total: float) -> _Advance:
    """A bar in the cell's output, drawn again at most four times a second; it needs no widgets."""
    began, drawn, done, last = time.monotonic(), 0.0, 0.0, ""
    handle: Any = None

    def advance(n: float = 1, note: str | None = None) -> None:
        nonlocal drawn, done, last, handle
        done, last = done + n, last if note is None else note
        now = time.monotonic()
        whole = bool(total) and done >= total
        if now - began < _QUICK or (now - drawn < 0.25 and not whole):
            return
        drawn = now
        share = f' max="{total}" value="{min(done, total)}"' if total else ""
        text = escape(progress_line(description, done, total, now - began, last))
        page = {"text/html": f"<progress{share}></progress> {text}", "text/plain": text}
        handle = display(page, raw=True, display_id=True) if handle is None else handle.update(page, raw=True) or handle

    return advance


def lines(description: str, total: float) -> _Advance:
    """The same without a terminal, for a log file or a notebook: how far, how long still, and the note."""
    began, last_line, done, last = time.monotonic(), time.monotonic(), 0.0, ""

    def advance(n: float = 1, note: str | None = None) -> None:
        nonlocal last_line, done, last
        done, last = done + n, last if note is None else note
        now = time.monotonic()
        if now - last_line < REPORT_EVERY:
            return
        last_line = now
        print(progress_line(description, done, total, now - began, last), file=sys.stderr, flush=True)

    return advance


def progress_line(description: str, done: float, total: float, seconds: float, note: str = "") -> str:
    """
    >>> progress_line("training 2 x beta-vae", 500, 2000, 20.0, "loss 41.3")
    'training 2 x beta-vae: 500 of 2,000 (25%), 0:20 so far, 1:00 left, loss 41.3'
    >>> progress_line("study", 0.1, 972, 20.0)
    'study: 0 of 972 (0%), 0:20 so far'
    >>> progress_line("fetching a (MB)", 12, 0, 20.0)
    'fetching a (MB): 12, 0:20 so far'
    """
    if not total:
        return f"{description}: {done:,.0f}, {clock(seconds)} so far" + (f", {note}" if note else "")
    left = f", {clock(seconds * (total - done) / done)} left" if done > _SURE * total else ""
    return f"{description}: {done:,.0f} of {total:,.0f} ({done / total:.0%}), {clock(seconds)} so far{left}" + (
        f", {note}" if note else ""
    )


def clock(seconds: float) -> str:
    """
    >>> clock(75), clock(3723)
    ('1:15', '1:02:03')
    """
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"
