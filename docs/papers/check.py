"""Draw rows of the pages, run their printed commands in a fresh clone, and compare what comes out to the digit.

python docs/papers/check.py --rows 30 --seed 1 --out FOLDER --minutes 10

FOLDER/clone is the clone, FOLDER/out what its commands wrote; a command that runs longer than `--minutes` is stopped
and goes on when the same line runs again. docs/papers/checked.json has the outcomes, with the commit of the clone;
outcomes of commands that are left out stay from the last time. take.py puts their number on the page.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unseam_papers.frame.page import printed_command
from unseam_papers.frame.rows import VerdictRow

PAPERS = Path(__file__).resolve().parent
CHECKED = PAPERS / "checked.json"
SAME, OTHER, UNRUN = "came back", "other digits", "not run"


def drawn(entries: Sequence[Mapping[str, Any]], rows: int, seed: int) -> list[tuple[str, str]]:
    """Exhibit and key of published rows, drawn by a hash of seed and name: rows that are added change little."""
    every = [(e["id"], row) for e in entries for row in e["rows"] if VerdictRow(**row).counted]
    every.sort(key=lambda one: hashlib.sha256(f"{seed} {one[0]} {one[1]['what']}".encode()).digest())
    return sorted((name, row["key"]) for name, row in every[:rows])


def in_clone(command: str, out: Path, seconds: float) -> str:
    """Run a printed command in a clone of this repository, in an empty folder; empty, or why it did not end."""
    clone, empty = out / "clone", out / "empty"
    if not clone.exists():
        subprocess.run(["git", "clone", "--quiet", str(PAPERS.parents[1]), str(clone)], check=True)
    empty.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", *command.split(), "--out", str(out / "out")]
    known = os.environ | {"PYTHONPATH": str(clone / "src")}
    try:
        done = subprocess.run(words, cwd=empty, env=known, timeout=seconds, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        return f"stopped after {seconds / 60:g} minutes"
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it failed"])[-1]


def compared(page: Mapping[str, Any], here: Mapping[str, Any] | None) -> tuple[str, str]:
    """The outcome of a row, and what came out where it is another one."""
    if here is None:
        return OTHER, "no such row"
    same = all(page[name] == here[name] for name in ("published", "ours", "verdict"))
    return (SAME, "") if same else (OTHER, f"{here['ours']}: {here['verdict']}")


def _left_out(entry: Mapping[str, Any], only: Sequence[str]) -> str:
    """Why the command of an exhibit is not run; empty if it is."""
    if not only or entry["id"] in only:
        return ""
    return "carried; its command was not run" if entry.get("carried") else "its command was left out"


def check(
    entries: Sequence[Mapping[str, Any]],
    rows: Iterable[tuple[str, str]],
    out: Path,
    minutes: float,
    only: Sequence[str] = (),  # exhibits; the commands of others are too long to be run now
) -> list[dict[str, str]]:
    """The outcome of every row; the commands that took least when the page was made run first."""
    rows, by_id = list(rows), {e["id"]: e for e in entries}
    needed = sorted({name for name, _ in rows}, key=lambda name: by_id[name].get("seconds", float("inf")))
    outcomes = []
    for name in needed:
        entry = by_id[name]
        command = printed_command(entry)
        why = _left_out(entry, only) or in_clone(command, out, 60 * minutes)
        found: dict[str, Any] = {}
        if not why:
            made = json.loads((out / "out" / "exhibits.json").read_text(encoding="utf-8"))["exhibits"]
            found = {row["key"]: row for e in made if e["id"] == name for row in e["rows"]}
        page = {row["key"]: row for row in entry["rows"]}
        for key in (key for other, key in rows if other == name):
            outcome, here = (UNRUN, why) if why else compared(page[key], found.get(key))
            outcomes.append({
                "exhibit": name, "key": key, "command": command, "page": page[key]["ours"], "outcome": outcome,
                "here": here, "carried": "yes" if entry.get("carried") else "no",
            })  # fmt: skip
            print(f"{name:4} {key}: {outcome}{': ' * bool(here)}{here}", flush=True)
    return outcomes


def sentence(checked: Mapping[str, Any]) -> str:
    """What came back, for the page."""
    rows = checked["rows"]
    many = Counter(row["outcome"] for row in rows)
    unrun = Counter(row["exhibit"] for row in rows if row["outcome"] == UNRUN)
    where = ", ".join(f"{name} ({n} rows)" if n > 1 else name for name, n in unrun.items())
    left = f"{many[UNRUN]} {'was' if many[UNRUN] == 1 else 'were'} not run" + f", for want of time: {where}" * bool(
        where
    )
    return (
        f"Of {len(rows)} published rows drawn at random (seed {checked['seed']}), {many[SAME]} came back to the digit "
        f"when their printed commands ran in a fresh clone, {many[OTHER]} gave other digits and {left} "
        "(`python docs/papers/check.py`). Digits are those of one kind "
        "of processor and of the engine in the command; another one rounds otherwise."
    )


def with_earlier(rows: Iterable[dict[str, str]], earlier: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """The rows, and for one that was not run now the outcome of the last time, if page and command are the same."""
    names = ("exhibit", "key", "command", "page")
    ran = {tuple(row[name] for name in names): row for row in earlier if row["outcome"] != UNRUN}
    return [ran.get(tuple(row[name] for name in names), row) if row["outcome"] == UNRUN else row for row in rows]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", default="", help="run the commands of these exhibits, for example A1,L2")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(words)
    out = asked.out.resolve()
    entries = json.loads((PAPERS / "exhibits.json").read_text(encoding="utf-8"))["exhibits"]
    only = asked.only.split(",") if asked.only else ()
    rows = check(entries, drawn(entries, asked.rows, asked.seed), out, asked.minutes, only)
    head = ["git", "-C", str(out / "clone"), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=False).stdout.strip()
    now = [row | ({} if row["outcome"] == UNRUN else {"commit": commit}) for row in rows]
    earlier = json.loads(CHECKED.read_text(encoding="utf-8"))["rows"] if CHECKED.exists() else []
    document: dict[str, Any] = {"seed": asked.seed, "rows": with_earlier(now, earlier)}
    document = {"sentence": sentence(document), **document}
    CHECKED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(document["sentence"])


if __name__ == "__main__":
    main()
