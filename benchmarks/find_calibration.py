"""How often is a factor graded *found* wrong, and how many true factors are found? A resumable simulation.

    unseam bench find-calibration --tables 20 --out calibration
    python benchmarks/find_calibration.py --kinds items,gaussian-dense --tables 200 --workers 2 --out calibration

Each kind of table (`_calibration_kinds.py`) is simulated with known truth and handed to `unseam.find`; the rules of
judging are at the top of `_calibration_judge.py`. One line of JSON for each table is appended to OUT/KIND.jsonl; the
same command continues where it stopped. A line names the code it was made by: after a change of `find` all tables are
measured again, and lines of other code are left in the file but not counted. OUT gets summary.txt, summary.json and
summary.md.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import sys
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from _calibration_judge import judge, rivals, summary
from _calibration_kinds import KINDS, Simulated

import unseam
from unseam.atomic import write_atomic
from unseam.errors import BadInput, unknown
from unseam.finding.columns import prepare
from unseam.finding.findings import Findings
from unseam.finding.read import read
from unseam.finding.search import examine

LONG = True  # `unseam bench` runs it only by name
HERE = Path(__file__).parent
JUDGED = ("_calibration_kinds.py", "_calibration_judge.py")
WORDS = ("sentences.py", "findings.py")  # of `find`: they only say what was found
NETWORKS = ("network.py", "nonlinear.py", "latent_count.py", "linear_rival.py", "encoding.py", "spacings.py")


def simulate(name: str, table: int, rows: int | None = None) -> Simulated:
    """Table number `table` of a kind: the same numbers on every machine."""
    kind = KINDS[name]
    g = np.random.default_rng([zlib.crc32(name.encode()), table])
    size = kind.rows[int(g.integers(len(kind.rows)))]
    return kind.make(g, rows or size)


def measure(name: str, table: int) -> dict[str, Any]:
    """One table: what `find` says, which of it is right, and what the rivals make of the same table."""
    kind, made = KINDS[name], simulate(name, table)
    began = cpu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        findings = find_factors(made.table, kind.network)
        seconds = cpu() - began
        row = {"kind": name, "table": table, "family": made.family, "rows": len(made.table)}
        row |= {"columns": made.table.shape[1], **judge(findings, made, kind.answer), "cpu": round(seconds, 2)}
        if kind.answer == "known":
            row["rivals"] = rivals(made)
    return row


def find_factors(table: pd.DataFrame, network: bool) -> Findings:
    """`unseam.find` without its comparison with other methods, which changes neither factors nor grades: the rivals
    here are told the number of factors."""
    data, _, _ = read(table, None, None)
    return examine(prepare(data, "auto", ()), network=network, effort="quick", show=False, with_rivals=False)


def cpu() -> float:
    """Processor seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class _WithoutWords(ast.NodeTransformer):
    """Takes docstrings and sentences (strings with a space) from code, and where its names are imported from: they make
    no numbers."""

    def visit_ImportFrom(self, _: ast.ImportFrom) -> None:
        return None

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        words = isinstance(node.value, str) and " " in node.value
        return ast.Constant("") if words else node


def fingerprint(network: bool = True) -> str:
    """Of the code of `find` that makes numbers and of the rules that judge them; without that of networks where none
    is trained. Comments, docstrings, sentences and imports do not count."""
    home = Path(unseam.__file__).parent / "finding"
    files = [p for p in sorted(home.rglob("*.py")) if p.name not in WORDS and (network or p.name not in NETWORKS)]
    digest = hashlib.sha256()
    for path in [*files, *(HERE / name for name in JUDGED)]:
        digest.update(ast.dump(_WithoutWords().visit(ast.parse(path.read_text()))).encode())
    return digest.hexdigest()[:12]


# --- results on disk -------------------------------------------------------------------------------------------------


def read_rows(path: Path, code: str | None) -> list[dict[str, Any]]:
    """The lines of one kind made by this code (None: by any), by table; a line that was cut off is skipped."""
    rows: dict[int, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if code in (None, row["code"]):
            rows[row["table"]] = row
    return [rows[table] for table in sorted(rows)]


def append(path: Path, row: dict[str, Any]) -> None:
    """One line in one write; after a line that was cut off, a new one is begun."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(handle).st_size
        broken = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, (b"\n" if broken else b"") + json.dumps(row).encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)


def codes(kinds: Sequence[str]) -> dict[str, str]:
    """The fingerprint that counts for each kind."""
    both = {network: fingerprint(network) for network in (True, False)}
    return {name: both[KINDS[name].network] for name in kinds}


def remaining(
    kinds: Sequence[str], tables: int, out: Path, code: Mapping[str, str], first: int = 0
) -> list[tuple[str, int]]:
    """What is still to be measured: table `first` of every kind, then the next, ..."""
    done = {name: {row["table"] for row in read_rows(out / f"{name}.jsonl", code[name])} for name in kinds}
    return [(name, t) for t in range(first, first + tables) for name in kinds if t not in done[name]]


def results(jobs: Sequence[tuple[str, int]], workers: int) -> Iterator[dict[str, Any]]:
    if workers == 1:
        yield from (measure(*job) for job in jobs)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(measure, *zip(*jobs, strict=True))


def calibrate(
    kinds: Sequence[str],
    tables: int,
    workers: int,
    out: Path,
    seconds: float = float("inf"),
    show: bool = True,
    first: int = 0,
) -> list[dict[str, Any]]:
    """Measure what is missing, until `seconds` have passed; write and return the summaries."""
    for name in kinds:
        if name not in KINDS:
            raise unknown("kind", name, KINDS)
    if tables < 1 or workers < 1:
        raise BadInput(f"tables={tables} and workers={workers} must be 1 or more")
    out.mkdir(parents=True, exist_ok=True)
    code, began = codes(kinds), time.monotonic()
    jobs = remaining(kinds, tables, out, code, first)
    for done, row in enumerate(results(jobs, workers) if jobs else (), start=1):
        append(out / f"{row['kind']}.jsonl", {"code": code[row["kind"]], **row})
        if show:
            wrong = f"{row['wrong']} wrong" if row["wrong"] else ""
            print(f"{done} of {len(jobs)}: {row['kind']} {row['table']} {row['grades']} {wrong}", file=sys.stderr)
        if time.monotonic() - began > seconds:
            break
    return summarise(kinds, out, code)


def summarise(kinds: Sequence[str], out: Path, code: Mapping[str, str]) -> list[dict[str, Any]]:
    found = {name: read_rows(out / f"{name}.jsonl", code[name]) for name in kinds}
    summaries = [summary(name, KINDS[name].answer, rows) for name, rows in found.items() if rows]
    write_atomic(out / "summary.json", json.dumps({"code": code, "kinds": summaries}, indent=1) + "\n")
    write_atomic(out / "summary.md", markdown(summaries))
    write_atomic(out / "summary.txt", text(summaries))
    return summaries


# --- tables ----------------------------------------------------------------------------------------------------------


def share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def figure(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.3f}"


NULL = ("kind", "tables", "wrong", "share", "95 % bound", "count right", "CPU s")
ANSWER = (
    "kind", "tables", "found", "right", "tables with a wrong one", "95 % bound", "power", "count right", "match",
    "best rival", "difference", "CPU s",
)  # fmt: skip


def null_cells(s: dict[str, Any]) -> list[str]:
    cells = [s["kind"], str(s["tables"]), str(s["wrong_tables"]), share(s["wrong_share"]), share(s["upper_bound"])]
    return [*cells, share(s["count_right"]), f"{s['cpu_seconds']:.1f}"]


def answer_cells(s: dict[str, Any]) -> list[str]:
    rival = f"{s['best_rival']} {s['best_rival_mcc']:.3f}" if "best_rival" in s else "-"
    cells = [s["kind"], str(s["tables"]), str(s["found"]), str(s["found_right"]), str(s["wrong_tables"])]
    cells += [share(s["upper_bound"]), share(s.get("power")), share(s["count_right"]), figure(s.get("mcc")), rival]
    return [*cells, figure(s.get("difference"), "+"), f"{s['cpu_seconds']:.1f}"]


def grids(summaries: Sequence[dict[str, Any]]) -> list[tuple[str, Sequence[str], list[list[str]]]]:
    null = [null_cells(s) for s in summaries if s["answer"] != "known"]
    known = [answer_cells(s) for s in summaries if s["answer"] == "known"]
    titles = "Tables in which no axis can be known, or hardly", "Tables with an answer"
    return [grid for grid in ((titles[0], NULL, null), (titles[1], ANSWER, known)) if grid[2]]


def markdown(summaries: Sequence[dict[str, Any]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |\n"

    out = ""
    for title, head, body in grids(summaries):
        out += f"### {title}\n\n" + line(head) + line(["---"] + ["---:"] * (len(head) - 1))
        out += "".join(map(line, body)) + "\n"
    return out


def text(summaries: Sequence[dict[str, Any]]) -> str:
    out = ""
    for title, head, body in grids(summaries):
        widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
        lines = [
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True)))
            for r in [head, *body]
        ]
        out += title + "\n" + "\n".join(line.rstrip() for line in lines) + "\n\n"
    return out


# --- doors -----------------------------------------------------------------------------------------------------------


def named(kinds: str) -> list[str]:
    """
    >>> named("items,curves"), named("null")[:2], len(named("")) == len(KINDS)
    (['items', 'curves'], ['independent', 'gaussian-dense'], True)
    """
    groups = {
        "null": [name for name, kind in KINDS.items() if kind.answer != "known"],
        "answer": [name for name, kind in KINDS.items() if kind.answer == "known"],
        "linear": [name for name, kind in KINDS.items() if not kind.network],
        "curved": [name for name, kind in KINDS.items() if kind.network],
    }
    return [name for word in kinds.split(",") if word for name in groups.get(word, [word])] or list(KINDS)


def run(
    kinds: str = "",
    tables: int = 20,
    workers: int = 1,
    out: Path | None = None,
    seconds: float = float("inf"),
    first: int = 0,
) -> dict[str, Any]:
    """For `unseam bench find-calibration`: the summaries, and how they were made."""
    folder = out or Path("find-calibration")
    summaries = calibrate(named(kinds), tables, workers, folder, seconds, first=first)
    how = f"a line for each table, summary.txt, summary.json and summary.md in {folder}"
    return {"how": how, "ratios": {}, "text": text(summaries), "kinds": summaries}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="", help="separated by commas, or null, answer, linear, curved; default all")
    parser.add_argument("--tables", type=int, default=20, help="of each kind")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first table: fresh ones after a rule changed"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="folder of the results; default find-calibration")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after the table that passes this")
    print(run(**vars(parser.parse_args()))["text"])


if __name__ == "__main__":
    main()
