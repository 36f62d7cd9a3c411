"""`unseam find DATA`: unlabelled data -> which independent factors, how sure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.table import Table
from rich.text import Text

from unseam.cli.common import emit, stdout
from unseam.errors import BadInput

if TYPE_CHECKING:
    from unseam.find import Findings


@dataclass
class Command:
    """Say which independent factors unlabelled data is made of, what each moves, and how sure that is.

    DATA is a table or an array of your own (.csv .tsv .parquet .npy .npz .h5), a folder of images or the name of a data
    set (`unseam data list`). Columns are recognised and scaled, a linear model and a cohort of VAEs are compared on
    rows they have not seen, and each factor is graded: found, pair (any rotation with others fits as well) or unstable.

    Example: unseam find wine.csv --leave-out class --out wine-factors
    """

    data: tyro.conf.Positional[str]
    """A file, a folder of images or a data set's name."""
    out: Path | None = None
    """Where findings.html, codes.csv, findings.json and the run go; found/DATA when not given."""
    scale: Literal["auto", "standard", "common", "none"] = "auto"
    """standard: each column by its own spread; common: all by one number; auto: common if spreads are similar."""
    quick: bool = False
    """Two short trainings: less sure."""
    thorough: bool = False
    """Six long ones."""
    network: bool = True
    """Train VAEs as well; --no-network keeps to linear models."""
    latents: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """How many factors to look for; decided by evidence when not given."""
    leave_out: str | None = None
    """Columns to leave out, as a list: id,label."""
    key: str | None = None
    """Which array of an .npz or .h5 file, which columns of a table."""
    orthogonal: bool = False
    """Believe that factors act at right angles, so that geometry alone may decide."""
    seed: int = 0
    """Of everything random."""
    json: bool = False
    """Print one JSON document."""

    def run(self) -> None:
        if self.quick and self.thorough:
            raise BadInput("--quick and --thorough exclude each other; give one")
        folder = self.out if self.out is not None else free(Path("found") / (Path(self.data).stem or "data"))
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"out={str(folder)!r} exists already; choose another folder")
        from unseam.find import find  # not above: it needs torch, --help does not
        from unseam.show.find_page import write_find_page

        findings = find(
            self.data, out=folder, scale=self.scale, network=self.network, latents=self.latents, key=self.key,
            effort="quick" if self.quick else "thorough" if self.thorough else "normal",
            leave_out=self.leave_out.split(",") if self.leave_out else (), orthogonal=self.orthogonal, seed=self.seed,
        )  # fmt: skip
        page = write_find_page(findings, self.data, folder / "findings.html")
        findings = replace(findings, paths={**findings.paths, "report": str(page)})
        if self.json:
            emit(findings.to_json())
            return
        stdout.print(Text(findings.sentence))
        if findings.count:
            stdout.print(factors(findings))
            stdout.print(rivals(findings))
        for note in findings.notes:
            stdout.print(Text(f"- {note}"))
        print(f"codes: {findings.paths['codes']}\nreport: {page}")


def free(base: Path) -> Path:
    number, folder = 1, base
    while folder.exists():
        number, folder = number + 1, base.with_name(f"{base.name}-{number + 1}")
    return folder


def factors(findings: Findings) -> Table:
    table = Table("factor", "grade", "nats", "comes back", "chance", "moves (per standard deviation)", "axis")
    for f in findings.factors:
        grade = f.grade + (f" with {', '.join(map(str, f.with_))}" if f.with_ else "")
        moved = Text(", ".join(map(str, f.moves[:5])))
        table.add_row(str(f.latent), grade, f"{f.nats:.2f}", f"{f.agreement:.2f}", f"{f.chance:.2f}", moved, f.by)
    return table


def rivals(findings: Findings) -> Table:
    names = ("variance_kept", "stability", "log_likelihood", "mcc")
    table = Table("with as many components", *(name.replace("_", " ") for name in names))
    for name, row in findings.rivals.items():
        cells = [row.get(what) for what in names]
        table.add_row(name, *("-" if cell is None else f"{cell:.3f}" for cell in cells))
    return table
