"""The same pieces on other machines. The only file that knows Dask.

A task advances one piece until it is done or its seconds are up, then it is queued again; weights never travel.
Anyone who reaches a scheduler's port can run code, and every user of a machine reaches its loopback: all clusters that
are started here speak TLS with keys of their own, which only this user can read.
Scheduler state is lost with the scheduler; files are the truth, so the driver only resubmits.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from shutil import which
from typing import Any
from urllib.parse import urlsplit

from unseam.atomic import cores
from unseam.errors import BadInput, Failed
from unseam.processes import hidden_script
from unseam.progress import log
from unseam.study.engine import Stopped, one_piece, study_resume_command, watch
from unseam.study.pieces import Place
from unseam.train.stopping import interruptible

SECONDS = 300.0  # a task works at one piece before it asks again
_FAILURES = 3  # errors of one piece (not kills) after which it is given up; bad input is given up at once
LOST = 120.0  # seconds to wait for a scheduler that is gone
REFILL = 30.0  # seconds between two looks whether a queue's jobs are still there
QUEUES = {"slurm": ("SLURMCluster", "sbatch"), "pbs": ("PBSCluster", "qsub"), "lsf": ("LSFCluster", "bsub")}
CONFIG = {
    "distributed.scheduler.allowed-failures": 1_000_000,  # a job's time limit kills workers as a matter of course
    "distributed.scheduler.unknown-task-duration": "1m",
    "distributed.scheduler.worker-ttl": None,  # a long call that holds the interpreter is not death
    "distributed.worker.daemon": False,
}


def elsewhere(
    todo: Sequence[Place],
    folder: Path,
    on: str,
    workers: int = 0,
    show: bool | None = None,
    deadline: float | None = None,
    options: str | None = None,
    device: str | None = None,
) -> None:
    """Have every piece advanced through the Dask scheduler `on` (an address, dask, slurm, pbs or lsf)."""
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError:
        raise BadInput(f"on={on!r} needs Dask; install it with: pip install 'unseam[cluster]'") from None
    with dask.config.set(CONFIG), hidden_script(), client_of(on, folder.resolve(), workers, options) as client:
        drive(client, todo, folder.resolve(), deadline or SECONDS, show, device)


@contextmanager
def client_of(on: str, folder: Path, workers: int, options: str | None = None) -> Iterator[Any]:
    """A client of the scheduler that `on` names; a cluster that was started for it ends with it."""
    from distributed import Client

    if "://" in on:
        warn_if_open(on)
        try:
            client = Client(on, timeout="20s")
        except (OSError, TimeoutError, MemoryError) as error:  # another protocol is read as a message of exabytes
            raise BadInput(f"on={on!r}: no Dask scheduler answers there ({type(error).__name__})") from None
        with client:
            yield client
        return
    with started(on, folder, workers, options) as cluster, Client(cluster) as client:
        yield client


def started(on: str, folder: Path, workers: int, options: str | None) -> Any:
    """A cluster of our own: processes of this machine on loopback, or jobs of a queue over TLS."""
    if on == "dask":
        return local_cluster(workers or cores())
    if on not in QUEUES:
        raise BadInput(f"on={on!r} must be here, dask, tcp://HOST:PORT, {', '.join(QUEUES)}")
    if which(QUEUES[on][1]) is None:
        raise BadInput(f"on={on!r}: there is no {QUEUES[on][1]} here; go to a login node, or use --print-jobs")
    cluster = queue_cluster(on, folder, options)
    cluster.scale(jobs=workers or 1)
    return cluster


def queue_cluster(on: str, folder: Path, options: str | None) -> Any:
    """A scheduler here, and jobs that are not yet submitted; its keys are in the study's folder, readable by its
    user."""
    try:
        import dask_jobqueue
    except ImportError:
        raise BadInput(f"on={on!r} needs dask-jobqueue; install it with: pip install 'unseam[cluster]'") from None
    options_of_job = {"cores": 1, "processes": 1, "memory": "2GB", "security": True, **as_options(options)}
    return getattr(dask_jobqueue, QUEUES[on][0])(
        **options_of_job, shared_temp_directory=str(folder), scheduler_options={"dashboard_address": "127.0.0.1:0"}
    )


def local_cluster(workers: int) -> Any:
    """Dask's own processes of this machine, on loopback and over TLS with keys that live as long as they do.

    Dashboards would show what is computed to anyone, so there are none.
    """
    from distributed import LocalCluster
    from distributed.security import Security

    try:
        security = Security.temporary()
    except ImportError:
        raise BadInput("on='dask' needs cryptography for its keys; pip install 'unseam[cluster]'") from None
    return LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, host="tls://127.0.0.1", dashboard_address=None,
        worker_dashboard_address=None, memory_limit=0, security=security,
    )  # fmt: skip


def as_options(text: str | None) -> dict[str, str]:
    """`queue=short,walltime=01:00:00` -> arguments of dask-jobqueue.

    >>> as_options("queue=short,walltime=01:00:00")
    {'queue': 'short', 'walltime': '01:00:00'}
    """
    parts = [part.partition("=") for part in (text or "").split(",") if part]
    if wrong := [name for name, equals, _ in parts if not equals]:
        raise BadInput(f"options: {wrong[0]!r} is not a NAME=VALUE; write queue=short,walltime=01:00:00")
    return {name.strip(): value.strip() for name, _, value in parts}


def warn_if_open(address: str) -> None:
    """One line for a scheduler that others may reach and that does not ask who they are."""
    if not is_loopback(address) and not address.startswith("tls://"):
        log.warning(
            f"warning: {address} is not on this machine and has no TLS: anyone who reaches it can run code there; "
            "use tls:// (docs/study.md)"
        )


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own.

    >>> is_loopback("tcp://127.0.0.1:8786"), is_loopback("tcp://10.0.0.1:8786"), is_loopback("tcp://[::1]:1")
    (True, False, True)
    """
    host = urlsplit(address).hostname or ""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def task(folder: str, number: int, seconds: float, device: str | None = None) -> str:
    """What a worker runs."""
    return one_piece(folder, number, seconds, device)


def drive(
    client: Any, todo: Sequence[Place], folder: Path, seconds: float, show: bool | None, device: str | None = None
) -> None:
    """Hand out every piece that is not done, again and again."""
    hands = Hands(client, todo, folder, seconds, device)
    with interruptible() as interrupted:
        try:
            watch(todo, show, lambda: not interrupted.is_set() and hands.busy())
        finally:
            hands.let_go()
        if interrupted.is_set():
            raise Stopped(
                f"stopped; its tasks end at their next checkpoint; continue with: {study_resume_command(folder)}"
            )
    if hands.problems:
        why = f"{len(hands.problems)} of {len(todo)} pieces failed, for the reasons above"
        raise Failed(f"the study is not done: {why}; continue with: {study_resume_command(folder)}")


class Hands:
    """The futures of the pieces that are not done: lost ones are submitted again, real errors are counted."""

    def __init__(
        self, client: Any, todo: Sequence[Place], folder: Path, seconds: float, device: str | None = None
    ) -> None:
        self.client, self.todo, self.folder, self.seconds, self.device = client, todo, str(folder), seconds, device
        self.futures: dict[int, Any] = {}
        self.rest: dict[int, float] = {}  # piece -> not before this time
        self.problems: dict[int, str] = {}  # piece -> why it cannot be done; the others continue
        self.errors, self.round, self.lost, self.filled = Counter[int](), 0, 0.0, time.monotonic()

    def busy(self) -> bool:
        """See to every piece; True while there is something to wait for."""
        if self.client.status != "running":
            self.wait_for_scheduler()
            return True
        self.lost = 0.0
        self.refill()
        for number, place in enumerate(self.todo):
            future = self.futures.get(number)
            if future is not None and future.status != "pending":
                self.look(number, future)
            waiting = number in self.futures or number in self.problems or time.monotonic() <= self.rest.get(number, 0)
            if not place.done and not waiting:
                self.submit(number)
        return not all(place.done or number in self.problems for number, place in enumerate(self.todo))

    def refill(self) -> None:
        """Resubmit jobs that their queue has ended; dask-jobqueue does so only when it is scaled."""
        cluster: Any = getattr(self.client, "cluster", None)
        if hasattr(cluster, "job_script") and time.monotonic() - self.filled > REFILL:
            self.filled = time.monotonic()
            cluster.scale(jobs=len(cluster.worker_spec))

    def submit(self, number: int) -> None:
        self.round += 1
        key = f"{self.todo[number].piece.name}-{time.time_ns()}-{self.round}"
        self.futures[number] = self.client.submit(
            task, self.folder, number, self.seconds, self.device, key=key, pure=False, priority=-number
        )

    def look(self, number: int, future: Any) -> None:
        """A task that has ended: done, later (again at once), held by another (again soon), lost or failed."""
        del self.futures[number]
        if future.status == "error" and type(error := future.exception()).__name__ != "KilledWorker":
            self.errors[number] += 1
            if isinstance(error, BadInput) or self.errors[number] >= _FAILURES:
                known = isinstance(error, (BadInput, Failed))
                reason = str(error) if known else f"failed {_FAILURES} times: {type(error).__name__}: {error}"
                self.problems[number] = " ".join(reason.split())
                name = self.todo[number].piece.name
                log.warning(f"piece {name}: {self.problems[number]}")
        elif future.status == "finished" and future.result() == "held":
            self.rest[number] = time.monotonic() + 2

    def wait_for_scheduler(self) -> None:
        self.futures.clear()
        self.lost = self.lost or time.monotonic()
        if time.monotonic() - self.lost > LOST or self.client.status == "closed":
            command = study_resume_command(Path(self.folder))
            raise Failed(f"the Dask scheduler has stopped; start it, then continue with: {command}")

    def let_go(self) -> None:
        with suppress(Exception):  # a scheduler that is gone has nothing to cancel
            self.client.cancel(list(self.futures.values()), force=True)


def job_array(folder: Path, pieces: int, deadline: float | None = None, device: str | None = None) -> str:
    """A script for clusters that allow no long-lived scheduler: one task per piece; SLURM, PBS and LSF know its number.

    >>> print(job_array(Path("/s"), 2).splitlines()[1])
    #SBATCH --array=0-1
    """
    place = shlex.quote(str(folder.resolve()))
    limit = (f" --deadline {deadline:g}" if deadline else "") + (f" --device {device}" if device else "")
    return f"""#!/bin/bash
#SBATCH --array=0-{pieces - 1}
#SBATCH --cpus-per-task=1
#PBS -J 0-{pieces - 1}
#BSUB -J "unseam[1-{pieces}]"
# Submit it again to continue: done pieces end at once, others from their checkpoint.
export OMP_NUM_THREADS=1
n=${{SLURM_ARRAY_TASK_ID:-${{PBS_ARRAY_INDEX:-$((${{LSB_JOBINDEX:-1}} - 1))}}}}
exec {shlex.quote(sys.executable)} -m unseam study work {place} --piece "$n"{limit}
"""
