"""Other machines: everything listens on loopback, an open address is warned of, and Dask leaves the same bytes."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from study_files import TINY, content

from unseam.errors import BadInput
from unseam.study import cluster, load_grid
from unseam.study.pieces import places, start_study

pytest.importorskip("distributed")
LOOPBACK = "0100007F"  # 127.0.0.1


def family(pid: int) -> list[int]:
    """A process and all below it."""
    out = [pid]
    for one in out:
        for thread in Path(f"/proc/{one}/task").glob("*/children"):
            out += [int(word) for word in thread.read_text().split()]
    return out


def listening(pids: list[int]) -> set[tuple[str, int]]:
    """Addresses (hexadecimal, as /proc/net has them) and ports on which these processes listen for TCP."""
    own = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                own.add(os.readlink(link))
            except OSError:
                continue
    out = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in own:
                address, _, port = words[1].partition(":")
                out.add((address, int(port, 16)))
    return out


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="lists sockets in /proc")
def test_dask_listens_on_loopback_to_those_with_its_keys_and_leaves_the_same_bytes(done: Path, tmp_path: Path) -> None:
    """Scheduler, nanny and worker. Any user of the machine reached them, and ran code as the study's owner."""
    import dask
    from distributed import Client
    from distributed.security import Security

    grid = load_grid(TINY)
    start_study(tmp_path, grid)
    with dask.config.set(cluster.CONFIG), cluster.local_cluster(1) as made:
        found = listening(family(os.getpid()))
        assert {address for address, _ in found} == {LOOPBACK}
        assert len(found) >= 3  # scheduler, nanny, worker
        address = made.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        for stranger in ({"security": Security.temporary()}, {}):
            with pytest.raises((OSError, TypeError, ValueError)):
                Client(address if stranger else address.replace("tls", "tcp"), timeout="3s", **stranger)
        with Client(made) as client:
            cluster.drive(client, places(tmp_path, grid), tmp_path, 3, show=False)
    assert content(tmp_path) == content(done)


def test_an_open_address_is_warned_of_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for address, warned in (
        ("tcp://10.0.0.5:8786", True),
        ("tcp://scheduler.example:8786", True),
        ("tls://10.0.0.5:8786", False),
        ("tcp://127.0.0.1:8786", False),
        ("tcp://localhost:8786", False),
    ):
        cluster.warn_if_open(address)
        assert capsys.readouterr().err.count("\n") == int(warned), address


class Future:
    """A task that has ended in some way."""

    def __init__(self, status: str, result: object) -> None:
        self.status, self.value = status, result

    def result(self) -> object:
        return self.value

    exception = result


class Client:
    """A scheduler that answers at once, from a list."""

    status = "running"

    def __init__(self, answers: list[Future]) -> None:
        self.answers, self.keys = answers, []

    def submit(self, *_: object, key: str, **__: object) -> Future:
        self.keys.append(key)
        return self.answers.pop(0)


class KilledWorker(Exception):
    """What distributed raises when a task's workers die too often."""


def test_kills_are_no_failures_and_errors_are_counted(tmp_path: Path) -> None:
    todo = places(tmp_path, load_grid(TINY))[:1]
    answers = [Future("error", KilledWorker())] * 5 + [Future("lost", None), Future("finished", "later")]
    answers += [Future("error", ValueError("broken"))] * 3
    client = Client(answers)
    hands = cluster.Hands(client, todo, tmp_path, 1.0)
    for _ in range(9):
        assert hands.busy()
    hands.busy()
    assert not hands.busy()
    assert hands.problems == {0: "failed 3 times: ValueError: broken"}
    assert len(set(client.keys)) == 10  # each time as a new task


def test_a_printed_job_array_advances_pieces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The script itself, run as SLURM would run its second task, with the interpreter replaced by echo."""
    from unseam.cli import main

    out = tmp_path / "a study"
    assert main(["study", str(TINY), "--out", str(out), "--print-jobs", "--deadline", "60"]) == 0
    script = capsys.readouterr().out
    assert "#SBATCH --array=0-2" in script
    said = []
    for variables in ({"SLURM_ARRAY_TASK_ID": "1"}, {"PBS_ARRAY_INDEX": "1"}, {"LSB_JOBINDEX": "2"}):
        words = script.replace("exec ", "exec echo ")
        told = subprocess.run(
            ["bash", "-c", words], env={**os.environ, **variables}, capture_output=True, text=True, check=True
        )
        said.append(told.stdout.partition(" -m ")[2])
    assert said == [f"unseam study work {out} --piece 1 --deadline 60\n"] * 3


def test_jobqueue_writes_our_job_script(tmp_path: Path) -> None:
    """One core, one process, TLS with keys that others cannot read, and the options of the user."""
    pytest.importorskip("dask_jobqueue")
    made = cluster.queue_cluster("slurm", tmp_path, "queue=short,walltime=01:00:00")
    try:
        script = made.job_script()
        assert made.scheduler_address.startswith("tls://")
        others = {port for address, port in listening([os.getpid()]) if address != LOOPBACK}
        assert others == {int(made.scheduler_address.rpartition(":")[2])}  # the dashboard is on loopback
        assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir() if path.is_file()} == {0}
    finally:
        made.close()
    for words in ("#SBATCH -p short", "#SBATCH -t 01:00:00", "--tls-cert", "--nthreads 1"):
        assert words in script


def test_a_queue_that_is_not_here_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="there is no sbatch here; go to a login node, or use --print-jobs"):
        cluster.started("slurm", tmp_path, 1, None)


def test_a_job_that_its_queue_has_ended_is_asked_for_again(done: Path, tmp_path: Path, monkeypatch) -> None:
    """A time limit ends jobs as a matter of course; a study whose jobs were not replaced would wait for ever."""
    import dask
    from distributed import Client

    queue = pytest.importorskip("dask_jobqueue.local").LocalCluster
    monkeypatch.setattr(cluster, "REFILL", 0.5)
    grid = load_grid(TINY)
    start_study(tmp_path, grid)
    soon = {**cluster.CONFIG, "distributed.deploy.lost-worker-timeout": "100ms"}
    where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    asked = {"cores": 1, "processes": 1, "memory": "2GB", "scheduler_options": where}
    with dask.config.set(soon), queue(**asked) as made, Client(made) as client:
        made.scale(jobs=1)
        client.wait_for_workers(1, timeout=120)
        for pid in [pid for pid in family(os.getpid()) if b"dask_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]:
            for one in reversed(family(pid)):
                os.kill(one, signal.SIGKILL)
        hands, end = cluster.Hands(client, places(tmp_path, grid), tmp_path, 5.0), time.monotonic() + 300
        while hands.busy() and time.monotonic() < end:
            time.sleep(0.1)
    assert all(place.done for place in places(tmp_path, grid)), "no job came after the first was killed"
    assert content(tmp_path) == content(done)
