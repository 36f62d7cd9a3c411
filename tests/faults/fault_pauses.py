"""Pauses in a study: workers are stopped (SIGSTOP), lose their leases to others and wake; the end is the same bytes.

`python tests/faults/fault_pauses.py FOLDER PAUSES [--counts FILE] [--seconds S]` prints one JSON document; with a file
of counts it continues where it was stopped. Each study has two to four workers, forked from one warm process, that
differ in what must not matter: the clock on the wall (a day behind or ahead), the space of process numbers (as two
containers with one host name), the name of the host. A lease is silent after a fraction of a second here, so that a
pause is mostly longer than that. Now and then a worker is killed instead, and the last one is woken after the study
has ended.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch
from fault_study import TINY, content, ended, leftovers

from unseam.study import engine, lease
from unseam.study.grid import load_grid
from unseam.study.pieces import places

LIMIT = 300  # seconds for one study
engine.LOOK = 0.02


def worker(folder: Path, number: int, draw: random.Random, takeovers: Path) -> int:
    """A process that serves the study; every piece that it takes from another is a line of `takeovers`."""
    offset, own_space, own_host = draw.choice((0, -86_400, 86_400)), draw.random() < 0.3, draw.random() < 0.3
    pid = os.fork()
    if pid:
        return pid
    code = 2
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        clock, holder, claim = time.time, lease._holder, lease.claim
        time.time = lambda: clock() + offset
        other = {"space": f"pid:[{number}]"} if own_space else {}
        other |= {"host": f"host-{number}"} if own_host else {}
        lease._holder = lambda: {**holder(), **other}

        def counted(piece: Path) -> lease.Lease | None:
            before = lease.newest(piece)
            document = {} if before is None else lease._document(lease._content(before))
            found = claim(piece)
            if found is not None and before is not None and not document.get("released"):
                with takeovers.open("a") as file:
                    file.write(f"{piece.name}\n")
            return found

        engine.advance.__globals__["claim"] = counted
        engine.work_on_study(str(folder), report=lambda *problem: _note(folder, number, problem))
        code = 0
    except BaseException as error:
        _note(folder, number, (type(error).__name__, str(error)))
    finally:
        os._exit(code)


def _note(folder: Path, number: int, problem: tuple[str, str]) -> None:
    with (folder.parent / "problems.txt").open("a") as file:
        file.write(f"worker {number} of {folder.name}: {': '.join(problem)}\n")


def one_study(folder: Path, truth: dict[str, bytes], draw: random.Random) -> Counter[str]:
    """A study that is disturbed until it is done; what happened, with `defect: ...` for what should not."""
    counts: Counter[str] = Counter()
    engine.start_study(folder, load_grid(TINY))
    takeovers, todo = folder / "takeovers.txt", places(folder, load_grid(TINY))
    lease.SILENCE, lease.BEAT = draw.choice((0.15, 0.3, 0.6)), 0.05
    workers = {number: worker(folder, number, draw, takeovers) for number in range(draw.randint(2, 4))}
    asleep: dict[int, float] = {}  # worker -> when it wakes
    began, born = time.monotonic(), len(workers)

    def alive() -> list[int]:
        for number, pid in list(workers.items()):
            if ended(pid) is not None:
                del workers[number]
                asleep.pop(number, None)
        return [number for number in workers if number not in asleep]

    def wake(all_: bool = False) -> None:
        for number, when in list(asleep.items()):
            if (all_ or time.monotonic() > when) and number in workers:
                os.kill(workers[number], signal.SIGCONT)
                asleep.pop(number)

    while not all(place.done for place in todo) and time.monotonic() - began < LIMIT:
        time.sleep(draw.uniform(0.0, 0.1))
        awake = alive()
        wake()
        if not workers or (not awake and draw.random() < 0.3):
            workers[born] = worker(folder, born, draw, takeovers)  # somebody else comes
            born += 1
        elif awake and draw.random() < 0.5:
            number = draw.choice(awake)
            with suppress(ProcessLookupError):
                if draw.random() < 0.1:
                    os.kill(workers[number], signal.SIGKILL)
                    counts["kills"] += 1
                else:
                    os.kill(workers[number], signal.SIGSTOP)
                    asleep[number] = time.monotonic() + draw.expovariate(1.0)
                    counts["pauses"] += 1
    counts["woken after the end"] += len(asleep)
    wake(all_=True)
    end = time.monotonic() + 60
    while alive() and time.monotonic() < end:
        wake(all_=True)
        time.sleep(0.02)
    for pid in workers.values():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        counts["defect: a worker did not end"] += 1
    counts["takeovers"] += len(takeovers.read_text().splitlines()) if takeovers.exists() else 0
    counts["studies"] += 1
    if not all(place.done for place in todo):
        counts["defect: not done in time"] += 1
    elif content(folder) != truth:
        counts["defect: other bytes"] += 1
    for place in todo:
        lease.remove_leases(place.folder)  # as a driver does at its end
    if leftovers(folder) or [p for p in folder.rglob(".*") if p.is_file()]:
        counts["defect: leftovers"] += 1
    return counts


def main(place: Path, pauses: int, counts_file: Path | None = None, seconds: float = 1e9) -> dict:
    torch.set_num_threads(1)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    known = json.loads(counts_file.read_text()) if counts_file and counts_file.exists() else {}
    counts, began = Counter(known.get("counts", {})), time.monotonic()
    spent = known.get("seconds", 0)
    engine.start_study(place / "truth", load_grid(TINY))
    engine.work_on_study(str(place / "truth"))  # in this process, so that the forks inherit what it imports
    truth = content(place / "truth")
    while min(counts["pauses"], counts["takeovers"]) < pauses and time.monotonic() - began < seconds:
        folder = place / f"study-{counts['studies']}"
        now = one_study(folder, truth, random.Random(counts["studies"]))
        counts += now
        problems = place / "problems.txt"
        out = {"counts": dict(counts), "seconds": spent + round(time.monotonic() - began)}
        out["problems"] = problems.read_text().splitlines()[-20:] if problems.exists() else known.get("problems", [])
        print(json.dumps(out["counts"]), file=sys.stderr, flush=True)
        if counts_file:
            counts_file.write_text(json.dumps(out, indent=1))
        if any(name.startswith("defect") for name in now):
            break  # its folder stays, to be looked at
        shutil.rmtree(folder)
    defects = [name for name in counts if name.startswith("defect")]
    return {"counts": dict(counts), "defects": defects, "seconds": spent + round(time.monotonic() - began)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pauses", type=int)
    parser.add_argument("--counts", type=Path, default=None)
    parser.add_argument("--seconds", type=float, default=1e9)
    asked = parser.parse_args()
    print(json.dumps(main(asked.folder, asked.pauses, asked.counts, asked.seconds)))
