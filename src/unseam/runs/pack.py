"""Runs as others can use them: weights, codes, factors, scores and a card, in one folder with checksums.

DIR/pack.json             every file with its size and SHA-256
DIR/README.md             a model card: what it is, how it was made, under which licence, with the scores
DIR/NAME/                 a run folder that `unseam.load_run` opens: config.json, weights without optimisers, tables
DIR/NAME/codes-0.npy      codes of member 0 at rows.npy of the data; variances-0.npy; factors.csv
DIR/STUDY.csv             of a study: its table, a row per model; its pieces are the runs
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from unseam import __version__
from unseam.atomic import atomic_file, write_array, write_atomic
from unseam.errors import BadInput
from unseam.progress import bar
from unseam.run import Run
from unseam.run.checkpoint import load_checkpoint, save_checkpoint
from unseam.run.load import NAME
from unseam.run.run import MANIFEST
from unseam.runs.represent import represent, sample_rows

_ROWS = 10_000  # of the data, whose codes are packed
_ATTRIBUTES = "".join(f"*.{end} filter=lfs diff=lfs merge=lfs -text\n" for end in ("safetensors", "npy", "sqlite"))
_LICENCES = [
    "apache-2.0",
    "mit",
    "bsd-2-clause",
    "bsd-3-clause",
    "cc0-1.0",
    "cc-by-4.0",
    "cc-by-sa-4.0",
    "cc-by-nc-4.0",
    "gpl-3.0",
    "odc-by",
]


def pack(
    runs: Sequence[Run | tuple[str, Run]],
    out: Path,
    licence: str = "not stated",
    rows: int = _ROWS,
    show: bool | None = None,
    tables: Mapping[str, pd.DataFrame] | None = None,
) -> Path:
    """Write the runs to one folder; returns it. No data is packed but codes and factors of some rows.

    A run is named after its folder unless a name is given; `tables` are written beside them, as NAME.csv.

    >>> import tempfile
    >>> from unseam.train import fit, load_run
    >>> place = Path(tempfile.mkdtemp())
    >>> few = {"steps": 2, "network": "linear", "latents": 2, "data_parameters": {"size": 300}, "show": False}
    >>> packed = pack([fit("synth-linear", out=place / "a", **few)], place / "pack", "CC0-1.0", show=False)
    >>> load_run(packed).model(0).latents, np.load(packed / "a" / "codes-0.npy").shape
    (2, (300, 2))
    """
    parts = [part if isinstance(part, tuple) else (part.folder.resolve().name, part) for part in runs]
    names, tables = [name for name, _ in parts], {f"{name}.csv": frame for name, frame in (tables or {}).items()}
    if len(set(names)) != len(names) or not runs:
        raise BadInput(f"runs={names} must be at least one, with folders of different names: they name the parts")
    if strange := [name for name in (*names, *tables) if not NAME.fullmatch(name)]:
        raise BadInput(f"folder {strange[0]!r}: what is packed needs a name of letters, digits and _ . + -; rename it")
    if any((out / name).resolve() == run.folder.resolve() for name, run in parts):
        raise BadInput(f"out={str(out)!r} holds the runs themselves; choose another folder, they would be written over")
    if (out / MANIFEST).exists():
        raise BadInput(f"out={str(out)!r} already holds a pack; choose another folder")
    if (out / "README.md").exists():
        raise BadInput(f"out={str(out)!r} holds a README.md, which the model card would replace; choose another folder")
    with bar("packing", sum(len(run.members) for _, run in parts), show) as advance:
        for name, run in parts:
            write_run(run, out / name, rows, advance)
    for name, frame in tables.items():
        write_atomic(out / name, frame.to_csv(index=False))
    write_atomic(out / "README.md", _card(parts, licence, list(tables)))
    inside = {
        str(p.relative_to(out).as_posix()): p
        for part in (*names, *tables, "README.md")
        for p in sorted([out / part, *(out / part).rglob("*")])
        if p.is_file()
    }
    if not (out / ".gitattributes").exists():
        write_atomic(out / ".gitattributes", _ATTRIBUTES)
    about = {"unseam": __version__, "licence": licence}
    write_atomic(out / MANIFEST, manifest(inside, names, about))
    return out


def write_run(run: Run, out: Path, rows: int, advance: Any) -> None:
    row_sample = sample_rows(run, "all", rows)
    write_array(out / "rows.npy", row_sample.rows.numpy())
    for member in range(len(run.members)):
        encoded = represent(run.model(member), run.data, row_sample.rows)
        write_array(out / f"codes-{member}.npy", encoded.codes.astype(np.float32))
        write_array(out / f"variances-{member}.npy", encoded.variances.astype(np.float32))
        advance()
    if run.data.space is not None:
        frame = pd.DataFrame(run.data.factors(row_sample.rows).numpy(), columns=list(run.data.space.names))
        write_atomic(out / "factors.csv", frame.to_csv(index=False))
    for path in sorted((run.folder / "checkpoints").glob("*.safetensors")):
        tensors, meta = load_checkpoint(path)
        weights = {name: tensor for name, tensor in tensors.items() if not name.startswith(("optimiser/", "best/"))}
        save_checkpoint(out / "checkpoints" / path.name, weights, meta)
    write_rows(run, out)
    document = json.loads((run.folder / "config.json").read_bytes())
    for part in ("data", "static"):
        document[part] = {k: Path(v).name if v in paths(run) else v for k, v in document[part].items()}
    write_atomic(out / "config.json", json.dumps({**document, "shape": run.shape}, indent=2))


def paths(run: Run) -> list[Any]:
    """The user's own files, without their private folders."""
    config_values = (*run.config.data.values(), *run.config.static.values())
    return [v for v in config_values if isinstance(v, str) and Path(v).is_absolute()]


def write_rows(run: Run, out: Path) -> None:
    """The rows as one file without a journal; what was computed for pages is left out."""
    with atomic_file(out / "results.sqlite") as temporary:
        temporary.unlink()
        with closing(run.rows.open(read_only=True)) as connection:
            connection.execute("vacuum into ?", (str(temporary),))
        with closing(sqlite3.connect(temporary)) as copy, copy:
            copy.execute("drop table if exists computed")


def _card(runs: Sequence[tuple[str, Run]], licence: str, tables: Sequence[str] = ()) -> str:
    """What, how made, licence: a page that a person reads first."""
    parts = [
        _front_matter(runs, licence),
        "# Trained models, packed by unseam",
        f"Licence: {licence}. Made with unseam {__version__} and torch {torch.__version__}.",
        "Open one with `unseam.load_run(FOLDER or URL)`, from the Hugging Face hub `unseam.load_run('hf:OWNER/NAME')`; "
        f"every file is checked against `{MANIFEST}` first. "
        "`codes-M.npy` are the posterior means of member M at rows `rows.npy` of the data, `factors.csv` the truth.",
    ]
    scores = f"Scores of every model: {', '.join(tables)}." if tables else "No scores were stored."
    for name, run in runs:
        c = run.config
        data = ", ".join(
            f"{k} {v if v not in paths(run) else Path(v).name}" for k, v in c.data.items() if v is not None
        )
        parts += [
            f"## {name}",
            f"{c.objective} on {data}; {len(run.members)} members, {c.training.steps} steps, batch {c.training.batch}, "
            f"{c.architecture.network}, {c.architecture.latents} latents, {c.architecture.likelihood}, "
            f"{c.optimiser.name} {c.optimiser.lr:g}.",
            markdown_table(run.table().drop(columns=["seconds", "note"])),
            markdown_table(run.rows.read("scores")[["member", "name", "value"]]) or scores,
        ]
    return "\n\n".join(parts) + "\n"


def _front_matter(runs: Sequence[tuple[str, Run]], licence: str) -> str:
    """What the Hugging Face hub reads of a model card; a licence that it does not know is called other there."""
    known = licence.lower() in _LICENCES
    named = f"license: {licence.lower()}" if known else f"license: other\nlicense_name: {json.dumps(licence)}"
    tags = dict.fromkeys(["unseam", "disentanglement", "vae", *(run.config.objective for _, run in runs)])
    listed = "\n".join(f"- {json.dumps(tag)}" for tag in tags)
    return f"---\nlibrary_name: unseam\n{named}\ntags:\n{listed}\n---"


def markdown_table(frame: pd.DataFrame) -> str:
    """A Markdown table; nothing for no rows.

    >>> print(markdown_table(pd.DataFrame({"member": [0], "mig": [0.25]})))
    | member | mig |
    | --- | --- |
    | 0 | 0.25 |
    """
    if not len(frame):
        return ""
    cells = [[f"{v:.6g}" if isinstance(v, float) else str(v) for v in row] for row in frame.itertuples(index=False)]
    lines = [list(map(str, frame.columns)), ["---"] * frame.shape[1], *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def manifest(files: Mapping[str, Path], runs: list[str], about: Mapping[str, Any]) -> str:
    """`pack.json` of these files, by their names in the pack."""
    listed = {
        name: {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, path in sorted(files.items())
    }
    return json.dumps({**about, "runs": runs, "files": listed}, indent=2)
