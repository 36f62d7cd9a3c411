"""`unseam demo`: the whole way, small."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from unseam.cli.common import AsJson, emit, stdout
from unseam.cli.find import _loadings, factors, rivals

if TYPE_CHECKING:
    from unseam.show.demo import DemoResult


NOTE = (
    "DtO: distance of the decoder's axes from orthogonal; chance: what random axes give; cost: nats of loss that mixed "
    "latents cost. Chosen without labels: {rule}. MIG on {rows}, DtO and cost at {points}.\n"
)


@dataclass
class Command:
    """Train a small cohort on sprites, choose a member without labels, say why, and write a report; then find the
    factors of a made-up table and of a real one.

    Takes about two minutes on two cores. Stopped half-way, the same command continues where it was.

    Example: unseam demo --out demo
    """

    out: Path = Path("demo")
    """Run folder; the report is OUT/report.html."""
    seed: int = 0
    """The first of the cohort's seeds."""
    json: AsJson = False

    def run(self) -> None:
        from unseam.runs.choices import DIAGNOSIS_POINTS
        from unseam.runs.diagnose import rows_of
        from unseam.runs.evaluate import rows_for
        from unseam.runs.rank_members import RULE
        from unseam.show.demo import demo

        result = demo(self.out, self.seed)
        if self.json:
            document = {f.name: getattr(result, f.name) for f in fields(result)}
            found = {"found": result.found.to_json(), "tumours": result.tumours.to_json()}
            emit(document | {"run": result.run.folder, **found})
            return
        stdout.print(members_table(result))
        rows, points = rows_for(result.run), rows_of(result.run, DIAGNOSIS_POINTS)
        stdout.print(NOTE.format(rule=RULE, rows=rows, points=points))
        for sentence in result.why:
            stdout.print(sentence)
        stdout.print(f"report: {result.report}", soft_wrap=True)
        stdout.print("\nAnd `unseam find`, on a table that three factors were mixed into:")
        stdout.print(Text(result.found.sentence))
        stdout.print(factors(result.found))
        stdout.print(rivals(result.found))
        stdout.print(f"report: {result.found.paths['report']}", soft_wrap=True)
        stdout.print("\nAnd on a real one, the cell nuclei of 569 tumours (scikit-learn's breast_cancer):")
        stdout.print(Text(result.tumours.sentence))
        if (loadings := _loadings(result.tumours)) is not None:  # None above ten factors
            stdout.print("", loadings, "", sep="\n")
        stdout.print(f"report: {result.tumours.paths['report']}", soft_wrap=True)


def members_table(result: DemoResult) -> Table:
    """The members, the chosen one marked."""
    title = f"{len(result.rows)} beta-VAEs on {result.run.config.data['name']}, {result.active} latents in use"
    out = Table(title=title, box=None, padding=(0, 1), pad_edge=False)
    for name in ("member", "beta", "seed", "active", "DtO", "chance", "cost", "cost/β", "MIG", ""):
        out.add_column(name, justify="right" if name else "left")
    names = ("dto", "dto_haar", "entanglement_cost", "cost_over_beta", "mig")
    marks = {result.chosen: "chosen", result.compared: "compared"}
    for row in result.rows:
        basic = [f"{row['member']}", f"{row['beta']:g}", f"{row['seed']}", f"{row.get('active', row['status'])}"]
        style = "bold" if row["member"] == result.chosen else None
        out.add_row(*basic, *(_number(row.get(name)) for name in names), marks.get(row["member"], ""), style=style)
    return out


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
