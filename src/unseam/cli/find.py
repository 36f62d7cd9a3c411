"""`unseam find DATA`: unlabelled data -> which independent factors, how sure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.table import Table
from rich.text import Text

from unseam.atomic import free_path
from unseam.cli.common import AsJson, DataName, MaybeInt, MaybePath, MaybeText, emit, new_folder, stdout
from unseam.errors import BadInput

if TYPE_CHECKING:
    from unseam.finding import Findings


@dataclass
class Command:
    """Find the factors of unlabelled data: how many there are, what each one moves, and how sure that is.

    DATA is a table or an array of your own (.csv .xlsx .parquet .json .npy and others: docs/data.md), its address, `-`
    for standard input, a folder of images or the name of a data set (`unseam data list`). Columns are recognised and
    scaled. A linear model, non-negative parts and a cohort of VAEs are compared on held-out rows or cells. Each factor
    gets a grade: found, pair (or group: known together with others, but not its own axis) or unstable.

    Example: unseam find wine.csv --leave-out class --out wine-factors
    """

    data: DataName
    """A file, a folder of images or a data set's name."""
    out: MaybePath = None
    """A new or empty folder for findings.html, findings.json, the codes and the run; found/DATA when not given."""
    scale: Literal["auto", "standard", "common", "none"] = "auto"
    """standard: each column by its own spread; common: all by one number, because they share a unit; auto: common for
    images and for items with the same levels, standard otherwise."""
    quick: bool = False
    """Train two networks briefly: faster, less certain."""
    thorough: bool = False
    """Train six networks for longer."""
    no_network: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Use linear models only; train no VAEs."""
    latents: MaybeInt = None
    """How many factors to look for; chosen from the data when not given."""
    leave_out: MaybeText = None
    """Columns to leave out, as a list: id,label."""
    keep: MaybeText = None
    """Columns to use although they look like identifiers or labels, as a list: id,label."""
    kinds: MaybeText = None
    """Kinds of columns that were recognised wrongly: age=continuous,visits=counts,pain=ordinal,colour=categorical."""
    codes: Literal["csv", "parquet"] = "csv"
    """File format of the codes."""
    channels: MaybeInt = None
    """Read a folder of images as grey (1) or colour (3)."""
    key: MaybeText = None
    """Which array of an .npz or .h5 file, or which columns of a table, to use."""
    orthogonal: bool = False
    """Assume that factors act at right angles, so that geometry alone can single out an axis."""
    beta: float = 1.0
    """Weight of the KL in the loss of the networks. Their noise is learned, so 1 is the ordinary VAE."""
    device: str = "auto"
    """Where networks are trained: auto (the fastest here), cpu, cuda, cuda:N or mps."""
    seed: int = 0
    """Seed of all random choices."""
    json: AsJson = False

    def run(self) -> None:
        if self.quick and self.thorough:
            raise BadInput("--quick and --thorough cannot be combined; give one of them")
        with new_folder(self.out or free_path(Path("found") / (Path(self.data).stem or "data"))) as folder:
            findings = self._write(folder)
        if self.json:
            emit(findings.to_json())
            return
        stdout.print(Text(findings.sentence))
        if findings.count:
            for table in (factors(findings), _loadings(findings), rivals(findings)):
                if table is not None:
                    stdout.print("", table, sep="\n")
            stdout.print("")
        for note in [*_axes(findings), *_minor(findings), *findings.notes]:
            stdout.print(Text(f"- {note}"))
        for name in ("codes", "loadings", "report"):
            print(f"{name}: {findings.paths[name]}")

    def _write(self, folder: Path) -> Findings:
        """The findings, their page and their files, all in the folder; after Ctrl-C nothing is left there."""
        from unseam.finding import find  # not above: it needs torch, --help does not
        from unseam.show.pages.find import write_find_page

        try:
            findings = self._found(find, folder)
        except KeyboardInterrupt:
            rmtree(folder, ignore_errors=True)
            raise KeyboardInterrupt("stopped; nothing was written: start it again") from None
        page = write_find_page(findings, self.data, folder / "findings.html")
        findings = replace(findings, paths={**findings.paths, "report": str(page)})
        findings.write_json(folder)
        return findings

    def _found(self, find: Callable[..., Findings], folder: Path) -> Findings:
        return find(
            self.data, out=folder, scale=self.scale, network=not self.no_network, latents=self.latents, key=self.key,
            channels=self.channels,
            effort="quick" if self.quick else "thorough" if self.thorough else "normal",
            leave_out=self.leave_out.split(",") if self.leave_out else (), orthogonal=self.orthogonal, seed=self.seed,
            beta=self.beta, device=self.device,
            kinds=_pairs(self.kinds), codes=self.codes, keep=self.keep.split(",") if self.keep else (),
        )  # fmt: skip


def _pairs(text: str | None) -> dict[str, str]:
    """
    >>> _pairs("age=continuous,visits=counts")
    {'age': 'continuous', 'visits': 'counts'}
    """
    cells = [cell.rpartition("=") for cell in text.split(",")] if text else []
    wrong = next((kind for name, _, kind in cells if not name), None)
    if wrong is not None:
        raise BadInput(f"kinds={text!r}: {wrong!r} has no '='; write column=kind,column=kind")
    return {name: kind for name, _, kind in cells}


def factors(findings: Findings) -> Table:
    """One line for each factor: its grade, the number that it rests on, and what it moves."""
    from unseam.finding.findings import compared_text, measured_text

    table = _plain_table("factor", "grade", "clue", "comes back (needs)", "determined", "nats", "moves")
    for f in findings.factors:
        moved = Text(", ".join(map(str, f.moves[:3])) if findings.prepared.shape is None else "see the page's pictures")
        value, bar = compared_text(*f.rests_on[1:])
        numbers = (f"{value} ({bar})", measured_text(f.determinacy), measured_text(f.nats))
        table.add_row(str(f.latent), f.graded(), f.clue, *numbers, moved)
    return table


def _plain_table(*names: str, numbers: bool = False) -> Table:
    """Columns without lines; with `numbers` all but the first stand to the right."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for i, name in enumerate(names):
        table.add_column(name, justify="right" if numbers and i else "left", overflow="fold")
    return table


def _loadings(findings: Findings, most: int = 4, widest: int = 10) -> Table | None:
    """The columns that each factor moves most, with their loadings on all factors; None where there is none."""
    from unseam.show.pages.find import loadings_table

    rows = loadings_table(findings) if findings.prepared.shape is None else []
    if not rows or findings.count > widest:
        return None
    table = _plain_table("loadings", *(str(f.latent) for f in findings.factors), numbers=True)
    for j in range(findings.count):
        for name, _, values in [row for row in rows if row[1] == j][:most]:
            table.add_row(
                Text(name),
                *(Text(f"{round(v, 2) + 0.0:.2f}", style="bold" if abs(v) >= 0.4 else "dim") for v in values),
            )
    return table


def _axes(findings: Findings) -> list[str]:
    """The certificate of each factor in brief, those with the same one together."""
    certificates = {f.latent: str(f.certificate) for f in findings.factors}
    who: dict[str, list[str]] = {}
    for latent, text in certificates.items():
        who.setdefault(text, []).append(str(latent))
    return [f"axis of factor{'s' * (len(them) > 1)} {', '.join(them)}: {text}" for text, them in who.items()]


def _minor(findings: Findings) -> list[str]:
    """Directions beyond the factors, in one line."""
    if not findings.minor:
        return []
    count, share = len(findings.minor), 100 * sum(m.share for m in findings.minor)
    return [f"{count} minor direction{'s' * (count > 1)} beyond these, {share:.0f} % of the variance: see the page"]


def rivals(findings: Findings) -> Table:
    names = findings.compared
    table = _plain_table("as many components, unseen rows", *(name.replace("_", " ") for name in names), numbers=True)
    for name, row in findings.rivals.items():
        cells = [row.get(what) for what in names]
        table.add_row(name, *("-" if cell is None else f"{cell:.3f}" for cell in cells))
    return table
