"""exhibits.html, one self-contained page, and exhibits.md, the same for the docs: a section an exhibit."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

from unseam_papers.frame.policy import POLICY
from unseam_papers.frame.rows import VerdictRow, counts, join_parts

LOADER = PackageLoader("unseam_papers.frame")


def _rows_of(entry: Mapping[str, Any]) -> list[VerdictRow]:
    """The rows of an entry of exhibits.json."""
    return [VerdictRow(**row) for row in entry["rows"]]


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


def seen(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What the templates see of an entry."""
    rows = _rows_of(entry)
    texts = [(row.what, join_parts(row.rule, row.note)) for row in rows]
    others = sum(not row.counted for row in rows)
    notes = [f"{what}: {text}." for what, text in texts if text]
    return {**entry, "rows": rows, "count": count(rows), "others": others, "notes": notes}


def rendered(name: str, entries: Sequence[Mapping[str, Any]], html: bool, out: Path = Path()) -> str:
    environment = Environment(autoescape=html, loader=LOADER)
    environment.filters |= {"cell": cell, "emphasis": emphasis}
    known = {
        "policy": POLICY,
        "total": total([row for e in entries for row in _rows_of(e)]),
        "svg": partial(_inline, out),
    }
    return environment.get_template(name).render(exhibits=[seen(e) for e in entries], **known)


def markdown(entries: Sequence[Mapping[str, Any]]) -> str:
    """The entries as Markdown, with the figures beside it in figures/.

    >>> markdown([]).splitlines()[0]
    '# What the papers show'
    """
    return rendered("exhibits.md", entries, html=False).rstrip() + "\n"


def page(entries: Sequence[Mapping[str, Any]], out: Path = Path()) -> str:
    """The page of the entries of OUT/exhibits.json; the figures are read from OUT/figures and put inside.

    >>> "What the papers show" in page([])
    True
    """
    return rendered("exhibits.html", entries, html=True, out=out)


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
