"""What `unseam align` writes, and how it is read again: alignment.json and an npz of arrays for each member."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch

from unseam.errors import BadInput
from unseam.files import write_atomic
from unseam.geometry import Alignment
from unseam.geometry.align import Frame, RotatedDecoder, RotatedEncoder
from unseam.runs.diagnose import weakest_correlation
from unseam.train import Run, load_run
from unseam.types import Array

Repaired = tuple[Alignment, dict[str, Array]]  # what `explain.repair` returns


def save_alignment(folder: str | Path, run: Run, repaired: Mapping[int, Repaired]) -> dict[str, Any]:
    """Write what `explain.repair` found of some members of a run; returns the document of alignment.json."""
    place = Path(folder)
    rows = []
    for member, (found, arrays) in repaired.items():
        content = BytesIO()
        np.savez(content, **arrays)  # type: ignore[arg-type]
        write_atomic(place / f"member-{member}.npz", content.getvalue())
        rows.append(summary(member, found, arrays))
    document = {"run": str(run.folder.resolve()), "out": str(place), "members": rows}
    write_atomic(place / "alignment.json", json.dumps(document, indent=2))
    return document


def summary(member: int, found: Alignment, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """One member of alignment.json; where factors are known, how well the weakest of them is found."""
    table = [{name: sound(value) for name, value in row.items()} for row in found.table]
    if "factors" in arrays:
        before, after = (weakest_correlation(arrays[k], arrays["factors"]) for k in ("codes_before", "codes"))
        table.append({"what": "weakest factor correlation", "before": before, "after": after})
    told = {"helped": found.helped, "verdict": found.verdict, "table": table}
    return {"member": member, **told, "rotation": found.rotation.tolist()}


def sound(value: Any) -> Any:
    """JSON has no word for NaN and infinities: None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def load_alignment(folder: str | Path, member: int | None = None, run: str | Path | Run | None = None) -> Alignment:
    """A member as `unseam align` left it: the turned encoder and decoder, codes, rotation, and what it bought.

    `member` may be left out when there is one only. The run is looked for where it was; `run` says where it is now.

    >>> import tempfile
    >>> from unseam.runs.diagnose import repair
    >>> from unseam.train import fit
    >>> at = tempfile.mkdtemp()
    >>> trained = fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 300},
    ...               out=at + "/run", show=False)
    >>> document = save_alignment(at + "/aligned", trained, {0: repair(trained, 0, points=50)})
    >>> found = load_alignment(at + "/aligned")
    >>> found.encoder(trained.data.batch(torch.arange(3))).mean.shape, found.decoder(torch.zeros(1, 2)).shape
    (torch.Size([3, 2]), torch.Size([1, 3]))
    """
    place = Path(folder)
    document = read_summary(place)
    row = pick(document["members"], member, place)
    arrays = read_arrays(place / f"member-{row['member']}.npz")
    model = opened(run, document["run"]).model(row["member"])
    frame = Frame(*(torch.as_tensor(arrays[name]) for name in Frame._fields))
    return Alignment(
        rotation=frame.rotation,
        frame=frame,
        decoder=RotatedDecoder(model.decode, frame, model.likelihood),
        encoder=RotatedEncoder(model.encode, frame),
        codes=arrays["codes"],
        variances=arrays["variances"],
        table=tuple(row["table"]),
        helped=row["helped"],
        verdict=row["verdict"],
    )


def read_summary(folder: Path) -> dict[str, Any]:
    path = folder / "alignment.json"
    if not path.is_file():
        raise BadInput(f"alignment={str(folder)!r} has no alignment.json; make it with `unseam align RUN --out`")
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        _ = document["run"], [row["member"] for row in document["members"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is damaged ({error!r}); write it again with `unseam align`") from None
    return document


def pick(rows: Sequence[Mapping[str, Any]], member: int | None, folder: Path) -> Mapping[str, Any]:
    """The row of a member."""
    known = [row["member"] for row in rows]
    if member is None and len(rows) == 1:
        return rows[0]
    if member not in known:
        raise BadInput(f"member={member}: {folder} holds members {', '.join(map(str, known))}; name one of them")
    return rows[known.index(member)]


def read_arrays(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in (*Frame._fields, "codes", "variances")}
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise BadInput(f"{path} is missing or damaged ({error}); write it again with `unseam align`") from None
    return arrays


def opened(run: str | Path | Run | None, stored: str) -> Run:
    if isinstance(run, Run):
        return run
    if run is None and not Path(stored).exists():
        raise BadInput(f"the aligned run is no longer at {stored!r}; give run= the folder where it is now")
    return load_run(stored if run is None else run)
