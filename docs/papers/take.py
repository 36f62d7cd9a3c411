"""Take the exhibits that are finished in OUT into the documentation, beside those already there.

python docs/papers/take.py OUT          # without OUT the pages are made again from what is there

docs/papers/exhibits.json holds them; the pages are made from it, and a test compares the two.
"""

import json
import shutil
import sys
from pathlib import Path

from unseam_papers import EXHIBITS
from unseam_papers.frame.bars import SOURCE_BARS, draw_bars
from unseam_papers.frame.draw import save_figure, style
from unseam_papers.frame.page import markdown

DOCS = Path(__file__).resolve().parents[1]
KEPT = DOCS / "papers" / "exhibits.json"
CHECKED = DOCS / "papers" / "checked.json"
CHANGES = "[Rows that changed class](papers/changes.md) when the rules were made fairer."
if CHECKED.exists():  # check.py wrote it
    told = json.loads(CHECKED.read_text(encoding="utf-8"))["sentence"]
    CHANGES = f"## Do the digits come back?\n{told}\n\n{CHANGES}"


def take(out: Path | None) -> list[str]:
    """Their names."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))["exhibits"] if KEPT.exists() else []
    found = json.loads((out / "exhibits.json").read_text(encoding="utf-8"))["exhibits"] if out else []
    entries = {e["id"]: e for e in (*kept, *found)}
    ordered = [entries[name] for name in EXHIBITS if name in entries]
    KEPT.write_text(json.dumps({"exhibits": ordered}, indent=1) + "\n", encoding="utf-8")
    for name, text in markdown(ordered, CHANGES).items():
        (DOCS / name).write_text(text, encoding="utf-8")
    for entry in found:
        assert out
        shutil.copy(out / "figures" / f"{entry['id']}.svg", DOCS / "figures")
    with style():
        save_figure(draw_bars(ordered), DOCS / "figures" / f"{SOURCE_BARS}.svg")
    return [entry["id"] for entry in found]


if __name__ == "__main__":
    print(", ".join(take(Path(sys.argv[1]) if sys.argv[1:] else None)))
