"""Run exhibits, keep what is finished, and write the page.

OUT/exhibits.json, .html                  every exhibit finished in this folder so far
OUT/what-the-papers-show.md               the same on one screen, with OUT/papers/allen.md and so on: those of docs/
OUT/figures/V1.svg                        its figure
OUT/work/V1-quick-1a2b3c4d5e/             its finished steps; the name holds the settings
OUT/runs/sprites-beta-vae-1a2b3c4d5e/     a trained cohort, shared by the exhibits that ask for it
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from unseam.atomic import write_atomic
from unseam.errors import BadInput, lookup
from unseam.progress import bar
from unseam_papers.frame.bars import SOURCE_BARS, draw_bars
from unseam_papers.frame.draw import save_figure, style
from unseam_papers.frame.exhibit import Exhibit, ExhibitEngine, ExhibitScale, Work
from unseam_papers.frame.page import markdown, page
from unseam_papers.frame.rows import keyed, overall


def select_exhibits(exhibits: Mapping[str, Exhibit], ids: Sequence[str]) -> list[Exhibit]:
    """The exhibits named, in any case; all of them for no name or `all`.

    >>> select_exhibits({"V1": 1, "V2": 2}, ["v2", "V2"]), select_exhibits({"V1": 1, "V2": 2}, [])
    ([2], [1, 2])
    """
    if not ids or [i.lower() for i in ids] == ["all"]:
        return list(exhibits.values())
    return [lookup(exhibits, i, "exhibit") for i in dict.fromkeys(i.upper() for i in ids)]


def run_one(exhibit: Exhibit, scale: ExhibitScale, out: Path, engine: ExhibitEngine = "auto") -> dict[str, Any]:
    """Compute (or take up) one exhibit and return its entry for exhibits.json."""
    start, scale = time.perf_counter(), exhibit.has(scale)
    settings = exhibit.settings(scale)
    other = "-written-out" if engine == "written-out" else ""  # its digits are not those of XLA
    work = Work(out / "work" / f"{exhibit.id}-{scale}-{exhibit.digest(scale)}{other}", out / f"runs{other}", engine)
    numbers = exhibit.compute(settings, work)
    rows = keyed(exhibit.judge(numbers))
    with style():
        save_figure(exhibit.draw(numbers), out / "figures" / f"{exhibit.id}.svg")
    return {
        **describe_exhibit(exhibit),
        "scale": scale,
        "settings": asdict(settings),
        "engines": work.engines(),  # what trained its cohorts; the digits are of these
        "verdict": overall(rows.values()),
        "rows": [asdict(row) for row in rows.values()],
        "conclusion": exhibit.conclude(numbers, rows),
        "figure": f"figures/{exhibit.id}.svg",  # in OUT, which may be moved
        "seconds": round(time.perf_counter() - start, 1),
    }


def describe_exhibit(exhibit: Exhibit) -> dict[str, Any]:
    """What is known of an exhibit before it runs."""
    words = ("id", "title", "claim", "source", "choices", "paper")
    return {name: getattr(exhibit, name) for name in words} | {"choices": list(exhibit.choices)}


def reproduce(
    exhibits: Mapping[str, Exhibit],
    ids: Sequence[str] = (),
    scale: ExhibitScale = "quick",
    out: Path = Path("exhibits"),
    engine: ExhibitEngine = "auto",
) -> list[dict[str, Any]]:
    """Run the named exhibits and bring OUT up to date after each; returns the entries of those named."""
    from unseam.train.xla import installed

    if engine == "xla" and not installed():
        raise BadInput("engine='xla' needs JAX; install it with: pip install 'unseam[xla]', or use --engine auto")
    named, done = select_exhibits(exhibits, ids), []
    with bar("exhibits", len(named)) as advance:
        for exhibit in named:
            advance(0, note=exhibit.id)
            done.append(run_one(exhibit, scale, out, engine))
            publish(exhibits, done[-1], out)
            advance()
    return done


def finished_entries(out: Path) -> dict[str, dict[str, Any]]:
    """The entries already in OUT/exhibits.json, by id; without those of a version whose rows had no key."""
    path = out / "exhibits.json"
    try:
        entries = json.loads(path.read_bytes())["exhibits"] if path.exists() else []
        found = {str(e["id"]): e for e in entries if all("key" in row for row in e["rows"])}
        markdown(list(found.values()))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, UndefinedError) as error:
        again = f"delete it and reproduce again: what was computed is kept in {out / 'work'}"
        raise BadInput(f"{path} is damaged ({error!r}); {again}") from None
    return found


def publish(exhibits: Mapping[str, Exhibit], entry: Mapping[str, Any], out: Path) -> None:
    """Put one entry into exhibits.json, .html and .md, beside those already there, in the registry's order."""
    entries = finished_entries(out) | {entry["id"]: dict(entry)}
    ordered = [entries[i] for i in exhibits if i in entries]
    with style():
        save_figure(draw_bars(ordered), out / "figures" / f"{SOURCE_BARS}.svg")
    texts = {"exhibits.json": json.dumps({"exhibits": ordered}, indent=2), "exhibits.html": page(ordered, out)}
    for name, text in {**texts, **markdown(ordered)}.items():
        write_atomic(out / name, text)
