"""Bad input, by the thousand: whatever a file, a run folder or a command line holds, there is an answer or one line.

Every input follows from (kind, number), so one that fails is made again by its name. A *defect* is an exception that
leaves `main` (or, at a reader, one that is no BadInput), an error of more than one line, or more than LIMIT seconds of
processor time.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import signal
import sqlite3
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from unseam.cli import main
from unseam.data import load_data
from unseam.data.idx import read_idx
from unseam.errors import BadInput
from unseam.runs.align import align, load_alignment, save_alignment
from unseam.runs.diagnose import diagnose
from unseam.show.explorer import checks
from unseam.show.explorer.upload import observation
from unseam.train import fit

LIMIT = 30  # seconds of processor time that an input may take
ASLEEP = 600  # seconds in all: it waits for something that does not come
NUMBERS = (
    "", "0", "-1", "1", "1.5", "nan", "inf", "-inf", "1e400", "9" * 400, str(2**63), "0x1", "1,2", "0..3", "3..0", "x",
    "\u0663", "--", "-", "None", "true", "[1]", "a b", "\udcff", "1e18", "'", '"', "{}", "1_0", "+5",
)  # fmt: skip
CELLS = (
    "1", "2", "0.5", "", "nan", "inf", "-1e400", "9" * 400, "a", '"', '"1', "'1'", "#", "# x", "1;2", "1\t2", "\x00",
    "é", "TRUE", "None", " 3 ", "1,5", "=1+1", "\ufeff", "1e5", "0x10", "\r", '"a\nb"',
)  # fmt: skip
HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 2), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808, 2), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    "{'descr': [('a', '<f8', (2,))], 'fortran_order': False, 'shape': (3,), }",
    "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (3,), }",
    "{'descr': '<c16', 'fortran_order': True, 'shape': (3, 1), }",
    "{'descr': '|V8', 'fortran_order': False, 'shape': (6,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4), }",
    "{'descr': '<f2', 'fortran_order': False, 'shape': (40, 3), }",
    "{'descr': '|S3', 'fortran_order': False, 'shape': (40, 2), }",
    "{'descr': __import__('os'), 'fortran_order': False, 'shape': (3,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3,) ",
    "-" * 6000,
    "(" * 3000,
)


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
    told = io.StringIO()
    try:
        with limited(), warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(told):
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
    text = told.getvalue()
    if code not in (1, 2) or text.count("\n") != 1 or not text.startswith("unseam: "):
        return "long", f"code {code}: {text[:2000]}"
    return ("refused", "") if code == 2 else ("failed", "")


# How things are broken


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Some bytes flipped, cut, doubled, put in or replaced."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(7)
        if how == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif how == 1:
            del data[at:]
        elif how == 2:
            data[at:at] = rng.randbytes(rng.choice((1, 4, 100)))
        elif how == 3:
            del data[at : at + rng.choice((1, 8, 200))]
        elif how == 4:
            data[at:at] = data[at : at + 50]
        elif how == 5 and len(data) > 8:
            data[at % (len(data) - 7) : at % (len(data) - 7) + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"\x7f" * 8))
        elif how == 6 and data:
            data[at % len(data)] = rng.choice(b'\x00\xff\n,"{[0-9')
    return bytes(data)


def reshaped(document: Any, rng: random.Random) -> Any:
    """JSON with one value somewhere replaced, removed, or put under another name."""
    strange = (
        None,
        True,
        -1,
        0,
        1.5,
        2**70,
        "x",
        "",
        [],
        {},
        [[]],
        {"a": 1},
        float("nan"),
        float("inf"),
        [0, 0],
        "\udcff",
    )
    keys = (
        list(document)
        if isinstance(document, dict)
        else list(range(len(document)))
        if isinstance(document, list)
        else []
    )
    if not keys or rng.random() < 0.1:
        return rng.choice(strange)
    key = rng.choice(keys)
    if rng.random() < 0.15:
        out = document.copy()
        gone = out.pop(key)
        if isinstance(out, dict) and rng.random() < 0.5:
            out[f"{key}x"] = gone
        return out
    out = document.copy()
    out[key] = reshaped(document[key], rng)
    return out


def npy(header: str, rng: random.Random) -> bytes:
    version = rng.choice((1, 1, 2, 3))
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes((version, 0)) + length + header.encode() + rng.randbytes(rng.choice((0, 48, 320)))


def csv_text(rng: random.Random) -> bytes:
    mark, end = rng.choice((",", ",", ";", "\t", " ")), rng.choice(("\n", "\n", "\r\n", "\r"))
    wide, plain = rng.randrange(1, 4), rng.random()
    rows = []
    for _ in range(rng.choice((0, 1, 2, 40, 40))):
        count = wide if rng.random() < 0.97 else rng.randrange(5)
        rows.append(
            mark.join(str(rng.randrange(4)) if rng.random() < plain else rng.choice(CELLS) for _ in range(count))
        )
    text = rng.choice(("", "", "\ufeff", "\n", "# x\n", "a,b\n", ",,\n")) + end.join(rows)
    return text.encode(rng.choice(("utf-8", "utf-8", "utf-8", "utf-16", "latin-1")), "replace")


# Good files to start from


@dataclass(frozen=True)
class Seeds:
    """One good file of each kind, and one good run folder, made once."""

    folder: Path
    arrays: dict[str, bytes]  # ending -> content
    pictures: dict[str, bytes]

    @staticmethod
    def make(folder: Path) -> Seeds:
        import h5py
        import pandas

        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        F = rng.integers(0, 3, (40, 2))
        Z = F + 0.1 * rng.normal(size=F.shape)
        np.save(folder / "codes.npy", Z)
        np.save(folder / "factors.npy", F)
        frame = pandas.DataFrame(F, columns=["a", "b"])
        frame.to_csv(folder / "t.csv", index=False)
        frame.to_csv(folder / "t.tsv", index=False, sep="\t")
        frame.assign(c=["x", "y"] * 20).to_parquet(folder / "t.parquet")
        np.savez(folder / "t.npz", F)
        np.savez_compressed(folder / "u.npz", codes=Z, factors=F)
        with h5py.File(folder / "t.h5", "w") as file:
            file.create_dataset("x", data=Z, compression="gzip")
        few = {"network": "linear", "latents": 2, "steps": 4, "workers": 1, "show": False, "seeds": [0, 1]}
        run = fit(Z, out=folder / "run", data_parameters={"factors": F[:, 0]}, **few)
        save_alignment(folder / "aligned", run, {0: align(run, 0, points=20)})
        diagnose(run, show=False)
        with sqlite3.connect(folder / "run" / "results.sqlite") as connection:
            connection.execute("pragma journal_mode=delete")  # so that a folder is copied whole
        arrays = {p.suffix: p.read_bytes() for p in folder.glob("t.*")} | {
            ".npy": (folder / "factors.npy").read_bytes()
        }
        arrays[".z.npz"] = (folder / "u.npz").read_bytes()
        return Seeds(folder, arrays, dict(pictures()))


def pictures() -> Iterator[tuple[str, bytes]]:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 3), dtype=np.uint8))
    for name in ("png", "jpeg", "gif", "bmp", "webp", "tiff"):
        file = io.BytesIO()
        with suppress(OSError, KeyError):
            image.save(file, name)
            yield name, file.getvalue()
    head = io.BytesIO()
    Image.new("1", (60, 60)).save(head, "PNG")
    yield "bomb.png", head.getvalue().replace((60).to_bytes(4, "big") * 2, (60_000).to_bytes(4, "big") * 2)


# One maker a kind of input: (seeds, place to work in, rng) -> what to do


def array_file(seeds: Seeds, at: Path, rng: random.Random) -> Path:
    """A broken file of any ending; now and then of another kind than it says."""
    ending = rng.choice(list(seeds.arrays))
    content = seeds.arrays[ending]
    path = at / f"x{ending if rng.random() < 0.92 else rng.choice(list(seeds.arrays))}"
    roll = rng.random()
    if ending == ".npy" and roll < 0.5:
        content = npy(rng.choice(HEADERS), rng)
    elif ending in (".csv", ".tsv") and roll < 0.7:
        content = csv_text(rng)
    elif ending.endswith(".npz") and roll < 0.3:
        file = io.BytesIO()
        with zipfile.ZipFile(
            file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
        ) as archive:
            archive.writestr(rng.choice(("codes.npy", "../x.npy", "x", "factors.npy")), npy(rng.choice(HEADERS), rng))
        content = file.getvalue()
    elif roll < 0.97:
        content = mutated(content, rng)
    path.write_bytes(content)
    return path


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
        "score": ["--kinds", "--names", "--seed", "--workers", "--test-codes", "--bin-continuous", "--metrics"],
    }
    verb = rng.choice((*starts, "train", "train", "evaluate", "score"))
    args = starts[verb]
    for _ in range(rng.randrange(1, 4)):
        roll = rng.random()
        if roll < 0.75 and verb in flags:
            args += [rng.choice(flags[verb]), rng.choice(NUMBERS)]
        elif roll < 0.9:
            args.insert(rng.randrange(len(args) + 1), rng.choice(NUMBERS))
        else:
            del args[rng.randrange(len(args))]
    if "--metrics" not in args and verb == "score":
        args += ["--metrics", "mig"]
    if args[:1] == ["demo"] or ("--data.size" in args and "1e18" in args and rng.random() < 0.5):
        args = ["data"]
    return lambda: main(args)


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
        checks.whole(fields.get("component"), "component", 0, 1)
        checks.axes(fields.get("axes", "latents"))

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
}


def one(seeds: Seeds, kind: str, number: int, place: Path) -> tuple[str, str]:
    """Make and try one input."""
    at = place / f"{kind}-{number}"
    at.mkdir(parents=True)
    try:
        return attempt(KINDS[kind][0](seeds, at, random.Random(f"{kind} {number}")))
    finally:
        shutil.rmtree(at, ignore_errors=True)


def fuzz(count: int, place: Path, first: int = 0, tell: Callable[[Tally], None] = lambda _: None) -> Tally:
    """`count` inputs over all kinds, by their shares."""
    seeds, tally = Seeds.make(place / "seeds"), Tally()
    kinds = [kind for kind, (_, share) in KINDS.items() for _ in range(share)]
    random.Random(0).shuffle(kinds)
    for number in range(first, first + count):
        kind = kinds[number % len(kinds)]
        tally.note(kind, number, *one(seeds, kind, number, place))
        if number % 500 == 499:
            tell(tally)
    return tally
