"""A pause before every file event of a study's worker, long enough for another worker to take the piece over.

`python tests/faults/fault_pause_points.py FOLDER [--first 0] [--cases 300] [--without guard]` prints one JSON document.
In each case worker A stops itself (SIGSTOP) before its k-th file event (Python's audit hook; a rename is such an event,
so A may stop after it was allowed to rename and before it does). Worker B sees its lease silent, takes the piece
over and stops at one of its own events, or ends. A is woken there, and stops again when it has tried to put its next
file into place; B goes on to its end, and then A. B must end well, and the piece must hold the bytes of an undisturbed
one, before and after A's end. Cases are numbered: A's event, the moment of B, heartbeats or none, clocks on the wall a
day ahead or behind, processes of one machine, of two containers with one host name (a real space of process numbers
each, where the kernel allows it) and of two hosts. In every third case A does not stop again: it sees that it lost,
tries once more, and takes the piece back from B, which sleeps.

`--without guard` (no check before a write) and `--without removal` (temporary files of the paused worker stay) show
that the campaign sees what these two are for: it must end with defects.
"""

import argparse
import ctypes
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fault_kills import EVENTS, WRITES, state
from fault_study import TINY

import unseam.atomic
import unseam.run.results
from unseam.study import lease, pieces
from unseam.study.grid import Grid, load_grid
from unseam.study.pieces import Place, places, start_study

LIMIT = 600  # seconds for one worker; a machine that others use may be slow
NEW_PIDS = 0x20000000  # CLONE_NEWPID of unshare(2)
MOMENTS = (2, 12, 30, "score", "rows", "end")  # of B, when A is woken: an event's number, a file, or its end
PLACES = ("machine", "containers", "hosts")
SHORT = {"": (111, 112, 209, 251), "guard": (112,), "removal": (209,)}  # without what: which cases


@dataclass(frozen=True)
class Case:
    """What happens in one case; all of it follows from its number and from how many events an undisturbed A has."""

    number: int
    events: int

    @property
    def stop_a(self) -> int:
        return 1 + self.number % self.events

    @property
    def stop_b(self) -> int | str:
        return MOMENTS[(self.stop_a + 2 * (self.number // self.events)) % len(MOMENTS)]

    @property
    def place(self) -> str:
        return PLACES[self.number // 2 % 3]

    @property
    def beats(self) -> bool:
        return self.number // 3 % 2 == 0

    @property
    def again(self) -> bool:
        return self.number % 3 == 0

    @property
    def offset(self) -> int:
        return (0, -86_400, 86_400)[self.number // 5 % 3]


class Worker:
    """A process that advances the piece until it is done; it stops itself before a file event, and tells by a file."""

    def __init__(self, name: str, place: Place, case: Case, stop: int | str, tries: bool, without: str) -> None:
        self.name, self.told = name, place.folder.parent.parent / f"{name}.json"
        self.told.unlink(missing_ok=True)
        self.gone = False
        self.first = os.fork()
        if self.first:
            self.pid = self.first
            if case.place == "containers":  # the worker is the first process's child's child
                self.pid = self._inner()
            return
        code = 3
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            if case.place == "containers":
                apart()
            self._serve(place, case, stop, tries, without)
            code = 0
        except BaseException as error:
            self._tell(f"{type(error).__name__}: {error}")
        finally:
            os._exit(code)

    def _inner(self) -> int:
        """The process number of the worker, two forks below the first."""
        pid, end = self.first, time.monotonic() + LIMIT
        depth = 0
        while depth < 2 and time.monotonic() < end:
            with suppress(OSError, IndexError):
                pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
                depth += 1
                continue
            if self.ended(wait=False):
                break
            time.sleep(0.002)
        return pid

    def _tell(self, words: str) -> None:
        self.told.write_text(json.dumps(words))

    def _serve(self, place: Place, case: Case, stop: int | str, tries: bool, without: str) -> None:
        lease.SILENCE, lease.BEAT = 0.15, 0.05 if case.beats else 3600.0
        clock, holder = time.time, lease._holder
        time.time = lambda: clock() + (case.offset if self.name == "b" else -case.offset)
        if case.place == "hosts":
            lease._holder = lambda: {**holder(), "host": f"host-{self.name}"}
        if without == "guard":
            unseam.atomic.check_guard = unseam.run.results.check_guard = lambda: None
        elif without == "removal":
            pieces.remove_temporaries = lambda *folders: None
        claim, takeovers = lease.claim, place.folder.parent.parent / "takeovers.txt"

        def counted(folder: Path) -> lease.Lease | None:
            before = lease.newest(folder)
            found = claim(folder)
            if found is not None and before is not None:
                with takeovers.open("a") as file:
                    file.write(f"{self.name}\n")
            return found

        pieces.claim = counted
        seen, stops = 0, 0

        def hook(event: str, args: tuple[Any, ...]) -> None:
            nonlocal seen, stops
            if not is_write(event, args, place.folder):
                return
            seen += 1
            if stops == 1 and self.name == "a" and not tries and event == "os.remove":  # its file is in place, or not
                stops = 2
                os.kill(os.getpid(), signal.SIGSTOP)
            if stops:
                return
            path = str(args[1] if event == "os.rename" else args[0])
            names = {"score": "scores/member-1", "rows": "rows.json"}
            if seen == stop or (event == "os.rename" and isinstance(stop, str) and names.get(stop, "\0") in path):
                stops = 1
                os.kill(os.getpid(), signal.SIGSTOP)

        sys.addaudithook(hook)
        end, word = time.monotonic() + LIMIT, "held"
        while word == "held" and time.monotonic() < end:
            word = pieces.advance(place)
            if word == "held" and not tries:
                break
            time.sleep(0.01)
        self._tell(f"{word} after {seen} events")

    def ended(self, wait: bool = True) -> bool:
        """Whether the process has ended; it is buried then."""
        end = time.monotonic() + LIMIT
        while not self.gone:
            self.gone = bool(os.waitpid(self.first, os.WNOHANG)[0])
            if not wait or time.monotonic() > end:
                break
            time.sleep(0.005)
        return self.gone

    def stopped(self) -> bool:
        """Wait until it has stopped itself (True) or has ended."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            with suppress(OSError, IndexError):
                if Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
                    return True
            if self.ended(wait=False):
                return False
            time.sleep(0.005)
        return False

    def wake(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.ended()

    def words(self) -> str:
        return json.loads(self.told.read_text()) if self.told.exists() else "ended without a word"


def is_write(event: str, args: tuple[Any, ...], folder: Path) -> bool:
    """Whether an audit event is about to change a file of the piece that is not a lease."""
    if event not in EVENTS or str(folder) not in str(args[0]) or "lease-" in str(args[0]):
        return False
    return event != "open" or bool(int(args[2] or 0) & WRITES)


def apart() -> None:
    """Go on in a space of process numbers of its own, below a first process that only waits (it cannot be stopped)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_PIDS):
        raise OSError(ctypes.get_errno(), "unshare")
    for _ in range(2):
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            os._exit(os.waitstatus_to_exitcode(status) % 256)


def may_unshare() -> bool:
    pid = os.fork()
    if not pid:
        os._exit(0 if ctypes.CDLL(None).unshare(NEW_PIDS) == 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def content(place: Place) -> dict[str, Any]:
    """What must be the same: the rows, the codes, every tensor, every row of the run's tables but times; a temporary
    file of a worker that sleeps is not a part of it."""
    out: dict[str, Any] = {name: (place.folder / name).read_bytes() for name in ("rows.json", "codes.npy")}
    return out | {name: value for name, value in state(place.folder / "run").items() if not name.startswith(".")}


def differing(place: Place, truth: dict[str, Any]) -> list[str]:
    """Names of what is not as it should be."""
    found = content(place)
    return [name for name in {**truth, **found} if found.get(name) != truth.get(name)][:2]


def by_steps_only(place: Path) -> Grid:
    """The tiny study with checkpoints at steps, none by time: events have the same numbers on every machine."""
    text = TINY.read_text().replace("checkpoint_seconds = 0.5", "checkpoint_seconds = 3600.0")
    (place / "tiny.toml").write_text(text)
    return load_grid(place / "tiny.toml")


def one(folder: Path, grid: Grid, case: Case, truth: dict[str, Any], without: str) -> Counter[str]:
    """One case; what happened, with `defect: ...` for what should not."""
    counts: Counter[str] = Counter()
    shutil.rmtree(folder, ignore_errors=True)
    start_study(folder, grid)
    place = places(folder, grid)[0]
    a = Worker("a", place, case, case.stop_a, case.again, without)
    if not a.stopped():
        counts["ended before the pause"] += 1
        return counts
    counts["pauses"] += 1
    b = Worker("b", place, case, case.stop_b, True, without)
    if b.stopped():
        counts["pauses"] += 1
        counts[f"woken while another {'scores' if isinstance(case.stop_b, str) else 'works'}"] += 1
    else:
        counts["woken after the end"] += 1
    a.wake()
    if a.stopped():
        counts["pauses"] += 1
    b.wake()
    if not b.ended():
        counts["defect: B did not end"] += 1
        b.kill()
    elif not a.gone and place.done and (other := differing(place, truth)):
        counts[f"defect: other bytes while A sleeps, in {other}"] += 1
    a.wake()
    if not a.ended():
        counts["defect: A did not end"] += 1
        a.kill()
    if (folder / "takeovers.txt").exists():  # not if A was stopped before it had a lease
        counts["takeovers"] += len((folder / "takeovers.txt").read_text().splitlines())
    if not b.words().startswith("done") or not a.words().startswith(("held", "done")):
        counts[f"defect: A: {a.words()[:200]}; B: {b.words()[:200]}"] += 1
    elif not place.done or (other := differing(place, truth)):
        counts[f"defect: other bytes, in {other if place.done else 'no rows.json'}"] += 1
    lease.remove_leases(place.folder)
    if [p for p in folder.rglob(".*") if p.is_file()]:
        counts["defect: leftovers"] += 1
    return counts


def main(place: Path, numbers: Iterable[int], without: str = "", seconds: float = 1e9) -> dict[str, Any]:
    torch.set_num_threads(1)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    grid = by_steps_only(place)
    start_study(place / "truth", grid)
    own, seen = places(place / "truth", grid)[0], 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        seen += is_write(event, args, own.folder)

    sys.addaudithook(hook)
    pieces.advance(own)  # in this process, so that the forks inherit what it imports
    events, truth = seen, content(own)  # content opens a database, which is one more
    counts, defects, began, done = Counter[str](), [], time.monotonic(), 0
    if not may_unshare():
        globals()["PLACES"] = ("machine", "hosts", "hosts")
    for number in numbers:
        if time.monotonic() - began > seconds:
            break
        case = Case(number, events)
        now = one(place / "study", grid, case, truth, without)
        counts += now
        counts[f"at {case.place}"] += 1
        defects += [f"case {number} (A at {case.stop_a}, B at {case.stop_b}, {case.place}): {name}"
                    for name in now if name.startswith("defect")]  # fmt: skip
        done += 1
        if number % 10 == 0:
            print(number, dict(counts), defects[-1:], file=sys.stderr, flush=True)
    shutil.rmtree(place)
    return {"done": done, "events": events, "counts": dict(counts), "defects": defects,
            "seconds": round(time.monotonic() - began)}  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--without", choices=("", "guard", "removal"), default="")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--short", action="store_true", help="for CI: some cases, and that each defence is needed")
    asked = parser.parse_args()
    if asked.short:
        found = {name or "all": main(asked.folder, numbers, name) for name, numbers in SHORT.items()}
        print(json.dumps(found))
    else:
        numbers = range(asked.first, asked.first + asked.cases)
        print(json.dumps(main(asked.folder, numbers, asked.without, asked.seconds)))
