"""What must hold of every report, whatever is on it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "input", "br", "hr", "img", "link", "circle", "rect", "line", "polyline", "path", "use", "image"}


class Page(HTMLParser):
    """Checks that tags nest, and collects ids, links, sources, sliders and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.sliders: list[dict[str, str]] = []
        self.tags: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.addresses += [found[name] for name in ("href", "src", "xlink:href", "action") if name in found]
        self.sliders += [found] if found.get("type") == "range" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words += data


def checked(path: Path) -> tuple[str, Page]:
    """What must hold of every report."""
    text = path.read_text()
    page = Page(text)
    assert not page.open
    assert len(page.ids) == len(set(page.ids))
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in page.addresses)
    assert not re.search(r"""url\((?!["']?(?:data:|#))""", text)
    assert "eval(" not in text
    assert "@import" not in text
    targets = {address[1:] for address in page.addresses if address.startswith("#")}
    assert targets <= set(page.ids)
    assert path.stat().st_size < 5_000_000
    return text, page
