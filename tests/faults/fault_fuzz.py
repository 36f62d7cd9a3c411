"""Bad input, by the thousand: whatever a file, a run folder or a command line holds, there is an answer or one line.

Every input follows from (kind, number), so one that fails is made again by its name. A *defect* is an exception that
leaves `main` (or, at a reader, one that is not a BadInput), an error of more than one line, or more than LIMIT seconds
of processor time.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import signal
import sqlite3
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fault_broken import CELLS, NUMBERS, Seeds, array_file, mutated, reshaped
from fault_newer import NEWER

from unseam import study
from unseam.cli import main
from unseam.data import load_data
from unseam.data.sets.idx import read_idx
from unseam.errors import BadInput
from unseam.finding.columns import prepare
from unseam.finding.read import read
from unseam.runs.align import load_alignment
from unseam.show.explorer import checks
from unseam.show.explorer.upload import observation
from unseam.study.grid import load_grid

LIMIT = 30  # seconds of processor time that an input may take
ASLEEP = 600  # seconds in all: it waits for something that does not come
NOTES = ("this run is unfinished: ", "left out: member ")  # lines about the run that may stand before the error


@dataclass
class Tally:
    """What came of the inputs: how many of each outcome, and those that are defects."""

    outcomes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    defects: dict[str, str] = field(default_factory=dict)  # kind-number -> what happened

    def note(self, kind: str, number: int, outcome: str, defect: str = "") -> None:
        self.outcomes[outcome] += 1
        self.kinds[kind] += 1
        if defect:
            self.defects[f"{kind}-{number}"] = defect


class Slow(BaseException):
    """An input took longer than LIMIT; no handler of the package can swallow it."""


@contextmanager
def limited() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Slow

    signals = (signal.SIGPROF, signal.SIGALRM)
    before = [signal.signal(s, ring) for s in signals]
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    signal.alarm(ASLEEP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for s, handler in zip(signals, before, strict=True):
            signal.signal(s, handler)


def attempt(act: Callable[[], int | None]) -> tuple[str, str]:
    """(outcome, defect) of one input; `act` returns an exit code, or raises BadInput as a reader may."""
    told, shown = io.StringIO(), io.TextIOWrapper(io.BytesIO(), "utf-8")  # as strict as a terminal
    try:
        with limited(), warnings.catch_warnings(), redirect_stdout(shown), redirect_stderr(told):
            warnings.simplefilter("ignore")
            code = act() or 0
    except BadInput as error:
        return ("refused", "") if "\n" not in str(error) else ("long", str(error))
    except SystemExit as error:
        return ("answered", "") if not error.code else ("exit", f"SystemExit({error.code})")
    except Slow:
        return "slow", f"more than {LIMIT} s"
    except BaseException as error:
        return "traceback", f"{type(error).__name__}: {error}\n{''.join(traceback.format_exc().splitlines(True)[-9:])}"
    if code == 0:
        return "answered", ""
    *notes, error = told.getvalue().removesuffix("\n").split("\n")
    if code not in (1, 2) or not error.startswith("unseam: ") or not all(note.startswith(NOTES) for note in notes):
        return "long", f"code {code}: {told.getvalue()[:2000]}"
    return ("refused", "") if code == 2 else ("failed", "")


# One maker a kind of input: (seeds, place to work in, rng) -> what to do


def scored(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], int]:
    path = array_file(seeds, at, rng)
    pair = (
        [str(path), str(seeds.folder / "factors.npy")]
        if rng.random() < 0.5
        else [str(seeds.folder / "codes.npy"), str(path)]
    )
    if rng.random() < 0.1:
        pair[rng.randrange(2)] += rng.choice((":x", ":", ":codes", ":a,b", ":arr_0", ":\n"))
    flags = rng.choice(
        (
            (),
            (),
            ("--ci",),
            ("--kinds", "continuous"),
            ("--bin-continuous", rng.choice(NUMBERS)),
            ("--json",),
            ("--names", rng.choice(NUMBERS)),
            ("--seed", rng.choice(NUMBERS)),
            ("--format", "latex"),
        )
    )
    metrics = rng.choice(("mig", "mig", "mcc", "sap-r2,modularity", rng.choice(NUMBERS)))
    return lambda: main(["score", *pair, "--metrics", metrics, *flags])


def own_data(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], None]:
    path = array_file(seeds, at, rng)
    options: dict[str, Any] = {}
    if rng.random() < 0.3:
        path, options["factors"] = seeds.folder / "codes.npy", str(path)
    if rng.random() < 0.2:
        options |= rng.choice(
            (
                {"key": "x"},
                {"kinds": "cyclic"},
                {"labels": "a"},
                {"likelihood": "bernoulli"},
                {"size": 8},
                {"layout": "hwc"},
                {"key": "a,b"},
            )
        )

    def act() -> None:
        data = load_data(path, **options)
        _ = data.shape, data.space, data.likelihood, data.batch(np_index(len(data)))

    return act


def np_index(length: int) -> Any:
    import torch

    return torch.arange(min(3, length))


def image_folder(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], None]:
    for i in range(rng.randrange(1, 4)):
        name, content = rng.choice(list(seeds.pictures.items()))
        inside = at / rng.choice(("", "cats", "dogs"))
        inside.mkdir(exist_ok=True)
        (inside / f"{i}.{name}").write_bytes(content if rng.random() < 0.3 else mutated(content, rng))

    def act() -> None:
        data = load_data(at, **rng.choice(({}, {"size": 8}, {"channels": 1})))
        data.batch(np_index(len(data)))

    return act


def idx_file(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], None]:
    content = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (3, 4, 4)) + rng.randbytes(48)
    path = at / rng.choice(("x", "x.gz"))
    if path.suffix and rng.random() < 0.8:
        import gzip

        content = gzip.compress(content)
    path.write_bytes(mutated(content, rng))
    return lambda: void(read_idx(path))


def void(_: Any) -> None:
    return None


def run_folder(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], int]:
    folder = Path(shutil.copytree(seeds.folder / "run", at / "run"))
    target = rng.choice(
        ("config.json",) * 4
        + ("results.sqlite", "checkpoints/group-000.safetensors", "source.npy", "factor_table.npy", "gone", "computed")
    )
    if target == "config.json" and rng.random() < 0.8:
        document = reshaped(json.loads((folder / target).read_bytes()), rng)
        (folder / target).write_bytes(json.dumps(document).encode("utf-8", "surrogatepass"))
    elif target in ("gone", "computed"):
        inside = sorted(p for p in folder.rglob("*") if p.is_file() and (target == "gone" or "computed" in p.parts))
        victim = rng.choice(inside)
        victim.unlink() if target == "gone" else victim.write_bytes(mutated(victim.read_bytes(), rng))
    else:
        (folder / target).write_bytes(mutated((folder / target).read_bytes(), rng))
    if rng.random() < 0.3:
        with suppress(sqlite3.Error), sqlite3.connect(folder / "results.sqlite") as connection:
            table = rng.choice(("runs", "log", "latents", "scores", "computed"))
            connection.execute(
                rng.choice(
                    (
                        f"drop table {table}",
                        f"delete from {table}",
                        "update runs set hyper = 'x'",
                        "update runs set loss = 'x'",
                        "update latents set kl = 'x'",
                        "update computed set document = '[]'",
                        "update runs set member = 7 where member = 0",
                        "update runs set status = null",
                        "alter table runs drop column note",
                    )
                )
            )
    verb = rng.choice(
        (
            ("evaluate",),
            ("evaluate", "--json"),
            ("diagnose", "--no-figures"),
            ("align", "--points", "20"),
            ("train", "--resume"),
            ("train", "--resume"),
        )
    )
    return lambda: main([*verb, str(folder)])


def alignment(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], None]:
    folder = Path(shutil.copytree(seeds.folder / "aligned", at / "aligned"))
    target = folder / rng.choice(("alignment.json", "member-0.npz"))
    if target.suffix == ".json" and rng.random() < 0.8:
        text = json.dumps(reshaped(json.loads(target.read_bytes()), rng))
        target.write_bytes(text.encode("utf-8", "surrogatepass"))
    else:
        target.write_bytes(mutated(target.read_bytes(), rng))
    return lambda: void(load_alignment(folder, rng.choice((None, 0))))


def command_line(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], int]:
    run, npy_file = str(seeds.folder / "run"), str(seeds.folder / "codes.npy")
    short = ["--steps", "2", "--workers", "1", "--network", "linear", "--latents", "2", "--out", str(at / "out")]
    starts = {
        "train": ["train", rng.choice((npy_file, "synth-linear")), *short],
        "evaluate": ["evaluate", run],
        "diagnose": ["diagnose", run, "--no-figures"],
        "align": ["align", run, "--points", "20", "--out", str(at / "a")],
        "report": ["report", run, "--out", str(at / "r.html")],
        "score": ["score", npy_file, str(seeds.folder / "factors.npy"), "--metrics", "mig"],
        "data": ["data", "list"],
        "stress": ["stress"],
        "objectives": ["objectives"],
        "bench": ["bench", "nothing"],
        "reproduce": ["reproduce", "--list", "--out", str(at)],
        "explore": ["explore", str(at)],
    }
    flags = {
        "train": [
            "--seeds",
            "--beta",
            "--lr",
            "--eps",
            "--batch",
            "--holdout",
            "--objective",
            "--optimiser",
            "--likelihood",
            "--precision",
            "--how",
            "--encoder",
            "--s2",
            "--weight-decay",
            "--log-every",
            "--snapshots",
            "--watch",
            "--data.size",
            "--data.key",
            "--data.likelihood",
            "--data.ratio",
            "--gamma",
            "--resume",
        ],
        "evaluate": ["--metrics", "--member", "--rows", "--samples", "--seed"],
        "diagnose": ["--member", "--points", "--seed"],
        "align": ["--member", "--seed", "--points"],
        "report": ["--member", "--formats"],
        "score": ["--kinds", "--names", "--seed", "--threads", "--test-codes", "--bin-continuous", "--metrics"],
    }
    verb = rng.choice((*starts, "train", "train", "evaluate", "score"))
    args = starts[verb]
    for _ in range(rng.randrange(1, 4)):
        roll = rng.random()
        if roll < 0.75 and verb in flags:
            args += [rng.choice(flags[verb]), rng.choice(NUMBERS)]
        elif roll < 0.9:
            args.insert(rng.randrange(len(args) + 1), rng.choice(NUMBERS))
        elif args:
            del args[rng.randrange(len(args))]
    if "--metrics" not in args and verb == "score":
        args += ["--metrics", "mig"]
    if "reproduce" in args and "--list" not in args:
        args.append("--list")  # all exhibits would be an answer too, in hours
    if args[:1] in (["demo"], ["bench"]) or ("--data.size" in args and "1e18" in args and rng.random() < 0.5):
        args = ["data"]
    return lambda: main(args)


def found(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], None]:
    """What `find` does before it searches: reads a table, recognises its columns, fills and scales them."""
    path, kinds = array_file(seeds, at, rng), {rng.choice(CELLS): rng.choice(("counts", "binary", "x", "categorical"))}
    kinds = kinds if rng.random() < 0.1 else {}

    def act() -> None:
        source = read(str(path))
        prepare(source.table, kinds=kinds, shape=source.shape)

    return act


def grid(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], None]:
    """A study's grid: bytes of the smallest preset changed."""
    path = at / "grid.toml"
    path.write_bytes(mutated((Path(study.__file__).parent / "presets" / "minute.toml").read_bytes(), rng))
    return lambda: void(load_grid(path))


def request(seeds: Seeds, at: Path, rng: random.Random) -> Callable[[], None]:
    """What the explorer takes from a stranger, at its checks."""
    roll = rng.randrange(3)
    if roll == 0:
        name, content = rng.choice(list(seeds.pictures.items()))
        body = content if name == "bomb.png" else mutated(content, rng)
        return lambda: void(observation(body, (rng.choice((1, 3)), 8, 8)))
    if roll == 1:
        body = rng.choice((b"1 2 3", b"1,2,nan", b"9" * 500, b"\xff", mutated(b"1, 2.5, 3", rng)))
        return lambda: void(observation(body, (3,)))
    good = {"model": "0.0", "z": [0.0, 1.0], "aligned": False, "component": 0, "axes": "latents"}
    text = json.dumps(reshaped(good, rng)).encode("utf-8", "surrogatepass")
    body = mutated(text, rng) if rng.random() < 0.4 else text

    def act() -> None:
        fields = checks.document(body)
        checks.latent_vector(checks.need(fields, "z"), 2)
        checks.flag(fields.get("aligned", False), "aligned")
        checks.checked_integer(fields.get("component"), "component", 0, 1)
        checks.one_of(checks.AXES, fields.get("axes", "latents"), "axes")

    return act


KINDS: dict[str, tuple[Callable[..., Callable[[], Any]], int]] = {  # kind -> (maker, share of the inputs)
    "score": (scored, 30),
    "own-data": (own_data, 25),
    "images": (image_folder, 8),
    "idx": (idx_file, 4),
    "run-folder": (run_folder, 15),
    "alignment": (alignment, 5),
    "command-line": (command_line, 8),
    "request": (request, 5),
    "find": (found, 10),
    "grid": (grid, 4),
    **NEWER,
}


def one(seeds: Seeds, kind: str, number: int, place: Path) -> tuple[str, str]:
    """Make and try one input."""
    at = place / f"{kind}-{number}"
    at.mkdir(parents=True)
    try:
        act = KINDS[kind][0](seeds, at, random.Random(f"{kind} {number}"))
        with chdir(at):  # a word too few, and something is written here
            return attempt(act)
    finally:
        shutil.rmtree(at, ignore_errors=True)


def fuzz(count: int, place: Path, first: int = 0, seconds: float = 1e9) -> Tally:
    """`count` inputs over all kinds, by their shares; or as many as there is time for."""
    seeds, tally = Seeds.make(place / "seeds"), Tally()
    kinds = [kind for kind, (_, share) in KINDS.items() for _ in range(share)]
    random.Random(0).shuffle(kinds)
    began = time.monotonic()
    for number in range(first, first + count):
        if time.monotonic() - began > seconds:
            break
        kind = kinds[number % len(kinds)]
        tally.note(kind, number, *one(seeds, kind, number, place))
    return tally
