"""A study as one tidy frame, a row per model: `load(DIR_OR_FILE).table()`.

Scores that compare models (UDR over the seeds of a setting, the label-free ranking within a data set) are computed
here, from the codes and numbers that every piece left; a study that is half done gives them for the half that is there.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseam.atomic import write_atomic
from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.udr import udr
from unseam.readers import load_array, load_table
from unseam.run import Run, load_run
from unseam.runs.rank_members import RankInput, rank
from unseam.study.grid import Grid
from unseam.study.pieces import open_study, places

_FIRST = ("data", "method", "strength", "strength_name", "seed", "model_num", "piece", "member", "status", "steps",
         "seconds", "latents")  # fmt: skip


@dataclass(frozen=True)
class Study:
    """A study's folder, or a file that holds its table."""

    path: Path
    grid: Grid | None = None  # None: a file alone

    def table(self) -> pd.DataFrame:
        """One row per model that is done; the columns are those of docs/study.md."""
        return _read_table(self.path) if self.grid is None else _gather(self.path, self.grid)

    def runs(self) -> dict[str, Run]:
        """The run of every piece that is done, by the piece's name; a file alone has none."""
        done = [] if self.grid is None else [place for place in places(self.path, self.grid) if place.done]
        return {place.piece.name: load_run(place.folder / "run") for place in done}

    def save(self, path: str | Path) -> Path:
        """The table as .parquet or .csv, by the name's end."""
        path, frame, content = Path(path), self.table(), BytesIO()
        if path.suffix == ".parquet":
            frame.to_parquet(content, index=False, compression="zstd")
        elif path.suffix == ".csv":
            frame.to_csv(content, index=False)
        else:
            raise BadInput(f"out={str(path)!r} must end in .parquet or .csv")
        write_atomic(path, content.getvalue())
        return path


def load(path: str | Path) -> Study:
    """A study by its folder, or its table by a .parquet or .csv file."""
    place = Path(path)
    if place.is_dir():
        return Study(place, open_study(place))
    if place.suffix in (".parquet", ".csv") and place.is_file():
        return Study(place)
    raise BadInput(f"study={str(path)!r} is neither a study's folder nor a .parquet or .csv file of one")


def _read_table(path: Path) -> pd.DataFrame:
    where = f"study={str(path)!r}"
    table = load_table(path, where, gaps=True)
    if missing := [name for name in ("data", "method", "strength", "seed", "status") if name not in table.names]:
        raise BadInput(f"{where} is not the table of a study: it has no column {missing[0]!r}")
    return pd.DataFrame(dict(zip(table.names, table.columns, strict=True)))


def _gather(folder: Path, grid: Grid) -> pd.DataFrame:
    """The rows of all pieces that are done."""
    rows: list[dict[str, Any]] = []
    codes: list[Array] = []
    for place in places(folder, grid):
        if not place.done:
            continue
        found = place.rows()
        seconds = times(place.folder, len(found))
        for row, second in zip(found, seconds, strict=True):
            number = row.pop("number")
            rows.append({**row, "model_num": number if grid.published else -1, "seconds": second})
        codes += stored_codes(place.folder / "codes.npy", len(found))
    if not rows:
        raise BadInput(f"study={str(folder)!r}: no piece is done yet; continue with `unseam study`")
    frame = pd.DataFrame(rows)
    frame = frame.astype({name: float for name in map(str, frame) if "." in name})
    frame["latents"] = [int(grid.settings.get("latents", z.shape[1])) for z in codes]
    frame["free.udr"] = seeds_agree(frame, codes)
    frame["free.rank"] = places_in_ranking(frame)
    first = [name for name in _FIRST if name in frame]
    return frame[[*first, *sorted(name for name in map(str, frame) if name not in first)]]


def times(folder: Path, models: int) -> list[float]:
    """Seconds of training of each model: its share of its piece's."""
    try:
        return [float(json.loads((folder / "seconds.json").read_bytes())["training"]) / models] * models
    except (OSError, ValueError, KeyError, TypeError):
        return [float("nan")] * models


def stored_codes(path: Path, models: int) -> list[Array]:
    """The codes that a piece stored; none where they are lost or damaged, and then models are not compared."""
    with suppress(BadInput):
        found = np.asarray(load_array(path, str(path))[...])
        if found.ndim == 3 and len(found) == models and found.dtype.kind == "f":
            return list(found)
    return [np.zeros((0, 0))] * models


def seeds_agree(frame: pd.DataFrame, codes: list[Array]) -> Array:  # (M,)
    """UDR (Spearman) of each model among the finished seeds of its data set, method and strength."""
    out = np.full(len(frame), np.nan)
    sound = [status == "finished" and z.size > 0 and bool((np.ptp(z, axis=0) > 0).any())
             for status, z in zip(frame["status"], codes, strict=True)]  # fmt: skip
    for _, index in frame[sound].groupby(["data", "method", "strength"]).groups.items():
        if len(index) > 1:
            found = udr(
                [codes[i] for i in index], [informative(codes[i]) for i in index], strength="spearman", workers=1
            )
            out[list(index)] = [score.value for score in found]
    return out


def informative(z: Array) -> Array:  # (N, K) -> (K,)
    """1 for latents that are not collapsed (standard deviation of the means above 0.05; the widest always), else 0."""
    std = z.std(axis=0)
    return (std >= min(0.05, float(std.max()))).astype(float)


def places_in_ranking(frame: pd.DataFrame) -> Array:  # (M,)
    """Place in the label-free ranking (`runs.rank_members`) of the finished models of a data set; 1 is best."""
    out = np.full(len(frame), np.nan)
    done = frame[frame["status"] == "finished"]
    for _, part in done.groupby("data"):
        members = [rank_input(row) for row in part.to_dict("records")]
        settings = list(zip(part["method"], part["strength"], strict=True))
        out[part.index.to_numpy()] = rank(members, settings).rank + 1
    return out


def rank_input(row: dict[Any, Any]) -> RankInput:
    """What the ranking reads, from a row of the table."""

    def known(name: str) -> float | None:
        value = row.get(name)
        return None if value is None or np.isnan(value) else float(value)

    return RankInput(
        dto=known("free.dto"),
        dto_haar=known("free.dto-chance"),
        cost=known("free.cost-over-beta") or 0.0,
        ima_contrast=known("free.ima-contrast"),
        active=int(known("free.active") or 0),
        latents=max(int(row["latents"]), 1),
    )
