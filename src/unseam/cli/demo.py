"""`unseam demo`: the whole way, small."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from unseam.cli.common import emit, stdout

if TYPE_CHECKING:
    from unseam.show.demo import DemoResult


@dataclass
class Command:
    """Train a small cohort on sprites, choose a member without labels, say why, and write a report.

    Takes about two minutes on two cores. Stopped half-way, the same command goes on where it was.

    Example: unseam demo --out demo
    """

    out: Path = Path("demo")
    """Run folder; the report is OUT/report.html."""
    seed: int = 0
    """The first of the cohort's seeds."""
    json: bool = False
    """Print one JSON document."""

    def run(self) -> None:
        from unseam.show.demo import demo

        result = demo(self.out, self.seed)
        if self.json:
            emit({f.name: getattr(result, f.name) for f in fields(result)} | {"run": result.run.folder})
            return
        stdout.print(table(result))
        for sentence in result.why:
            stdout.print(sentence, highlight=False)
        stdout.print(f"report: {result.report}", soft_wrap=True, highlight=False)


def table(result: DemoResult) -> Table:
    """The members, the chosen one marked."""
    columns = ("", "member", "beta", "seed", "active", "DtO", "by chance", "cost (nats)", "cost / beta", "MIG")
    out = Table(title=f"beta-VAEs on {result.run.config.data['name']}: {len(result.rows)} members")
    for name in columns:
        out.add_column(name, justify="right")
    for row in result.rows:
        chosen = row["member"] == result.chosen
        mark = "chosen" if chosen else "compared" if row["member"] == result.compared else ""
        basic = [mark, f"{row['member']}", f"{row['beta']:g}", f"{row['seed']}"]
        names = ("dto", "dto_haar", "entanglement_cost", "cost_over_beta", "mig")
        numbers = [f"{row.get('active', row['status'])}", *(number(row.get(name)) for name in names)]
        out.add_row(*basic, *numbers, style="bold" if chosen else None)
    return out


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
