"""`unseam demo`: a table and a small cohort, in a minute."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from unseam.cli.common import AsJson, emit, stdout

if TYPE_CHECKING:
    from unseam.show.demo import DemoResult


TABLE = "1. A table: 569 tumours, 30 measurements of the cell nuclei of each. The diagnosis was left out."
GROUPED = "A pair or a group comes back on other rows; which axes are right within it cannot be known from this table."
TELLS = (
    "Factor {factor} alone tells a malignant tumour from a benign one in {share:.0f} % of pairs (a coin: 50 %), the "
    "best of {count}. The diagnosis was not used to find it."
)
IMAGES = (
    "\n2. Images: {count} models learned to redraw squares of {sizes} sizes at {places} places. Which of them "
    "separates size, x and y?"
)
NOTE = (
    "DtO: how far the axes are from orthogonal (random axes: chance). cost/β: nats of loss that mixed latents cost. "
    "MIG: one latent per factor (1 is best), the only column that needs labels. The choice does not use it."
)


@dataclass
class Command:
    """Show what unseam does, in about a minute: the factors of a real table, and eight models of which one is chosen
    without labels. Ends with one page that explains both.

    Stopped half-way, the same command continues where it was.

    Example: unseam demo --out demo
    """

    out: Path = Path("demo")
    """The folder to write: OUT/index.html, the run of the models, and OUT/found for the table."""
    seed: int = 0
    """The first of the cohort's seeds."""
    json: AsJson = False

    def run(self) -> None:
        from unseam.show.demo import demo

        result = demo(self.out, self.seed)
        if self.json:
            document = {f.name: getattr(result, f.name) for f in fields(result)}
            emit(document | {"run": result.run.folder, "found": result.found.to_json()})
            return
        print_story(result)


def print_story(result: DemoResult) -> None:
    """What the demo prints; README shows it."""
    stdout.print(Text(TABLE))
    stdout.print(Text(result.found.sentence))
    stdout.print(factors_table(result))
    if any(factor.grade == "pair" for factor in result.found.factors):
        stdout.print(Text(GROUPED))
    best = max(range(len(result.tells)), key=result.tells.__getitem__)
    stdout.print(Text(TELLS.format(factor=best, share=100 * result.tells[best], count=len(result.tells))))
    assert result.run.data.space is not None
    space = dict(zip(result.run.data.space.names, result.run.data.space.sizes, strict=True))
    places = f"{space['x']} x {space['y']}"
    stdout.print(Text(IMAGES.format(count=len(result.rows), sizes=space["scale"], places=places)))
    stdout.print(members_table(result))
    stdout.print(Text(NOTE))
    for sentence in result.why:
        stdout.print(Text(sentence))
    stdout.print(f"\nBoth on one page: {result.page}", soft_wrap=True)


def factors_table(result: DemoResult) -> Table:
    """Each factor: its grade, and the columns it moves most."""
    out = Table(box=None, padding=(0, 1), pad_edge=False)
    for name in ("factor", "grade", "moves most"):
        out.add_column(name)
    for factor in result.found.factors:
        out.add_row(str(factor.latent), factor.graded(), Text(", ".join(move.name for move in factor.moves[:3])))
    return out


def members_table(result: DemoResult) -> Table:
    """The members, the chosen one marked."""
    out = Table(box=None, padding=(0, 1), pad_edge=False)
    for name in ("member", "beta", "seed", "latents in use", "DtO", "chance", "cost/β", "MIG", ""):
        out.add_column(name, justify="right" if name else "left")
    names = ("dto", "dto_haar", "cost_over_beta", "mig")
    marks = {result.chosen: "chosen", result.compared: "compared"}
    for row in result.rows:
        basic = [f"{row['member']}", f"{row['beta']:g}", f"{row['seed']}", f"{row.get('active', row['status'])}"]
        style = "bold" if row["member"] == result.chosen else None
        out.add_row(*basic, *(_number(row.get(name)) for name in names), marks.get(row["member"], ""), style=style)
    return out


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
