"""Bad input for what came later: studies, match, traverse, export, stress, perturbed data, packs, find, pairs, names.

As in `fault_fuzz`: a maker a kind, (seeds, place to work in, rng) -> what to do; it follows from its number.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from fault_broken import CELLS, HEADERS, NUMBERS, Seeds, array_file, csv_text, mutated, npy, reshaped
from safetensors.torch import save

from unseam.cli import VERBS, main
from unseam.data import config, load_data
from unseam.data.pairs import read_pairs
from unseam.data.sets.perturbed import Mover, column_reach, write_perturbed
from unseam.errors import BadInput
from unseam.run import load_run
from unseam.runs.labels import latent_names
from unseam.runs.pack import pack
from unseam.show.explorer.open_runs import open_gallery
from unseam.show.explorer.server import application
from unseam.study.engine import check_grid
from unseam.study.grid import from_document, load_grid
from unseam.study.pieces import places, start_study
from unseam.train import fit

Act = Callable[[], Any]
NAMES = (
    "a",
    "$x^{$",
    "<img src=x onerror=alert(1)>",
    "_a",
    "",
    " ",
    "\u202e",
    "\ud800",
    "é" * 300,
    "a\nb",
    "{{7*7}}",
    "[red]x",
    "id",
    "\x00",
    "__index_level_0__",
    "../a",
    "%s",
    "a,b",
    "a=b",
)
WRITTEN = tuple(name for name in NAMES if name != "\ud800")  # what a table can hold
FEW = {"network": "linear", "latents": 2, "steps": 4, "workers": 1, "show": False}


# Good things to start from, made once a folder


@cache
def tables(folder: Path) -> dict[str, Any]:
    """A study's table, as small as one can be with every column the analysis reads."""
    rng, rows = np.random.default_rng(0), []
    for method in ("beta-vae", "dip-vae-i"):
        for strength, seed in ((1.0, 0), (1.0, 1), (4.0, 0), (4.0, 1)):
            scores = {
                f"{code}.{m}": rng.uniform() for code in ("mean", "sampled") for m in ("mig", "sap", "factor-vae")
            }
            free = {
                "unsup.elbo": rng.normal(),
                "unsup.tc-mean": rng.uniform(),
                "unsup.tc-sampled": rng.uniform(),
                "free.dto": rng.uniform(),
                "free.udr": rng.uniform(),
                "free.rank": rng.integers(1, 9),
                "downstream.trees.10": rng.uniform(),
                "downstream.trees.100": rng.uniform(),
            }
            rows.append(
                {
                    "data": "ring",
                    "method": method,
                    "strength": strength,
                    "seed": seed,
                    "status": "finished",
                    "latents": 2,
                    "free.active": 2,
                    **scores,
                    **free,
                }
            )
    return {"frame": pd.DataFrame(rows)}


@cache
def study_folder(folder: Path) -> Path:
    """A study whose pieces are done, its rows made up."""
    out, rng = folder / "study", np.random.default_rng(0)
    grid = load_grid(Path(__file__).parents[1] / "study" / "tiny.toml")
    start_study(out, grid)
    for place in places(out, grid):
        made = [
            {
                "data": m.data,
                "method": m.method.name,
                "strength": m.strength,
                "strength_name": m.method.swept,
                "seed": m.seed,
                "number": m.number,
                "piece": place.piece.name,
                "member": i,
                "status": "finished",
                "mean.mig": rng.uniform(),
                "mean.sap": rng.uniform(),
                "free.dto": rng.uniform(),
                "free.active": 2,
                "free.dto-chance": 0.5,
                "free.cost-over-beta": rng.uniform(),
                "free.ima-contrast": rng.uniform(),
            }
            for i, m in enumerate(place.piece.models)
        ]
        place.folder.mkdir(parents=True)
        (place.folder / "rows.json").write_text(json.dumps(made))
        (place.folder / "seconds.json").write_text(json.dumps({"training": 1.0}))
        np.save(place.folder / "codes.npy", rng.normal(size=(len(made), 16, 2)))
    return out


@cache
def perturbed_folders(folder: Path) -> tuple[Path, Path]:
    """One that follows factors, one that follows codes of its own rows."""
    sprites = load_data("sprites", size=16, shapes=1, orientations=1, scales=1)
    scale = column_reach(sprites.factors(torch.arange(len(sprites))))
    mover = Mover(scale[0].numel(), sprites.shape, hidden=4)
    write_perturbed(folder / "by-factors", config(sprites), 0.1, mover, scale)
    np.save(folder / "unit.npy", np.random.default_rng(0).uniform(size=(40, 3)).astype(np.float32))
    mine = load_data(folder / "unit.npy")
    w = np.zeros((len(mine), 3), np.float32)
    write_perturbed(folder / "by-codes", config(mine), 0.1, Mover(3, mine.shape, hidden=4), own=w)
    return folder / "by-factors", folder / "by-codes"


@cache
def begun_perturb(folder: Path) -> tuple[list[str], Path]:
    """A perturbation without its page: the same call goes on."""
    np.save(folder / "unit.npy", np.random.default_rng(0).uniform(size=(40, 3)).astype(np.float32))
    words = ["perturb", str(folder / "unit.npy"), "--rounds", "2", "--seeds", "0,1", "--steps", "2", "--out"]
    with redirect_stdout(StringIO()):
        main([*words, str(folder / "perturb")])
    (folder / "perturb" / "perturb.html").unlink()
    return words, folder / "perturb"


@cache
def packed_folder(folder: Path) -> Path:
    return pack([load_run(folder / "run")], folder / "packed", show=False)


@cache
def pictures_run(folder: Path) -> Path:
    """A run on pictures, for what moves."""
    few = {"size": 16, "shapes": 1, "orientations": 1, "scales": 1}
    return fit("sprites", out=folder / "sprites", data_parameters=few, **FEW).folder


@cache
def page(folder: Path) -> Any:
    """The explorer of that run, without a socket."""
    return application(open_gallery([pictures_run(folder)], [0, None]), 8642)


# How documents and folders are broken


def rewritten(path: Path, rng: random.Random) -> None:
    """A JSON file with a value changed, or its bytes."""
    content = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.8:
        content = json.dumps(reshaped(json.loads(content), rng)).encode("utf-8", "surrogatepass")
    elif path.suffix == ".npy" and rng.random() < 0.4:
        content = npy(rng.choice(HEADERS), rng)
    else:
        content = mutated(content, rng)
    path.write_bytes(content)


def tensors(rng: random.Random) -> bytes:
    """A .safetensors file: of strange shapes and types, sometimes broken."""
    shape = rng.choice(((), (0,), (3,), (0, 4), (4, 0), (4, 3), (2, 2, 2), (1, 1)))
    kind = rng.choice((torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float64, torch.complex64))
    value = rng.choice((0.0, 1.0, float("nan"), float("inf"), 1e38))
    made = save({rng.choice(("W_dec", "x", "decoder.weight", "")): torch.full(shape, value).to(kind)})
    return mutated(made, rng) if rng.random() < 0.4 else made


def frame(seeds: Seeds, rng: random.Random) -> pd.DataFrame:
    """A study's table with one thing wrong, or two."""
    table = tables(seeds.folder)["frame"].copy()
    strange = (None, "", "x", float("inf"), -1, 1e300, 0, True, "$x^{$", "<b>", 2**63)
    for _ in range(rng.choice((1, 1, 2, 4))):
        column, how = rng.choice(list(table)), rng.randrange(8)
        if how == 0:
            table = table.drop(columns=column)
        elif how == 1:
            table[column] = rng.choice(strange)
        elif how == 2 and len(table):
            table[column] = table[column].astype(object)
            table.iloc[rng.randrange(len(table)), list(table).index(column)] = rng.choice(strange)
        elif how == 3:
            table = table.rename(columns={column: rng.choice((*WRITTEN, *table))})
        elif how == 4:
            table = table.iloc[: rng.randrange(4)]
        elif how == 5:
            table = pd.concat([table, table])
        elif how == 6:
            table[rng.choice(("mean.x", "downstream.trees.x", "downstream.", "free.new", "unsup.kl", "."))] = 1.0
        elif how == 7 and len(table):
            values = table.iloc[:, list(table).index(column)].tolist()  # a name may be there twice
            table[column] = rng.choices(values, k=len(table))
        if table.empty or not len(table.columns):
            break
    return table


# One maker a kind


def study_table(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """`study analyse FILE`: broken bytes, or a table that reads well and makes no sense."""
    path = at / rng.choice(("t.parquet", "t.csv"))
    if rng.random() < 0.25:
        path = array_file(seeds, at, rng)
    else:
        table = frame(seeds, rng)
        try:
            table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=rng.random() < 0.2)
        except Exception:  # pandas or pyarrow cannot write it: bytes then
            path.write_bytes(csv_text(rng))
        if rng.random() < 0.3:
            path.write_bytes(mutated(path.read_bytes(), rng))
    return lambda: main(["study", "analyse", str(path), "--out", str(at / "out")])


def studied(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """A study's folder with a file changed or gone."""
    folder = Path(shutil.copytree(study_folder(seeds.folder), at / "study"))
    victim = rng.choice([folder / "study.json"] * 6 + sorted(p for p in folder.rglob("*") if p.is_file()))
    victim.unlink() if rng.random() < 0.1 else rewritten(victim, rng)
    act = rng.choice(
        (
            ["table", str(folder), "--out", str(at / "t.csv")],
            ["show", str(folder)],
            ["analyse", str(folder), "--out", str(at / "out")],
        )
    )
    return lambda: main(["study", *act, *(["--json"] if rng.random() < 0.3 else [])])


def grid_document(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """A grid as TOML would give it, one value changed."""
    document = {
        "name": "g",
        "seeds": "0..3",
        "together": 2,
        "data": {"ring": {"name": "ring", "circles": 4}},
        "methods": {"beta-vae": {"beta": [1, 2.5]}, "b": {"objective": "dip-vae-i", "lambda_od": [1], "ratio": 2}},
        "settings": {"steps": 10, "latents": 2, "encoder": [4]},
        "evaluation": {"rows": 20, "test": 10, "labels": [10], "tree_labels": [10]},
    }
    for _ in range(rng.choice((1, 1, 2))):
        document = reshaped(document, rng)
    seeds_text = rng.choice(("0..3", "3..0", "0..99999999999", "", "..", "0..", "\u0663..4", "0..1e3", "-1..2"))
    if isinstance(document, dict) and rng.random() < 0.2:
        document = {**document, "seeds": seeds_text}

    def act() -> None:
        if isinstance(document, dict):  # as every TOML document is
            grid = from_document(document, "grid.toml")
            start_study(at / "study", grid)
            check_grid(grid)

    return act


def matched(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    things = [str(seeds.folder / "codes.npy"), str(seeds.folder / "codes.npy"), str(seeds.folder / "run")]
    for _ in range(rng.randrange(1, 3)):
        path = at / f"{rng.randrange(9)}.safetensors"
        path.write_bytes(tensors(rng))
        thing = str(path) if rng.random() < 0.5 else str(array_file(seeds, at, rng))
        things.append(thing + rng.choice(("", "", "", ":x", ":", ":W_dec", ":codes")))
    flags = rng.choice(
        (
            (),
            ("--signed",),
            ("--of", "codes"),
            ("--transpose",),
            ("--json",),
            ("--at", rng.choice(NUMBERS)),
            ("--seed", rng.choice(NUMBERS)),
            ("--out", str(at / rng.choice(("m.csv", "", "a/b/c")))),
        )
    )
    chosen = rng.choices(things, k=rng.choice((0, 1, 2, 2, 2, 3)))
    return lambda: main(["match", *chosen, *flags])


def perturbed(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """A folder that `unseam perturb` wrote, damaged, as data."""
    folder = Path(shutil.copytree(rng.choice(perturbed_folders(seeds.folder)), at / "data"))
    victim = rng.choice([folder / "perturbed.json"] * 3 + sorted(folder.iterdir()))
    if rng.random() < 0.1:
        victim.unlink()
    elif victim.suffix == ".safetensors" and rng.random() < 0.3:
        victim.write_bytes(tensors(rng))
    elif victim.name == "perturbed.json" and rng.random() < 0.2:
        document = json.loads(victim.read_bytes())
        document["base"] = rng.choice((str(folder), {"name": str(folder)}, {"name": str(at)}, {"name": "ring"}))
        victim.write_text(json.dumps(document))
    else:
        rewritten(victim, rng)

    def act() -> int | None:
        if rng.random() < 0.2:
            return main(["data", "show", str(folder), "--out", str(at / "sheet.png")])
        data = load_data(folder)
        rows = torch.arange(min(3, len(data)))
        x = data.batch(rows)
        _ = data.shape, data.space, data.likelihood, data.renders, config(data)
        if not (x - data.base.batch(rows)).abs().max() <= max(data.eps, 0) + 1e-6:
            raise AssertionError("a value moved by more than eps")
        return None

    return act


def going_on(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """`perturb` on a folder whose state was damaged."""
    words, begun = begun_perturb(seeds.folder)
    folder = Path(shutil.copytree(begun, at / "p"))
    state = [folder / "asked.json", folder / "manipulation.safetensors", folder / "original" / "config.json"]
    victim = rng.choice([*state * 3, *sorted(p for p in folder.rglob("*") if p.is_file())])
    victim.unlink() if rng.random() < 0.15 else rewritten(victim, rng)
    return lambda: main([*words, str(folder)])


def packed(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """A pack with a file changed; now and then its manifest says that this is right."""
    folder = Path(shutil.copytree(packed_folder(seeds.folder), at / "packed"))
    inside = sorted(p for p in folder.rglob("*") if p.is_file())
    victim = rng.choice(
        [folder / "pack.json"] * 4 + [p for p in inside if p.suffix in (".json", ".safetensors")] + inside
    )
    victim.unlink() if rng.random() < 0.1 else rewritten(victim, rng)
    if victim.name != "pack.json" and victim.exists() and rng.random() < 0.7:
        document, content = json.loads((folder / "pack.json").read_bytes()), victim.read_bytes()
        told = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        document["files"][victim.relative_to(folder).as_posix()] = told
        (folder / "pack.json").write_text(json.dumps(document))
    run = rng.choice((folder, folder / "run"))
    verb = rng.choice(
        (
            ("export", str(run), "--to", "safetensors", "--out", str(at / "e")),
            ("match", str(run)),
            ("diagnose", str(run), "--no-figures"),
            ("train", "--resume", str(run)),
            ("data", "pack", str(run), "--out", str(at / "again")),
        )
    )

    def act() -> int | None:
        if rng.random() < 0.5:
            return main(list(verb))
        opened = load_run(run, data=np.zeros((4, 2)))
        opened.encode(np.zeros((4, 2)), 0)
        return None

    return act


def later_verbs(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """A run folder with a damaged file or strange names, at the verbs that came later."""
    source = rng.choice((seeds.folder / "run", pictures_run(seeds.folder)))
    folder, out = Path(shutil.copytree(source, at / "run")), str(at / "out")
    roll, config_file = rng.random(), folder / "config.json"
    if roll < 0.5:
        rewritten(config_file, rng)
    elif roll < 0.7:
        document = json.loads(config_file.read_bytes())
        document["features"] = [rng.choice(NAMES) for _ in range(rng.choice((2, 2, 2, 1, 5)))]
        config_file.write_bytes(json.dumps(document).encode("utf-8", "surrogatepass"))
    elif roll < 0.85:
        text = json.dumps(reshaped({"0": {"0": rng.choice(NAMES), "1": "b"}, "1": {}}, rng))
        (folder / "names.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    else:
        rewritten(folder / "checkpoints" / "group-000.safetensors", rng)
    verb = rng.choice(
        (
            ("traverse", "--frames", "3", "--out", out),
            ("traverse", "--gif", "--frames", "3", "--out", out),
            ("export", "--to", "safetensors", "--out", out),
            ("export", "--to", "pt2", "--out", out),
            ("stress", "--points", "5"),
            ("match",),
            ("data", "pack", "--out", out),
            ("report", "--out", f"{out}.html"),
            ("explore", "--port", "-1", "--no-open"),
        )
    )
    words = ["data", "pack", str(folder), *verb[2:]] if verb[0] == "data" else [verb[0], str(folder), *verb[1:]]

    def act() -> int:
        if rng.random() < 0.1:
            latent_names(load_run(folder))
        return main(words)

    return act


def expression(rng: random.Random) -> str:
    """What a user may write into --data.without or --data.correlate, and what not."""
    words = (
        "circle",
        "point",
        "*",
        "=",
        "<",
        ">=",
        "!=",
        "&",
        "|",
        ";",
        ",",
        "0",
        "1",
        "0.1",
        "e",
        "-",
        "+",
        "1e400",
        "nan",
        ".",
        " ",
        "==",
        "x",
        "",
        "1e-9",
        "\n",
        "\u0663",
        "9" * 400,
    )
    good = rng.choice(("circle=0", "point>3&circle<2", "circle,point=0.1", "circle,*=0.4;point,circle=1"))
    parts = list(good) if rng.random() < 0.5 else []
    for _ in range(rng.randrange(1, 6)):
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(words))
        if len(parts) > 1 and rng.random() < 0.4:
            del parts[rng.randrange(len(parts))]
    return "".join(parts)


def subsets(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    flag = rng.choice(
        (
            "without",
            "without",
            "correlate",
            "correlate",
            "share",
            "subset-seed",
            "noise",
            "pad",
            "grey",
            "colour",
            "background",
            "noisy",
            "scale",
        )
    )
    value = expression(rng) if flag in ("without", "correlate") else rng.choice(NUMBERS)
    words = [f"--data.{flag}={value}", *([f"--data.share={rng.choice(NUMBERS)}"] if rng.random() < 0.2 else [])]
    return lambda: main(["data", "show", rng.choice(("ring", "ring", "digits")), *words, "--out", str(at / "x.png")])


def pairs_file(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """--pairs FILE: at its reader, or at a training."""
    path = array_file(seeds, at, rng) if rng.random() < 0.5 else at / rng.choice(("p.csv", "p.npy", "p.txt", "p"))
    if not path.exists() and rng.random() < 0.95:
        rows = [[rng.choice(("0", "1", "39", "40", "-1", "1.5", *CELLS)) for _ in range(2)] for _ in range(9)]
        text = "\n".join(",".join(row) for row in rows).encode()
        path.write_bytes(rng.choice((text, b"0,1\n2,3\n", mutated(b"0,1\n2,3\n", rng), csv_text(rng))))
    words = [
        "train",
        str(seeds.folder / "codes.npy"),
        "--objective",
        "ada-gvae",
        "--pairs",
        str(path),
        "--steps",
        "1",
        "--network",
        "linear",
        "--latents",
        "2",
        "--workers",
        "1",
        "--out",
        str(at / "run"),
    ]
    if rng.random() < 0.5:
        return lambda: main(words)

    def act() -> None:
        begin, many, partner = read_pairs(str(path), 40)
        if (
            int(many.sum()) != len(partner)
            or not 0 <= int(partner.min()) <= int(partner.max()) < 40
            or len(begin) != 40
        ):
            raise AssertionError("pairs that are not pairs of rows")

    return act


def whole_find(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """`find` from end to end, on tables with every kind of column."""
    draw, rows = np.random.default_rng(rng.randrange(1000)), rng.choice((10, 12, 40, 60))
    kinds: dict[str, Callable[[], Any]] = {
        "numbers": lambda: draw.normal(size=rows),
        "counts": lambda: draw.poisson(3, rows),
        "flags": lambda: draw.random(rows) > 0.5,
        "words": lambda: draw.choice(["u", "v", "w"], rows),
        "dates": lambda: pd.date_range("2020-01-01", periods=rows),
        "constant": lambda: np.ones(rows),
        "gaps": lambda: np.where(draw.random(rows) < 0.3, np.nan, draw.normal(size=rows)),
        "empty": lambda: np.full(rows, np.nan),
        "huge": lambda: draw.normal(size=rows) * 1e300,
        "tiny": lambda: draw.normal(size=rows) * 1e-300,
        "ids": lambda: np.arange(rows),
        "two": lambda: np.arange(rows) % 2,
        "infinite": lambda: np.where(draw.random(rows) < 0.1, np.inf, 1.0),
        "parts": lambda: draw.exponential(size=rows),
        "classes": lambda: pd.Categorical(draw.choice(["a", "b"], rows)),
        "long": lambda: np.arange(rows) + 2**62,
        "mixed": lambda: np.where(draw.random(rows) < 0.5, "1", "x"),
    }
    chosen = rng.choices(list(kinds), k=rng.choice((1, 2, 3, 4, 6)))
    table = pd.DataFrame(
        {
            f"{kind}{i}" if rng.random() < 0.8 else f"{rng.choice(WRITTEN)}{i}": kinds[kind]()
            for i, kind in enumerate(chosen)
        }
    )
    path = at / rng.choice(("t.csv", "t.csv", "t.tsv", "t.parquet"))
    try:
        table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(
            path, index=False, sep="\t" if path.suffix == ".tsv" else ","
        )
    except (ValueError, UnicodeError):
        path.write_bytes(csv_text(rng))
    named = rng.choice((*table, "x", ""))
    kind = rng.choice(("counts", "continuous", "categorical", "binary", "constant", "whole", "x", ""))
    flags = rng.choice(
        (
            (),
            (),
            ("--kinds", f"{named}={kind}"),
            ("--kinds", rng.choice(NUMBERS)),
            ("--leave-out", f"{named}"),
            ("--latents", rng.choice(NUMBERS)),
            ("--scale", "common"),
            ("--scale", "none"),
            ("--key", rng.choice(NUMBERS)),
            ("--codes", "parquet"),
            ("--json",),
            ("--beta", rng.choice(NUMBERS)),
            ("--seed", rng.choice(NUMBERS)),
        )
    )
    return lambda: main(["find", str(path), "--no-network", "--quick", "--out", str(at / "found"), *flags])


def later_words(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """Command lines of the later verbs with nonsense in them."""
    run, npy_file, out = str(seeds.folder / "run"), str(seeds.folder / "codes.npy"), str(at / "out")
    factors = str(seeds.folder / "factors.npy")
    starts: dict[str, tuple[list[str], tuple[str, ...]]] = {
        "match": ([npy_file, npy_file], ("--at", "--of", "--seed", "--transpose", "--out")),
        "traverse": ([run, "--out", out], ("--member", "--row", "--to-row", "--frames", "--gif", "--all")),
        "export": ([run, "--to", "safetensors", "--out", out], ("--member", "--to")),
        "stress": ([run, "--points", "5"], ("--member", "--degrees", "--points")),
        "perturb": (
            [npy_file, "--out", out, "--rounds", "1", "--steps", "1"],
            ("--eps", "--rounds", "--seeds", "--seed", "--gap", "--teacher", "--run-folder", "--data.without"),
        ),
        "study": (
            ["show", "nothing"],
            ("--models", "--workers", "--on", "--device", "--deadline", "--piece", "--options"),
        ),
        "find": (
            [npy_file, "--no-network", "--quick", "--out", out],
            ("--kinds", "--leave-out", "--latents", "--key", "--beta", "--seed", "--device"),
        ),
        "completion": (["bash"], ("--shell",)),
        "help": (["train"], ()),
        "data": (["pack", run, "--out", out], ("--samples", "--licence")),
        "score": (
            [npy_file, factors, "--metrics", "mig"],
            ("--groups", "--components", "--active", "--kinds", "--test-codes", "--names"),
        ),
        "evaluate": ([run], ("--factors", "--rows", "--device", "--groups")),
        "train": (["--resume", str(shutil.copytree(run, at / "run"))], ("--steps", "--device", "--track")),
    }
    verb = rng.choice(list(starts))
    words, flags = [*starts[verb][0]], starts[verb][1]
    groups = (
        "0-1",
        "0,1",
        "1-0",
        "0-999999",
        "0,0",
        "0--1",
        "0-1,",
        "a=cyclic,b=ordinal",
        "cyclic",
        "continuous,categorical",
        factors,
    )
    for _ in range(rng.randrange(1, 3)):
        roll = rng.random()
        if roll < 0.75 and flags:
            words += [rng.choice(flags), rng.choice((*NUMBERS, *groups))]
        elif roll < 0.9:
            words.insert(rng.randrange(len(words) + 1), rng.choice((*NUMBERS, *VERBS)))
        elif words:
            del words[rng.randrange(len(words))]
    if verb == "study" and set(words) & {"minute", "hour", "locatello"}:
        words = ["show"]  # an answer, in minutes
    large = [
        i for i, word in enumerate(words) if word in ("--rounds", "--steps") and len("".join(words[i + 1 : i + 2])) > 4
    ]
    for i in large:  # an answer too, in years
        words[i + 1] = "3"
    return lambda: main([verb, *words])


def answer(app: Any, method: str, path: str, query: str, content: bytes) -> int:
    """The status of one request, without a socket."""
    told: list[int] = []
    sent = iter([{"type": "http.request", "body": content, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(sent, {"type": "http.disconnect"})

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            told.append(message["status"])

    headers = [(b"host", b"127.0.0.1:8642"), (b"content-length", str(len(content)).encode())]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.encode("utf-8", "replace"),
        "headers": headers,
        "scheme": "http",
        "server": ("127.0.0.1", 8642),
        "client": ("127.0.0.1", 1),
    }
    asyncio.run(app(scope, receive, send))
    return told[0]


def asked_page(seeds: Seeds, at: Path, rng: random.Random) -> Act:
    """A request to the explorer from end to end: every endpoint, documents with a value changed."""
    point = {"model": "0.0", "z": [0.0, 1.0], "aligned": False}
    documents: dict[str, dict[str, Any]] = {
        "film": {**point, "kind": rng.choice(("grid", "gif")), "to": rng.choice(([1.0, 2.0], None))},
        "name": {"model": "0.0", "latent": 0, "name": rng.choice(NAMES)},
        "decode": point,
        "geometry": {**point, "axes": "singular"},
        "curve": {**point, "component": 0},
    }
    number = rng.choice((*NUMBERS, "0", "5", "0.0"))
    app, roll = page(seeds.folder), rng.random()
    if roll < 0.75:
        name = rng.choice((*documents, "film", "name"))
        text = json.dumps(reshaped(documents[name], rng)).encode("utf-8", "surrogatepass")
        content = mutated(text, rng) if rng.random() < 0.3 else text
        call = ("POST", f"/api/{name}", "", content)
    elif roll < 0.9:
        path, query = rng.choice(
            (("row", f"row={number}"), ("model", f"model={number}"), ("align", f"model={number}"), ("about", number))
        )
        call = ("GET", f"/api/{path}", query, b"")
    else:
        call = ("POST", "/api/encode", f"model={number}", rng.randbytes(rng.choice((0, 4, 1024, 4096))))

    def act() -> None:
        status = answer(app, *call)
        (seeds.folder / "sprites" / "names.json").unlink(missing_ok=True)
        if 400 <= status < 500:
            raise BadInput(str(status))
        if status != 200:
            raise AssertionError(f"status {status}")

    return act


NEWER: dict[str, tuple[Callable[..., Act], int]] = {  # kind -> (maker, share of the inputs)
    "study-table": (study_table, 3),
    "study-folder": (studied, 3),
    "grid-document": (grid_document, 6),
    "match": (matched, 6),
    "perturbed": (perturbed, 8),
    "perturb": (going_on, 2),
    "pack": (packed, 8),
    "later-verbs": (later_verbs, 10),
    "subset": (subsets, 6),
    "pairs": (pairs_file, 6),
    "whole-find": (whole_find, 4),
    "later-words": (later_words, 8),
    "page-request": (asked_page, 8),
}
