"""One progress bar for everything that takes longer than two seconds. It writes to stderr, so `--json` stays clean."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

stderr = Console(stderr=True, markup=False, highlight=False)


@contextmanager
def bar(description: str, total: float, show: bool | None = None) -> Iterator[Callable[..., None]]:
    """A bar with an ETA; yields `advance(n=1, note="")`. Shown on a terminal only, unless `show` says otherwise.

    >>> with bar("counting", 3, show=False) as advance:
    ...     for _ in range(3):
    ...         advance()
    """
    visible = sys.stderr.isatty() if show is None else show
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=stderr, disable=not visible, transient=True) as progress:
        task = progress.add_task(description, total=total, note="")

        def advance(n: float = 1, note: str | None = None) -> None:
            progress.advance(task, n)
            if note is not None:
                progress.update(task, note=note)

        yield advance
