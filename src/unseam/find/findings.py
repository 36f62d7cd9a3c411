"""What was found, as an object: factors with grades, two sentences, codes, a way to encode new rows."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from unseam.errors import BadInput
from unseam.files import write_atomic
from unseam.find.columns import Prepared
from unseam.types import Array

Grade = Literal["found", "pair", "unstable"]
SHOWN = 8  # features named for a factor
MEANING = {
    "found": "comes back, and nothing else fits as well",
    "pair": "found together with others; which axes are right is not identified",
    "unstable": "does not come back",
}


class Model(Protocol):
    """What a finding rests on: rows in model units -> codes and back."""

    def encode(self, x: Array) -> Array: ...  # (N, n) -> (N, k)

    def decode(self, u: Array) -> Array: ...  # (N, k) -> (N, n)


@dataclass(frozen=True)
class Move:
    """What one standard deviation of a factor does to a column, in the column's own unit."""

    name: str
    change: float
    share: float  # of the column's standard deviation

    def __str__(self) -> str:
        return f"{self.name} {self.change:+.3g}"


@dataclass(frozen=True)
class FoundFactor:
    """One factor."""

    latent: int
    grade: Grade
    nats: float
    agreement: float
    chance: float
    moves: tuple[Move, ...]  # the columns it moves most, largest first
    with_: tuple[int, ...] = ()  # the others of its group, if it is one of a pair
    separation: float = 1.0  # of its singular value from the nearest other's: 0 is a plane
    by: str = ""  # which clue gave its axis

    @property
    def features(self) -> list[str]:
        return [move.name for move in self.moves]

    def to_json(self) -> dict[str, Any]:
        return {
            "latent": self.latent, "grade": self.grade, "nats": self.nats, "agreement": self.agreement,
            "chance": self.chance, "features": self.features, "with": list(self.with_),
            "separation": self.separation, "axis_by": self.by,
            "moves": [{"feature": m.name, "change": m.change, "share": m.share} for m in self.moves],
        }  # fmt: skip


@dataclass(frozen=True)
class Findings:
    """The answer to "which independent factors is this data made of?"."""

    factors: tuple[FoundFactor, ...]
    kind: str  # linear, non-linear or none
    sentence: str
    settled: bool
    overfitting: bool
    rivals: Mapping[str, Mapping[str, float | None]]
    notes: tuple[str, ...]  # the choices that were made
    codes: pd.DataFrame  # rows in the order of the input
    prepared: Prepared = field(repr=False)
    model: Model | None = field(repr=False)
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.factors)

    def transform(self, new: Any) -> Array:  # (M, columns) -> (M, count)
        """Codes of new rows: a table with the same columns, or an array with as many."""
        raw = self._raw(new)
        return self.model.encode(self.prepared.again(raw)) if self.model is not None else np.zeros((len(raw), 0))

    def inverse_transform(self, codes: Any) -> Array:  # (M, count) -> (M, used columns)
        """Rows from codes, in the columns' own units (`prepared.features` names them)."""
        u = np.asarray(codes, np.float64)
        if u.ndim != 2 or u.shape[1] != self.count:
            raise BadInput(f"codes have shape {u.shape}; there are {self.count} factors, so (M, {self.count})")
        x = self.model.decode(u) if self.model is not None else np.zeros((len(u), len(self.prepared.used)))
        return self.prepared.raw(x)

    def _raw(self, new: Any) -> Array:
        names = self.prepared.names
        if hasattr(new, "columns") and hasattr(new, "iloc"):
            gone = [name for name in self.prepared.features if name not in map(str, new.columns)]
            if gone:
                raise BadInput(f"the new rows have no column {gone[0]!r}, which the findings rest on")
            new = new.rename(columns=str).reindex(columns=list(names))
            new = np.stack([pd.to_numeric(new[name], errors="coerce").to_numpy(float) for name in names], axis=1)
        raw = np.asarray(new)
        raw = raw.reshape(len(raw), -1) if raw.ndim > 2 else raw
        if raw.ndim != 2 or raw.shape[1] != len(names):
            raise BadInput(f"new rows have shape {raw.shape}; the findings were made of {len(names)} columns")
        if not np.isfinite(raw[:, list(self.prepared.used)].astype(float)).all():
            raise BadInput("new rows hold NaN or infinity in columns that the findings rest on")
        return raw

    def to_json(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "factors": [factor.to_json() for factor in self.factors],
            "settled": self.settled,
            "overfitting": self.overfitting,
            "rivals": {name: dict(row) for name, row in self.rivals.items()},
            "codes": self.paths.get("codes"),
            "report": self.paths.get("report"),
            "sentence": self.sentence,
            "model": self.kind,
            "notes": list(self.notes),
        }

    def table(self) -> pd.DataFrame:
        """One row a factor."""
        rows = [
            {"factor": f.latent, "grade": f.grade, "nats": f.nats, "agreement": f.agreement, "chance": f.chance,
             "moves": ", ".join(map(str, f.moves))}
            for f in self.factors
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["factor", "grade", "nats", "agreement", "chance", "moves"])

    def __str__(self) -> str:
        lines = [self.sentence]
        for f in self.factors:
            beside = f" with {', '.join(map(str, f.with_))}" if f.with_ else ""
            lines.append(
                f"  factor {f.latent}: {f.grade}{beside}, {f.nats:.2f} nats, comes back {f.agreement:.2f} (chance "
                f"{f.chance:.2f}); moves {', '.join(map(str, f.moves[:5])) or 'nothing much'}"
            )
        for name, row in self.rivals.items():
            cells = [f"{what} {value:.3g}" for what, value in row.items() if value is not None]
            lines.append(f"  {name}: {', '.join(cells)}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        table = self.table().to_html(index=False, float_format=lambda value: f"{value:.3g}")
        return f"<p>{html.escape(self.sentence)}</p>{table}"

    def write(self, folder: str | Path) -> dict[str, str]:
        """codes.csv and findings.json in a folder; their paths."""
        folder = Path(folder)
        text = StringIO()
        self.codes.to_csv(text, index=False)
        write_atomic(folder / "codes.csv", text.getvalue())
        paths = {"codes": str(folder / "codes.csv"), **self.paths}
        document = json.dumps({**self.to_json(), "codes": paths["codes"]}, indent=2, allow_nan=False, default=float)
        write_atomic(folder / "findings.json", document)
        return paths
