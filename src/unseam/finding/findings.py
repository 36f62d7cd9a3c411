"""What was found, as an object: factors with grades, two sentences, codes, a way to encode new rows."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from unseam.atomic import atomic_file, write_atomic
from unseam.axes import Array
from unseam.errors import BadInput
from unseam.finding.columns import Prepared
from unseam.finding.factor_count import FactorCounts
from unseam.finding.grades import FoundFactor, Model
from unseam.finding.read import flat, read


def measured_text(value: float | None, digits: int = 2) -> str:
    """A number as it is printed; what was not measured is called so.

    >>> measured_text(0.917), measured_text(None), measured_text(float("nan"))
    ('0.92', 'not measured', 'not measured')
    """
    return "not measured" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def compared_text(value: float, bar: float) -> tuple[str, str]:
    """A number and what it is compared with, with as many digits as tell them apart.

    >>> compared_text(0.991, 0.95), compared_text(0.9483, 0.95)
    (('0.99', '0.95'), ('0.948', '0.950'))
    """
    digits = next((d for d in (2, 3, 4) if round(value, d) != round(bar, d)), 2)
    return measured_text(value, digits), measured_text(bar, digits)


def _null_for_nan(document: Any) -> Any:
    """A JSON document in which what was not measured is null.

    >>> _null_for_nan({"a": [1.0, float("nan")]})
    {'a': [1.0, None]}
    """
    if isinstance(document, dict):
        return {key: _null_for_nan(value) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [_null_for_nan(value) for value in document]
    return None if isinstance(document, float) and math.isnan(document) else document


def encode_rows(model: Model, prepared: Prepared, x: Array) -> Array:  # (M, n), NaN where missing -> (M, k)
    """Codes of rows in model units, missing cells filled by their expectation given the row."""
    return model.encode(prepared.filler(x) if np.isnan(x).any() else x)


@dataclass(frozen=True)
class Minor:
    """A direction that rows share beyond the major factors: too weak for a factor, more than noise."""

    share: float  # of the variance of the standardised columns
    features: tuple[str, ...]  # the columns it moves most

    def to_json(self) -> dict[str, Any]:
        return {"share": self.share, "features": list(self.features)}


@dataclass(frozen=True)
class Findings:
    """The answer to "which independent factors is this data made of?".

    Attributes
    ----------
    factors : tuple of FoundFactor
        Each with its grade, certificate, features and nats.
    kind : str
        The model that the answer rests on: linear or a network.
    sentence : str
        The answer in one or two sentences.
    settled : bool
        Whether training of the networks had converged.
    overfitting : bool
        Whether held-out rows are described worse than the others.
    rivals : dict
        What other methods say of the same rows.
    notes : tuple of str
        Remarks on the table: what was left out, and why.
    codes : DataFrame (N, k)
        One column per factor, in the order of the input.
    prepared : Prepared
        The table as it was analysed.
    model : Model, optional
        Encodes and decodes rows; None without factors.
    paths : dict
        The files that were written.
    numbers : FactorCounts
        The number of factors by each rule.
    loadings : DataFrame
        Columns x factors.
    factor_correlations : array, optional
        Between the factors, where they may correlate.
    minor : tuple of Minor
        Weaker directions, which do not count.

    Examples
    --------
    >>> g = np.random.default_rng(0)
    >>> from unseam.finding import find
    >>> found = find(g.uniform(size=(300, 2)) @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(300, 6)), network=False)
    >>> found.count, found.codes.shape
    (2, (300, 2))
    """

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
    numbers: FactorCounts = FactorCounts(0)
    loadings: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)  # columns x factors, columns standardised
    factor_correlations: Array | None = field(default=None, repr=False)  # (count, count); None: uncorrelated axes
    minor: tuple[Minor, ...] = ()  # directions beyond the major factors, folded away

    @property
    def count(self) -> int:
        """The number of major factors."""
        return len(self.factors)

    def transform(self, new: Any) -> Array:  # (M, columns) -> (M, count)
        """Codes of new rows: a file or table with the same columns, or an array with as many; cells may be missing."""
        columns = self._columns(new)
        if self.model is None:
            return np.zeros((len(columns[0]), 0))
        return encode_rows(self.model, self.prepared, self.prepared.again(columns))

    def inverse_transform(self, codes: Any) -> Array:  # (M, count) -> (M, used columns)
        """Rows from codes, in the columns' own units (`prepared.features` names them)."""
        u = np.asarray(codes, np.float64)
        if u.ndim != 2 or u.shape[1] != self.count:
            raise BadInput(f"codes have shape {u.shape}; there are {self.count} factors, so (M, {self.count})")
        x = self.model.decode(u) if self.model is not None else np.zeros((len(u), len(self.prepared.used)))
        return self.prepared.raw(x)

    def traversals(self, frames: int = 7) -> Array:  # (count, T, C, H, W) in [0, 1]
        """Images: what each factor does, from -2 to 2 standard deviations at the mean of the others."""
        p = self.prepared
        if p.shape is None or p.rest is None or not self.count:
            raise BadInput("traversals are pictures; this data is no set of images with factors: look at .factors")
        codes = self.codes.to_numpy()
        u = np.tile(codes.mean(0), (self.count, frames, 1))
        for j in range(self.count):
            u[j, :, j] += np.linspace(-2, 2, frames) * codes[:, j].std()
        made = np.tile(p.rest, (self.count * frames, 1))
        made[:, list(p.used)] = self.inverse_transform(u.reshape(-1, self.count))
        low, high = float(made.min()), float(made.max())
        return ((made - low) / max(high - low, 1e-12)).reshape(self.count, frames, *p.shape)

    def _columns(self, new: Any) -> list[Array]:
        names = self.prepared.names
        if isinstance(new, (str, Path)) or hasattr(new, "iloc") or hasattr(new, "var_names"):
            table = read(new).table
            gone = [name for name in self.prepared.needed if name not in table.names]
            if gone:
                raise BadInput(f"the new rows have no column {gone[0]!r}, which the findings rest on")
            given = dict(zip(table.names, table.columns, strict=True))
            columns = [given.get(name, np.full(len(table), np.nan)) for name in names]
        else:
            raw = np.asarray(new.detach().cpu() if hasattr(new, "detach") else new)
            raw = flat(raw) if raw.ndim > 2 else raw
            if raw.ndim != 2 or raw.shape[1] != len(names):
                raise BadInput(f"new rows have shape {raw.shape}; the findings were made of {len(names)} columns")
            columns = list(raw.T)
        if any(
            np.isinf(c.astype(float)).any() for c in (columns[i] for i in self.prepared.used) if c.dtype.kind in "f"
        ):
            raise BadInput("new rows hold infinity in columns that the findings rest on")
        return columns

    def to_json(self) -> dict[str, Any]:
        """The document that findings.json holds."""

        document = {
            "count": self.count,
            "numbers": self.numbers.to_json(),
            "loadings": self.paths.get("loadings"),
            "factor_correlations": None if self.factor_correlations is None else self.factor_correlations.tolist(),
            "minor": [direction.to_json() for direction in self.minor],
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
        return dict(_null_for_nan(document))

    def table(self) -> pd.DataFrame:
        """One row a factor."""
        rows = [
            {"factor": f.latent, "grade": f.grade, "nats": f.nats, "agreement": f.agreement, "chance": f.chance,
             "moves": ", ".join(map(str, f.moves))}
            for f in self.factors
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["factor", "grade", "nats", "agreement", "chance", "moves"])

    def __repr__(self) -> str:
        """One line: codes and rivals fill pages."""
        grades = ", ".join(f"{f.latent} {f.grade}" for f in self.factors) or "none"
        return f"Findings({self.kind}, factors: {grades})"

    def __str__(self) -> str:
        lines = [self.sentence]
        for f in self.factors:
            moved = (
                f"; moves {', '.join(map(str, f.moves[:5])) or 'nothing much'}" if self.prepared.shape is None else ""
            )
            what, *numbers = f.rests_on
            value, bar = compared_text(*numbers)
            decided = f" by {f.clue}" if f.grade == "found" else ""
            lines.append(
                f"  factor {f.latent}: {f.graded()}{decided}, {what} {value} (needs {bar}), "
                f"determinacy {measured_text(f.determinacy)}, {measured_text(f.nats)} nats{moved}"
            )
        for name, row in self.rivals.items():
            cells = [f"{what} {value:.3g}" for what, value in row.items() if value is not None]
            lines.append(f"  {name}: {', '.join(cells)}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    @property
    def compared(self) -> list[str]:
        """What is known of any of the rivals."""
        names = ("variance_kept", "stability", "log_likelihood", "mcc")
        return [name for name in names if any(row.get(name) is not None for row in self.rivals.values())]

    def _repr_html_(self) -> str:
        table = self.table().to_html(index=False, float_format=lambda value: f"{value:.3g}")
        return f"<p>{html.escape(self.sentence)}</p>{table}"

    def write(self, folder: str | Path, codes: Literal["csv", "parquet"] = "csv") -> dict[str, str]:
        """codes.csv (or .parquet), loadings.csv and findings.json in a folder; their paths."""
        path, loads = Path(folder) / f"codes.{codes}", Path(folder) / "loadings.csv"
        with atomic_file(path) as temporary:
            if codes == "csv":
                self.codes.to_csv(temporary, index=False, float_format="%.6g")
            else:
                self.codes.to_parquet(temporary)
        with atomic_file(loads) as temporary:
            self.loadings.to_csv(temporary, index_label="column", float_format="%.6g")
        paths = {"codes": str(path), "loadings": str(loads), **self.paths}
        replace(self, paths=paths).write_json(folder)
        return paths

    def write_json(self, folder: str | Path) -> None:
        """findings.json in a folder."""
        document = json.dumps(self.to_json(), indent=2, allow_nan=False, default=float)
        write_atomic(Path(folder) / "findings.json", document)
