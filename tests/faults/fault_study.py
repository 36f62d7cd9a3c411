"""Kills in a study: workers, drivers and schedulers die at random moments, and the end is the same bytes.

`python tests/faults/fault_study.py FOLDER KILLS [DASK_KILLS [QUEUE_KILLS]]` prints one JSON document. `here`: a driver
and its workers; now and then a second driver works at the same study. `dask`: distributed's LocalCluster in a process
of its own, whose death takes the scheduler with it. `queue`: dask-jobqueue's LocalCluster, workers started by a job
script. Everything is forked from one warm process, so that a life costs no imports. Kills come in units of the time
that an undisturbed study takes on this machine, so that a slow one also makes progress. Pauses: fault_pauses.py.
"""

import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import safe_open

from unseam.atomic import is_running
from unseam.errors import Failed
from unseam.study import engine
from unseam.study.grid import load_grid
from unseam.study.pieces import places

TINY = Path(__file__).parents[1] / "study" / "tiny.toml"
LIMIT = 1200  # seconds for one study, kills and all
engine.LOOK = 0.05


class Forked:
    """A worker that is forked from this warm process; what `engine.here` asks of `unseam.processes.Process`."""

    def __init__(self, function: str, folder: str, device: str | None, inbox: object = None) -> None:
        self.exit: int | None = None
        parent, self.pid = os.getpid(), os.fork()
        if not self.pid:
            code = 2
            try:
                engine.work_on_study(folder, parent, device, lambda *_: None)
                code = 0
            except BaseException as error:
                Path(f"{tempfile.gettempdir()}/fault-study-{os.getpid()}.txt").write_text(repr(error))
            finally:
                os._exit(code)

    @property
    def exitcode(self) -> int | None:
        if self.exit is None:
            self.exit = ended(self.pid)
        return self.exit

    def death(self) -> str:
        return f"exit code {self.exit}"

    def terminate(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self.exitcode is None:
            strike(self.pid)
            self.join(10)

    def join(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        while self.exitcode is None and time.monotonic() < end:
            time.sleep(0.01)


engine.Process = Forked  # type: ignore[misc, assignment]


def content(folder: Path) -> dict[str, bytes]:
    """What a study leaves that does not hold a time of day: rows, codes, and the weights of every checkpoint."""
    out = {}
    for place in places(folder, load_grid(TINY)):
        for name in ("rows.json", "codes.npy"):
            out[f"{place.piece.name}/{name}"] = (place.folder / name).read_bytes()
        with safe_open(place.folder / "run/checkpoints/group-000.safetensors", "pt") as file:
            for name in file.keys():  # noqa: SIM118
                out[f"{place.piece.name}/{name}"] = file.get_tensor(name).numpy().tobytes()
    return out


def leftovers(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("lease-*")]


def children(pid: int) -> list[int]:
    """Whatever thread started them."""
    with suppress(OSError):
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [int(word) for text in texts for word in text.split()]
    return []


def forked(act) -> int:
    """Run `act` in a fork of its own process group; its exit code is 0, 1 (Failed), 3 (stopped) or 2 (any error)."""
    pid = os.fork()
    if pid:
        return pid
    code = 2
    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        act()
        code = 0
    except Failed:
        code = 1
    except engine.Stopped:
        code = 3
    except BaseException as error:
        Path(f"{tempfile.gettempdir()}/fault-study-{os.getpid()}.txt").write_text(repr(error))
    finally:
        os._exit(code)


def ended(pid: int) -> int | None:
    """The exit code of a fork, -signal if it was killed; None while it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def strike(pid: int, whole: bool = False) -> bool:
    with suppress(ProcessLookupError):
        (os.killpg if whole else os.kill)(pid, signal.SIGKILL)
        return True
    return False


class Campaign:
    def __init__(self, place: Path) -> None:
        self.place, self.counts, self.defects = place, Counter(), []
        place.mkdir(parents=True, exist_ok=True)
        engine.start_study(place / "truth", load_grid(TINY))
        engine.work_on_study(str(place / "truth"))  # in this process, so that the forks inherit what it imports
        self.truth = content(place / "truth")
        began = time.monotonic()
        engine.study(TINY, place / "undisturbed", workers=2, show=False)
        self.life = time.monotonic() - began
        self.judge(place / "undisturbed", "undisturbed")

    def judge(self, folder: Path, where: str) -> None:
        self.counts[f"{where}: studies"] += 1
        print(self.kills(), dict(self.counts), file=sys.stderr, flush=True)
        if content(folder) != self.truth:
            self.defects.append(f"{folder} ended with other bytes")
        elif leftovers(folder):
            self.defects.append(f"{folder} has leftovers: {leftovers(folder)}")
        else:
            shutil.rmtree(folder)

    def here(self, kills: int, seed: int = 0) -> None:
        draw, wanted = random.Random(seed), self.kills() + kills
        while self.kills() < wanted and not self.defects:
            folder, began = self.place / f"here-{self.counts['here: studies']}", time.monotonic()
            while not self.one_life(folder, draw, wanted):
                if time.monotonic() - began > LIMIT:
                    self.defects.append(f"{folder} does not end")
                    return
            self.judge(folder, "here")

    def kills(self) -> int:
        return sum(count for what, count in self.counts.items() if what.startswith("killed"))

    def one_life(self, folder: Path, draw: random.Random, wanted: int) -> bool:
        """A driver (or two) until it ends or is killed, at most `wanted` in all; True when the study is done."""
        drivers = [
            forked(lambda: engine.study(TINY, folder, workers=2, show=False)) for _ in range(draw.choice((1, 1, 2)))
        ]
        self.counts["here: two drivers at once"] += len(drivers) > 1
        codes = dict.fromkeys(drivers)
        while any(code is None for code in codes.values()):
            end = time.monotonic() + draw.uniform(0.05, 0.7) * self.life
            while (time.monotonic() < end or self.kills() >= wanted) and any(code is None for code in codes.values()):
                for pid in [p for p, code in codes.items() if code is None]:
                    codes[pid] = ended(pid)
                time.sleep(0.01)
            self.kill_one([p for p, code in codes.items() if code is None], draw)
        for pid, code in codes.items():
            if code == 2:
                told = Path(f"{tempfile.gettempdir()}/fault-study-{pid}.txt")
                self.defects.append(told.read_text())
                told.unlink()
        return 0 in codes.values() or all(p.done for p in places(folder, load_grid(TINY)))

    def kill_one(self, drivers: list[int], draw: random.Random) -> None:
        if not drivers:
            return
        driver = draw.choice(drivers)
        workers = children(driver)
        if workers and draw.random() < 0.15:
            with suppress(ProcessLookupError):
                os.killpg(driver, signal.SIGINT)  # Ctrl-C: all of them end by themselves
                self.counts["stopped: drivers with their workers"] += 1
                self.wait_for(workers)
        elif workers and draw.random() < 0.7:
            self.counts["killed: workers"] += strike(draw.choice(workers))
        elif draw.random() < 0.5:
            self.counts["killed: drivers"] += strike(driver)
        else:
            self.counts["killed: drivers with their workers"] += strike(driver, whole=True)

    def wait_for(self, workers: list[int]) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and any(is_running(pid) for pid in workers):
            time.sleep(0.02)
        if left := [pid for pid in workers if is_running(pid)]:
            self.defects.append(f"workers {left} did not stop when asked")

    def dask(self, kills: int, queue: bool = False, seed: int = 1) -> None:
        """A cluster in one fork, a driver in another; workers, drivers and the cluster (its scheduler) are killed."""
        draw, wanted, where = random.Random(seed), self.kills() + kills, "queue" if queue else "dask"
        port = free_port()
        serve = forked(lambda: cluster(port, queue))
        try:
            while self.kills() < wanted and not self.defects:
                folder = self.place / f"{where}-{self.counts[f'{where}: studies']}"
                serve = self.one_study(folder, port, serve, where, draw)
                settle(folder)
                self.judge(folder, where)
        finally:
            end_of(serve)

    def one_study(self, folder: Path, port: int, serve: int, where: str, draw: random.Random) -> int:
        """A study on the cluster `serve` until it is done; the cluster that is there at the end."""

        def drive() -> int:
            return forked(lambda: engine.study(TINY, folder, on=f"tcp://127.0.0.1:{port}", show=False, deadline=5.0))

        began, driver = time.monotonic(), drive()
        while not all(p.done for p in places(folder, load_grid(TINY))):
            end, code = time.monotonic() + draw.uniform(2.0, 12.0), None
            while time.monotonic() < end and (code := ended(driver)) is None:
                time.sleep(0.02)
            chance, workers = draw.random(), grown(serve)
            if code is None and not workers and time.monotonic() - began < LIMIT:
                continue  # the cluster is still starting: its turn comes when it works
            if code is None and chance < 0.7:
                self.counts[f"killed: {where} workers"] += strike(draw.choice(workers))
            elif code is None and chance < 0.85:
                self.counts[f"killed: {where} drivers"] += strike(driver, whole=True)
                os.waitpid(driver, 0)
                code = -9
            elif code is None:
                self.counts[f"killed: {where} schedulers"] += end_of(serve)
                serve = forked(lambda: cluster(port, where == "queue"))
            if code is not None:
                driver = drive()
            if time.monotonic() - began > LIMIT:
                self.defects.append(f"{folder} does not end")
                break
        strike(driver, whole=True)
        with suppress(ChildProcessError):
            os.waitpid(driver, 0)
        return serve


def settle(folder: Path) -> None:
    """Wait for tasks that were handed out twice and still hold a lease."""
    end = time.monotonic() + 30
    while leftovers(folder) and time.monotonic() < end:
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cluster(port: int, queue: bool) -> None:
    """A Dask cluster for ever; its workers are forked from a warm server."""
    import dask

    from unseam.study.cluster import CONFIG

    dask.config.set({**CONFIG, "distributed.worker.multiprocessing-method": "forkserver"})
    from distributed import LocalCluster
    from distributed.utils import get_mp_context

    get_mp_context().set_forkserver_preload(["distributed", "unseam.study.engine"])
    where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    while True:
        try:
            if queue:
                from dask_jobqueue.local import LocalCluster as Queue

                made = Queue(cores=1, processes=1, memory="2GB", scheduler_options={**where, "port": port})
                made.scale(jobs=2)
            else:
                made = LocalCluster(2, threads_per_worker=1, memory_limit=0, scheduler_port=port, **where)
            break
        except (OSError, RuntimeError):  # the port of the one before is not free yet
            time.sleep(0.2)
    while made:
        time.sleep(1)
        if queue:
            made.scale(jobs=2)  # as a driver does with a queue of its own (study/cluster.py)


def grown(pid: int) -> list[int]:
    """The Dask worker processes below a cluster's process."""
    out, todo = [], [pid]
    while todo:
        below = children(todo.pop())
        todo += below
        for child in below:
            with suppress(OSError):
                words = Path(f"/proc/{child}/cmdline").read_bytes().lower()
                if (b"spawn_main" in words or b"forkserver" in words or b"dask" in words) and not children(child):
                    out.append(child)
    return out


def end_of(pid: int) -> bool:
    """Kill a cluster's process and everything below it."""
    everyone = [pid]
    for one in everyone:
        everyone += children(one)
    struck = [strike(one) for one in everyone]
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
    return struck[0]


def main(place: str, kills: str, dask: str = "0", queue: str = "0") -> dict:
    torch.set_num_threads(1)
    shutil.rmtree(place, ignore_errors=True)
    began, campaign = time.monotonic(), Campaign(Path(place))
    campaign.here(int(kills))
    if int(dask) and not campaign.defects:
        campaign.dask(int(dask))
    if int(queue) and not campaign.defects:
        campaign.dask(int(queue), queue=True)
    counts = dict(campaign.counts)
    return {"kills": campaign.kills(), "counts": counts, "defects": campaign.defects,
            "seconds": round(time.monotonic() - began)}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
