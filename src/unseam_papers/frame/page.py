"""The pages of finished exhibits.

exhibits.html             one self-contained page with every row, rule and note
what-the-papers-show.md   one screen: what holds, what does not and what could not be tried, source by source
papers/allen.md ...       a section an exhibit, its rows that compare with the source; rules and choices folded
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

from unseam_papers.frame.policy import POLICY
from unseam_papers.frame.reasons import reason_counts
from unseam_papers.frame.rows import SECOND_KEY, VerdictRow, counts, join_parts
from unseam_papers.frame.sources import OUT_OF_SCOPE, by_source, entry_rows

LOADER = PackageLoader("unseam_papers.frame")


def count(rows: Sequence[VerdictRow]) -> str:
    """Published rows that agree / are open / differ / cannot be compared.

    >>> number = VerdictRow("a", "a", "1", "1", "published number", "agrees")
    >>> rows = [number, VerdictRow("b", "b", "", "2", "own control", "holds")]
    >>> count(rows)
    '1 / 0 / 0 / 0'
    """
    return " / ".join(map(str, counts(rows)))


def total(rows: Sequence[VerdictRow]) -> str:
    """The counts in a sentence.

    >>> total([VerdictRow("a", "a", "1", "1", "published number", "agrees")])
    'Of 1 published row 1 agrees, 0 are open, 0 differ and 0 cannot be compared; 0 other rows are not counted.'
    """
    agree, open_, differ, other = counts(rows)
    whole = agree + open_ + differ + other
    return (
        f"Of {whole} published row{'s' * (whole != 1)} {agree} agree{'s' * (agree == 1)}, {open_} "
        f"{'is' if open_ == 1 else 'are'} open, {differ} differ{'s' * (differ == 1)} and {other} cannot be compared; "
        f"{len(rows) - whole} other rows are not counted."
    )


def count_words(entries: Sequence[Mapping[str, Any]]) -> str:
    """How many of their published rows agree, are open, are against the source or could not be tried.

    >>> row = {"key": "a", "what": "a", "published": "1", "ours": "1", "kind": "published number", "verdict": "agrees"}
    >>> count_words([{"rows": [row]}]), count_words([{"rows": []}])
    ('1 published row: 1 agrees, 0 open, 0 against it, 0 not tried.', '')
    """
    agree, open_, differ, other = found = counts(entry_rows(entries))
    if not (whole := sum(found)):
        return ""
    many = f"{whole} published row{'s' * (whole != 1)}: {agree} agree{'s' * (agree == 1)}"
    return f"{many}, {open_} open, {differ} against it, {other} not tried."


def printed_command(entry: Mapping[str, Any]) -> str:
    """The command that makes an entry, with the engine that its digits are of.

    >>> printed_command({"id": "V1", "scale": "quick"})
    'unseam reproduce V1 --size quick'
    >>> printed_command({"id": "A8", "scale": "quick", "engines": ["written-out", "xla"]})
    'unseam reproduce A8 --size quick --engine xla'
    """
    engines = entry.get("engines") or ()
    pinned = "xla" if "xla" in engines else "written-out" if engines else ""
    return f"unseam reproduce {entry['id']} --size {entry['scale']}" + (f" --engine {pinned}" if pinned else "")


def seen(entry: Mapping[str, Any], known: Sequence[str] = ()) -> dict[str, Any]:
    """What the templates see of an entry; a choice that is known already is not repeated."""
    rows = entry_rows([entry])
    choices = [choice for choice in entry["choices"] if choice not in known]
    return {
        **entry,
        "rows": rows,
        "command": printed_command(entry),
        "published": [row for row in rows if row.counted],
        "own": [row for row in rows if not row.counted],
        "count": count(rows),
        "others": sum(not row.counted for row in rows),
        "second": {row.key.removeprefix(SECOND_KEY): row for row in rows if row.key.startswith(SECOND_KEY)},
        "notes": _notes(rows),
        "choices": choices,
    }


def _notes(rows: Sequence[VerdictRow]) -> list[str]:
    """Rule and note of each row that has one."""
    described = [(row.what, f"{row.reason}: {row.why}" if row.reason else "", row) for row in rows]
    texts = [(what, join_parts(why, row.rule, row.note)) for what, why, row in described]
    return [f"{what}: {text}." for what, text in texts if text]


def _rendered(name: str, html: bool = False, **known: Any) -> str:
    environment = Environment(autoescape=html, loader=LOADER)
    environment.filters |= {"cell": cell, "emphasis": emphasis, "html": escape}
    return environment.get_template(name).render(policy=POLICY, **known)


def markdown(entries: Sequence[Mapping[str, Any]], more: str = "") -> dict[str, str]:
    """The pages of the entries as Markdown, by path; figures stand beside them in figures/, `more` ends the first.

    >>> list(markdown([]))
    ['what-the-papers-show.md']
    """
    sources = [(source, [seen(e) for e in own], count_words(own)) for source, own in by_source(entries)]
    every = total(entry_rows(entries))
    known: dict[str, Any] = {"sources": sources, "total": every, "reasons": reason_counts(entry_rows(entries))}
    known["carried"] = [entry["id"] for entry in entries if entry.get("carried")]
    first = _rendered("summary.md", **known, out_of_scope=OUT_OF_SCOPE, more=more)
    pages = {f"papers/{source.page}.md": _of_source(source, own) for source, own in by_source(entries)}
    return {name: text.rstrip() + "\n" for name, text in {"what-the-papers-show.md": first, **pages}.items()}


def _of_source(source: Any, entries: Sequence[Mapping[str, Any]]) -> str:
    """The page of a source: why rows do not agree, and each choice once; the rest is one command away."""
    shown: list[dict[str, Any]] = []
    known: list[str] = []
    for entry in entries:
        found = seen(entry, known)
        rows = [row for row in found["published"] if row.verdict != "agrees"]
        shown.append({**found, "notes": _notes(rows)})
        known += entry["choices"]
    return _rendered("paper.md", source=source, own=shown, words=count_words(entries))


def page(entries: Sequence[Mapping[str, Any]], out: Path = Path()) -> str:
    """The page of the entries of OUT/exhibits.json; the figures are read from OUT/figures and put inside.

    >>> "What the papers show" in page([])
    True
    """
    shown, svg = [seen(entry) for entry in entries], partial(_inline, out)
    return _rendered("exhibits.html", html=True, exhibits=shown, total=total(entry_rows(entries)), svg=svg)


def cell(text: str) -> str:
    """Text for a cell of a Markdown table, where a bar would end the cell.

    >>> print(cell("|R - P|"))
    \\|R - P\\|
    """
    return text.replace("|", "\\|")


def emphasis(text: str) -> Markup:
    """Markdown's *stars* in HTML.

    >>> print(emphasis("a *b* < c"))
    a <em>b</em> &lt; c
    """
    return Markup(re.sub(r"\*(.+?)\*", r"<em>\1</em>", str(escape(text))))


def _inline(out: Path, name: str) -> Markup:
    """The figure of an exhibit without its XML header, to stand inside HTML; nothing where there is none."""
    path = out / "figures" / f"{name}.svg"  # and no other: what exhibits.json says is not followed
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return Markup(text[text.index("<svg") :] if "<svg" in text else "")
