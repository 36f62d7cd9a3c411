"""Kills: SIGKILL before every file event of a verb, or at a random time; then it goes on, and nothing may be lost.

`python tests/faults/fault_kills.py PLACE FIRST COUNT [SECONDS]` (or PLACE VERB...: all crash points of these) imports
the package once and forks a child for every kill. Kills are numbered: first come the crash points (Python's audit hook
sends SIGKILL before the k-th time that something in PLACE is opened for writing, renamed, removed or made, or that a
database is opened), verb by verb; all numbers after them are random times, drawn from the number. It prints one JSON
document of counts.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "sqlite3.connect")
TRAIN = ["--network", "mlp", "--encoder", "4", "--decoder", "4", "--latents", "2", "--seeds", "0,1", "--steps", "6",
         "--log-every", "3", "--checkpoint-steps", "3", "--snapshots", "1", "--batch", "8"]  # fmt: skip
LONG = ["--steps", "150", "--checkpoint-steps", "20"]  # so that there is time to kill one of several processes
SLOW, SLOW_POINTS = (
    ("report", "perturb", "study"),
    24,
)  # verbs that take seconds, and about how many of their crash points
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
Verb = Callable[[], int]


# A forked process, and what it tells


def child(act: Verb, place: Path, die_at: int | None, line: int) -> None:
    """In the forked process: count file events, die before the chosen one, tell how it went."""
    import multiprocessing

    seen, real = 0, multiprocessing.get_context
    multiprocessing.get_context = lambda _=None: real("fork")  # workers that need not import it all again
    os.setsid()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        if (
            event not in EVENTS
            or str(place) not in str(args[0])
            or (event == "open" and not int(args[2] or 0) & WRITES)
        ):
            return
        seen += 1
        if seen == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    told = io.StringIO()
    sys.addaudithook(hook)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(told):
            code = act()
    except BaseException as error:
        code, _ = 99, told.write(f"{type(error).__name__}: {error}")
    os.write(line, json.dumps({"code": code, "events": seen, "told": told.getvalue()[-500:]}).encode())
    os._exit(0)


def forked(
    act: Verb,
    place: Path,
    die_at: int | None = None,
    after: float | None = None,
    victim: str = "first",
    by: str = "KILL",
) -> dict[str, Any] | None:
    """What the child told; None when it was killed."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(read)
        child(act, place, die_at, write)
    os.close(write)
    if after is not None:
        time.sleep(after)
        kill(pid, victim, signal.Signals[f"SIG{by}"])
    with os.fdopen(read, "rb") as file:
        told = file.read()  # to its end: workers hold the line too, so this waits for orphans
    _, status = os.waitpid(pid, 0)
    return json.loads(told) if told and not os.WIFSIGNALED(status) else None


def kill(pid: int, victim: str, by: signal.Signals) -> None:
    """The first process, one of its workers, or all of them."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    workers = children.read_text().split() if victim == "worker" and children.exists() else []
    with suppress(ProcessLookupError):
        if victim == "group":
            os.killpg(pid, by)
        elif victim == "first" or workers:
            os.kill(int(workers[-1]) if workers else pid, by)


# What must be the same, and what must be whole


def state(folder: Path) -> dict[str, Any]:
    """All that must be the same after a kill and a resume: every tensor, every row but those of time."""
    from unseam.run.checkpoint import load_checkpoint

    out: dict[str, Any] = {}
    for path in sorted((folder / "checkpoints").glob("*.safetensors")):
        tensors, meta = load_checkpoint(path)
        out |= {f"{path.name}/{name}": tensor.numpy().tobytes() for name, tensor in tensors.items()}
        out[path.name] = (meta["step"], meta["frozen"])
    queries = (
        "select member, seed, hyper, status, step, loss, reconstruction, kl, active, note from runs order by member",
        "select * from log where name != 'throughput' order by member, step, name",
        "select * from latents order by member, step, latent",
    )
    with closing(sqlite3.connect(folder / "results.sqlite")) as connection:
        out["integrity"] = connection.execute("pragma integrity_check").fetchall()
        out |= {query: connection.execute(query).fetchall() for query in queries}
    return out


def perturbed(folder: Path) -> dict[str, Any]:
    return {name: (folder / name).read_bytes() for name in ("m.safetensors", "perturbed.json")}


def shown(folder: Path) -> dict[str, Any]:
    """exhibits.json without times."""
    entries = json.loads((folder / "exhibits.json").read_bytes())
    return json.loads(json.dumps(entries), object_hook=lambda d: {k: v for k, v in d.items() if k != "seconds"})


def scored(folder: Path) -> dict[str, Any]:
    """A study's rows and kept codes."""
    found = [p for name in ("rows.json", "codes.npy") for p in folder.glob(f"pieces/*/{name}")]
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


def opened(folder: Path) -> dict[str, Any]:
    """A pack as its reader sees it: every file is what the manifest says."""
    from unseam.run import load_run

    return {"weights": load_run(folder).weights_digest(0), "codes": (folder / "whole-train/codes-0.npy").read_bytes()}


def findings(folder: Path) -> dict[str, Any]:
    """What `find` wrote, byte for byte; findings.json without the paths in it."""
    document = json.loads((folder / "findings.json").read_bytes())
    tables = {name: (folder / name).read_bytes() for name in ("codes.csv", "loadings.csv")}
    return tables | {name: value for name, value in document.items() if name not in ("codes", "report", "loadings")}


def matched(folder: Path) -> dict[str, Any]:
    return {"pairs": (folder / "pairs.csv").read_bytes()}


def sound(path: Path) -> bool:
    """Whether a file is there and whole."""
    if not path.is_file():
        return False
    content = path.read_bytes()
    if path.suffix == ".json":
        return bool(json.loads(content))
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return all(archive[name].dtype is not None for name in archive.files)
    if path.suffix == ".safetensors":
        from safetensors.torch import load

        return bool(load(content))
    ends = {".png": b"IEND\xaeB`\x82", ".html": b"</html>", ".svg": b"</svg>", ".csv": b""}
    return content.rstrip().endswith(ends[path.suffix]) and (path.suffix != ".csv" or content.endswith(b"\n"))


def leftovers(folder: Path) -> int:
    return len(list(folder.rglob(".*")))


# The verbs


@dataclass(frozen=True)
class Act:
    """A verb on a folder: how it is called, how it goes on, and what it leaves."""

    name: str
    call: Callable[[Path], Verb]
    again: Callable[[Path], Verb]
    same: Callable[[Path], dict[str, Any]]
    files: tuple[str, ...] = ()  # whole or absent after a kill, there in the end
    on_run: bool = False  # it reads a run: begin with a copy of one
    workers: bool = False


def done() -> int:
    """`perturb` refuses a folder that has its page, which comes last."""
    return 0


def cli(*args: str) -> Verb:
    from unseam.cli import main

    return lambda: main(list(args))


def has_found(out: Path) -> bool:
    """`find` has ended: it refuses such a folder, and goes on in one that a killed find left."""
    return (out / "findings.json").exists() and not (out / ".unfinished").exists()


def exhibit() -> Any:
    """The smallest exhibit: a step that is remembered, a cohort, a row, a figure."""
    from matplotlib.figure import Figure

    from unseam_papers.frame.exhibit import Exhibit, Work
    from unseam_papers.frame.rows import VerdictRow
    from unseam_papers.frame.verdicts import control

    def compute(settings: Any, work: Work) -> dict[str, Any]:
        few = {"network": "linear", "latents": 1, "steps": 2, "workers": 1, "show": False, "batch": 8}
        loss = work.once(
            "loss", lambda: work.train("synth-linear", data_parameters={"size": 40}, **few).table().loss[0]
        )
        return {"half": work.once("half", lambda: 0.5), "loss": loss}

    def judge(numbers: dict[str, Any]) -> list[VerdictRow]:
        return [control("half", "a half", str(numbers["half"]), numbers["half"] == 0.5, "it is")]

    def conclude(numbers: dict[str, Any], rows: Any) -> str:
        return f"{numbers['loss']:.6f}"

    return Exhibit("X1", "x", "x", "x", (), {"tiny": Scaled()}, compute, judge, lambda _: Figure((1, 1)), conclude)


@dataclass(frozen=True)
class Scaled:
    size: int = 1


def reproduced(out: Path) -> Verb:
    def act() -> int:
        from unseam_papers.frame.run import reproduce

        reproduce({"X1": exhibit()}, (), "tiny", out)
        return 0

    return act


def studied(out: Path) -> Verb:
    """A study of one piece, in this process."""

    def act() -> int:
        from unseam.study.engine import work_on_study
        from unseam.study.grid import load_grid
        from unseam.study.pieces import start_study

        start_study(out, load_grid(Path(__file__).parents[1] / "study" / "tiny.toml", (0,)))
        work_on_study(str(out))
        return 0

    return act


def acts(place: Path) -> list[Act]:
    """Every verb that writes; another is one line here."""
    own = [str(place / "mine.npy"), "--data.factors", str(place / "factors.npy")]

    def train(*more: str) -> Callable[[Path], Verb]:
        return lambda out: cli("train", *own, *TRAIN, *more, "--out", str(out))

    def going_on(start: Callable[[Path], Verb]) -> Callable[[Path], Verb]:
        return lambda out: cli("train", "--resume", str(out)) if (out / "config.json").exists() else start(out)

    def reading(name: str, *files: str, more: tuple[str, ...] = ()) -> Act:
        call = lambda out: cli(name, str(out), *more)  # noqa: E731
        return Act(name, call, call, state, files, on_run=True)

    one, two = train("--workers", "1"), train("--workers", "2", "--how", "side-by-side", *LONG)
    perturb = lambda out: cli("perturb", own[0], "--rounds", "4", "--seeds", "0,1", "--steps", "4", "--out", str(out))  # noqa: E731
    find = lambda out: cli("find", str(place / "table.npy"), "--no-network", "--quick", "--out", str(out))  # noqa: E731
    match = lambda out: cli("match", str(place / "table.npy"), str(place / "table.npy"), "--of", "codes", "--out",  # noqa: E731
                            str(out / "pairs.csv"), "--figure", str(out / "pairs.svg"))  # fmt: skip
    packed = lambda out: cli("data", "pack", str(place / "whole-train"), "--out", str(out))  # noqa: E731
    going_to_the_page = lambda out: done if (out / "perturb.html").exists() else perturb(out)  # noqa: E731
    return [
        Act("train", one, going_on(one), state),
        reading("evaluate", more=("--metrics", "mig")),
        reading("diagnose", more=("--no-figures",)),
        reading("align", "aligned/alignment.json", "aligned/member-0.npz", more=("--points", "20")),
        reading("report", "report.html"),
        Act("perturb", perturb, going_to_the_page, perturbed, ("manipulation.json", "perturb.html")),
        Act("reproduce", reproduced, reproduced, shown, ("exhibits.json", "exhibits.html", "figures/X1.svg")),
        reading("traverse", "traversals/member-0.png", more=("--frames", "3")),
        reading("export", "exported/member-0/card.json", "exported/member-0/weights.safetensors",
                more=("--to", "safetensors")),
        reading("stress", "stress-member-0.png", more=("--points", "20")),
        Act("find", find, lambda out: done if has_found(out) else find(out), findings,
            ("findings.html", "findings.json")),
        Act("match", match, match, matched, ("pairs.csv", "pairs.svg")),
        Act("data pack", packed, lambda out: done if (out / "pack.json").exists() else packed(out), opened),
        Act("study", studied, studied, scored),
        Act("train, 2 workers", two, going_on(two), state, workers=True),
    ]  # fmt: skip


def write_inputs(place: Path) -> None:
    """Data and factors of `train`, and a table of two factors for `find`."""
    place.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    np.save(place / "mine.npy", rng.uniform(size=(60, 3)).astype(np.float32))
    np.save(place / "factors.npy", np.arange(60) % 3)
    np.save(place / "table.npy", rng.laplace(size=(200, 2)) @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(200, 4)))


class Campaign:
    """The kills of one place, and what came of them."""

    def __init__(self, place: Path, only: tuple[str, ...] = ()) -> None:
        self.place, self.counts, self.defects = place, Counter[str](), []
        write_inputs(place)
        self.acts = {act.name: act for act in acts(place) if not only or act.name in only}
        self.events, self.took, self.expected = {}, {}, {}
        for act in self.acts.values():
            self.whole(act)

    def begin(self, act: Act, name: str = "run") -> Path:
        out = self.place / name
        shutil.rmtree(out, ignore_errors=True)
        if act.on_run:
            shutil.copytree(self.place / "whole-train", out)
        return out

    def whole(self, act: Act) -> None:
        """Never killed: how many file events it has, how long it takes, what it ends with."""
        out, began = self.begin(act, f"whole-{act.name}"), time.perf_counter()
        told = forked(act.call(out), out)
        if told is None or told["code"] != 0:
            raise RuntimeError(f"the uninterrupted {act.name} failed: {told}")
        self.events[act.name], self.took[act.name] = int(told["events"]), time.perf_counter() - began
        self.expected[act.name] = act.same(out)

    def points(self) -> Iterator[tuple[Act, dict[str, Any]]]:
        """All crash points, verb by verb."""
        for act in self.acts.values():
            if not act.workers:  # which of several processes comes first is not in our hands
                events = self.events[act.name]
                apart = -(-events // SLOW_POINTS) if act.name in SLOW else 1
                yield from ((act, {"die_at": point}) for point in range(1, events + 1, apart))

    def kills(self) -> Iterator[tuple[Act, dict[str, Any]]]:
        """All crash points; then random times without end."""
        yield from self.points()
        quick = [name for name in self.acts if name not in SLOW]
        for number in count():
            rng = random.Random(number)
            act = self.acts[rng.choice(SLOW) if number % 40 == 0 else rng.choice((*quick, "train", "train"))]
            victim = rng.choice(("first", "worker", "group")) if act.workers else "first"
            asked = act.name.startswith("train") and victim != "worker" and rng.random() < 0.2
            by = rng.choice(("INT", "TERM", "HUP")) if asked else "KILL"
            yield act, {"after": rng.uniform(0, self.took[act.name]), "victim": victim, "by": by}

    def one(self, act: Act, how: dict[str, Any]) -> None:
        """Kill it, look at what is left, go on, compare."""
        out = self.begin(act)
        told = forked(act.call(out), out, **how)
        if how.get("victim") == "worker" and told is not None and "died" in told["told"]:
            self.note(f"{act.name}: a worker killed, another went on")
        elif told is None or told["code"] == 130:
            when = "before a file event" if "die_at" in how else f"at a random time, to the {how['victim']}"
            self.note(f"{act.name}: SIG{how.get('by', 'KILL')} {when}")
            if told and (out / "config.json").exists() and f"--resume {out}" not in told["told"]:
                self.defects.append(f"{act.name} {how}: it did not say how to go on: {told}")
        else:
            self.note("ended before the kill")
        torn = [file for file in act.files if (out / file).exists() and not sound(out / file)]
        if "die_at" in how and how["die_at"] % 4 == 0 and told is None:  # and again, while it goes on
            second = forked(act.again(out), out, die_at=1 + how["die_at"] % 7)
            self.counts[f"{act.name}: SIGKILL again, while it went on"] += second is None
        told = forked(act.again(out), out)
        if torn or told is None or told["code"] != 0:
            self.defects.append(f"{act.name} {how}: torn {torn}, could not go on: {told}")
        elif (found := act.same(out)) != self.expected[act.name]:
            wanted = self.expected[act.name]
            other = [k for k in {**wanted, **found} if found.get(k) != wanted.get(k)]
            self.defects.append(f"{act.name} {how}: other numbers in {other[:3]}")
        elif missing := [file for file in act.files if not sound(out / file)]:
            self.defects.append(f"{act.name} {how}: {missing} missing")
        if left := leftovers(out):
            self.counts["temporary files left after going on"] += left

    def note(self, what: str) -> None:
        self.counts[what] += 1


def warm(place: Path, only: tuple[str, ...] = ()) -> None:
    """Every verb once, so that the forks inherit what it imports."""
    write_inputs(place)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for act in acts(place):
            if not act.workers and (not only or act.name in only):
                out = place / "warm" / ("run" if act.on_run or act.name == "train" else act.name)
                act.call(out)()
                if act.name == "train":  # a pack is made of it
                    shutil.copytree(out, place / "whole-train", dirs_exist_ok=True)


def result(campaign: Campaign, done: int) -> dict[str, Any]:
    kills = sum(n for what, n in campaign.counts.items() if ": SIG" in what or "killed" in what)
    return {"done": done, "kills": kills, "events": campaign.events, "counts": dict(campaign.counts),
            "defects": campaign.defects}  # fmt: skip


def run(place: Path, first: int, many: int, seconds: float = float("inf")) -> dict[str, Any]:
    """Kills first .. first + many - 1, as many as there is time for; Ctrl-C ends early with what was done."""
    campaign, done, began = Campaign(place), 0, time.monotonic()
    kills = campaign.kills()
    try:
        for number, (act, how) in enumerate(kills):
            if number >= first + many or time.monotonic() - began > seconds:
                break
            if number >= first:
                campaign.one(act, how)
                done += 1
    except KeyboardInterrupt:
        pass
    return result(campaign, done)


def short(place: Path, apart: int) -> dict[str, Any]:
    """For CI: every `apart`-th event of train, some of other verbs, the first or all of several processes; what a
    killed worker and a signal leave is tested in tests/train/test_train_workers.py."""
    warm(place, ("train",))
    campaign = Campaign(place, ("train", "evaluate", "align", "train, 2 workers"))
    train, evaluate, align, workers = campaign.acts.values()
    half = campaign.took[workers.name] / 2
    kills = [(train, {"die_at": point}) for point in range(1, campaign.events["train"] + 1, apart)]
    kills += [(evaluate, {"die_at": 1}), (align, {"die_at": 8})]
    kills += [(workers, {"after": half, "victim": victim}) for victim in ("first", "group")]
    kills += [(train, {"after": campaign.took["train"] / 2, "victim": "first", "by": "HUP"})]
    for act, how in kills:
        campaign.one(act, how)
    return result(campaign, len(kills))


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)  # so that there are no threads to lose in a fork
    where, *numbers = sys.argv[1:]
    if numbers[0] == "short":
        print(json.dumps(short(Path(where), int(numbers[1]))))
    elif not numbers[0].isdigit():  # some verbs: all crash points of theirs
        only = ("train", *numbers)
        warm(Path(where), only)
        some = Campaign(Path(where), only)
        points = [(act, how) for act, how in some.points() if act.name in numbers]
        for act, how in points:
            some.one(act, how)
        print(json.dumps(result(some, len(points))))
    else:
        warm(Path(where))
        print(json.dumps(run(Path(where), int(numbers[0]), int(numbers[1]), *map(float, numbers[2:]))))
