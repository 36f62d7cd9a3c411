"""The README as a package index shows it: relative links lead to the repository (`[project.urls]`), or are left out.

On an index there are no files beside the README, so that a relative picture or link is broken there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def published(text: str, repository: str | None) -> str:
    """The text with absolute links; without a repository pictures are left out and links become their words.

    >>> published("![a](a.png) [b](docs/b.md)", None)
    ' b'
    >>> published("![a](a.png) [b](docs/b.md)", "https://example.org/u")
    '![a](https://example.org/u/raw/HEAD/a.png) [b](https://example.org/u/blob/HEAD/docs/b.md)'
    """

    def link(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        if repository is None:
            return "" if picture else words
        return f"{picture}[{words}]({repository.rstrip('/')}/{'raw' if picture else 'blob'}/HEAD/{path})"

    return LINK.sub(link, text)


class Readme(MetadataHookInterface):
    """Fills in `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": published(text, repository)}
