"""How files are broken, and the good ones that breaking starts from. Everything follows from the generator given."""

from __future__ import annotations

import io
import random
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from unseam.runs.align import align, save_alignment
from unseam.runs.diagnose import diagnose
from unseam.train import fit

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
